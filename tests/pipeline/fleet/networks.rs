//! Replayers in separate networks with delay, loss and cuts.

use std::process::{Command, Stdio};
use std::time::Duration;

use super::{Host, OWN, ends, json, rulings, run};
use crate::support::{Workplace, until};

/// Separate networks for replayers, each with a link to this one: 198.18.N.1 here, 198.18.N.2
/// there. Dropping this value removes them.
struct Networks {
    names: Vec<String>,
}

impl Networks {
    /// `None` if this user may not create networks.
    fn new(count: usize) -> Option<Networks> {
        let mut networks = Networks { names: Vec::new() };
        for n in 0..count {
            let name = format!("encore{}n{n}", std::process::id());
            ip(&["netns", "add", &name]).then_some(())?;
            networks.names.push(name.clone());
            let (here, there) = (networks.wire(n), format!("{}p", networks.wire(n)));
            let wired = ip(&["link", "add", &here, "type", "veth", "peer", "name", &there, "netns", &name])
                && ip(&["address", "add", &format!("198.18.{n}.1/30"), "dev", &here])
                && ip(&["link", "set", &here, "up"])
                && ip(&["-n", &name, "address", "add", &format!("198.18.{n}.2/30"), "dev", &there])
                && ip(&["-n", &name, "link", "set", &there, "up"]);
            wired.then_some(())?;
        }
        Some(networks)
    }

    fn wire(&self, n: usize) -> String {
        format!("en{}x{n}", std::process::id())
    }

    /// Adds delay and loss to the links; false if the kernel cannot.
    fn are_far_away(&self) -> bool {
        (0..self.names.len()).all(|n| {
            let wire = self.wire(n);
            let arguments = ["qdisc", "add", "dev", &wire, "root", "netem", "delay", "10ms", "3ms", "loss", "1%"];
            Command::new("tc").args(arguments).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        })
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        // The links are removed with the networks.
        for name in &self.names {
            ip(&["netns", "delete", name]);
        }
    }
}

fn ip(arguments: &[&str]) -> bool {
    Command::new("ip").args(arguments).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Follows the documentation: certificates, addresses that other machines could reach, and links
/// that are cut.
#[test]
fn replayers_in_networks_of_their_own() {
    let Some(networks) = Networks::new(4) else {
        println!("left out: this user may not make networks");
        return;
    };
    if !networks.are_far_away() {
        println!("without delay and loss, which this kernel does not have");
    }
    let place = Workplace::new();
    let names: Vec<String> = (0..4).map(|n| format!("198.18.{n}.2")).collect();
    let hosts = names.iter().flat_map(|name| ["--host", name]);
    place.run(&[&["certs", "certs"][..], &hosts.collect::<Vec<_>>()].concat()).succeeds();
    let inside = |n: usize| {
        let address = format!("{}:0", names[n]);
        let name = networks.names[n].clone();
        Host::started(&place, n as u32, &address, &["--certs", "certs"], |program| {
            let mut command = Command::new("ip");
            command.args(["netns", "exec", &name]).arg(program.get_program()).args(program.get_args());
            command.current_dir(program.get_current_dir().expect("the workplace"));
            command
        })
    };
    let hosts: Vec<Host> = (0..4).map(inside).collect();
    let addresses = || hosts.iter().map(|host| host.address.as_str());
    let arguments =
        ["--sessions", "12000", "--threads", "8", "--warmup", "400", "--sla", "95% < 10s, 0.1s", "--certs", "certs"];
    let child = run(&place, "a", OWN, addresses(), &arguments).spawn().expect("a child");
    until("a log", || hosts[3].logged() > 3_000);
    assert!(ip(&["link", "set", &networks.wire(3), "down"]));
    std::thread::sleep(Duration::from_secs(2));
    assert!(ip(&["link", "set", &networks.wire(3), "up"]));
    ends(&child.wait_with_output().expect("it ends"));
    let report = json(&place, "runs/a/experiments/0001-T8/replay.json");
    assert_eq!((report["sessions"].as_u64(), report["faults"].is_null()), (Some(12_000), true), "{report}");
    assert_eq!(rulings(&place, "runs/a").len(), 1);
    let rows = "SELECT count(DISTINCT fragment) AS f, count(*) FILTER (unpredictable) AS u FROM operations";
    let rows = place.run(&["analyze", "sql", "runs/a", rows, "--format", "csv"]).succeeds();
    assert_eq!(rows, "f,u\n8,0\n");
}
