//! The same specification gives the same bytes; a longer trace starts with the shorter one.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use schemas::spec::Spec;
use schemas::vocabulary::kv::Kv;
use schemas::workload::social::dataset::Table;
use tracegen::{GenerateError, GenerateOptions, generate};

use crate::{busy, content, generate_into, mixed, operations, operations_of};

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let spec = busy(&[]);
    let (one, eight) = (dir.path().join("one"), dir.path().join("eight"));
    let manifest = generate_into(&spec, &one, 1);
    assert_eq!(manifest, generate_into(&spec, &eight, 8));
    assert_eq!(content(&one), content(&eight));
    // Eight fragments of five tables and one operations file each, and the manifest.
    assert_eq!(content(&one).len(), 8 * 6 + 1);
    let seeded = generate_into(&busy(&["seed=6"]), &dir.path().join("seeded"), 1);
    assert!(manifest.files.iter().zip(&seeded.files).all(|(a, b)| a.path == b.path));
    assert_ne!(manifest.trace_id, seeded.trace_id);
}

#[test]
fn a_longer_trace_starts_with_the_shorter_one() {
    let dir = tempfile::tempdir().unwrap();
    let (short, long) = (dir.path().join("short"), dir.path().join("long"));
    let short_set = generate_into(&busy(&["sessions=7777"]), &short, 2);
    let long_set = generate_into(&busy(&["sessions=20000"]), &long, 2);
    assert_eq!(short_set.workload_id, long_set.workload_id);
    assert_eq!((short_set.sessions(), long_set.sessions()), (7_777, 20_000));
    for fragment in 0..8 {
        let (first, all) = (operations(&short_set, &short, fragment), operations(&long_set, &long, fragment));
        assert_eq!(first.len() as u64, short_set.fragments[fragment as usize].sessions);
        assert!(first.len() < all.len());
        assert_eq!(first, all[..first.len()]);
        for table in Table::ALL {
            let read = |folder: &Path| std::fs::read(table.path(folder, fragment)).unwrap();
            assert_eq!(read(&short), read(&long), "{}", table.name());
        }
    }
    // The shorter trace leaves the same state as the longer one stopped at the same session.
    let stopped = tracegen::digest(&long, tracegen::Ran::First(7_777)).unwrap();
    assert_eq!(tracegen::digest(&short, tracegen::Ran::All).unwrap(), stopped);
    assert_ne!(tracegen::digest(&long, tracegen::Ran::All).unwrap(), stopped);
    let error = tracegen::digest(&long, tracegen::Ran::First(20_001)).unwrap_err().to_string();
    assert!(error.contains("has 20000 sessions, 20001 were requested"), "{error}");
}

/// A shorter trace with sessions of many steps ends with a whole session, and is the start of the
/// longer one.
#[test]
fn sessions_of_a_longer_trace_start_with_those_of_the_shorter_one() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two, long) = (dir.path().join("one"), dir.path().join("two"), dir.path().join("long"));
    let set = generate_into(&mixed(&["sessions=3001"]), &one, 1);
    assert_eq!(set, generate_into(&mixed(&["sessions=3001"]), &two, 8));
    assert_eq!(content(&one), content(&two));
    let long_set = generate_into(&mixed(&[]), &long, 2);
    for fragment in 0..2 {
        let (first, all) = (operations(&set, &one, fragment), operations(&long_set, &long, fragment));
        assert_eq!(first.len() as u64, set.fragments[fragment as usize].operations);
        assert_eq!(first, all[..first.len()]);
        assert_eq!(all[first.len()].step, 0, "the shorter trace ends in the middle of a session");
    }
    let stopped = tracegen::digest(&long, tracegen::Ran::First(3_001)).unwrap();
    assert_eq!(tracegen::digest(&one, tracegen::Ran::All).unwrap(), stopped);
}

/// The `kv` family, with each distribution, inserts and deletes.
#[test]
fn key_value_traces_depend_on_their_specification_alone() {
    for distribution in ["uniform", "zipfian", "latest", "sequential", "exponential", "hotspot"] {
        let text = format!(
            "name = 'k'\nfamily = 'kv'\nsessions = 2000\nfragments = 5\n[data]\nrecords = 400\n[access]\n\
             distribution = '{distribution}'\nscan_length_max = 9\n[mix]\nread = 50\nupdate = 20\ninsert = 15\nscan = 5\n\
             read_modify_write = 5\ndelete = 5\n"
        );
        let spec = Spec::parse(&text, "k.toml").unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (one, three, long) = (dir.path().join("one"), dir.path().join("three"), dir.path().join("long"));
        let set = generate_into(&spec, &one, 1);
        assert_eq!(set, generate_into(&spec, &three, 3));
        assert_eq!(content(&one), content(&three), "{distribution}");
        // Resolved for 2,000 sessions, so the longer trace is of the same workload.
        let long_set = generate_into(&Spec { sessions: 5_000, ..spec }, &long, 2);
        assert_eq!(set.workload_id, long_set.workload_id);
        for fragment in 0..5 {
            let first = operations_of::<Kv>(&set, &one, fragment);
            let all = operations_of::<Kv>(&long_set, &long, fragment);
            assert!(!first.is_empty() && first.len() < all.len());
            assert_eq!(first, all[..first.len()], "{distribution}");
        }
    }
}

#[test]
fn operations_go_on_in_a_second_part() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("parts");
    let spec = busy(&["sessions=4194310", "fragments=1", "data.members=100", "mix={view_profile=1}"]);
    let manifest = generate_into(&spec, &folder, 1);
    let files = manifest.operation_files(&folder, 0);
    assert_eq!(files.len(), 2);
    assert!(files[1].ends_with("operations/fragment=0/part-00001.parquet"), "{}", files[1].display());
    let mut reader = schemas::trace::OperationsReader::<schemas::social::Social>::new(0, files[1..].to_vec(), 100);
    let mut rows = Vec::new();
    assert!(reader.next_rows(&mut rows).unwrap());
    assert_eq!(rows.iter().map(|r| r.session).collect::<Vec<_>>(), (4_194_304..4_194_310).collect::<Vec<_>>());
}

#[test]
fn an_interrupted_generation_leaves_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("busy.trace");
    generate_into(&busy(&["sessions=100"]), &folder, 1);
    let before = content(&folder);

    let (stop, most) = (AtomicBool::new(false), AtomicU64::new(0));
    let progress = |done| {
        most.fetch_max(done, Ordering::Relaxed);
        stop.store(true, Ordering::Relaxed);
    };
    let options = GenerateOptions { threads: 2, progress: Some(&progress), interrupted: Some(&stop) };
    let error = generate(&busy(&["sessions=1000000"]), &folder, &options).unwrap_err();
    assert!(matches!(error, GenerateError::Interrupted), "{error}");
    assert!((1..1_000_000).contains(&most.load(Ordering::Relaxed)));
    assert_eq!(content(&folder), before);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "a temporary folder is left");

    // A longer trace set of the same workload replaces the old one when it is complete.
    let manifest = generate_into(&busy(&["sessions=200"]), &folder, 2);
    assert_eq!(schemas::manifest::Manifest::read(&folder).unwrap().trace_id, manifest.trace_id);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "the old trace set is left");
}
