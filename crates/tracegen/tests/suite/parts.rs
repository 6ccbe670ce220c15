//! Trace sets that are generated in parts, fragment by fragment.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use schemas::part;
use schemas::spec::Spec;
use tracegen::{GenerateError, GenerateOptions, assemble, generate, generate_parts};

use crate::{BUSY, content};

const TPCC: &str = "name = 't'\nfamily = 'tpcc'\nsessions = 300\nfragments = 3\n\
                    [data]\nwarehouses = 3\nitems = 50\ncustomers = 30\n";

fn golden(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// The same bytes as in one go, for every family that is generated; in any order, and with a fragment that is made
/// twice.
#[test]
fn parts_make_the_same_trace_set_as_one_go() {
    let names =
        ["golden.toml", "golden-kv.toml", "golden-economy.toml", "golden-consbench.toml", "golden-arrivals.toml"];
    let specs = names.iter().map(|name| golden(name)).chain([BUSY.to_string(), TPCC.to_string()]);
    for text in specs {
        let spec = Spec::parse(&text, "s.toml").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (once, apart) = (dir.path().join("once"), dir.path().join("apart"));
        let options = GenerateOptions::default();
        let expect = generate(&spec, &once, &options).unwrap();
        let half = spec.fragments.div_ceil(2);
        let mut made = Vec::new();
        for range in [half..spec.fragments, 0..1, 0..half] {
            made.extend(generate_parts(&spec, &apart, range, &options).unwrap());
            assert!(schemas::manifest::Manifest::read(&apart).is_err(), "no one takes it for a whole trace set");
        }
        assert_eq!(made.len() as u32, spec.fragments + 1);
        assert_eq!(assemble(&apart).unwrap(), expect, "{}", spec.name);
        assert_eq!(content(&apart), content(&once), "{}", spec.name);
        assert!(!apart.join(part::FOLDER).exists());
        // A task that runs late, or twice, changes nothing.
        assert_eq!(generate_parts(&spec, &apart, 0..1, &options).unwrap(), []);
        assert_eq!(assemble(&apart).unwrap(), expect);
        assert_eq!(content(&apart), content(&once), "{}", spec.name);
    }
}

/// An engine may run a task twice at once, and go on when one of the two has ended.
#[test]
fn a_task_that_ends_after_the_assembly_changes_nothing() {
    let spec = Spec::parse(BUSY, "busy.toml").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (once, apart) = (dir.path().join("once"), dir.path().join("apart"));
    let options = GenerateOptions::default();
    generate(&spec, &once, &options).unwrap();
    generate_parts(&spec, &apart, 0..spec.fragments, &options).unwrap();
    let is_assembled = AtomicBool::new(false);
    let progress = |_| {
        if !is_assembled.swap(true, Ordering::Relaxed) {
            assemble(&apart).unwrap();
        }
    };
    let late = GenerateOptions { progress: Some(&progress), ..GenerateOptions::default() };
    assert_eq!(generate_parts(&spec, &apart, 0..2, &late).unwrap(), []);
    assert!(is_assembled.into_inner());
    assert_eq!(content(&apart), content(&once));
}

#[test]
fn parts_that_are_no_whole_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, options) = (dir.path().join("s.trace"), GenerateOptions::default());
    let busy = |sessions: u64| Spec::parse_with(BUSY, "busy.toml", &[format!("sessions={sessions}")]).unwrap();
    let refused = |expect: &[&str]| {
        let before = content(&folder);
        let error = assemble(&folder).unwrap_err().to_string();
        for part in expect {
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        }
        assert_eq!(content(&folder), before);
    };
    let error = assemble(&folder).unwrap_err().to_string();
    assert!(error.contains("s.trace: no parts of a trace set; generate them with "), "{error}");

    generate_parts(&busy(400), &folder, 0..3, &options).unwrap();
    generate_parts(&busy(400), &folder, 5..6, &options).unwrap();
    refused(&["s.trace: 4 fragments of the trace set missing (3..5, 6..8); generate what is missing"]);

    // Parts of another specification are not mixed in.
    let error = generate_parts(&busy(500), &folder, 3..8, &options).unwrap_err();
    assert!(matches!(error, GenerateError::Occupied { .. }), "{error}");
    let error = error.to_string();
    assert!(error.contains("parts of another trace set (workload ") && error.contains(", 400 sessions, 8"), "{error}");
    let error = generate(&busy(400), &folder, &options).unwrap_err().to_string();
    assert!(error.contains("is not a trace set (no readable manifest.json)"), "{error}");

    generate_parts(&busy(400), &folder, 3..8, &options).unwrap();
    let other = dir.path().join("other.trace");
    generate_parts(&busy(500), &other, 2..3, &options).unwrap();
    let path = part::path(&folder, 2);
    let kept = std::fs::read_to_string(&path).unwrap();
    std::fs::copy(part::path(&other, 2), &path).unwrap();
    refused(&["fragment-00000.json and ", "fragment-00002.json: their specifications differ"]);

    let change = |from: &str, to: &str| {
        assert!(kept.contains(from), "{kept}");
        std::fs::write(&path, kept.replacen(from, to, 1)).unwrap();
    };
    change("\"format_version\": ", "\"format_version\": 9");
    refused(&["fragment-00002.json: trace format version 9", "generate the fragment again"]);
    let version = format!("\"generator_version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    change(&version, "\"generator_version\": \"0.0.1\"");
    refused(&["fragment-00002.json: the versions of Encore that wrote them differ"]);
    change("\"fragment\": 2", "\"fragment\": 7");
    refused(&["fragment-00002.json: it is of fragment 7"]);
    change("\"workload_id\": \"", "\"workload_id\": \"x");
    refused(&["fragment-00002.json: workload_id is x"]);
    change("\"sessions\": [", "\"sessions\": [\"many\", ");
    refused(&["a part is damaged"]);
    std::fs::write(&path, "{\"format_ver").unwrap();
    refused(&["fragment-00002.json: not valid JSON"]);
    std::fs::write(&path, kept).unwrap();

    let file = folder.join("operations/fragment=4/part-00000.parquet");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[1..]).unwrap();
    refused(&["part-00000.parquet: size is "]);
    std::fs::remove_file(&file).unwrap();
    refused(&["part-00000.parquet: missing from the trace set"]);
    // The fragment is made again, and then it is whole.
    generate_parts(&busy(400), &folder, 4..5, &options).unwrap();
    assert_eq!(assemble(&folder).unwrap().sessions(), 400);
    // A complete trace set is not replaced by parts of another one.
    let error = generate_parts(&busy(500), &folder, 0..1, &options).unwrap_err().to_string();
    assert!(error.contains("another trace set, which is complete"), "{error}");
}

/// A generator that was killed leaves a folder that no one reads, and that goes with the assembling.
#[test]
fn what_a_killed_generator_leaves_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, once) = (dir.path().join("s.trace"), dir.path().join("once"));
    let spec = Spec::parse_with(BUSY, "busy.toml", &["sessions=400".into()]).unwrap();
    let options = GenerateOptions::default();
    std::fs::create_dir_all(folder.join(".part-killed/operations/fragment=3")).unwrap();
    std::fs::write(folder.join(".part-killed/operations/fragment=3/part-00000.parquet"), "half").unwrap();
    for fragment in (0..8).rev() {
        generate_parts(&spec, &folder, fragment..fragment + 1, &options).unwrap();
    }
    assemble(&folder).unwrap();
    generate(&spec, &once, &options).unwrap();
    assert_eq!(content(&folder), content(&once));
    // A folder of somebody else is not written to.
    let other = dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("thesis.tex"), "").unwrap();
    let error = generate_parts(&spec, &other, 0..1, &options).unwrap_err().to_string();
    assert!(error.contains("not a trace set (it holds thesis.tex)"), "{error}");
    assert_eq!(content(&other).len(), 1);
    let error = generate_parts(&spec, &dir.path().join("new"), 7..9, &options).unwrap_err().to_string();
    assert!(error.contains("--only-fragments 7..9: the specification has 8 fragments"), "{error}");
}
