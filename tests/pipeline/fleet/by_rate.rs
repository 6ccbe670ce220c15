//! Ratings by arrival rate with several replayers.

use std::process::Stdio;

use super::{Host, ends, json, rulings, until};
use crate::support::Workplace;

/// Each replayer has a store of its own in its memory. It is so slow that four replayers on two
/// processors are no load beside it.
const SLOW: &str = "memory:?latency_us=20000";

/// Each replayer starts the sessions of its own fragments. One of them dies in the search: the rating
/// waits for it, repeats the experiment, and ends as if nothing had happened.
#[test]
fn a_rating_by_rate_over_four_replayers_outlives_the_loss_of_one() {
    let place = Workplace::alone();
    let mut hosts: Vec<Host> = (2..6).map(|n| Host::start(&place, n, &[])).collect();
    let rate = ["rate", "busy.toml", "--store", SLOW, "--name", "r", "--sessions", "20000", "--set", "fragments=8"];
    let how = ["--set", "data.members=800", "--by", "rate", "--first-rate", "100", "--max-rate", "400"];
    let lasts = ["--threads", "32", "--search-s", "2", "--sla", "50% < 10s, 2s"];
    let mut command = place.command(&[&rate[..], &how, &lasts].concat());
    for host in &hosts {
        command.args(["--replayer", &host.address]);
    }
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child");
    until("the second experiment", || place.experiment("runs/r", 2).is_some());
    let mut lost = hosts.pop().expect("a replayer");
    lost.child.kill().expect("it can be killed");
    lost.child.wait().expect("it is dead");
    let again = Host::listening(&place, 5, &lost.address, &[], |command| command);
    let said = ends(&child.wait_with_output().expect("it ends"));
    assert!(said.contains("is void") && said.contains(&again.address), "{said}");
    let rulings = rulings(&place, "runs/r");
    let is_lost = |(ruling, reasons): &&(String, String)| ruling == "void" && reasons.contains(&again.address);
    assert_eq!(rulings.iter().filter(is_lost).count(), 1, "{rulings:?}");
    // No other rate is left to try above the limit of the search.
    let rating = json(&place, "runs/r/rating.json");
    assert_eq!((rating["rate"]["value"].as_f64(), &rating["rate"]["at_least"]), (Some(400.0), &true.into()), "{said}");
    let last = place.experiment("runs/r", rulings.len() as u32).expect("it ran").join("replay.json");
    let report = json(&place, &last.display().to_string());
    let fragments: Vec<usize> = report["replayers"]
        .as_array()
        .expect("replayers")
        .iter()
        .map(|replayer| replayer["fragments"].as_array().expect("fragments").len())
        .collect();
    assert_eq!(fragments, [2; 4], "{report}");
    // Of 400 sessions a second for 2 s, all are due on all replayers together.
    let due = report["pacing"]["sessions_due"].as_u64().expect("sessions");
    assert!((790..=810).contains(&due), "{report}");
}
