//! Which isolation real stores give: PostgreSQL keeps what it promises under faults, and every weaker level is
//! convicted of what it allows and of nothing worse, with witnesses that are rows of the log.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use schemas::anomalies::{Anomalies, Class, Dependency};
use schemas::isolation::Isolation;
use schemas::plan::{Limit, Transactions};
use serde_json::Value;
use servers::{Kind, Options, Proxy, Server};

use crate::faults::with;
use crate::key_value::ask;
use crate::replays::Replay;
use crate::support::Workplace;

fn database() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    format!("encore_isolation_{}_{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed))
}

/// Few accounts and all kinds of transactions that read and write, so that they meet.
const CROWD: &str = "name = \"crowd\"\nfamily = \"economy\"\nsessions = 200000\nfragments = 2\n[data]\nrecords = 120\n\
                     fields = 1\n[access]\ndistribution = \"uniform\"\ndependency_window = 64\n[mix]\nread = 10\n\
                     update = 15\nread_modify_write = 25\nadjust = 30\nread_two = 10\ntransfer_in_steps = 10\n";

/// A correct store is never accused: connections are cut in the middle of transactions, the server is killed
/// twice, and every transaction is tried again and again.
#[test]
fn serializable_transactions_are_accused_of_nothing_whatever_fails() {
    let Some(server) = Server::start(Kind::Postgres, Options::default()) else { return };
    let (name, proxy) = (database(), Proxy::start(&server.address()));
    let parameters = "isolation=serializable&timeout_ms=5000";
    let (direct, store) = (with(&server.url(&name), parameters), with(&server.url_through(&proxy, &name), parameters));
    let place = Workplace::new();
    let folder = place.path("");
    let replay = Replay {
        spec: CROWD,
        threads: 64,
        limit: Limit::DurationS(600.0),
        transactions: Transactions { used: true, tries: 20 },
        ..Replay::new(&folder)
    };
    replay.load(&direct).unwrap_or_else(|error| panic!("{error}"));
    // How many operations have succeeded when the next thing happens.
    let (mut next, mut stage, before) = (2_000, 0, proxy.cuts());
    let replayed = replay.until(&store, &mut |snapshot| {
        let ok = snapshot.outcomes[0];
        if ok < next {
            return false;
        }
        match stage {
            0 => {
                proxy.cut_replies_every(211);
                proxy.cut_requests_every(199);
            }
            1 | 3 => {
                server.kill();
                server.restart();
            }
            // While connections break, transactions are tried again on new ones.
            2 => proxy.cut(),
            _ => {
                proxy.cut_replies_every(0);
                proxy.cut_requests_every(0);
            }
        }
        (stage, next) = (stage + 1, ok + 3_000);
        stage > 5
    });
    let report = &replayed.report;
    assert!(stage > 5 && proxy.cuts() > before + 20, "stage {stage}, {} cuts, {report:?}", proxy.cuts() - before);
    assert!(report.failed > 0 && report.unknown > 0, "{report:?}");
    let found = replayed.verdict.figures.anomalies.as_ref().expect("transactions");
    assert!(found.committed > 1_000 && found.aborted > 50 && found.unknown > 0, "{found:?}");
    assert!(found.strongest() >= Some(Isolation::Serializable), "{found:?}");
    assert_eq!(replayed.verdict.figures.unpredictable_reads, 0);
    assert_eq!(Isolation::promised(&report.store_settings), Some(Isolation::Serializable));

    let run = replayed.documented(&store);
    let said = place.run(&["analyze", "isolation", &run]).exits(0);
    assert!(said.contains("promises: serializable") && !said.contains("weaker than promised"), "{said}");
    place.run(&["analyze", "validate", &run]).exits(0);
}

/// A ready specification.
fn ready(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../traces").join(name).display().to_string()
}

/// What the transactions of a run show.
struct Shown {
    run: String,
    code: i32,
    level: String,
    anomalies: Anomalies,
    stories: Vec<String>,
}

impl Shown {
    fn count(&self, class: Class) -> u64 {
        self.anomalies.count(class)
    }

    /// Nothing that is worse than this class was found.
    fn has_nothing_worse_than(&self, class: Class, store: &str) {
        let worse = Class::ALL.into_iter().filter(|other| *other < class);
        for other in worse {
            assert_eq!(self.count(other), 0, "{store}: {}\n{}", other.words(), self.stories.join("\n"));
        }
    }

    fn classes(&self) -> Vec<&'static str> {
        let found = Class::ALL.into_iter().filter(|class| self.count(*class) > 0);
        found.map(Class::name).collect()
    }
}

/// Runs an experiment, and asks which isolation it shows.
fn shown(place: &Workplace, name: &str, spec: &str, store: &str, more: &[&str]) -> Shown {
    let all = ["run", spec, "--store", store, "--threads", "16", "--tries", "20", "--name", name, "--no-closing-read"];
    place.run(&[&all, more].concat()).ends();
    let run = format!("runs/{name}");
    let ran = place.run(&["analyze", "isolation", &run, "--format", "json"]);
    let object: Value = serde_json::from_str(&ran.stdout()).unwrap_or_else(|_| panic!("{}", ran.stderr()));
    let one = &object["experiments"][0];
    let code = i32::from(one["is_weaker_than_promised"] == true);
    ran.exits(code);
    let shown = Shown {
        run,
        code,
        level: one["shows"].as_str().expect("a level").to_string(),
        anomalies: serde_json::from_value(one["anomalies"].clone()).expect("anomalies"),
        stories: serde_json::from_value(one["stories"].clone()).expect("stories"),
    };
    println!("{store}: {} {:?}", shown.level, shown.classes());
    check_witnesses(place, &shown, store);
    shown
}

/// What a person would check by hand: each operation of a witness is a row of the log that succeeded, and each
/// link follows from what two of its transactions read and wrote.
fn check_witnesses(place: &Workplace, shown: &Shown, store: &str) {
    for witness in &shown.anomalies.witnesses {
        let story = || format!("{store}: {witness:#?}");
        let operations =
            witness.transactions.iter().flat_map(|one| one.operations.iter().map(move |operation| (one, operation)));
        // A cycle may pass the same transaction twice.
        let keys: BTreeSet<String> = operations
            .map(|(one, operation)| {
                format!("({}, {}, {}, {})", witness.fragment, one.session, operation.step, one.try_number)
            })
            .collect();
        let (rows, keys) = (keys.len(), keys.into_iter().collect::<Vec<_>>().join(", "));
        let sql = format!(
            "SELECT count(*) FROM operations WHERE outcome = 'ok' AND (fragment, session, step, try) IN ({keys})"
        );
        assert_eq!(ask(place, &shown.run, &sql), rows.to_string(), "{}", story());
        for link in &witness.links {
            let has = |place: usize, writes: bool| {
                let mut own = witness.transactions[place].operations.iter();
                own.any(|operation| operation.writes == writes && Some(operation.version) == link.version)
            };
            let overwrites = |place: usize| {
                let about = link.version.map(|version| (version.owner, version.element));
                let mut own = witness.transactions[place].operations.iter().filter(|operation| operation.writes);
                own.any(|operation| Some((operation.version.owner, operation.version.element)) == about)
            };
            let (from, to) = (link.from, link.to);
            let holds = match link.why {
                Dependency::Read => has(from, true) && has(to, false),
                Dependency::Overwrote => has(from, true) && has(to, false) && overwrites(to),
                Dependency::OverwroteRead => has(from, false) && has(to, false) && overwrites(to),
                Dependency::OverwroteSame => [from, to].into_iter().all(|place| has(place, false) && overwrites(place)),
                Dependency::EndedBefore => witness.transactions[from].end_ns < witness.transactions[to].start_ns,
            };
            assert!(holds, "{link:?} of {}", story());
        }
    }
}

#[test]
fn snapshots_are_convicted_of_write_skew_and_of_nothing_worse() {
    let place = Workplace::new();
    let mut stores = vec!["memory:?isolation=snapshot&latency_us=200".to_string()];
    stores.extend(servers::postgres().map(|server| with(&server.url(&database()), "isolation=repeatable-read")));
    stores.extend(servers::mongodb().map(|server| server.url(&database())));
    for (number, store) in stores.iter().enumerate() {
        let shown = shown(&place, &format!("s{number}"), &ready("write-skew.toml"), store, &["--sessions", "6000"]);
        assert!(shown.count(Class::WriteSkew) > 0, "{store}: {:?}", shown.classes());
        shown.has_nothing_worse_than(Class::WriteSkew, store);
        // Each of the two promises this level or a weaker one, so no promise is broken.
        assert_eq!((shown.level.as_str(), shown.code), ("snapshot", 0), "{store}");
        assert!(shown.stories.iter().any(|story| story.starts_with("write skew (G2-item)")), "{:?}", shown.stories);
    }
}

#[test]
fn read_committed_is_convicted_of_lost_updates() {
    let place = Workplace::new();
    let mut stores = vec!["memory:?isolation=read-committed&latency_us=200".to_string()];
    let databases = [servers::postgres(), servers::mysql()].into_iter().flatten();
    stores.extend(databases.map(|server| with(&server.url(&database()), "isolation=read-committed")));
    for (number, store) in stores.iter().enumerate() {
        let shown = shown(&place, &format!("c{number}"), &ready("write-skew.toml"), store, &["--sessions", "6000"]);
        assert!(shown.count(Class::LostUpdate) > 0, "{store}: {:?}", shown.classes());
        shown.has_nothing_worse_than(Class::LostUpdate, store);
        assert_eq!((shown.level.as_str(), shown.code), ("read committed", 0), "{store}");
        assert!(shown.stories.iter().any(|story| story.contains("both overwrote it")), "{:?}", shown.stories);
    }
}

/// MariaDB's repeatable read reads a snapshot, but writes over what was committed since, unless
/// `innodb_snapshot_isolation` is on: it loses updates, which the level excludes.
#[test]
fn mariadb_loses_updates_at_repeatable_read_and_none_at_serializable() {
    let Some(server) = servers::mysql() else { return };
    let place = Workplace::new();
    let at = |name: &str, level: &str| {
        let store = with(&server.url(&database()), &format!("isolation={level}"));
        (shown(&place, name, &ready("write-skew.toml"), &store, &["--sessions", "6000"]), store)
    };
    let (shown, store) = at("serializable", "serializable");
    assert!(shown.classes().iter().all(|class| *class == Class::StaleTransaction.name()), "{:?}", shown.classes());
    assert_eq!(shown.code, 0, "{store}");
    let (shown, store) = at("repeatable", "repeatable-read");
    shown.has_nothing_worse_than(Class::LostUpdate, &store);
    assert!(shown.count(Class::LostUpdate) > 0, "{store}: {:?}", shown.classes());
    assert_eq!((shown.level.as_str(), shown.code), ("read committed", 1), "{store}");
    // What it reads may be rolled back later, so nothing is certain but that it promises no more.
    let (shown, store) = at("uncommitted", "read-uncommitted");
    assert_eq!(shown.count(Class::DirtyWrite), 0, "{store}");
    assert_eq!(shown.code, 0, "{store}");
}

/// Each class can be planted, and is found: `memory:` has at each level the anomalies that the level allows,
/// and no others.
#[test]
fn every_class_of_anomalies_is_planted_and_found() {
    const SPEC: &str = "name = \"planted\"\nfamily = \"economy\"\nsessions = 20000\n[data]\nrecords = 14\nfields = 1\n\
                        [access]\ndependency_window = 8\n[transactions]\nabort_share = 0.1\n[mix]\nread = 10\n\
                        read_modify_write = 15\nadjust = 20\nread_two = 15\ntransfer_in_steps = 40\n";
    use Class::{
        AbortedRead, CircularRead, DirtyWrite, FuzzyRead, IntermediateRead, LostUpdate, ReadSkew, StaleTransaction,
        WriteSkew,
    };
    let place = Workplace::new();
    std::fs::write(place.path("planted.toml"), SPEC).expect("a specification");
    let cases: [(&str, &[Class], &[Class]); 5] = [
        ("serializable", &[], &[]),
        // A transaction may come after a later one by what a third one has read.
        ("snapshot", &[WriteSkew], &[StaleTransaction]),
        ("read-committed", &[LostUpdate, ReadSkew], &[FuzzyRead, WriteSkew, StaleTransaction]),
        (
            "read-uncommitted",
            &[AbortedRead, IntermediateRead, CircularRead, LostUpdate],
            &[FuzzyRead, ReadSkew, WriteSkew, StaleTransaction],
        ),
        (
            "read-uncommitted&write_locks=off",
            &[DirtyWrite, AbortedRead, IntermediateRead, CircularRead, LostUpdate],
            &[FuzzyRead, ReadSkew, WriteSkew, StaleTransaction],
        ),
    ];
    for (number, (level, has, may_have)) in cases.into_iter().enumerate() {
        let store = format!("memory:?isolation={level}&latency_us=200");
        let shown = shown(&place, &format!("p{number}"), "planted.toml", &store, &["--sessions", "5000"]);
        for class in Class::ALL {
            let count = shown.count(class);
            if has.contains(&class) {
                assert!(count > 0, "{store} lacks {}: {:?}", class.words(), shown.classes());
                assert!(shown.anomalies.witness(class).is_some(), "{store}: no witness of {}", class.words());
            } else if !may_have.contains(&class) {
                assert_eq!(count, 0, "{store} has {}: {}", class.words(), shown.stories.join("\n"));
            }
        }
        // Dirty writes are below what every level promises.
        assert_eq!(shown.code, i32::from(level.contains("write_locks")), "{store}: {}", shown.level);
    }
}

/// A store that says of itself what it does not keep fails its experiment and every check, with exit code 1.
#[test]
fn a_broken_promise_ends_with_exit_code_1() {
    let place = Workplace::alone();
    std::fs::write(place.path("crowd.toml"), CROWD.replace("records = 120", "records = 20")).expect("written");
    let store = "memory:?isolation=read-committed&promise=serializable&latency_us=1000";
    let run = ["run", "crowd.toml", "--store", store, "--threads", "4", "--tries", "5", "--sessions", "4000"];
    let ran = place.measures("liar", &[&run[..], &["--sla", "50% < 10s, 100% unpredictable, 1s"]].concat());
    let said = ran.exits(1);
    assert!(said.contains("although the store says that its transactions are serializable"), "{said}");
    assert!(said.contains("weaker than promised: the store promises serializable"), "{said}");
    let validated = place.run(&["analyze", "validate", "runs/liar", "--json"]).exits(1);
    let object: Value = serde_json::from_str(&validated).expect("JSON");
    assert!(object["sum"]["score"].as_f64() > Some(0.0), "{validated}");
    assert_eq!(object["isolation"]["is_weaker_than_promised"], true, "{validated}");
    assert_eq!(object["isolation"]["promised"], "serializable", "{validated}");
    assert!(object["isolation"]["stories"][0].as_str().is_some_and(|story| story.contains("T1: session")));
    place.run(&["analyze", "isolation", "runs/liar"]).exits(1);
    place.run(&["analyze", "summary", "runs/liar"]).exits(1);
    // The same store with the same anomalies, which promises nothing more.
    let honest = store.replace("&promise=serializable", "");
    let run = run.map(|word| if word == store { honest.as_str() } else { word });
    place.measures("honest", &[&run[..], &["--sla", "50% < 10s, 100% unpredictable, 1s"]].concat()).exits(0);
    place.run(&["analyze", "isolation", "runs/honest"]).exits(0);
}

/// A clause of the SLA that the store does not promise is noted before the run, and missed.
#[test]
fn an_sla_may_ask_for_isolation() {
    let place = Workplace::alone();
    std::fs::write(place.path("crowd.toml"), CROWD.replace("records = 120", "records = 20")).expect("written");
    let run = |name: &str, level: &str| {
        let store = format!("memory:?isolation={level}&latency_us=1000");
        let arguments = ["run", "crowd.toml", "--store", &store, "--threads", "4", "--tries", "20"];
        let sla = ["--sessions", "4000", "--sla", "50% < 10s, 100% unpredictable, serializable, 1s"];
        place.measures(name, &[&arguments[..], &sla].concat())
    };
    let said = run("weak", "read-committed").exits(1);
    let note = "the SLA asks for serializable transactions, and the store promises read committed";
    let verdict = "transactions show read committed (";
    let at = |words: &str| said.find(words).unwrap_or_else(|| panic!("{said} lacks {words:?}"));
    assert!(at(note) < at(verdict), "{said}");
    assert!(said.contains("needs serializable"), "{said}");
    let said = run("strong", "serializable").exits(0);
    assert!(!said.contains("the SLA asks for") && said.contains("isolation: consistent with"), "{said}");
}

/// What the README of the closed economy promises: a rating ends with ratings, anomaly score and isolation.
#[test]
fn a_rating_ends_with_anomaly_score_and_isolation() {
    let place = Workplace::alone();
    let mut stores = vec!["memory:?latency_us=2000".to_string()];
    stores.extend(servers::postgres().map(|server| with(&server.url(&database()), "isolation=serializable")));
    for (number, store) in stores.iter().enumerate() {
        let arguments = [
            "rate",
            &ready("economy.toml"),
            "--store",
            store,
            "--tries",
            "20",
            "--sla",
            "50% < 10s, 1% unpredictable, 1s",
            "--search-s",
            "0.3",
            "--max-threads",
            "4",
            "--set",
            "data.records=500",
            "--set",
            "sessions=60000",
        ];
        let said = place.measures(&format!("rated{number}"), &arguments).succeeds();
        let rated = said.find("SoAR        ").unwrap_or_else(|| panic!("{said}"));
        for words in
            ["Socialites", "anomaly score 0 (", "isolation: consistent with ", "the store promises serializable"]
        {
            assert!(said[rated..].contains(words), "{store}: {words:?} is not at the end of {said}");
        }
    }
}

/// Anomalies by T: every experiment of a run has its own row and its own seconds.
#[test]
fn anomalies_are_counted_by_experiment_and_threads() {
    let place = Workplace::new();
    let spec = CROWD.replace("records = 120", "records = 20").replace("sessions = 200000", "sessions = 4000");
    std::fs::write(place.path("crowd.toml"), spec).expect("written");
    place.run(&["trace", "gen", "crowd.toml", "-o", "crowd.trace"]).succeeds();
    let store = "memory:?isolation=read-committed&latency_us=200";
    for threads in ["1", "16"] {
        let replay = ["replay", "run", "--trace", "crowd.trace", "--store", store, "--load", "-T", threads, "-o", "r"];
        place.run(&replay).succeeds();
    }
    let said = place.run(&["analyze", "isolation", "r", "--format", "json"]).exits(0);
    let object: Value = serde_json::from_str(&said).expect("JSON");
    let one = |place: usize| {
        let one = &object["experiments"][place];
        let anomalies: Anomalies = serde_json::from_value(one["anomalies"].clone()).expect("anomalies");
        (one["threads"].as_u64().expect("T"), anomalies.count(Class::LostUpdate))
    };
    assert_eq!(one(0), (1, 0));
    let (threads, lost) = one(1);
    assert!(threads == 16 && lost > 20, "{lost}");
    let sql = "SELECT experiment, threads, sum(anomalies)::BIGINT FROM isolation_anomalies WHERE class = 'lost_update' \
               GROUP BY ALL ORDER BY ALL";
    assert_eq!(ask(&place, "r", sql), format!("2,16,{lost}"));
    let text = place.run(&["analyze", "isolation", "r"]).exits(0);
    assert!(text.contains("experiment 2, isolation: consistent with read committed"), "{text}");
}
