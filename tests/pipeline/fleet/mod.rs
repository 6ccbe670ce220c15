//! Tests with several replayers. Each is a process with its own address and work folder, as on a
//! separate machine.

mod access;
mod by_rate;
mod lost;
mod networks;
mod together;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use crate::support::Workplace;

/// A separate store in each replayer, slow enough for faults to hit a running experiment.
const OWN: &str = "memory:?latency_us=1000";

/// A replayer that waits for a coordinator.
pub struct Host {
    child: Child,
    /// Its host and port.
    pub address: String,
    work: PathBuf,
}

impl Host {
    /// Starts a replayer on the loopback address 127.0.0.N, with more arguments.
    pub fn start(place: &Workplace, n: u32, more: &[&str]) -> Host {
        Host::listening(place, n, &format!("127.0.0.{n}:0"), more, |command| command)
    }

    /// The same with variables of the environment.
    pub fn with_variables(place: &Workplace, n: u32, more: &[&str], variables: &[(&str, String)]) -> Host {
        Host::listening(place, n, &format!("127.0.0.{n}:0"), more, |command| {
            command.envs(variables.iter().map(|(name, value)| (*name, value)))
        })
    }

    fn listening(
        place: &Workplace,
        n: u32,
        address: &str,
        more: &[&str],
        changed: impl FnOnce(&mut Command) -> &mut Command,
    ) -> Host {
        Host::started(place, n, address, more, |mut command| {
            changed(&mut command);
            command
        })
    }

    fn started(
        place: &Workplace,
        n: u32,
        address: &str,
        more: &[&str],
        changed: impl FnOnce(Command) -> Command,
    ) -> Host {
        let work = format!("work-{n}");
        let mut command = place.command(&["replay", "serve", "--listen", address, "--work", &work]);
        command.args(more);
        let mut command = changed(command);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("a replayer");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line:?}")).to_string();
        Host { child, address, work: place.path(&work) }
    }

    fn signal(&self, signal: i32) {
        // SAFETY: sends a signal to a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// The size in bytes of the largest log that it has written.
    fn logged(&self) -> u64 {
        let mut most = 0;
        let mut folders = vec![self.work.join("runs")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                match entry.path().is_dir() {
                    true => folders.push(entry.path()),
                    false if entry.path().extension().is_some_and(|e| e == "arrows") => {
                        most = most.max(entry.metadata().map_or(0, |metadata| metadata.len()));
                    }
                    false => {}
                }
            }
        }
        most
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // The replayer may have died already; then the kill fails, which does no harm.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `coord run` of the busy workload in 8 fragments on these replayers.
fn run<'a>(
    place: &Workplace,
    name: &str,
    store: &str,
    hosts: impl IntoIterator<Item = &'a str>,
    more: &[&str],
) -> Command {
    let mut command = place.command(&[
        "run",
        "busy.toml",
        "--set",
        "fragments=8",
        "--set",
        "data.members=800",
        "--name",
        name,
        "--store",
        store,
    ]);
    for host in hosts {
        command.args(["--replayer", host]);
    }
    command.args(more).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Requires that the run came to its end. Its verdict does not matter here: on a slow disk, so
/// short a run may be void.
pub fn ends(output: &Output) -> String {
    let is_void = String::from_utf8_lossy(&output.stdout).contains("void");
    exits(output, output.status.code().filter(|code| *code == 1 || (*code == 3 && is_void)).unwrap_or(0))
}

fn exits(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

fn json(place: &Workplace, file: &str) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(place.path(file)).expect(file)).expect("JSON")
}

/// The verdict and the reasons of each experiment of a run, in order.
fn rulings(place: &Workplace, run: &str) -> Vec<(String, String)> {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(place.path(run).join("experiments"))
        .expect("experiments")
        .map(|e| e.expect("one").path())
        .collect();
    folders.sort();
    let ruling = |folder: &PathBuf| {
        let verdict = std::fs::read(folder.join("verdict.json")).expect("a verdict");
        let verdict: serde_json::Value = serde_json::from_slice(&verdict).expect("JSON");
        (verdict["ruling"].as_str().unwrap_or_default().to_string(), verdict["reasons"].to_string())
    };
    folders.iter().map(ruling).collect()
}
