//! Consistency levels of Cassandra on three nodes: reads at ONE are stale and found so, reads at QUORUM are not, even
//! while a node stands still. Only with `ENCORE_TEST_CLUSTER`, as `tests/run --cluster` sets it.

use std::process::Stdio;
use std::time::Duration;

use crate::key_value::{ask, workload};
use crate::support::Workplace;

/// Few records that are written and read all the time.
const HOT: [&str; 10] = [
    "--set",
    "data.records=20",
    "--set",
    "data.fields=1",
    "--set",
    "fragments=1",
    "--set",
    "access.distribution=zipfian",
    "--set",
    "mix.update=50",
];

/// Each thread's operations go to one node, which prefers its own copy.
const WEAK: &str = "coordinator=by-thread&read_repair=NONE&speculative_retry=NEVER";

fn arguments<'a>(spec: &'a str, store: &'a str, name: &'a str, sessions: &'a str) -> Vec<&'a str> {
    let run = ["run", spec, "--store", store, "--threads", "16", "--sessions", sessions, "--name", name];
    [&run[..], &HOT].concat()
}

/// The reads that succeeded, those of them that are unpredictable, and the longest time that a value that was
/// read had been overwritten, in microseconds.
fn staleness(place: &Workplace, run: &str) -> (u64, u64, u64) {
    let count = |filter: &str| {
        let sql = format!("SELECT count(*) FROM operations WHERE operation = 'read' AND outcome = 'ok' {filter}");
        ask(place, run, &sql).parse::<u64>().expect("a number")
    };
    let oldest = "SELECT coalesce(max(t_staleness_ns), 0) // 1000 FROM read_staleness";
    (count(""), count("AND unpredictable"), ask(place, run, oldest).parse().expect("a number"))
}

#[test]
fn reads_at_one_are_stale_and_reads_at_quorum_are_not() {
    let Some(cluster) = servers::cassandra_cluster() else { return };
    let place = Workplace::alone();
    let spec = workload("a");
    let store = |levels: &str| format!("{}?{levels}&{WEAK}", cluster.url(&format!("levels_{}", std::process::id())));
    let weak = store("read_level=ONE&write_level=ONE");
    place.run(&arguments(&spec, &weak, "weak", "40000")).ends();
    let (reads, stale, oldest) = staleness(&place, "runs/weak");
    println!("ONE/ONE: {stale} of {reads} reads are stale, up to {oldest} us");
    assert!(reads > 10_000 && stale > 0 && oldest > 0, "{stale} of {reads} reads are stale, up to {oldest} us");

    let strong = store("read_level=QUORUM&write_level=QUORUM");
    place.run(&arguments(&spec, &strong, "strong", "40000")).ends();
    let (reads, stale, _) = staleness(&place, "runs/strong");
    println!("QUORUM/QUORUM: {stale} of {reads} reads are stale");
    assert!(reads > 10_000, "{reads}");
    assert_eq!(stale, 0);
}

/// Two of three nodes are a quorum. What the third one does not answer is late or failed, never stale.
#[test]
fn a_node_that_stands_still_makes_no_read_at_quorum_stale() {
    let Some(cluster) = servers::cassandra_cluster() else { return };
    let place = Workplace::alone();
    let spec = workload("a");
    let url = format!("{}?read_level=QUORUM&write_level=QUORUM", cluster.url("stopped"));
    let mut command = place.command(&arguments(&spec, &url, "stopped", "150000"));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a run");
    // The experiment has begun, and a part of it is still to come.
    let log_bytes = || place.experiment_log_bytes("runs/stopped", 1);
    while log_bytes() < 100_000 {
        assert!(child.try_wait().expect("a child").is_none(), "it has ended before the node was stopped");
        std::thread::sleep(Duration::from_millis(5));
    }
    cluster.nodes()[2].pause();
    std::thread::sleep(Duration::from_secs(2));
    cluster.nodes()[2].resume();
    assert!(child.try_wait().expect("a child").is_none(), "it has ended before the node went on");
    child.wait().expect("its end");
    let (reads, stale, _) = staleness(&place, "runs/stopped");
    let slow = "SELECT count(*) > 0 FROM operations WHERE end_ns - start_ns > 1000000000";
    assert_eq!(ask(&place, "runs/stopped", slow), "true", "no operation has noticed");
    println!("a node stopped: {stale} of {reads} reads are stale");
    assert!(reads > 10_000, "{reads}");
    assert_eq!(stale, 0);
}
