//! Time, memory and bytes on disk of large trace sets and logs, from a million
//! operations on, ten times as many at each step.
//!
//! Trace sets are of 10 million members with 100 friends each. Logs are of a smaller
//! data set, since the store that answers is this machine's memory, and of actions
//! without long lists, since these are bytes of the application and not of Encore.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde::Serialize;

use crate::machine::Machine;
use crate::measure;

/// BG's graph at its largest, with the quickstart's mix.
const TRACE_SPEC: &str = r#"
name = "large"
sessions = 1_000_000
[data]
members = 10_000_000
friends_per_member = 100
pending_per_member = 10
resources_per_member = 10
comments_per_resource = 2
[access]
own_profile_share = 0.1
[mix]
view_profile = 40
list_friends = 10
view_friend_requests = 10
view_top_k_resources = 20
view_comments = 15
invite_friend = 1.6
accept_friend_request = 1.0
reject_friend_request = 0.6
thaw_friendship = 0.8
post_comment = 0.6
delete_comment = 0.4
"#;

/// Two fragments, so that an analysis uses two processors.
const LOG_SPEC: &str = r#"
name = "large-log"
sessions = 1_000_000
fragments = 2
[data]
members = 100_000
friends_per_member = 20
pending_per_member = 10
resources_per_member = 1
comments_per_resource = 0
[access]
own_profile_share = 0.1
[mix]
view_profile = 95
invite_friend = 2
accept_friend_request = 1.2
reject_friend_request = 0.8
thaw_friendship = 1
"#;

const PERCENTILES: &str = "SELECT action, count(*), quantile_disc(response_ns, [0.5, 0.95, 0.99, 0.999]) \
                           FROM operations GROUP BY ALL ORDER BY action";

/// A step of the pipeline on so many operations.
#[derive(Debug, Serialize)]
struct Line {
    operations: u64,
    step: &'static str,
    seconds: f64,
    cpu_s: f64,
    memory_mib: f64,
    bytes: u64,
}

/// What is to be measured.
pub struct Large {
    /// The most operations of a trace set.
    pub trace_operations: u64,
    /// The most operations of a log.
    pub log_operations: u64,
    /// Where the files go, and go away again.
    pub folder: PathBuf,
}

/// Measures, prints a table and writes it as Markdown and JSON.
pub fn main(large: &Large, output: &Path) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for operations in steps(large.trace_operations) {
        let trace = large.folder.join("large.trace");
        generate(&large.folder, TRACE_SPEC, operations, &trace, "generate, 10 M members", &mut lines)?;
        std::fs::remove_dir_all(&trace)?;
    }
    for operations in steps(large.log_operations) {
        log(&large.folder, operations, &mut lines)?;
    }
    let machine = Machine::current();
    let table = table(&machine, &lines);
    print!("{table}");
    std::fs::write(output.with_extension("md"), table)?;
    let json = serde_json::json!({ "machine": machine, "lines": lines });
    Ok(std::fs::write(output.with_extension("json"), serde_json::to_string_pretty(&json)? + "\n")?)
}

fn steps(most: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(1_000_000), |n| Some(n * 10)).take_while(move |n| *n <= most)
}

fn log(folder: &Path, operations: u64, lines: &mut Vec<Line>) -> anyhow::Result<()> {
    let (trace, run) = (folder.join("log.trace"), folder.join("log.run"));
    generate(folder, LOG_SPEC, operations, &trace, "generate, 0.1 M members", lines)?;
    let mut replay = program("replayer")?;
    replay.arg("run").arg("--trace").arg(&trace).args(["--store", "memory:", "-T", "16"]);
    replay.args(["--log-compression", "zstd", "-o"]).arg(&run);
    lines.push(measured(operations, "replay on memory:, log with zstd", &mut replay, &run.join("experiments"))?);
    let mut summary = program("analyzer")?;
    summary.arg("summary").arg(&run);
    lines.push(measured(operations, "validate, summarize, seal", &mut summary, &run.join("operations"))?);
    let mut sql = program("analyzer")?;
    sql.arg("sql").arg(&run).arg(PERCENTILES);
    lines.push(measured(operations, "percentiles by action, SQL", &mut sql, &run.join("nothing"))?);
    std::fs::remove_dir_all(&trace)?;
    Ok(std::fs::remove_dir_all(&run)?)
}

fn generate(
    folder: &Path,
    spec: &str,
    operations: u64,
    trace: &Path,
    step: &'static str,
    lines: &mut Vec<Line>,
) -> anyhow::Result<()> {
    let file = folder.join("large.toml");
    std::fs::write(&file, spec)?;
    let mut command = program("tracegen")?;
    command.arg("gen").arg(&file).args(["--sessions", &operations.to_string(), "-o"]).arg(trace);
    lines.push(measured(operations, step, &mut command, &trace.join("operations"))?);
    Ok(())
}

/// A tool that was built beside this program.
fn program(name: &str) -> anyhow::Result<Command> {
    Ok(Command::new(std::env::current_exe()?.with_file_name(name)))
}

fn measured(operations: u64, step: &'static str, command: &mut Command, written: &Path) -> anyhow::Result<Line> {
    let began = Instant::now();
    let used = measure::run(command)?;
    let line = Line {
        operations,
        step,
        seconds: began.elapsed().as_secs_f64(),
        cpu_s: used.cpu_s,
        memory_mib: used.memory_bytes as f64 / 1_048_576.0,
        bytes: bytes_below(written),
    };
    eprintln!("{line:?}");
    Ok(line)
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

fn table(machine: &Machine, lines: &[Line]) -> String {
    let mut text = format!("# Large trace sets and logs\n\n`benches/run large`, on {machine}\n\n");
    text += "| step | operations | seconds | M operations/s | CPU s | memory MiB | bytes an operation |\n";
    text += "|---|---:|---:|---:|---:|---:|---:|\n";
    let mut by_step: Vec<&Line> = lines.iter().collect();
    let place = |line: &Line| lines.iter().position(|other| other.step == line.step);
    by_step.sort_by_key(|line| (place(line), line.operations));
    for line in by_step {
        let rate = line.operations as f64 / 1e6 / line.seconds;
        let bytes = match line.bytes {
            0 => String::new(),
            bytes => format!("{:.1}", bytes as f64 / line.operations as f64),
        };
        text += &format!(
            "| {} | {} M | {:.1} | {rate:.2} | {:.1} | {:.0} | {bytes} |\n",
            line.step,
            line.operations / 1_000_000,
            line.seconds,
            line.cpu_s,
            line.memory_mib
        );
    }
    text
}
