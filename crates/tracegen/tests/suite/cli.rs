//! The command line: what it prints, and how it reports bad input.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{BUSY, content};

/// Exit code, standard output and standard error of `tracegen`, run in `dir`.
fn run(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_tracegen"))
        .args(args)
        .current_dir(dir)
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A folder with `busy.toml`.
fn workplace() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("busy.toml"), BUSY).unwrap();
    dir
}

/// A folder with `busy.toml` and `busy.trace`.
fn with_trace() -> tempfile::TempDir {
    let dir = workplace();
    let (code, out, err) = run(dir.path(), &["gen", "busy.toml", "--sessions", "500", "-j", "2"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("busy.trace: 500 operations in 500 sessions, "), "{out}");
    dir
}

/// Runs a command that must fail with one clear error and change nothing.
fn check_refused(dir: &Path, args: &[&str], code: i32, expect: &[&str]) {
    let before = content(dir);
    let (found, out, err) = run(dir, args);
    assert_eq!((found, out.as_str()), (code, ""), "{args:?}: {err}");
    assert!(err.starts_with("error: "), "{args:?}: {err}");
    for part in expect {
        assert!(err.contains(part), "{args:?}: {err:?} lacks {part:?}");
    }
    assert_eq!(content(dir), before, "{args:?} changed something");
}

#[test]
fn wrong_input_is_refused_with_a_reason() {
    let dir = workplace();
    let dir = dir.path();
    check_refused(dir, &["gen", "none.toml"], 2, &["none.toml: cannot read the specification: No such file"]);
    std::fs::write(dir.join("wrong.toml"), BUSY.replace("members = 1_000", "membres = 1_000")).unwrap();
    check_refused(dir, &["gen", "wrong.toml"], 2, &["wrong.toml: ", "line 7", "membres"]);
    check_refused(dir, &["gen", "busy.toml", "--set", "data.membres=3"], 2, &["busy.toml: ", "membres"]);
    check_refused(dir, &["gen", "busy.toml", "--set", "seed"], 2, &["--set seed: is not key=value"]);
    check_refused(dir, &["gen", "busy.toml", "--set", "seed=many"], 2, &["busy.toml: ", "seed"]);
    check_refused(dir, &["gen", "busy.toml", "--set", "data.friends_per_member=7"], 2, &["7 is odd"]);
    check_refused(dir, &["gen", "busy.toml", "--set", "mix={}"], 2, &["busy.toml: mix: is empty"]);
    check_refused(dir, &["gen", "busy.toml", "--sessions", "0"], 2, &["sessions: must be at least 1"]);
    check_refused(dir, &["gen", "busy.toml", "--fragments", "500"], 2, &["data.friends_per_member"]);
    // The fragments are large enough on average, but the ones with popular members are too small.
    check_refused(
        dir,
        &["gen", "busy.toml", "--fragments", "40"],
        2,
        &["busy.toml: data.friends_per_member, fragments", "fragment 0 of 40", "or raise data.members"],
    );
    check_refused(dir, &["gen", "busy.toml", "-j", "few"], 2, &["few"]);
    check_refused(
        dir,
        &["gen", "busy.toml", "--set", "mix={thaw_friendship=1}"],
        2,
        &["busy.toml: mix: fragment ", " of 8 ended after ", "no-operations in a row", "generate at most "],
    );
    check_refused(
        dir,
        &["gen", "busy.toml", "--set", "access.unique_window=5000000000"],
        2,
        &["busy.toml: access.unique_window: 5000000000 is above the maximum"],
    );
    check_refused(dir, &["gen", "busy.toml", "-o", "busy.toml/x.trace"], 3, &["busy.toml"]);
    for command in ["show", "verify", "digest"] {
        check_refused(dir, &[command, "none.trace"], 2, &["none.trace/manifest.json", "tracegen gen"]);
    }
}

#[test]
fn only_a_trace_set_of_the_workload_is_replaced() {
    let dir = with_trace();
    let dir = dir.path();
    let again = ["gen", "busy.toml", "--sessions", "600", "--json"];
    let (code, out, _) = run(dir, &again);
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &object["sessions"], &object["folder"]), (0, &600.into(), &"busy.trace".into()));

    check_refused(dir, &["gen", "busy.toml", "--set", "seed=9"], 2, &["busy.trace: already", "another workload"]);
    std::fs::create_dir(dir.join("photos")).unwrap();
    std::fs::write(dir.join("photos/a.jpg"), "x").unwrap();
    check_refused(dir, &["gen", "busy.toml", "-o", "photos"], 2, &["photos: already exists and is not a trace set"]);
    check_refused(dir, &["gen", "busy.toml", "-o", "busy.toml"], 2, &["busy.toml: already exists", "not a folder"]);
}

#[test]
fn verify_finds_what_is_wrong() {
    let dir = with_trace();
    let dir = dir.path();
    let (code, out, _) = run(dir, &["verify", "busy.trace"]);
    assert_eq!(code, 0);
    assert!(out.starts_with("busy.trace: ok, 48 files, trace "), "{out}");

    let name = "busy.trace/operations/fragment=3/part-00000.parquet";
    let good = std::fs::read(dir.join(name)).unwrap();
    let mut changed = good.clone();
    changed[good.len() / 2] ^= 1;
    std::fs::write(dir.join(name), changed).unwrap();
    check_refused(dir, &["verify", "busy.trace"], 2, &[name, "BLAKE3 sum is "]);
    std::fs::write(dir.join(name), &good[1..]).unwrap();
    check_refused(dir, &["verify", "busy.trace"], 2, &[name, "size is "]);
    std::fs::remove_file(dir.join(name)).unwrap();
    check_refused(dir, &["verify", "busy.trace"], 2, &[name, "missing"]);
    std::fs::write(dir.join(name), &good).unwrap();

    let manifest = dir.join("busy.trace/manifest.json");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let own = schemas::TRACE_FORMAT_VERSION;
    for other in [own - 1, 99] {
        let changed = text.replace(&format!("\"format_version\": {own},"), &format!("\"format_version\": {other},"));
        assert_ne!(changed, text);
        std::fs::write(&manifest, changed).unwrap();
        let expect = format!("manifest.json: trace format version {other}, this Encore reads version {own}");
        check_refused(dir, &["verify", "busy.trace"], 2, &[&expect]);
    }
    std::fs::write(&manifest, &text[..text.len() / 2]).unwrap();
    check_refused(dir, &["verify", "busy.trace"], 2, &["manifest.json", "is this a trace set?"]);
    // A damaged trace set could be anything, so `gen` does not replace it either.
    check_refused(dir, &["gen", "busy.toml"], 2, &["no readable manifest.json"]);
}

/// A small population is no error, but `gen` must report that the window is smaller than asked for.
#[test]
fn gen_says_that_the_window_is_capped() {
    let dir = workplace();
    let dir = dir.path();
    let made = |window: &str| {
        let window = format!("access.unique_window={window}");
        let folder = format!("{window}.trace");
        let (code, out, err) =
            run(dir, &["gen", "busy.toml", "--sessions", "500", "--fragments", "1", "--set", &window, "-o", &folder]);
        assert_eq!((code, err.as_str()), (0, ""));
        out.lines().skip(1).map(str::to_string).collect::<Vec<_>>()
    };
    assert!(made("0").is_empty() && made("500").is_empty());
    let capped = made("501");
    assert!(capped[0].starts_with("threads that this trace can keep busy: "), "{capped:?}");
    assert!(capped[0].contains("(access.unique_window 500 instead of 501"), "{capped:?}");
}

#[test]
fn digest_prints_the_digest() {
    let dir = with_trace();
    let dir = dir.path();
    let expect = tracegen::digest(&dir.join("busy.trace"), tracegen::Ran::First(100)).unwrap();
    assert_eq!(run(dir, &["digest", "busy.trace", "--sessions", "100"]).1, format!("{expect}\n"));
    check_refused(dir, &["digest", "busy.trace", "--sessions", "501"], 2, &["has 500 sessions"]);
}

#[test]
fn show_prints_the_stored_set() {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let (code, out, _) = run(&traces, &["show", "golden.trace"]);
    assert_eq!(code, 0);
    // The snapshot leaves out the generator's version, so that a new version does not change it.
    let out: Vec<&str> = out.lines().filter(|l| !l.starts_with("generator ")).collect();
    insta::assert_snapshot!("show", out.join("\n"));
    let (_, out, _) = run(&traces, &["show", "golden.trace", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["operations"], 7_246);
    assert_eq!(object["manifest"]["operations_by_name"].as_object().unwrap().len(), 11);
    assert_eq!(object["manifest"]["statistics"]["friends"]["buckets"][0]["members"], 60);
    assert_eq!(object["dataset_rows"]["members"], 60);
    assert_eq!(object["manifest"]["spec"]["name"], "golden");
}

#[test]
fn show_draws_the_wanted_load() {
    let dir = workplace();
    let dir = dir.path();
    let pieces =
        "arrivals={pieces=[{for='20s',from=20},{for='20s',from=20,to=100},{for='20s',from=0,to=50}],repeat=true}";
    let args = ["gen", "busy.toml", "--sessions", "2105", "--set", pieces, "--set", "arrivals.spacing=even"];
    let (code, _, err) = run(dir, &args);
    assert_eq!((code, err.as_str()), (0, ""));
    let (code, out, _) = run(dir, &["show", "busy.trace"]);
    assert_eq!(code, 0);
    let is_load = |line: &&str| line.starts_with("arrivals ");
    let chart = out.split("\n\n").nth(1).unwrap();
    assert!(chart.lines().all(|line| line.chars().count() <= 80), "{chart}");
    insta::assert_snapshot!("show_load", format!("{}\n\n{chart}", out.lines().find(is_load).unwrap()));
    assert!(!out.contains("inter-arrival time"), "{out}");
    let (_, out, _) = run(dir, &["show", "busy.trace", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(object["load"]["greatest_per_s"], 100.0);
    assert_eq!(object["load"]["rates_per_s"].as_array().unwrap().len(), 60);
    assert_eq!(object["manifest"]["spec"]["arrivals"]["spacing"], "even");
}

/// A trace set needs no file beside it: it can be made longer where its CSV file is missing.
#[test]
fn a_file_of_rates_is_part_of_the_trace_set() {
    let dir = workplace();
    let dir = dir.path();
    std::fs::create_dir(dir.join("specs")).unwrap();
    std::fs::write(dir.join("specs/rates.csv"), "seconds,rate\n0,100\n10,300\n").unwrap();
    std::fs::write(dir.join("specs/day.toml"), format!("{BUSY}[arrivals]\nfile = 'rates.csv'\n")).unwrap();
    let (code, _, err) = run(dir, &["gen", "specs/day.toml", "--sessions", "500", "-o", "day.trace"]);
    assert_eq!((code, err.as_str()), (0, ""));
    std::fs::remove_file(dir.join("specs/rates.csv")).unwrap();
    assert_eq!(run(dir, &["verify", "day.trace"]).0, 0);
    let (code, _, err) = run(dir, &["gen", "day.trace", "--sessions", "600", "-o", "day.trace"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let manifest = schemas::manifest::Manifest::read(&dir.join("day.trace")).unwrap();
    assert_eq!(manifest.spec.arrivals.unwrap().points, [[0.0, 100.0], [10.0, 300.0]]);
    check_refused(
        dir,
        &["gen", "specs/day.toml"],
        2,
        &["specs/day.toml: arrivals.file: specs/rates.csv: cannot be read"],
    );
}

#[test]
fn wrong_arrivals_are_refused_with_a_reason() {
    let dir = workplace();
    let dir = dir.path();
    let check = |arrivals: &str, expect: &[&str]| {
        check_refused(dir, &["gen", "busy.toml", "--set", &format!("arrivals={{{arrivals}}}")], 2, expect);
    };
    check("rate=-1", &["busy.toml: arrivals.rate: -1 is negative"]);
    check("rate='100 - t'", &["busy.toml: arrivals.rate: the rate at t = 100.03125 s is -0.03125, which is negative"]);
    check("rate='100 / (t - 50) ^ 2'", &["busy.toml: arrivals.rate: the rate at t = 50 s is inf, which is infinite"]);
    check("rate='100 +'", &["busy.toml: arrivals.rate: \"100 +\" is not an expression over t"]);
    check("rate=0.001", &["busy.toml: arrivals.rate: only 1,099 of 20,000 sessions are due in the first 2^40 µs"]);
    check("rate=5,file='rates.csv'", &["busy.toml: arrivals: rate and file exclude each other"]);
    std::fs::write(dir.join("rates.csv"), "seconds,rate\n0,1\n9,2\n5,2\n").unwrap();
    check("file='rates.csv'", &["busy.toml: arrivals.file: rates.csv line 4: 5 s comes after 9 s"]);
}

#[test]
fn help_has_examples() {
    let dir = tempfile::tempdir().unwrap();
    for (name, args) in
        [("help", &["--help"][..]), ("help_gen", &["gen", "--help"]), ("help_digest", &["digest", "--help"])]
    {
        let (code, out, err) = run(dir.path(), args);
        assert_eq!((code, err.as_str()), (0, ""));
        insta::assert_snapshot!(name, out);
    }
    assert_eq!(run(dir.path(), &["frobnicate"]).0, 2);
    assert_eq!(run(dir.path(), &[]).0, 2);
}

#[test]
fn parts_are_generated_and_assembled() {
    let dir = workplace();
    let dir = dir.path();
    let gen_parts = |range: &str| run(dir, &["gen", "busy.toml", "--sessions", "500", "--only-fragments", range]);
    let (code, out, err) = gen_parts("0..5");
    assert_eq!((code, err.as_str()), (0, ""));
    let expect = "busy.trace: 5 fragments of 8, ";
    assert!(
        out.starts_with(expect) && out.ends_with(" s; when all parts are there: encore trace assemble busy.trace\n"),
        "{out}"
    );
    check_refused(dir, &["assemble", "busy.trace"], 2, &["busy.trace: 3 fragments of the trace set missing (5..8)"]);
    for wrong in ["5..", "8..5", "five", "..", "3..3"] {
        check_refused(dir, &["gen", "busy.toml", "--only-fragments", wrong], 2, &["--only-fragments", "write A..B"]);
    }
    check_refused(
        dir,
        &["gen", "busy.toml", "--sessions", "500", "--only-fragments", "5..9"],
        2,
        &["--only-fragments 5..9: "],
    );
    assert_eq!((gen_parts("5..7").0, gen_parts("7").0), (0, 0));
    let (code, out, err) = run(dir, &["assemble", "busy.trace"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("busy.trace: 500 operations in 500 sessions, "), "{out}");
    assert_eq!(run(dir, &["verify", "busy.trace"]).0, 0);
    let (code, out, _) = run(dir, &["gen", "busy.toml", "--sessions", "500", "--only-fragments", "0", "--json"]);
    let object: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &object["fragments"], &object["operations"]), (0, &serde_json::json!([]), &serde_json::json!(0)));
}
