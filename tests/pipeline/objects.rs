//! Trace sets and runs in object storage: the same bytes and answers as in folders, and nothing half-visible.

use crate::bucket::Bucket;
use crate::support::Ran;

#[test]
fn a_trace_set_has_the_same_bytes_in_object_storage() {
    let Some(objects) = Bucket::new("bytes") else { return };
    let url = objects.url("busy.trace");
    objects.place.run(&["trace", "gen", "busy.toml", "-o", "busy.trace"]).succeeds();
    let said = objects.run(&["trace", "gen", "busy.toml", "-o", &url]).succeeds();
    assert!(said.starts_with(&format!("{url}: ")), "{said}");
    objects.check_same("busy.trace", &objects.place.path("busy.trace"));

    // What only reads says the same as of the folder.
    for arguments in [&["trace", "show"][..], &["trace", "digest"]] {
        let there = objects.run(&[arguments, &[&url]].concat()).succeeds();
        let here = objects.place.run(&[arguments, &["busy.trace"]].concat()).succeeds();
        assert_eq!(there, here, "{arguments:?}");
    }
    let verified = objects.run(&["trace", "verify", &url]).succeeds();
    assert!(verified.starts_with(&format!("{url}: ok, ")), "{verified}");

    // A longer trace set of the same workload replaces it, from itself as its specification.
    objects.run(&["trace", "gen", &url, "--sessions", "4000", "-o", &url]).succeeds();
    objects.place.run(&["trace", "gen", "busy.trace", "--sessions", "4000", "-o", "busy.trace"]).succeeds();
    objects.check_same("busy.trace", &objects.place.path("busy.trace"));
    // Once more, it changes nothing.
    objects.run(&["trace", "gen", &url, "--sessions", "4000", "-o", &url]).succeeds();
    objects.check_same("busy.trace", &objects.place.path("busy.trace"));

    // Anything else does not.
    objects.run(&["trace", "gen", "busy.toml", "-o", &url]).fails(2, &[&url, "longer trace set"]);
    let other = ["trace", "gen", "busy.toml", "--set", "seed=8", "--sessions", "9000", "-o", &url];
    objects.run(&other).fails(2, &[&url, "another workload"]);
    objects
        .run(&["trace", "gen", "busy.toml", "-o", &objects.url("")])
        .fails(2, &[&objects.url(""), "not a trace set"]);
    objects.check_same("busy.trace", &objects.place.path("busy.trace"));
}

#[test]
fn damage_and_gaps_are_named_by_their_url() {
    let Some(objects) = Bucket::new("damage") else { return };
    let url = objects.url("busy.trace");
    objects.run(&["trace", "gen", "busy.toml", "-o", &url]).succeeds();
    let name = "busy.trace/operations/fragment=1/part-00000.parquet";
    let whole = objects.remote.get_bytes(name).expect("a part");
    let mut changed = whole.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    objects.remote.put_bytes(name, &changed).expect("put");
    objects.run(&["trace", "verify", &url]).fails(2, &[&objects.url(name), "BLAKE3"]);
    objects.remote.put_bytes(name, &whole[..middle]).expect("put");
    objects.run(&["trace", "verify", &url]).fails(2, &[&objects.url(name), "size"]);
    objects.run(&["trace", "show", &url]).fails(2, &[&objects.url(name), "size"]);
    objects.remote.delete(name).expect("deleted");
    objects.run(&["trace", "show", &url]).fails(2, &[&objects.url(name), "missing"]);
    // A trace set without a manifest is none, and the next command makes it whole.
    objects.remote.delete("busy.trace/manifest.json").expect("deleted");
    objects.run(&["trace", "verify", &url]).fails(2, &[&url, "manifest.json", "is this a trace set"]);
    objects.run(&["trace", "gen", "busy.toml", "-o", &url]).succeeds();
    objects.run(&["trace", "verify", &url]).succeeds();
}

#[test]
fn wrong_places_and_credentials_leave_nothing_behind() {
    let Some(objects) = Bucket::new("refused") else { return };
    let url = objects.url("busy.trace");
    let before = objects.place.contents();
    let check = |arguments: &[&str], variables: &[(&str, &str)], code: i32, words: &[&str]| {
        let ran = objects.run_with(arguments, variables);
        ran.fails(code, words);
        assert!(!ran.stderr().contains("hush") && !ran.stderr().contains("wrong-secret"), "{}", ran.stderr());
    };
    let wrong = [("AWS_SECRET_ACCESS_KEY", "wrong-secret")];
    let none = [("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", ""), ("AWS_EC2_METADATA_DISABLED", "true")];
    let plain = [("AWS_ENDPOINT_URL", "http://store.example:9000")];
    // A port that nobody listens on: it was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    let endpoint = format!("http://{port}");
    for arguments in [&["trace", "gen", "busy.toml", "-o"][..], &["trace", "show"], &["trace", "verify"]] {
        let at = |place: &'static str| [arguments, &[place]].concat();
        let here = [arguments, &[url.as_str()]].concat();
        check(&here, &wrong, 2, &[&url, "refuses these credentials", "AWS_ACCESS_KEY_ID"]);
        check(&here, &none, 2, &[&url, "no credentials", "AWS_ACCESS_KEY_ID"]);
        check(&here, &plain, 2, &["http://store.example:9000", "AWS_ALLOW_HTTP"]);
        check(&here, &[("AWS_ENDPOINT_URL", &endpoint)], 3, &[&url, "cannot reach", &endpoint]);
        check(&at("s3://elsewhere/busy.trace"), &[], 2, &["s3://elsewhere/busy.trace", "no bucket elsewhere"]);
        check(&at("ftp://host/busy.trace"), &[], 2, &["ftp://", "s3://BUCKET"]);
        check(&at("s3://me:hush@host/busy.trace"), &[], 2, &["AWS_SECRET_ACCESS_KEY"]);
    }
    assert_eq!(objects.names(""), [""; 0]);
    let after: Vec<_> = objects.place.contents();
    assert!(after == before, "something was written");
}

/// The manifest comes last: a process that ends before leaves no trace set.
#[test]
fn an_upload_that_is_cut_short_is_no_trace_set() {
    let Some(objects) = Bucket::new("cut") else { return };
    let url = objects.url("busy.trace");
    let proxy = servers::Proxy::start(&objects.server.address());
    let arguments = ["trace", "gen", "busy.toml", "-o", &url];
    let mut command = objects.command(&arguments);
    command.envs(objects.server.variables_through(&proxy));
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let mut running = command.spawn().expect("the program starts");
    // Until the first object of the trace set is there; then its manifest is not, as the others do not pass.
    while objects.names("").is_empty() {
        assert!(running.try_wait().expect("its state").is_none(), "it ended before it was killed");
    }
    proxy.hold(true);
    running.kill().expect("killed");
    running.wait().expect("its end");
    // What it had sent, and the proxy held, is lost with it.
    drop(proxy);
    // What the killed process kept on this machine, a later one removes.
    std::fs::remove_dir_all(objects.place.path("scratch")).expect("a folder");
    let has_manifest = objects.names("").iter().any(|name| name.ends_with("manifest.json"));
    if has_manifest {
        objects.run(&["trace", "verify", &url]).succeeds();
    } else {
        objects.run(&["trace", "show", &url]).fails(2, &["manifest.json"]);
    }
    objects.run(&arguments).succeeds();
    objects.run(&["trace", "verify", &url]).succeeds();
}

/// Machines that share nothing but the store make one trace set, with the same bytes as one machine.
#[test]
fn parts_are_generated_apart() {
    let Some(objects) = Bucket::new("parts") else { return };
    let url = objects.url("busy.trace");
    objects.place.run(&["trace", "gen", "busy.toml", "-o", "busy.trace"]).succeeds();
    let part =
        |fragments: &str, spec: &str| objects.run(&["trace", "gen", spec, "-o", &url, "--only-fragments", fragments]);
    objects.run(&["trace", "assemble", &url]).fails(2, &[&url, "no parts"]);
    part("1..2", "busy.toml").succeeds();
    objects.run(&["trace", "assemble", &url]).fails(2, &[&url, "missing (0..1)"]);
    objects.run(&["trace", "show", &url]).fails(2, &["manifest.json"]);
    std::fs::write(objects.place.path("other.toml"), crate::support::BUSY_SPEC.replace("seed = 7", "seed = 8"))
        .expect("written");
    part("0..1", "other.toml").fails(2, &[&url, "parts of another trace set"]);
    part("0..1", "busy.toml").succeeds();
    // A task that runs twice changes nothing.
    part("1..2", "busy.toml").succeeds();
    let operations = "busy.trace/operations/fragment=1/part-00000.parquet";
    let whole = objects.remote.get_bytes(operations).expect("a file");
    objects.remote.put_bytes(operations, &whole[1..]).expect("put");
    objects.run(&["trace", "assemble", &url]).fails(2, &[&objects.url(operations), "size"]);
    objects.remote.put_bytes(operations, &whole).expect("put");
    for _ in 0..2 {
        let said = objects.run(&["trace", "assemble", &url]).succeeds();
        assert!(said.starts_with(&url), "{said}");
        objects.check_same("busy.trace", &objects.place.path("busy.trace"));
    }
    let said = part("0..2", "busy.toml").succeeds();
    assert!(said.contains("complete"), "{said}");
    objects.check_same("busy.trace", &objects.place.path("busy.trace"));
}

/// Fragments of a run are analyzed by themselves and merged, all in object storage: the same files as in a folder.
#[test]
fn a_run_is_analyzed_where_it_lies() {
    let Some(objects) = Bucket::new("analyzed") else { return };
    let place = &objects.place;
    place.run(&["trace", "gen", "busy.toml", "-o", "busy.trace"]).succeeds();
    place.run(&["replay", "run", "--trace", "busy.trace", "--store", "memory:", "-T", "2", "-o", "r"]).succeeds();
    objects.upload("busy.trace");
    objects.upload("r");
    let said = place.run(&["analyze", "summary", "r"]).ends();
    // From here on, the trace set is in object storage alone.
    std::fs::rename(place.path("busy.trace"), place.path("aside")).expect("renamed");

    let (run, trace) = (objects.url("r"), objects.url("busy.trace"));
    let fragment = |number: &str| {
        objects.run(&["analyze", "fragment", &run, "--experiment", "1", "--fragment", number, "--trace", &trace])
    };
    let merge = || objects.run(&["analyze", "merge", &run, "--trace", &trace]);
    let tasks = |more: &[&str]| objects.run(&[&["analyze", "tasks", &run], more].concat());
    let both = "--experiment 1 --fragment 0\n--experiment 1 --fragment 1\n";
    assert_eq!(tasks(&[]).succeeds(), both);
    tasks(&["--experiment", "9"]).fails(2, &[&run, "no experiment 9"]);
    fragment("1").succeeds();
    merge().fails(2, &[&run, "fragment 0"]);
    let path = fragment("0").succeeds();
    assert!(path.starts_with(&format!("{run}/experiments/0001-T2/fragments/fragment-0.json")), "{path}");
    fragment("1").succeeds();
    fragment("7").fails(2, &["no fragment 7"]);
    let wrong = ["analyze", "fragment", &run, "--experiment", "9", "--fragment", "0", "--trace", &trace];
    objects.run(&wrong).fails(2, &[&run, "no experiment 9"]);
    merge().succeeds();
    objects.check_same("r", &place.path("r"));
    assert_eq!(tasks(&[]).succeeds(), "");
    assert_eq!(tasks(&["--experiment", "1"]).succeeds(), both);
    let printed: serde_json::Value = serde_json::from_str(&tasks(&["--json"]).succeeds()).expect("JSON");
    let tables = ["operations", "unpredictable"]
        .into_iter()
        .flat_map(|table| [0, 1].map(|fragment| format!("{table}/experiment=1/fragment={fragment}/part-0.parquet")));
    let bytes = |file: &String| std::fs::metadata(place.path(&format!("r/{file}"))).expect("a table").len();
    let sealed: serde_json::Map<_, _> = tables.map(|file| (file.clone(), bytes(&file).into())).collect();
    let expect = serde_json::json!([{ "experiment": 1, "fragments": [0, 1], "has_verdict": true, "sealed": sealed }]);
    assert_eq!(printed, expect);

    // From documents alone: neither rows nor tables are fetched, so it does not matter what is in one.
    let table = "r/operations/experiment=1/fragment=1/part-0.parquet";
    let kept = objects.remote.get_bytes(table).expect("a table");
    objects.remote.put_bytes(table, b"nothing").expect("put");
    let figures = "SELECT * FROM experiments";
    let of_documents = ["analyze", "sql", &run, figures, "--format", "json", "--only-documents"];
    let here = place.run(&["analyze", "sql", "r", figures, "--format", "json"]).succeeds();
    assert_eq!(objects.run(&of_documents).succeeds(), here);
    let rows = ["analyze", "sql", &run, "SELECT count(*) FROM operations", "--format", "csv", "--only-documents"];
    assert_eq!(objects.run(&rows).succeeds(), "count_star()\n0\n");
    let defined = objects.run(&["analyze", "sql", &run, "--definitions"]).succeeds();
    let here = place.run(&["analyze", "sql", "r", "--definitions"]).succeeds();
    let folder = std::fs::canonicalize(place.path("r")).expect("a folder").display().to_string();
    assert_eq!(defined, here.replace(&folder, &run));
    objects.remote.put_bytes(table, &kept).expect("put");

    // A folder has a URL too.
    let file = format!("file://{folder}");
    assert_eq!(place.run(&["analyze", "tasks", &file, "--experiment", "1"]).succeeds(), both);
    assert_eq!(place.run(&["analyze", "sql", &file, figures, "--format", "json", "--only-documents"]).ends(), {
        place.run(&["analyze", "sql", "r", figures, "--format", "json"]).succeeds()
    });

    let exit = |ran: Ran| (ran.stdout(), ran.stderr());
    assert_eq!(exit(objects.run(&["analyze", "summary", &run])), (said, String::new()));
    let count = "SELECT operation, count(*), max(response_ns) FROM operations GROUP BY ALL ORDER BY ALL";
    let here = place.run(&["analyze", "sql", "r", count, "--format", "csv"]).succeeds();
    assert_eq!(objects.run(&["analyze", "sql", &run, count, "--format", "csv"]).succeeds(), here);
    let written = objects.run(&["analyze", "report", &run]).succeeds();
    assert_eq!(written, format!("{run}/report.html\n"));
    assert!(objects.remote.exists("r/report.html").expect("an answer"));
    objects.remote.delete("r/report.html").expect("deleted");
    objects.check_same("r", &place.path("r"));

    // A table that changed is named by its URL.
    let table = "r/operations/experiment=1/fragment=0/part-0.parquet";
    let mut bytes = objects.remote.get_bytes(table).expect("a table");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    objects.remote.put_bytes(table, &bytes).expect("put");
    objects.run(&["analyze", "summary", &run]).fails(2, &[&objects.url(table)]);
}

/// What is wrong with a place is the same for every command, and nothing is published.
#[test]
fn wrong_places_of_runs_are_named() {
    let Some(objects) = Bucket::new("runs") else { return };
    let run = objects.url("r");
    for arguments in [&["analyze", "summary"][..], &["analyze", "merge"], &["analyze", "report"]] {
        let wrong = [("AWS_SECRET_ACCESS_KEY", "wrong-secret")];
        objects.run_with(&[arguments, &[&run]].concat(), &wrong).fails(2, &[&run, "refuses these credentials"]);
        objects
            .run(&[arguments, &["s3://elsewhere/r"]].concat())
            .fails(2, &["s3://elsewhere/r", "no bucket elsewhere"]);
        objects.run(&[arguments, &[&run]].concat()).fails(2, &[&run, "run.json"]);
    }
    assert_eq!(objects.names(""), [""; 0]);
}
