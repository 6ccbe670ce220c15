//! Server URLs as a user types them: rated, compared, mistyped.

use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};

use servers::Server;

use crate::faults::with;
use crate::key_value::{ask, workload};
use crate::support::Workplace;

fn database() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    format!("encore_typed_{}_{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed))
}

fn shared() -> impl Iterator<Item = &'static Server> {
    [servers::postgres(), servers::mysql(), servers::mongodb()].into_iter().flatten()
}

fn json(place: &Workplace, file: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(place.path(file)).expect(file)).expect("JSON")
}

/// Every step of a rating works; the ratings themselves do not matter here.
#[test]
fn every_store_can_be_rated() {
    let place = Workplace::with_trace();
    let mut stores: Vec<String> = shared().map(|server| server.url(&database())).collect();
    if let (Some(postgres), Some(memcached)) = (servers::postgres(), servers::memcached()) {
        let url = format!("casql+{}", postgres.url(&database()));
        stores.push(with(&url, &format!("memcached={}&consistency=lease", memcached.address())));
    }
    for (number, store) in stores.iter().enumerate() {
        let name = format!("rated-{number}");
        is_rated(&place, "busy.toml", &["--sessions", "30000"], store, &name);
        let summary = place.run(&["analyze", "summary", &format!("runs/{name}")]).ends();
        assert_eq!(summary.contains("cache_hits"), store.starts_with("casql+"), "{store}\n{summary}");
    }
}

/// The README's rating of YCSB's workload A, on every store that serves records.
#[test]
fn every_store_of_records_can_be_rated() {
    let place = Workplace::new();
    let mut stores: Vec<String> = shared().map(|server| server.url(&database())).collect();
    stores.extend(servers::redis().map(|redis| redis.url("8")));
    // memcached has no databases, so the test has a server of its own, which evicts nothing.
    let roomy = servers::Options { arguments: &["-m", "256"], ..servers::Options::default() };
    let memcached = servers::Server::start(servers::Kind::Memcached, roomy);
    stores.extend(memcached.iter().map(|server| format!("memcached://{}", server.address())));
    let small = ["--set", "data.records=2000", "--set", "sessions=30000"];
    for (number, store) in stores.iter().enumerate() {
        let name = format!("records-{number}");
        is_rated(&place, &workload("a"), &small, store, &name);
        let sql =
            "SELECT count(*) > 0, count(*) FILTER (outcome <> 'ok'), count(*) FILTER (unpredictable) FROM operations";
        assert_eq!(ask(&place, &format!("runs/{name}"), sql), "true,0,0", "{store}");
    }
}

/// Rates a store with few and short experiments, and checks what the rating says of the store.
fn is_rated(place: &Workplace, spec: &str, more: &[&str], store: &str, name: &str) {
    // The SLA is loose: the speed of this machine does not matter here.
    let sla = ["--sla", "95% < 10s, 0.1% unpredictable, 1s", "--search-s", "0.3"];
    let few = ["--max-threads", "2", "--rating", "soar", "--name", name];
    let output = run(place.command(&[&["rate", spec, "--store", store], &sla[..], &few, more].concat()));
    let said = String::from_utf8_lossy(&output.stdout);
    // On a busy machine all experiments may be void, which is 3.
    let code = output.status.code();
    assert!(matches!(code, Some(0 | 3)), "{store}\n{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("SoAR"), "{store}\n{said}");
    assert!(!said.contains("hush"), "{store}: the password was shown\n{said}");
    let run = json(place, &format!("runs/{name}/run.json"));
    for setting in ["durability", "isolation", "version"] {
        let value = run["store_settings"][setting].as_str().unwrap_or_default();
        assert!(!value.is_empty(), "{store}: no {setting} in {run}");
    }
    // What another vocabulary alone makes use of says nothing about this rating.
    let of_social = ["comments", "transactions", "friendship"].map(|name| run["store_settings"].get(name).is_some());
    assert!(spec == "busy.toml" || !of_social.contains(&true), "{store}: {run}");
    assert!(!run.to_string().contains("hush"), "{store}: {run}");
}

fn run(mut command: std::process::Command) -> Output {
    command.output().expect("the program starts")
}

#[test]
fn wrong_credentials_and_databases_are_clear_errors() {
    let place = Workplace::with_trace();
    for server in shared() {
        let url = server.url(&database());
        let scheme = url.split(':').next().expect("a scheme");
        // No store is loaded: the replay must report that, and create nothing.
        let replay = ["replay", "run", "--trace", "busy.trace", "--store", &url, "-T", "2", "-o", "runs/a"];
        place.run(&replay).fails(2, &[scheme, "is not loaded", "encore replay load"]);
        if url.contains("hush") {
            let wrong = url.replace("hush", "guess");
            let load = ["replay", "load", "--trace", "busy.trace", "--store", &wrong];
            let refused = place.run(&load);
            refused.fails(3, &[scheme, "check the user and the password"]);
            assert!(!refused.stderr().contains("guess"), "{}", refused.stderr());
        }
        let nobody = url.replace(&server.address(), "127.0.0.1:9");
        let load = ["replay", "load", "--trace", "busy.trace", "--store", &with(&nobody, "timeout_ms=2000")];
        place.run(&load).fails(3, &[scheme, "127.0.0.1:9"]);
    }
}

#[test]
fn unequal_promises_are_marked_in_a_comparison() {
    let Some(postgres) = servers::postgres() else { return };
    let place = Workplace::with_trace();
    let url = postgres.url(&database());
    let plan = format!(
        "name = \"promises\"\ntitle = \"Promises\"\nspec = \"busy.toml\"\nsla = \"95% < 10s, 0.3s\"\n\
         search_s = 0.2\nmax_threads = 1\nrating = \"soar\"\n\
         [[stores]]\nlabel = \"every commit\"\nurl = \"sqlite:?synchronous=full\"\n\
         [[stores]]\nlabel = \"sometimes\"\nurl = \"{url}?synchronous_commit=off\"\n"
    );
    std::fs::write(place.path("promises.toml"), plan).expect("the plan is written");
    let said = place.run(&["compare", "promises.toml", "--set", "sessions=30000"]).ends();
    for words in ["sometimes !", "durability", "synchronous_commit"] {
        assert!(said.contains(words), "{said} lacks {words:?}");
    }
    assert!(!said.contains("hush"), "{said}");
}
