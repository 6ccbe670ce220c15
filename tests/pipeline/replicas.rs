//! Consistency metrics of real stores whose replicas lag by a known time: the calibration of these metrics.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::Duration;

use serde_json::Value;
use servers::{Kind, Options, Proxy, ReplicaOptions, Replicated, Server};

use crate::faults::with;
use crate::key_value::ask;
use crate::support::Workplace;

/// Few records, each of which is read every few milliseconds.
const SPEC: &str = "name = \"lag\"\nfamily = \"kv\"\nsessions = 30000\nfragments = 1\n[data]\nrecords = 4\nfields = 1\n\
                    field_bytes = 40\n[access]\ndistribution = \"uniform\"\n[inter_arrival_time]\nmean_us = 2000\n\
                    [mix]\nread = 95\nupdate = 5\n";

/// What `encore analyze consistency` says of a run of so long.
fn consistency(place: &Workplace, name: &str, store: &str, duration: &str) -> Value {
    std::fs::write(place.path("lag.toml"), SPEC).expect("a specification");
    place.run(&["run", "lag.toml", "--store", store, "--threads", "4", "--duration", duration, "--name", name]).ends();
    let run = format!("runs/{name}");
    assert_eq!(ask(place, &run, "SELECT count(*) FILTER (outcome <> 'ok') FROM operations"), "0", "{store}");
    let text = place.run(&["analyze", "consistency", &run, "--json"]).succeeds();
    let figures: Value = serde_json::from_str(&text).expect("JSON");
    let found = figures["consistency"].clone();
    eprintln!(
        "{name}: {} of {} reads stale, Γ {}, Γ of values {}, t-visibility {}",
        found["stale_reads"], found["reads"], found["gamma_ns"], found["value_gamma_ns"], found["t_visibility_ns"]
    );
    assert!(found["reads"].as_u64() > Some(200) && found["writes"].as_u64() > Some(10), "{store}: {found}");
    found
}

fn ms(found: &Value, metric: &str, statistic: &str) -> f64 {
    found[metric][statistic].as_f64().unwrap_or_else(|| panic!("{metric} {statistic}: {found}")) / 1e6
}

fn is_fresh(found: &Value, store: &str) {
    let linearizable = found["linearizable"].as_u64();
    assert_eq!(
        (found["stale_reads"].as_u64(), linearizable),
        (Some(0), found["registers"].as_u64()),
        "{store}: {found}"
    );
}

/// Γ and t-visibility are the time by which a replica of PostgreSQL's applies commits late. A commit that waits for the
/// replica shows no staleness.
#[test]
fn staleness_is_the_delay_of_the_replica() {
    let place = Workplace::alone();
    for (delay_ms, duration) in [(50, "3s"), (200, "3s"), (1_000, "5s")] {
        let options = ReplicaOptions { apply_delay: Duration::from_millis(delay_ms), ..ReplicaOptions::default() };
        let Some(servers) = Replicated::start(Kind::Postgres, options) else { return };
        let store = servers.url("lag");
        let name = format!("late-{delay_ms}");
        let found = consistency(&place, &name, &store, duration);
        let commits = ask(
            &place,
            &format!("runs/{name}"),
            "SELECT max(end_ns - start_ns) FROM operations WHERE operation = 'update'",
        );
        let (delay_ms, commit_ms) = (delay_ms as f64, commits.parse::<f64>().expect("a number") / 1e6);
        let (low, high) = (delay_ms * 0.9, delay_ms * 1.1);
        for metric in ["t_visibility_ns", "value_gamma_ns"] {
            let median = ms(&found, metric, "p50");
            assert!(low <= median && median <= high, "{delay_ms} ms late, {metric}: {found}");
        }
        // Γ of a record is the greatest of its values. The commit adds at most its own time.
        let (gamma, of_values) = (ms(&found, "gamma_ns", "p50"), ms(&found, "value_gamma_ns", "p95"));
        let most = high + commit_ms;
        assert!(low <= gamma && gamma <= most && of_values <= most, "{delay_ms} ms late, {commit_ms} ms: {found}");
        assert!(found["stale_reads"].as_u64() > Some(20), "{found}");
        if delay_ms < 100.0 {
            let strict = with(&store, "synchronous_commit=remote_apply");
            is_fresh(&consistency(&place, "strict", &strict, "2s"), &strict);
        }
    }
}

/// Holds the secondaries for a while, again and again, until it is dropped.
struct Holding<'a>(&'a AtomicBool);

impl<'a> Holding<'a> {
    fn start<'scope>(scope: &'scope Scope<'scope, '_>, servers: &'scope Replicated, ends: &'a AtomicBool) -> Holding<'a>
    where
        'a: 'scope,
    {
        scope.spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                servers.hold(true);
                std::thread::sleep(HELD);
                servers.hold(false);
                std::thread::sleep(HELD);
            }
        });
        Holding(ends)
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How long they are held, and then not.
const HELD: Duration = Duration::from_millis(300);

/// Secondaries that stand still half of the time are found stale. The primary with majorities is not.
#[test]
fn secondaries_of_mongodb_are_found_stale() {
    let place = Workplace::new();
    let Some(servers) = Replicated::start(Kind::Mongodb, ReplicaOptions::default()) else { return };
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _holding = Holding::start(scope, &servers, &ends);
        let weak = with(&servers.url("lag"), "w=1&readPreference=secondary");
        let found = consistency(&place, "weak", &weak, "3s");
        let (stale, reads) = (found["stale_reads"].as_u64(), found["reads"].as_u64());
        assert!(stale.zip(reads).is_some_and(|(stale, reads)| stale * 20 > reads), "{found}");
        assert!(ms(&found, "t_visibility_ns", "max") > HELD.as_millis() as f64 / 2.0, "{found}");
        let strict = with(&servers.url("lag"), "w=majority&readConcernLevel=majority&readPreference=primary");
        is_fresh(&consistency(&place, "strict", &strict, "3s"), &strict);
    });
}

/// A replica of Redis that receives everything late is found stale, unless writes wait for it.
#[test]
fn a_replica_of_redis_is_found_stale() {
    let place = Workplace::new();
    let options = Options { arguments: &["--repl-diskless-sync-delay", "0"], ..Options::default() };
    let Some(primary) = Server::start(Kind::Redis, options) else { return };
    let link = Proxy::start(&primary.address());
    let port = link.address().rsplit(':').next().and_then(|port| port.parse().ok());
    let Some(replica) = Server::start(Kind::Redis, Options { primary: port, ..Options::default() }) else { return };
    link.delay(Duration::from_millis(50));
    let weak = with(&primary.url("0"), &format!("replica={}", replica.address()));
    let found = consistency(&place, "weak", &weak, "2s");
    assert!(found["stale_reads"].as_u64() > Some(20) && ms(&found, "t_visibility_ns", "p50") > 40.0, "{found}");
    let strict = with(&weak, "wait=1&wait_ms=9000");
    is_fresh(&consistency(&place, "strict", &strict, "3s"), &strict);
}
