//! What a fleet costs its coordinator: with real replayers on this machine, and with up to a
//! thousand simulated ones.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use schemas::spec::Spec;
use schemas::verdict::Verdict;
use serde::Serialize;

use crate::machine::Machine;
use crate::measure;

/// Reads of a small social network; all of its fragments are alike.
const SPEC: &str = "name = \"fleet\"\n[data]\nmembers = 40000\nfriends_per_member = 8\n\
                    [access]\ndistribution = \"uniform\"\n[mix]\nview_profile = 90\nlist_friends = 10\n";

/// Sessions against a store that answers at once: enough for some seconds.
const SESSIONS: u64 = 20_000_000;
/// Sessions that are enough for a store with a latency.
const FEW_SESSIONS: u64 = 2_000_000;

/// The duration of an experiment in seconds.
const SECONDS: u32 = 10;

/// The figures of one fleet.
#[derive(Debug, Clone, Serialize)]
struct Line {
    case: String,
    replayers: u32,
    threads: u32,
    operations_per_s: f64,
    /// Seconds from the start of the coordinator to its end.
    seconds: f64,
    /// CPU time of the coordinator's process alone.
    cpu_s: f64,
    memory_mib: f64,
    /// Traffic over the loopback device in that time, in both directions.
    traffic_mib: f64,
}

/// Measures, and writes the table to `output` with `.md` and `.json`.
pub fn main(simulated: &[u32], folder: &Path, output: &Path) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for (store, threads) in [("null:", 8), ("memory:?latency_us=1000", 64)] {
        for replayers in [1, 2, 4, 8] {
            let hosts: Vec<Host> = (0..replayers).map(|n| Host::replayer(folder, n)).collect::<Result<_, _>>()?;
            let addresses = hosts.iter().flat_map(|host| &host.addresses);
            // A run against `null:` ends with its sessions; one with a duration must not run out of them.
            let sessions = if store == "null:" { SESSIONS } else { FEW_SESSIONS };
            lines.push(run(folder, store, &Work { store, threads, fragments: 8, sessions }, addresses)?);
            report(output, &lines)?;
        }
    }
    for replayers in simulated {
        let host = Host::simulated(*replayers)?;
        let work = Work { store: "memory:", threads: 4 * replayers, fragments: *replayers, sessions: FEW_SESSIONS };
        lines.push(run(folder, "simulated replayers", &work, host.addresses.iter())?);
        report(output, &lines)?;
    }
    print!("{}", std::fs::read_to_string(output.with_extension("md"))?);
    Ok(())
}

/// A process with replayers; dropping this value ends it.
struct Host {
    child: Child,
    addresses: Vec<String>,
}

impl Host {
    fn replayer(folder: &Path, number: u32) -> anyhow::Result<Host> {
        let mut command = Command::new(beside("replayer")?);
        command.args(["serve", "--listen", "127.0.0.1:0", "--work"]).arg(folder.join(format!("work-{number}")));
        Host::start(&mut command, 1)
    }

    fn simulated(replayers: u32) -> anyhow::Result<Host> {
        Host::start(Command::new(std::env::current_exe()?).args(["simulated", &replayers.to_string()]), replayers)
    }

    fn start(command: &mut Command, lines: u32) -> anyhow::Result<Host> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("it is piped")?;
        let addresses = BufReader::new(stdout).lines().take(lines as usize);
        let addresses = addresses.map(|line| Ok(line?.trim_start_matches("listening on ").trim().to_string()));
        let addresses: std::io::Result<Vec<String>> = addresses.collect();
        let host = Host { child, addresses: addresses? };
        ensure!(host.addresses.len() == lines as usize, "{command:?} ended before it listened; see its output above");
        Ok(host)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended by itself, which does no harm.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program of the same build.
fn beside(name: &str) -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name(name);
    ensure!(program.is_file(), "{} is missing; start the benches with benches/run, which builds it", program.display());
    Ok(program)
}

/// The work of a fleet.
struct Work<'a> {
    store: &'a str,
    threads: u32,
    fragments: u32,
    sessions: u64,
}

fn run<'a>(
    folder: &Path,
    case: &str,
    work: &Work<'_>,
    addresses: impl Iterator<Item = &'a String>,
) -> anyhow::Result<Line> {
    let Work { store, threads, fragments, sessions } = *work;
    let trace = folder.join(format!("fleet-{fragments}-{sessions}.trace"));
    if !trace.exists() {
        let spec =
            Spec::parse_with(SPEC, "fleet", &[format!("fragments={fragments}"), format!("sessions={sessions}")])?;
        tracegen::generate(&spec, &trace, &tracegen::GenerateOptions::default())?;
    }
    let mut command = Command::new(beside("coord")?);
    command.args(["run", "--store", store, "--name", "fleet", "--leave-logs", "--json", "--threads"]);
    command.arg(threads.to_string()).arg("--trace").arg(&trace).arg("--runs").arg(folder.join("runs"));
    command.arg("--sla").arg(format!("95% < 100ms, 0.1% unpredictable, {SECONDS}s"));
    if store == "null:" {
        command.args(["--sessions", &sessions.to_string()]);
    }
    let mut replayers = 0;
    for address in addresses {
        command.args(["--replayer", address]);
        replayers += 1;
    }
    let (began, before) = (Instant::now(), loopback_bytes()?);
    // `null:` answers nothing, which violates the SLA. The coordinator then exits with code 1.
    let used = measure::run_to(&mut command, &[0, 1])?;
    let (seconds, traffic) = (began.elapsed().as_secs_f64(), loopback_bytes()? - before);
    let verdict: Verdict = serde_json::from_str(&used.output).context("the coordinator's verdict")?;
    let line = Line {
        case: case.to_string(),
        replayers,
        threads,
        operations_per_s: verdict.figures.throughput_per_s,
        seconds,
        cpu_s: used.cpu_s,
        memory_mib: used.memory_bytes as f64 / 1_048_576.0,
        traffic_mib: traffic as f64 / 1_048_576.0,
    };
    eprintln!(
        "{} with {} replayers, T={}: {:.0} operations/s, {:.1} CPU s, {:.0} MiB",
        line.case, line.replayers, line.threads, line.operations_per_s, line.cpu_s, line.memory_mib
    );
    for name in std::iter::once("runs".to_string()).chain((0..replayers).map(|n| format!("work-{n}"))) {
        let path = folder.join(name);
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
    }
    Ok(line)
}

/// The bytes that the loopback device has received so far, which are all that was sent over it.
fn loopback_bytes() -> anyhow::Result<u64> {
    let devices = std::fs::read_to_string("/proc/net/dev")?;
    let device = devices.lines().find_map(|line| line.trim_start().strip_prefix("lo:"));
    let received = device.and_then(|fields| fields.split_whitespace().next());
    Ok(received.context("/proc/net/dev has no device lo")?.parse()?)
}

fn report(output: &Path, lines: &[Line]) -> anyhow::Result<()> {
    let machine = Machine::current();
    let json = serde_json::json!({ "machine": machine, "seconds": SECONDS, "lines": lines });
    let mut text = format!(
        "# What a fleet costs its coordinator\n\n`benches/run fleet`, on {machine}: experiments of {SECONDS} s (against \
         `null:` of {} million sessions) with `--leave-logs`. CPU time, memory and traffic are the \
         coordinator's, from start to end. All replayers, real or simulated, run on the same machine, which also \
         analyzes the logs of the real ones.\n\n\
         | case | replayers | T | operations/s | seconds | coordinator CPU s | memory MiB | traffic MiB |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n",
        SESSIONS / 1_000_000
    );
    for line in lines {
        let Line { case, replayers, threads, operations_per_s, seconds, cpu_s, memory_mib, traffic_mib } = line;
        text += &format!(
            "| {case} | {replayers} | {threads} | {operations_per_s:.0} | {seconds:.1} | {cpu_s:.2} | {memory_mib:.0} | \
             {traffic_mib:.1} |\n"
        );
    }
    for (extension, text) in [("md", text), ("json", serde_json::to_string_pretty(&json)? + "\n")] {
        let path = output.with_extension(extension);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
