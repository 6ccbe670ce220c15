//! Two runs on one database: the one that was disturbed is void, and says why.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::Workplace;

fn stores() -> Vec<String> {
    let database = format!("encore_shared_{}", std::process::id());
    let server = servers::postgres().map(|server| server.url(&database));
    ["sqlite:shared.db?synchronous=off".to_string()].into_iter().chain(server).collect()
}

#[test]
fn a_store_that_another_run_loads_makes_an_experiment_void() {
    let place = Workplace::with_trace();
    for (number, store) in stores().into_iter().enumerate() {
        let name = format!("r{number}");
        let words = ["run", "busy.toml", "--store", &store, "--threads", "2", "--duration", "4s", "--name", &name];
        let mut first = place.command(&[&words[..], &["--sla", "1% < 10s, 100% unpredictable, 4s"]].concat());
        let first = first.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let patience = Instant::now() + Duration::from_secs(60);
        while place.experiment_log_bytes(&format!("runs/{name}"), 1) == 0 {
            assert!(Instant::now() < patience, "{store}: the experiment does not begin");
            std::thread::sleep(Duration::from_millis(20));
        }
        place.run(&["replay", "load", "--trace", "busy.trace", "--store", &store]).succeeds();
        let output = first.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{store}: {said}");
        let why = "loaded or used by another program while the experiment ran";
        assert!(said.contains("void") && said.contains(why), "{store}: {said}");
    }
}
