//! Bad input: one clear error that names the mistake, the right exit code, and no file changed.

use crate::support::Workplace;

fn check(place: &Workplace, arguments: &[&str], code: i32, words: &[&str]) {
    let before = place.contents();
    place.run(arguments).fails(code, words);
    assert!(place.contents() == before, "{arguments:?} changed something");
}

#[test]
fn specs() {
    let place = Workplace::new();
    let spec = crate::support::BUSY_SPEC;
    let write = |name: &str, text: String| std::fs::write(place.path(name), text).expect("written");
    write("key.toml", spec.replace("members", "membres"));
    write("empty.toml", spec.split("[mix]").next().expect("a head").to_string() + "[mix]\nview_profile = 0\n");
    write("friends.toml", spec.replace("friends_per_member = 6", "friends_per_member = 600"));
    check(&place, &["trace", "gen", "none.toml"], 2, &["none.toml"]);
    check(&place, &["trace", "gen", "key.toml"], 2, &["key.toml", "membres"]);
    check(&place, &["trace", "gen", "empty.toml"], 2, &["empty.toml", "mix"]);
    check(&place, &["trace", "gen", "friends.toml"], 2, &["friends.toml", "data.friends_per_member", "600"]);
    check(&place, &["rate", "key.toml"], 2, &["key.toml", "membres"]);
}

#[test]
fn trace_sets() {
    let place = Workplace::with_trace();
    let load = ["replay", "load", "--trace", "busy.trace", "--store", "sqlite:s.db"];
    let part = place.path("busy.trace/operations/fragment=1/part-00000.parquet");
    let bytes = std::fs::read(&part).expect("a part");

    let mut changed = bytes.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    std::fs::write(&part, &changed).expect("written");
    check(&place, &["trace", "verify", "busy.trace"], 2, &["fragment=1/part-00000.parquet", "BLAKE3"]);
    check(&place, &load, 2, &["fragment=1/part-00000.parquet", "BLAKE3"]);
    std::fs::write(&part, &bytes[..middle]).expect("written");
    check(&place, &load, 2, &["fragment=1/part-00000.parquet", "size"]);
    std::fs::remove_file(&part).expect("removed");
    check(&place, &load, 2, &["fragment=1/part-00000.parquet", "missing"]);
    std::fs::write(&part, &bytes).expect("written");
    place.run(&["trace", "verify", "busy.trace"]).succeeds();

    // Existing runs may depend on the sessions of the longer trace set, so a shorter one does not
    // replace it.
    check(
        &place,
        &["trace", "gen", "busy.toml", "-o", "busy.trace", "--sessions", "10"],
        2,
        &["busy.trace", "longer trace set"],
    );

    let manifest = place.path("busy.trace/manifest.json");
    let text = std::fs::read_to_string(&manifest).expect("a manifest");
    // Payload sizes and the thread limit are only in the manifest, and they decide the work.
    for (from, to) in
        [("\"image_bytes\": ", "\"image_bytes\": 9"), ("\"active_threads_max\": ", "\"active_threads_max\": 9")]
    {
        assert!(text.contains(from), "{from}: {text}");
        std::fs::write(&manifest, text.replacen(from, to, 1)).expect("written");
        check(&place, &load, 2, &["manifest.json", "the manifest", "copy the trace set again"]);
    }
    let version = schemas::TRACE_FORMAT_VERSION;
    let changed = text.replace(&format!("\"format_version\": {version}"), "\"format_version\": 99");
    std::fs::write(&manifest, changed).expect("written");
    check(&place, &load, 2, &["manifest.json", "version 99", &format!("version {version}")]);
    check(&place, &["replay", "load", "--trace", "nowhere", "--store", "null:"], 2, &["nowhere", "encore trace gen"]);
}

/// What earlier versions wrote is refused by the name of its version, and not half understood.
#[test]
fn older_formats_are_refused_by_name() {
    let place = Workplace::new();
    let stored = |name: &str| format!("{}/formats/{name}", env!("CARGO_MANIFEST_DIR"));
    let trace = format!("version {}", schemas::TRACE_FORMAT_VERSION);
    for arguments in [
        &["trace", "show", &stored("trace-4")][..],
        &["replay", "load", "--trace", &stored("trace-4"), "--store", "null:"],
    ] {
        check(&place, arguments, 2, &["manifest.json", "trace format version 4", &trace, "generate"]);
    }
    let run = format!("version {}", schemas::RUN_FORMAT_VERSION);
    for arguments in [&["analyze", "summary", &stored("run-3")][..], &["analyze", "sql", &stored("run-3"), "SELECT 1"]]
    {
        check(&place, arguments, 2, &["run.json", "version 3", &run]);
    }
}

#[test]
fn stores() {
    let place = Workplace::with_trace();
    let run = ["replay", "run", "--trace", "busy.trace", "--store", "sqlite:s.db", "-T", "1", "-o", "r"];
    check(&place, &run, 2, &["sqlite:s.db", "is not loaded", "encore replay load"]);
    place.run(&["trace", "gen", "busy.toml", "-o", "other.trace", "--set", "seed=8"]).succeeds();
    place.run(&["replay", "load", "--trace", "other.trace", "--store", "sqlite:s.db"]).succeeds();
    check(&place, &run, 2, &["sqlite:s.db", "contains workload", "busy.trace"]);
    check(&place, &["replay", "digest", "--trace", "busy.trace", "--store", "sqlite:s.db"], 2, &["contains workload"]);
    // `load` must not overwrite a file that is not a store of Encore.
    std::fs::write(place.path("letter.txt"), "Dear reader, this is not a database.").expect("written");
    check(
        &place,
        &["replay", "load", "--trace", "busy.trace", "--store", "sqlite:letter.txt"],
        2,
        &["letter.txt", "not a database"],
    );
    check(&place, &["replay", "load", "--trace", "busy.trace", "--store", "oracle:x"], 2, &["oracle"]);
    // Nothing listens at port 1.
    let refuses = ["run", "busy.toml", "--threads", "1", "--store", "postgres://u@127.0.0.1:1/x"];
    place.run(&refuses).fails(3, &["error: --store postgres://u@127.0.0.1:1/x: ", "is the server running"]);
    // `load` does not create the folder of a mistyped path.
    let nowhere = ["replay", "load", "--trace", "busy.trace", "--store", "sqlite:no/such/folder/s.db"];
    check(&place, &nowhere, 2, &["sqlite:no/such/folder/s.db", "there is no folder no/such/folder"]);
    // A request for more sessions than there are is refused before anything is loaded or run.
    for (sessions, words) in [("3001", "busy.trace has only 3000 left"), ("18446744073709551615", "are too many")] {
        let run =
            ["replay", "run", "--trace", "busy.trace", "--store", "sqlite:new.db", "--load", "-T", "1", "-o", "n"];
        check(&place, &[&run[..], &["--sessions", sessions]].concat(), 2, &[sessions, words]);
    }
}

#[test]
fn command_lines() {
    let place = Workplace::with_trace();
    place
        .run(&["replay", "run", "--trace", "busy.trace", "--store", "null:", "-T", "0", "-o", "r"])
        .fails(2, &["--threads", "0"]);
    place.run(&["run", "busy.toml", "--threads", "0"]).fails(2, &["--threads", "0"]);
    let usage = "Usage: encore trace gen";
    check(&place, &["trace", "gen", "busy.toml", "--sessions=-5"], 2, &["must not be negative", usage]);
    check(
        &place,
        &["trace", "gen", "busy.toml", "--set", "sessions=999999999999999999"],
        2,
        &["PiB on disk", "999,999"],
    );
    check(&place, &["rate", "--search-s", "abc"], 2, &["'abc' for '--search-s <SECONDS>': not a number"]);
    for host in ["-x", "10.0.0.999"] {
        check(&place, &["certs", "c", "--host", host], 2, &[&format!("--host {host:?}: not a host name or address")]);
    }
    place.run(&["rate", "--sla", "fast"]).fails(2, &["fast", "write it like"]);
    place.run(&["analyze", "summary", "nowhere"]).fails(2, &["nowhere", "run folder"]);
    std::fs::create_dir(place.path("mine")).expect("a folder");
    std::fs::write(place.path("mine/letter.txt"), "x").expect("written");
    check(
        &place,
        &["replay", "run", "--trace", "busy.trace", "--store", "null:", "-T", "1", "-o", "mine"],
        2,
        &["-o mine", "not a run folder"],
    );
}

/// Folder names with characters that DuckDB treats as patterns.
#[test]
fn folders_with_odd_names() {
    let place = Workplace::with_trace();
    for name in ["a[b]c", "a*", "a?b", "it's", "[", "two\nlines"] {
        place.run(&["replay", "run", "--trace", "busy.trace", "--store", "memory:", "-T", "2", "-o", name]).succeeds();
        place.run(&["analyze", "summary", name]).ends();
        let count = place.run(&["analyze", "sql", name, "SELECT count(*) > 0 AS n FROM operations", "--format", "csv"]);
        assert!(count.succeeds().contains("true"), "{name}");
        place.run(&["analyze", "report", name]).succeeds();
    }
}

#[test]
fn logs() {
    let place = Workplace::with_trace();
    let run = ["replay", "run", "--trace", "busy.trace", "--store", "memory:", "-T", "2", "-o", "r"];
    place.run(&run).succeeds();
    let log = place.path("r/experiments/0001-T2/log/fragment-1.arrows");
    let bytes = std::fs::read(&log).expect("a log");
    std::fs::write(&log, b"All of this is garbage, from the first byte on.").expect("written");
    check(&place, &["analyze", "summary", "r"], 2, &["fragment-1.arrows", "damaged"]);
    std::fs::remove_file(&log).expect("removed");
    check(&place, &["analyze", "summary", "r"], 2, &["fragment-1.arrows"]);
    // A truncated log is what a killed replayer leaves: it is read as far as it goes.
    std::fs::write(&log, &bytes[..bytes.len() - 40]).expect("written");
    let text = place.run(&["analyze", "summary", "r", "--json"]).stdout();
    assert!(text.contains("log incomplete") && text.contains("\"void\""), "{text}");
    // An experiment that stopped before it began does not hide the others.
    let plan = std::fs::read_to_string(place.path("r/experiments/0001-T2/plan.json")).expect("a plan");
    std::fs::create_dir(place.path("r/experiments/0002-T2")).expect("a folder");
    let second = plan.replace("\"experiment\": 1", "\"experiment\": 2");
    std::fs::write(place.path("r/experiments/0002-T2/plan.json"), second).expect("written");
    let text = place.run(&["analyze", "summary", "r", "--json"]).stdout();
    assert!(text.contains("the experiment never started"), "{text}");
    place.run(&["analyze", "sql", "r", "SELECT count(*) FROM operations"]).succeeds();
}

#[test]
fn a_trace_that_runs_out_says_how_long_it_should_be() {
    let place = Workplace::with_trace();
    let run = "replay run --trace busy.trace --store memory: -T 2 --duration 30s -o r";
    let ran = place.run(&run.split(' ').collect::<Vec<_>>());
    ran.fails(2, &["busy.trace", "ran out after 3000 sessions", "extend it with `encore trace gen"]);
    // The command works as printed. A few sessions are enough here.
    let said = ran.stderr();
    let command =
        said.split('`').nth(1).expect("a command").strip_prefix("encore ").expect("a command of this program");
    let mut words: Vec<&str> = command.split(' ').collect();
    let sessions = words.iter().position(|word| *word == "--sessions").expect("how many");
    assert!(words[sessions + 1].parse::<u64>().expect("a number") > 3000, "{command}");
    words[sessions + 1] = "3500";
    place.run(&words).succeeds();
    let shown = place.run(&["trace", "show", "busy.trace", "--json"]).succeeds();
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    assert_eq!(shown["sessions"], 3500, "{shown}");
}
