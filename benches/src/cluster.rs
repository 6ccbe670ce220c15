//! What generating and analyzing fragment by fragment takes, by one worker process and by several, and whether what
//! small runs cost says what a run of ten times the size does.
//!
//! Workers are processes that take one fragment after the other, as an engine's tasks do. The same tasks on a local
//! cluster of Spark, of as many workers, show the engine's own cost.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use anyhow::{Context, ensure};
use schemas::words::thousands;
use serde::Serialize;

use crate::machine::Machine;
use crate::measure::{self, machine_cpu_s};
use crate::tools::spark::{self, Spark};

/// What is measured.
pub struct Cluster {
    /// Operations of each run; the costs are fitted to the first two, and checked on the last.
    pub operations: Vec<u64>,
    /// Numbers of worker processes.
    pub workers: Vec<u32>,
    /// Where the report goes, without .md and .json.
    pub output: PathBuf,
}

const FRAGMENTS: u32 = 16;

/// The quickstart's mix, with little data and short lists: long lists are the application's bytes.
const SPEC: &str = r#"
name = "cluster"
fragments = 16
sessions = 1_000_000
[data]
members = 100_000
friends_per_member = 20
pending_per_member = 10
resources_per_member = 1
comments_per_resource = 0
[mix]
view_profile = 95
invite_friend = 2
accept_friend_request = 1.2
reject_friend_request = 0.8
thaw_friendship = 1
"#;

const PERCENTILES: &str = "SELECT operation, min(response_ns) FILTER (percent >= 99) FROM spectrum GROUP BY operation";

/// A step on this many operations, by this many workers.
#[derive(Debug, Clone, Serialize)]
struct Line {
    operations: u64,
    step: &'static str,
    workers: u32,
    seconds: f64,
    cpu_s: f64,
    memory_mib: f64,
    bytes: u64,
}

const GENERATE: &str = "generate fragments";
const ASSEMBLE: &str = "assemble";
const GENERATE_AT_ONCE: &str = "generate at once";
const REPLAY: &str = "replay on memory:";
const ANALYZE: &str = "analyze fragments";
const MERGE: &str = "merge";
const ANALYZE_AT_ONCE: &str = "analyze at once";
const QUERY: &str = "percentiles over all rows, SQL";
const ANALYZE_ON_SPARK: &str = "analyze and merge on Spark";
const QUERY_ON_SPARK: &str = "percentiles over all rows, Spark SQL";

/// As [`PERCENTILES`], from the rows.
const SPARK_PERCENTILES: &str =
    "SELECT operation, percentile_disc(0.99) WITHIN GROUP (ORDER BY response_ns) FROM operations GROUP BY operation";

/// What a step costs: something for each task, and something for each operation.
#[derive(Debug, Clone, Copy, Serialize)]
struct Cost {
    task_s: f64,
    operation_ns: f64,
    operation_bytes: f64,
}

/// Measures, and writes the tables to `output` with `.md` and `.json`.
pub fn main(cluster: &Cluster, cache: &Path, folder: &Path) -> anyhow::Result<()> {
    ensure!(cluster.operations.len() > 1, "the costs are fitted to two sizes: give --operations twice at least");
    let spark = Spark::find(cache);
    if let Err(error) = &spark {
        eprintln!("Spark is left out: {error:#}");
    }
    let mut lines = Vec::new();
    for operations in &cluster.operations {
        let spark = spark.as_ref().ok();
        let size = Size { operations: *operations, folder, spark, lines: &mut lines };
        size.measure(&cluster.workers)?;
        write(cluster, &lines)?;
    }
    print!("{}", std::fs::read_to_string(cluster.output.with_extension("md"))?);
    Ok(())
}

struct Size<'a> {
    operations: u64,
    folder: &'a Path,
    spark: Option<&'a Spark>,
    lines: &'a mut Vec<Line>,
}

impl Size<'_> {
    fn measure(mut self, workers: &[u32]) -> anyhow::Result<()> {
        let (file, trace, run) =
            (self.folder.join("cluster.toml"), self.folder.join("cluster.trace"), self.folder.join("cluster.run"));
        std::fs::write(&file, SPEC)?;
        let sessions = self.operations.to_string();
        let generate = || -> anyhow::Result<Command> {
            let mut command = program("tracegen")?;
            command.arg("gen").arg(&file).args(["--sessions", &sessions, "-j", "1", "-o"]).arg(&trace);
            Ok(command)
        };
        self.step(GENERATE_AT_ONCE, 1, &trace, |_| generate(), 1)?;
        for count in workers {
            remove(&trace)?;
            let part = |fragment: u32| {
                let mut command = generate()?;
                command.args(["--only-fragments", &fragment.to_string()]);
                Ok(command)
            };
            self.step(GENERATE, *count, &trace, part, FRAGMENTS)?;
            self.step(ASSEMBLE, 1, &trace.join("manifest.json"), |_| with("tracegen", &["assemble"], &trace, &[]), 1)?;
        }
        let replay = |_| {
            let mut command = program("replayer")?;
            command.arg("run").arg("--trace").arg(&trace).args(["--store", "memory:", "-T", "16", "-o"]).arg(&run);
            Ok(command)
        };
        self.step(REPLAY, 1, &run.join("experiments"), replay, 1)?;
        for count in workers {
            remove(&run.join("operations"))?;
            let task = |fragment: u32| {
                with("analyzer", &["fragment"], &run, &["--experiment", "1", "--fragment", &fragment.to_string()])
            };
            self.step(ANALYZE, *count, &run.join("operations"), task, FRAGMENTS)?;
            self.step(MERGE, 1, &run.join("nothing"), |_| with("analyzer", &["merge"], &run, &[]), 1)?;
        }
        self.step(QUERY, 1, &run.join("nothing"), |_| with("analyzer", &["sql"], &run, &[PERCENTILES]), 1)?;
        self.on_spark(workers, &run)?;
        remove(&run.join("operations"))?;
        remove(&run.join("unpredictable"))?;
        let at_once = |_| with("analyzer", &["summary"], &run, &[]);
        self.step(ANALYZE_AT_ONCE, 1, &run.join("operations"), at_once, 1)?;
        ensure!(bytes_of(&run.join("operations")) > 0, "{ANALYZE_AT_ONCE}: no sealed table was written");
        remove(&trace)?;
        remove(&run)
    }

    /// The same analysis by an engine, and its own percentiles.
    fn on_spark(&mut self, workers: &[u32], run: &Path) -> anyhow::Result<()> {
        let Some(spark) = self.spark else { return Ok(()) };
        let (encore, folder) = (program("encore")?, run.to_string_lossy());
        let encore = Path::new(encore.get_program());
        for count in workers {
            remove(&run.join("operations"))?;
            let analyze = ["analyze", &folder, "--experiment", "1"];
            self.whole(ANALYZE_ON_SPARK, *count, &run.join("operations"), spark.command(*count, encore, &analyze))?;
        }
        let ask = ["sql", &folder, SPARK_PERCENTILES];
        let count = workers.iter().copied().filter(|count| *count <= 2).max().unwrap_or(1);
        self.whole(QUERY_ON_SPARK, count, &run.join("nothing"), spark.command(count, encore, &ask))
    }

    /// Runs a command that starts processes which are not its children: processor time is that of the machine.
    fn whole(&mut self, step: &'static str, workers: u32, written: &Path, mut command: Command) -> anyhow::Result<()> {
        let (began, before) = (Instant::now(), machine_cpu_s()?);
        let used = measure::run(&mut command).context(step)?;
        self.add(Line {
            operations: self.operations,
            step,
            workers,
            seconds: began.elapsed().as_secs_f64(),
            cpu_s: machine_cpu_s()? - before,
            memory_mib: used.memory_bytes as f64 / 1_048_576.0,
            bytes: bytes_of(written),
        });
        Ok(())
    }

    fn add(&mut self, line: Line) {
        eprintln!("{line:?}");
        self.lines.push(line);
    }

    /// Runs the command of each task, so many at a time.
    fn step(
        &mut self,
        step: &'static str,
        workers: u32,
        written: &Path,
        command: impl Fn(u32) -> anyhow::Result<Command> + Sync,
        tasks: u32,
    ) -> anyhow::Result<()> {
        // An agreement that the run has missed, or a busy machine, is no failure of an analysis.
        let codes: &[i32] = if step == ANALYZE_AT_ONCE { &[0, 1, 3] } else { &[0] };
        let began = Instant::now();
        let (next, used) = (AtomicU32::new(0), Mutex::new(Vec::new()));
        let work = || {
            loop {
                let task = next.fetch_add(1, Ordering::Relaxed);
                if task >= tasks {
                    return;
                }
                let done = command(task).and_then(|mut command| measure::run_to(&mut command, codes));
                used.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(done);
            }
        };
        std::thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
        let seconds = began.elapsed().as_secs_f64();
        let used = used.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let used = used.into_iter().collect::<Result<Vec<_>, _>>().with_context(|| step.to_string())?;
        self.add(Line {
            operations: self.operations,
            step,
            workers,
            seconds,
            cpu_s: used.iter().map(|one| one.cpu_s).sum(),
            memory_mib: used.iter().map(|one| one.memory_bytes).max().unwrap_or(0) as f64 / 1_048_576.0,
            bytes: bytes_of(written),
        });
        Ok(())
    }
}

/// A tool in the folder of this program.
fn program(name: &str) -> anyhow::Result<Command> {
    Ok(Command::new(std::env::current_exe()?.with_file_name(name)))
}

fn with(name: &str, first: &[&str], folder: &Path, rest: &[&str]) -> anyhow::Result<Command> {
    let mut command = program(name)?;
    command.args(first).arg(folder).args(rest);
    Ok(command)
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}

/// The bytes of a file, or of all files below a folder.
fn bytes_of(path: &Path) -> u64 {
    let Ok(found) = std::fs::metadata(path) else { return 0 };
    if found.is_file() {
        return found.len();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| bytes_of(&entry.path())).sum()
}

/// The cost of a step, fitted to the runs of two sizes.
fn fitted(lines: &[Line], step: &str, tasks: u32) -> Option<Cost> {
    // A step that comes after each number of workers has several lines of a size.
    let small = lines.iter().find(|line| line.step == step && line.workers == 1)?;
    let is_larger = |line: &&Line| line.operations > small.operations;
    let large = lines.iter().filter(is_larger).find(|line| line.step == step && line.workers == 1)?;
    let more = (large.operations - small.operations) as f64;
    let operation_s = ((large.cpu_s - small.cpu_s) / more).max(0.0);
    Some(Cost {
        task_s: ((small.cpu_s - operation_s * small.operations as f64) / f64::from(tasks)).max(0.0),
        operation_ns: operation_s * 1e9,
        operation_bytes: large.bytes as f64 / large.operations as f64,
    })
}

/// How much faster several workers are than one, and what the engine adds.
fn faster(lines: &[Line]) -> String {
    let mut text = String::from(
        "\n## Several workers, and the engine's own cost\n\nSpeed-up is the time of one worker over the time of several. \
         What Spark adds is the time of its command, less that of the same tasks and the merge by as many worker \
         processes.\n\n\
         | operations | workers | generate | analyze | analyze on Spark | Spark adds, s |\n|---:|---:|---:|---:|---:|---:|\n",
    );
    let of = |operations: u64, step: &str, workers: u32| {
        lines.iter().find(|line| (line.operations, line.step, line.workers) == (operations, step, workers))
    };
    for line in lines.iter().filter(|line| line.step == ANALYZE) {
        let Line { operations, workers, .. } = *line;
        let speed_up = |step| {
            let one = of(operations, step, 1).zip(of(operations, step, workers));
            one.map_or("–".into(), |(one, several)| format!("{:.2}", one.seconds / several.seconds))
        };
        let merge = of(operations, MERGE, 1).map_or(0.0, |merge| merge.seconds);
        let adds = of(operations, ANALYZE_ON_SPARK, workers)
            .map_or("–".into(), |spark| format!("{:.1}", spark.seconds - line.seconds - merge));
        let cells = [GENERATE, ANALYZE, ANALYZE_ON_SPARK].map(speed_up).join(" | ");
        text.push_str(&format!("| {} | {workers} | {cells} | {adds} |\n", thousands(operations)));
    }
    text
}

fn write(cluster: &Cluster, lines: &[Line]) -> anyhow::Result<()> {
    let machine = Machine::current();
    let mut text = format!(
        "# Fragment by fragment\n\n`benches/run cluster`, on {machine}\n\nA trace set and a log of {FRAGMENTS} fragments. \
         A worker is a process that runs one task after the other, each in a process of its own; the machine has {} \
         processors, so four workers cannot be faster than two. Processor time is that of all tasks. \
         Spark is a local cluster of {}, with as many executors of one processor and 1 GiB; its times are those of the whole \
         command, from the start of Java to the verdict, its processor time is that of the whole machine, its memory that of \
         the driver's Python.\n\n\
         | operations | step | workers | seconds | processor s | peak MiB of a task | bytes written |\n\
         |---:|---|---:|---:|---:|---:|---:|\n",
        machine.cores,
        spark::VERSION
    );
    for line in lines {
        let Line { operations, step, workers, seconds, cpu_s, memory_mib, bytes } = line;
        let (operations, bytes) = (thousands(*operations), thousands(*bytes));
        writeln!(
            text,
            "| {operations} | {step} | {workers} | {seconds:.2} | {cpu_s:.2} | {memory_mib:.0} | {bytes} |"
        )?;
    }
    text.push_str(&faster(lines));
    let steps = [(GENERATE, FRAGMENTS), (REPLAY, 1), (ANALYZE, FRAGMENTS), (MERGE, 1), (QUERY, 1)];
    let costs: Vec<(&str, Cost)> =
        steps.iter().filter_map(|(step, tasks)| Some((*step, fitted(lines, step, *tasks)?))).collect();
    if !costs.is_empty() {
        let fitted_to = &cluster.operations[..2];
        writeln!(
            text,
            "\n## What a task and an operation cost\n\nFitted to the runs of {} and {} operations with one worker. This is \
             what `encore analyze plan-cluster` computes with; the last columns check it on the largest run.\n\n\
             | step | s a task | ns an operation | bytes an operation | operations | processor s, foreseen | measured | \
             off |\n|---|---:|---:|---:|---:|---:|---:|---:|",
            thousands(fitted_to[0]),
            thousands(fitted_to[1])
        )?;
        for ((step, cost), (_, tasks)) in costs.iter().zip(steps) {
            let is_own = |line: &&Line| line.step == *step && line.workers == 1;
            let Some(last) = lines.iter().rfind(is_own) else { continue };
            let foreseen = cost.task_s * f64::from(tasks) + cost.operation_ns * last.operations as f64 / 1e9;
            let off = (foreseen / last.cpu_s - 1.0) * 100.0;
            writeln!(
                text,
                "| {step} | {:.3} | {:.1} | {:.2} | {} | {foreseen:.2} | {:.2} | {off:+.1}% |",
                cost.task_s,
                cost.operation_ns,
                cost.operation_bytes,
                thousands(last.operations),
                last.cpu_s
            )?;
        }
    }
    std::fs::write(cluster.output.with_extension("md"), text)?;
    let costs: serde_json::Map<String, serde_json::Value> =
        costs.into_iter().map(|(step, cost)| (step.to_string(), serde_json::json!(cost))).collect();
    let document = serde_json::json!({ "machine": machine, "lines": lines, "costs": costs });
    let mut json = serde_json::to_string_pretty(&document)?;
    json.push('\n');
    Ok(std::fs::write(cluster.output.with_extension("json"), json)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_fitted_to_two_sizes() {
        let line = |operations, step, workers, cpu_s, bytes| Line {
            operations,
            step,
            workers,
            seconds: cpu_s,
            cpu_s,
            memory_mib: 1.0,
            bytes,
        };
        let lines = [
            line(1_000, ANALYZE, 1, 3.0, 20_000),
            line(1_000, MERGE, 1, 0.1, 0),
            line(1_000, ANALYZE, 2, 9.0, 20_000),
            line(1_000, MERGE, 1, 0.2, 0),
            line(11_000, ANALYZE, 1, 13.0, 110_000),
            line(11_000, MERGE, 1, 0.1, 0),
            line(111_000, ANALYZE, 1, 99.0, 0),
        ];
        let cost = fitted(&lines, ANALYZE, 4).unwrap();
        assert!((cost.operation_ns - 1e6).abs() < 1.0 && (cost.task_s - 0.5).abs() < 1e-9, "{cost:?}");
        assert!((cost.operation_bytes - 10.0).abs() < 1e-9, "{cost:?}");
        let merge = fitted(&lines, MERGE, 1).unwrap();
        assert!((merge.task_s - 0.1).abs() < 1e-9 && merge.operation_ns == 0.0, "{merge:?}");
        assert!(fitted(&lines[..4], ANALYZE, 4).is_none());
    }
}
