//! Fragments that are analyzed by themselves, in any order and twice: the same files, to the last byte, as the
//! analysis of the whole experiment.

mod common;

use std::path::{Path, PathBuf};

use analyzer::{AnalyzeError, analyze_fragment, merge};
use common::{Dice, Event, Fixture, THREADS, World, simulate};
use schemas::run::{FragmentPosition, Host, ReplayReport, ReplayerReport, RunFolder};
use schemas::sla::Sla;

const FRAGMENTS: u32 = 4;

/// An experiment of several fragments that the seed draws: how many operations, how many writes, which answers are
/// wrong, whether a replayer was killed.
struct Drawn {
    fixture: Fixture,
    has_report: bool,
}

fn drawn(seed: u64) -> Drawn {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (operations, writes) = (20 + dice.below(400), dice.below(600));
    let mut worlds: Vec<(World, Vec<Event>)> = Vec::new();
    for fragment in 0..u64::from(FRAGMENTS) {
        let world = World::new(40 * fragment, 40, 4);
        let mut events = simulate(&mut world.clone(), seed * 10 + fragment, operations, writes);
        for event in &mut events {
            if dice.below(20) > 0 {
                continue;
            }
            event.observed.iter_mut().for_each(|observed| *observed += 1);
            event.log.end_ns += dice.below(300_000_000) as i64;
        }
        worlds.push((world, events));
    }
    let fixture = Fixture::new(&worlds);
    let has_report = dice.below(4) > 0;
    if has_report {
        // Two replayers, with two fragments each.
        let path = fixture.run.experiment(1, THREADS).report();
        let mut report: ReplayReport = schemas::files::read_json(&path).unwrap();
        report.positions = (0..FRAGMENTS).map(|fragment| FragmentPosition::at(fragment, operations)).collect();
        let part = |name: &str, fragments: [u32; 2]| ReplayerReport {
            name: name.into(),
            host: Host { name: "host".into(), system: "linux-x86_64".into(), cpus: 2 },
            fragments: fragments.to_vec(),
            threads: THREADS / 2,
            ok: 0,
            errors: 0,
            worker_cpu_share: 0.2,
            dispatch_lag_ns_mean: 50.0,
            dispatch_lag_ns_p99: 100,
            run_delay_share: None,
            idle_ns: 0,
            overloaded: false,
            clock: Default::default(),
        };
        report.replayers = vec![part("a", [0, 2]), part("b", [1, 3])];
        report.elapsed_ns = 1_000_000 + dice.below(1_000_000_000);
        schemas::files::write_json(&path, &report).unwrap();
    } else {
        // The replayer was killed: no report, and a log without its end.
        std::fs::remove_file(fixture.run.experiment(1, THREADS).report()).unwrap();
        fixture.write_log(1, 0, &worlds[1].1[..worlds[1].1.len() / 2], false);
    }
    Drawn { fixture, has_report }
}

/// Every file below a folder but hidden ones and the summaries of fragments, with its bytes.
fn content(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut found, mut folders) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                folders.extend((name != "fragments").then_some(path));
            } else if !name.starts_with('.') {
                found.push((path.strip_prefix(root).unwrap().to_path_buf(), std::fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn fragment(run: &RunFolder, fragment: u32) -> Result<PathBuf, AnalyzeError> {
    analyze_fragment(run, (1, fragment), None, None)
}

#[test]
fn fragments_apart_give_the_same_as_the_whole_over_a_hundred_runs() {
    let mut without_report = 0;
    for seed in 0..100 {
        let Drawn { fixture, has_report } = drawn(seed);
        without_report += u32::from(!has_report);
        let mut dice = Dice(seed + 7);
        let mut order: Vec<u32> = (0..FRAGMENTS).collect();
        order.sort_by_key(|_| dice.below(1000));
        // One of them is done twice.
        order.push(order[0]);
        for one in order {
            fragment(&fixture.run, one).unwrap();
        }
        let apart = merge(&fixture.run, 1, None, None).unwrap();
        let files = content(fixture.run.root());
        assert_eq!(fixture.analyze().unwrap(), apart, "seed {seed}");
        assert_eq!(content(fixture.run.root()), files, "seed {seed}");
        assert_eq!(apart.sealed.len() as u32, FRAGMENTS);
        assert_eq!(apart.replayers.len(), if has_report { 2 } else { 0 });
    }
    assert!((10..60).contains(&without_report), "{without_report}");
}

#[test]
fn what_is_missing_or_of_another_experiment_is_refused() {
    let fixture = drawn(1).fixture;
    let (run, folder) = (&fixture.run, fixture.run.experiment(1, THREADS));
    let error = |result: Result<_, AnalyzeError>| result.map(|_| ()).unwrap_err().to_string();
    let merged = || error(merge(run, 1, None, None).map(|_| ()));
    let says = |error: String, expect: &[&str]| {
        for part in expect {
            assert!(error.contains(part), "{error:?} lacks {part:?}");
        }
        assert!(!folder.verdict().exists());
    };
    says(merged(), &["experiment 1: 4 fragments not analyzed (0 to 3)", "--experiment 1 --fragment 0`"]);
    for one in [0, 2] {
        fragment(run, one).unwrap();
    }
    says(merged(), &["2 fragments not analyzed (1, 3)", "--fragment 1`"]);
    says(error(fragment(run, 9).map(|_| ())), &["experiment 1 has no fragment 9; it has 0 to 3"]);
    says(error(analyze_fragment(run, (5, 0), None, None).map(|_| ())), &["there is no experiment 5; it has 1"]);
    for one in [1, 3] {
        fragment(run, one).unwrap();
    }
    let path = folder.fragment(2);
    let kept = std::fs::read_to_string(&path).unwrap();
    let change = |from: &str, to: &str| {
        assert!(kept.contains(from), "{from}");
        std::fs::write(&path, kept.replacen(from, to, 1)).unwrap();
    };
    change("\"format_version\": ", "\"format_version\": 9");
    says(merged(), &["fragment-2.json: run format version 9"]);
    change("\"encore_version\": \"", "\"encore_version\": \"0.0.");
    says(merged(), &["fragment-2.json: was made by another version of Encore; run `encore analyze fragment`"]);
    change("\"experiment\": 1", "\"experiment\": 2");
    says(merged(), &["fragment-2.json: is of another experiment or fragment; run `encore analyze fragment`"]);
    change("\"trace_id\": \"", "\"trace_id\": \"x");
    says(merged(), &["fragment-2.json: was made with another trace set"]);
    change("\"report\": \"", "\"report\": \"x");
    says(merged(), &["fragment-2.json: was made before replay.json was as it is now"]);
    change("\"summary\": {", "\"summary\": {{");
    says(merged(), &["fragment-2.json: not valid JSON"]);
    let sla: Sla = "99% < 10ms".parse().unwrap();
    std::fs::write(&path, &kept).unwrap();
    analyze_fragment(run, (1, 2), None, Some(&sla)).unwrap();
    says(merged(), &["fragment-2.json: was made for another SLA"]);
    std::fs::write(&path, &kept).unwrap();
    let table = run.sealed_operations(1, 2);
    let bytes = std::fs::read(&table).unwrap();
    std::fs::write(&table, &bytes[1..]).unwrap();
    says(merged(), &["part-0.parquet: is not as long as its summary says"]);
    std::fs::remove_file(&table).unwrap();
    says(merged(), &["part-0.parquet: No such file"]);
    fragment(run, 2).unwrap();
    merge(run, 1, None, None).unwrap();
}

/// The logs may be read where the replayer's folders are not.
#[test]
fn the_trace_set_may_lie_elsewhere() {
    let fixture = drawn(2).fixture;
    let expect = fixture.analyze().unwrap();
    let elsewhere = fixture.folder.path().join("elsewhere.trace");
    std::fs::rename(fixture.trace(), &elsewhere).unwrap();
    assert!(fragment(&fixture.run, 0).is_err());
    for one in 0..FRAGMENTS {
        analyze_fragment(&fixture.run, (1, one), Some(&elsewhere), None).unwrap();
    }
    assert_eq!(merge(&fixture.run, 1, Some(&elsewhere), None).unwrap(), expect);
}
