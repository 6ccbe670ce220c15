//! Time, memory and bytes on disk of large trace sets and logs, from a million operations up, ten
//! times as many at each step.
//!
//! Trace sets have 10 million members with 100 friends each. Logs have a smaller data set, since
//! the store is this machine's memory. Their actions have no long lists, since those bytes are the
//! application's and not Encore's.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use analyzer::chart::{self, Across, LineChart, LinePoint, LineSeries, Mark, Scale};
use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::measure;

/// BG's largest graph, with the quickstart's mix.
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

/// Exact percentiles. The view counts equal times before it sorts anything.
const PERCENTILES: &str = "SELECT operation, \
                             min(response_ns) FILTER (percent >= 50) AS p50_ns, \
                             min(response_ns) FILTER (percent >= 99) AS p99_ns, \
                             min(response_ns) FILTER (percent >= 99.9) AS p999_ns \
                           FROM spectrum GROUP BY operation ORDER BY operation";

/// The step that generates a large trace set; the other steps belong to a log.
const TRACE_STEP: &str = "generate, 10 M members";

/// The memory limit of an analysis: of the whole process, and of DuckDB in it.
const MEMORY_LIMIT_BYTES: u64 = 4 << 30;
const DUCKDB_LIMIT: &str = "2GiB";

/// A raw log of more operations is larger than most disks have room for.
const RAW_LOG_OPERATIONS_MAX: u64 = 10_000_000;

/// A step of the pipeline on this many operations.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Line {
    operations: u64,
    step: String,
    seconds: f64,
    cpu_s: f64,
    memory_mib: f64,
    /// The bytes that it wrote; 0 for none.
    bytes: u64,
}

/// The sizes to measure.
pub struct Large {
    /// The most operations of a trace set.
    pub trace_operations: u64,
    /// The most operations of a log.
    pub log_operations: u64,
    /// The folder for files, which are removed again.
    pub folder: PathBuf,
    /// The path of the report, without an extension.
    pub output: PathBuf,
}

/// Measures all sizes. The table and the charts are written again after each size, so that a
/// failure loses nothing. Results in an earlier report of the same machine stay if they are not
/// measured again.
pub fn main(large: &Large) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for operations in steps(large.trace_operations) {
        let trace = large.folder.join("large.trace");
        generate(&large.folder, TRACE_SPEC, operations, &trace, TRACE_STEP, &mut lines)?;
        std::fs::remove_dir_all(&trace)?;
        report(large, &lines)?;
    }
    for operations in steps(large.log_operations) {
        log(&large.folder, operations, &mut lines)?;
        report(large, &lines)?;
    }
    print!("{}", std::fs::read_to_string(large.output.with_extension("md"))?);
    Ok(())
}

fn steps(most: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(1_000_000), |n| Some(n * 10)).take_while(move |n| *n <= most)
}

fn log(folder: &Path, operations: u64, lines: &mut Vec<Line>) -> anyhow::Result<()> {
    let (trace, run) = (folder.join("log.trace"), folder.join("log.run"));
    generate(folder, LOG_SPEC, operations, &trace, "generate, 0.1 M members", lines)?;
    let mut replay = |step, compression: &str| -> anyhow::Result<()> {
        let mut replay = program("replayer")?;
        replay.arg("run").arg("--trace").arg(&trace).args(["--store", "memory:", "-T", "16"]);
        replay.args(["--log-compression", compression, "-o"]).arg(&run);
        lines.push(measured(operations, step, &mut replay, &run.join("experiments"))?);
        Ok(())
    };
    if operations <= RAW_LOG_OPERATIONS_MAX {
        replay("replay on memory:, raw log", "none")?;
        std::fs::remove_dir_all(&run)?;
    }
    replay("replay on memory:, log with zstd", "zstd")?;
    let mut summary = program("analyzer")?;
    summary.arg("summary").arg(&run);
    limited(&mut summary);
    lines.push(measured(operations, "validate, summarize, seal", &mut summary, &run.join("operations"))?);
    let mut sql = program("analyzer")?;
    sql.arg("sql").arg(&run).args([PERCENTILES, "--memory-limit", DUCKDB_LIMIT]);
    limited(&mut sql);
    lines.push(measured(operations, "exact percentiles, SQL", &mut sql, &run.join("nothing"))?);
    std::fs::remove_dir_all(&trace)?;
    Ok(std::fs::remove_dir_all(&run)?)
}

fn generate(
    folder: &Path,
    spec: &str,
    operations: u64,
    trace: &Path,
    step: &str,
    lines: &mut Vec<Line>,
) -> anyhow::Result<()> {
    let file = folder.join("large.toml");
    std::fs::write(&file, spec)?;
    let mut command = program("tracegen")?;
    command.arg("gen").arg(&file).args(["--sessions", &operations.to_string(), "-o"]).arg(trace);
    lines.push(measured(operations, step, &mut command, &trace.join("operations"))?);
    Ok(())
}

/// A tool in the folder of this program.
fn program(name: &str) -> anyhow::Result<Command> {
    Ok(Command::new(std::env::current_exe()?.with_file_name(name)))
}

/// Limits the program's address space: the system refuses memory beyond the limit.
fn limited(command: &mut Command) {
    let limit = libc::rlimit { rlim_cur: MEMORY_LIMIT_BYTES, rlim_max: MEMORY_LIMIT_BYTES };
    // SAFETY: one system call, which may be made between fork and exec.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_AS, &limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
}

fn measured(operations: u64, step: &str, command: &mut Command, written: &Path) -> anyhow::Result<Line> {
    let began = Instant::now();
    let used = measure::run(command)?;
    let line = Line {
        operations,
        step: step.to_string(),
        seconds: began.elapsed().as_secs_f64(),
        cpu_s: used.cpu_s,
        memory_mib: used.memory_bytes as f64 / 1_048_576.0,
        bytes: bytes_below(written),
    };
    eprintln!(
        "{}, {} operations: {:.1} s, {:.1} CPU s, {:.0} MiB of memory, {} bytes written",
        line.step, line.operations, line.seconds, line.cpu_s, line.memory_mib, line.bytes
    );
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

/// Writes the table as Markdown and JSON, and three charts.
fn report(large: &Large, lines: &[Line]) -> anyhow::Result<()> {
    let machine = Machine::current();
    let mut by_step = earlier(&large.output.with_extension("json"), &machine)?;
    by_step.retain(|old| !lines.iter().any(|new| (&new.step, new.operations) == (&old.step, old.operations)));
    by_step.extend(lines.iter().cloned());
    let mut steps: Vec<String> = Vec::new();
    for line in &by_step {
        if !steps.contains(&line.step) {
            steps.push(line.step.clone());
        }
    }
    let place = |line: &Line| steps.iter().position(|step| *step == line.step);
    by_step.sort_by_key(|line| (place(line), line.operations));
    let json = serde_json::json!({ "machine": machine, "lines": by_step });
    let mut files = vec![
        ("md".to_string(), table(large, &machine, &by_step)),
        ("json".to_string(), serde_json::to_string_pretty(&json)? + "\n"),
    ];
    for (name, y_label, of) in CHARTS {
        files.push((format!("{name}.svg"), chart(name, y_label, of, &by_step)?));
    }
    for (extension, text) in files {
        let path = large.output.with_extension(extension);
        std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The lines of an earlier report. A report of another machine is refused: its lines cannot be
/// compared with these.
fn earlier(path: &Path, machine: &Machine) -> anyhow::Result<Vec<Line>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut report: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    if report["machine"] != serde_json::to_value(machine)? {
        bail!("{}: measured on another machine; choose another file with -o", path.display());
    }
    serde_json::from_value(report["lines"].take())
        .with_context(|| format!("{}: not a report of this bench; choose another file with -o", path.display()))
}

/// The name, unit and value of a chart.
type Drawn = (&'static str, &'static str, fn(&Line) -> f64);
const CHARTS: [Drawn; 3] = [
    ("time", "seconds", |line| line.seconds),
    ("memory", "peak resident memory (MiB)", |line| line.memory_mib),
    ("bytes", "written (MB)", |line| line.bytes as f64 / 1e6),
];

/// Both axes are logarithmic. So a figure that is proportional to the operations rises by one step
/// for each step of the x axis, and a constant one stays level.
fn chart(name: &str, y_label: &str, of: fn(&Line) -> f64, lines: &[Line]) -> anyhow::Result<String> {
    let mut series: Vec<LineSeries> = Vec::new();
    for line in lines.iter().filter(|line| of(line) > 0.0) {
        let point = LinePoint { x: line.operations as f64 / 1e6, y: of(line), mark: Mark::Filled };
        match series.iter_mut().find(|series| series.label == line.step) {
            Some(series) => series.points.push(point),
            None => series.push(LineSeries { label: line.step.clone(), points: vec![point], ..LineSeries::default() }),
        }
    }
    let sentences = series.iter().map(|series| {
        let points = series.points.iter().map(|point| format!("{:.1} at {} M", point.y, point.x));
        format!("{}: {}", series.label, points.collect::<Vec<_>>().join(", "))
    });
    let chart = LineChart {
        title: format!("Large trace sets and logs: {name}"),
        description: sentences.collect::<Vec<_>>().join("; "),
        x_label: "million operations".into(),
        y_label: y_label.into(),
        across: Across::Numbers(Scale::Log),
        y_scale: Scale::Log,
        series,
        rules: Vec::new(),
    };
    Ok(chart::lines(&chart)?)
}

fn table(large: &Large, machine: &Machine, lines: &[Line]) -> String {
    let stem = large.output.file_name().unwrap_or_default().to_string_lossy();
    let most = |is_trace: bool| {
        let of = lines.iter().filter(|line| (line.step == TRACE_STEP) == is_trace);
        of.map(|line| line.operations).max().unwrap_or_default()
    };
    let command = format!("benches/run large --trace {} --log {}", most(true), most(false));
    let mut text = format!("# Large trace sets and logs\n\n`{command}`, on {machine}\n\n");
    text += &format!(
        "Steps that read a log ran with an address space limited to {} GiB, and DuckDB with \
         `--memory-limit {DUCKDB_LIMIT}`. Bytes are those of the operations, without the data set.\n\n",
        MEMORY_LIMIT_BYTES >> 30
    );
    for (name, _, _) in CHARTS {
        text += &format!("![{name}]({stem}.{name}.svg)\n\n");
    }
    text += "| step | operations | seconds | M operations/s | CPU s | memory MiB | bytes an operation |\n";
    text += "|---|---:|---:|---:|---:|---:|---:|\n";
    for line in lines {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(step: &str, operations: u64, bytes: u64) -> Line {
        Line { operations, step: step.into(), seconds: operations as f64 / 1e6, cpu_s: 1.0, memory_mib: 100.0, bytes }
    }

    #[test]
    fn a_report_keeps_steps_together_and_draws_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("large");
        let large = Large { trace_operations: 0, log_operations: 0, folder: "unused".into(), output };
        let lines = [line("a", 1_000_000, 5_000_000), line("b", 1_000_000, 0), line("a", 10_000_000, 40_000_000)];
        report(&large, &lines).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let rows = "| a | 1 M | 1.0 | 1.00 | 1.0 | 100 | 5.0 |\n| a | 10 M | 10.0 | 1.00 | 1.0 | 100 | 4.0 |\n\
                    | b | 1 M | 1.0 | 1.00 | 1.0 | 100 |  |\n";
        let text = read("large.md");
        assert!(text.ends_with(rows), "{text}");
        for (name, _, _) in CHARTS {
            assert!(
                text.contains(&format!("(large.{name}.svg)")) && read(&format!("large.{name}.svg")).contains("a: ")
            );
        }
        assert!(text.contains("`benches/run large --trace 0 --log 10000000`, on "), "{text}");
        // Another report keeps what it does not measure.
        report(&large, &[line("a", 10_000_000, 30_000_000)]).unwrap();
        assert!(read("large.md").ends_with(&rows.replace("| 4.0 |", "| 3.0 |")), "{}", read("large.md"));
        let (bytes, time) = (read("large.bytes.svg"), read("large.time.svg"));
        assert!(time.contains("b: 1.0 at 1 M") && !bytes.contains("b: "), "{bytes}");
        // But a report of another machine is refused.
        let json = read("large.json").replace("\"cores\": ", "\"cores\": 9");
        std::fs::write(folder.path().join("large.json"), json).unwrap();
        let error = report(&large, &lines).unwrap_err().to_string();
        assert!(error.contains("large.json: measured on another machine"), "{error}");
    }

    #[test]
    fn a_limited_program_gets_no_more_memory() {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -v"]);
        limited(&mut command);
        let printed = measure::run(&mut command).unwrap().output;
        assert_eq!(printed.trim().parse::<u64>().unwrap() * 1024, MEMORY_LIMIT_BYTES);
    }
}
