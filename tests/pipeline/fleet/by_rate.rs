//! Open loops with several replayers: ratings by arrival rate, overload.

use std::process::Stdio;

use super::{Host, ends, json, rulings, run};
use crate::support::{Workplace, until};

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
    let last = place.experiment("runs/r", rulings.len() as u32).expect("it ran");
    assert!(last.ends_with(format!("{:04}-T32-R400", rulings.len())), "{}", last.display());
    let last = last.join("replay.json");
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
    precision_is_known(&place, rulings.len(), &report, &rulings[rulings.len() - 1]);
}

/// The log says of each replayer how late it started its sessions, together as the report does. Too
/// late is void, so an experiment that is not void has kept the precision (β is 10 s, its quarter 2.5 s).
fn precision_is_known(place: &Workplace, experiment: usize, report: &serde_json::Value, ruling: &(String, String)) {
    let sql = format!(
        "SELECT fragment, count(late_ns) AS sessions, quantile_cont(late_ns, 0.99) AS p99 FROM operations \
         WHERE experiment = {experiment} AND NOT warmup AND late_ns IS NOT NULL GROUP BY fragment ORDER BY fragment"
    );
    let answer = place.run(&["analyze", "sql", "runs/r", &sql, "--format", "csv"]).succeeds();
    let rows: Vec<Vec<f64>> = answer.lines().skip(1).map(|row| row.split(',').flat_map(str::parse).collect()).collect();
    let mut started = 0.0;
    for replayer in report["replayers"].as_array().expect("replayers") {
        let own = replayer["fragments"].as_array().expect("fragments");
        let own = own.iter().map(|fragment| fragment.as_f64().expect("a number"));
        for fragment in own {
            let row = rows.iter().find(|row| row.len() == 3 && row[0] == fragment);
            let row = row.unwrap_or_else(|| panic!("fragment {fragment} of {replayer} has no sessions: {answer}"));
            started += row[1];
        }
    }
    let pacing = &report["pacing"];
    let unstarted = pacing["sessions_unstarted"].as_f64().expect("sessions");
    assert_eq!(started, pacing["sessions_due"].as_f64().expect("sessions") - unstarted, "{answer}");
    let is_late = pacing["late_ns_p99"].as_u64().expect("a time") > 2_500_000_000;
    assert_eq!(is_late, ruling.0 == "void" && ruling.1.contains("sessions started late"), "{ruling:?}: {pacing}");
}

/// Two replayers have one thread and two threads. Each has a session every 200 ms that takes 250 ms, so
/// the one thread is busy when its second session is due. The experiment used to end on that replayer
/// only: the other one went on for the whole minute.
#[test]
fn an_overload_of_one_replayer_ends_the_experiment_on_all() {
    let place = Workplace::alone();
    let hosts = [Host::start(&place, 2, &[]), Host::start(&place, 3, &[])];
    let open = ["--rate", "10", "--overload", "stop", "--threads", "3", "--sla", "1% < 10s, 60s"];
    let names = hosts.iter().map(|host| host.address.as_str());
    let said = ends(&run(&place, "a", "memory:?latency_us=250000", names, &open).output().expect("it ends"));
    let report = json(&place, "runs/a/experiments/0001-T3/replay.json");
    assert_eq!((&report["end"], report["faults"].is_null()), (&"overloaded".into(), true), "{report}");
    assert!(report["elapsed_ns"].as_u64() < Some(20_000_000_000), "{report}");
    // The replayer that was overloaded is named, and only that one.
    let replayers = report["replayers"].as_array().expect("replayers");
    let overloaded: Vec<_> = replayers.iter().filter(|replayer| replayer["overloaded"] == true).collect();
    assert!(overloaded.len() == 1 && overloaded[0]["threads"] == 1, "{report}");
    let name = overloaded[0]["name"].as_str().expect("a name");
    let (ruling, reasons) = &rulings(&place, "runs/a")[0];
    assert!(ruling == "fail" && reasons.contains(&format!("all threads of replayer {name} were busy")), "{reasons}");
    assert!(said.contains(name), "{said}");
}
