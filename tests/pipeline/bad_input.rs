//! Wrong input: one clear error that names what is wrong, the right exit code,
//! and everything as it was.

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

    // Runs may rest on the sessions of a longer trace set: it is not made shorter.
    check(
        &place,
        &["trace", "gen", "busy.toml", "-o", "busy.trace", "--sessions", "10"],
        2,
        &["busy.trace", "longer trace set"],
    );

    let manifest = place.path("busy.trace/manifest.json");
    let text = std::fs::read_to_string(&manifest).expect("a manifest");
    // Payload sizes are in no file of the trace set, and decide the work all the same.
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
    check(&place, &["replay", "load", "--trace", "nowhere", "--store", "null:"], 2, &["nowhere", "tracegen gen"]);
}

#[test]
fn stores() {
    let place = Workplace::with_trace();
    let run = ["replay", "run", "--trace", "busy.trace", "--store", "sqlite:s.db", "-T", "1", "-o", "r"];
    check(&place, &run, 2, &["sqlite:s.db", "is not loaded", "replayer load"]);
    place.run(&["trace", "gen", "busy.toml", "-o", "other.trace", "--set", "seed=8"]).succeeds();
    place.run(&["replay", "load", "--trace", "other.trace", "--store", "sqlite:s.db"]).succeeds();
    check(&place, &run, 2, &["sqlite:s.db", "holds workload", "busy.trace"]);
    check(&place, &["replay", "digest", "--trace", "busy.trace", "--store", "sqlite:s.db"], 2, &["holds workload"]);
    // A file that is no store of Encore's is left alone.
    std::fs::write(place.path("letter.txt"), "Dear reader, this is not a database.").expect("written");
    check(
        &place,
        &["replay", "load", "--trace", "busy.trace", "--store", "sqlite:letter.txt"],
        2,
        &["letter.txt", "not a database"],
    );
    check(&place, &["replay", "load", "--trace", "busy.trace", "--store", "oracle:x"], 2, &["oracle"]);
}

#[test]
fn command_lines() {
    let place = Workplace::with_trace();
    place
        .run(&["replay", "run", "--trace", "busy.trace", "--store", "null:", "-T", "0", "-o", "r"])
        .fails(2, &["--threads", "0"]);
    place.run(&["run", "busy.toml", "--threads", "0"]).fails(2, &["--threads", "0"]);
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

/// DuckDB takes these characters for patterns.
#[test]
fn folders_with_odd_names() {
    let place = Workplace::with_trace();
    for name in ["a[b]c", "a*", "a?b", "it's", "[", "two\nlines"] {
        place.run(&["replay", "run", "--trace", "busy.trace", "--store", "memory:", "-T", "2", "-o", name]).succeeds();
        place.run(&["analyze", "summary", name]).succeeds();
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
    // Cut short it is what a killed replayer leaves: read as far as it goes.
    std::fs::write(&log, &bytes[..bytes.len() - 40]).expect("written");
    let text = place.run(&["analyze", "summary", "r", "--json"]).stdout();
    assert!(text.contains("without its closing mark") && text.contains("\"void\""), "{text}");
    // An experiment that was stopped before it began does not hide the others.
    let plan = std::fs::read_to_string(place.path("r/experiments/0001-T2/plan.json")).expect("a plan");
    std::fs::create_dir(place.path("r/experiments/0002-T2")).expect("a folder");
    let second = plan.replace("\"experiment\": 1", "\"experiment\": 2");
    std::fs::write(place.path("r/experiments/0002-T2/plan.json"), second).expect("written");
    let text = place.run(&["analyze", "summary", "r", "--json"]).stdout();
    assert!(text.contains("the experiment never began"), "{text}");
    place.run(&["analyze", "sql", "r", "SELECT count(*) FROM operations"]).succeeds();
}

#[test]
fn a_trace_that_runs_out_says_how_long_it_should_be() {
    let place = Workplace::with_trace();
    place
        .run(&[
            "replay",
            "run",
            "--trace",
            "busy.trace",
            "--store",
            "memory:",
            "-T",
            "2",
            "--duration",
            "30s",
            "-o",
            "r",
        ])
        .fails(2, &["busy.trace", "ran out after 3000 sessions", "tracegen gen --sessions"]);
}
