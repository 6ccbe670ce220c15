//! go-ycsb: against its `basic` database, which does nothing, and against stores.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::{on_path, version};
use crate::measure::{self, Used};
use crate::sample::Figures;

/// Its settings besides the numbers, for the report.
pub const SETTINGS: &str = "workload=core, 95% reads, 5% updates, zipfian, silence=true, \
                            basicdb.simulatedelay=0, basicdb.randomizedelay=false";

/// The package of the program.
const PACKAGE: &str = "github.com/pingcap/go-ycsb/cmd/go-ycsb";

/// How many threads load a table.
const LOADERS: u32 = 16;

/// The program.
pub struct GoYcsb(PathBuf);

/// A store, by the names of go-ycsb.
pub struct Binding {
    /// The binding.
    pub name: &'static str,
    /// The properties that say where the store is.
    pub place: Vec<String>,
}

/// A run against a store.
pub struct Run<'a> {
    /// The store.
    pub binding: &'a Binding,
    /// The properties of the workload.
    pub workload: &'a [&'a str],
    /// How many records the table holds.
    pub records: u64,
    /// Threads.
    pub threads: u32,
    /// How often the workload draws an operation. A read-modify-write counts once.
    pub operations: u64,
}

/// The row of a kind of operation in the summary.
struct Row<'a>(BTreeMap<&'a str, f64>);

impl Row<'_> {
    fn of(&self, column: &str) -> anyhow::Result<f64> {
        self.0.get(column).copied().with_context(|| format!("go-ycsb's summary has no column {column}"))
    }
}

impl GoYcsb {
    /// Builds it once, with Go's own compiler. It has no binding for SQLite.
    pub fn find(peers: &Path) -> anyhow::Result<GoYcsb> {
        GoYcsb::build(peers, "go-ycsb", &[])
    }

    /// Builds it once with its binding for SQLite, which needs the system's library and headers.
    pub fn with_sqlite(peers: &Path) -> anyhow::Result<GoYcsb> {
        GoYcsb::build(peers, "go-ycsb-sqlite", &["-tags", "libsqlite3"])
    }

    fn build(peers: &Path, name: &str, flags: &[&str]) -> anyhow::Result<GoYcsb> {
        let folder = peers.join("go-ycsb-1.0.1");
        let program = folder.join(name);
        if !program.is_file() {
            let go = on_path("go").context("go is not installed")?;
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join("go.mod"), include_str!("../../go-ycsb/go.mod"))?;
            let mut build = Command::new(go);
            build.current_dir(&folder).args(["build", "-mod=mod", "-o", name]).args(flags);
            measure::run(build.arg(PACKAGE))?;
        }
        Ok(GoYcsb(program))
    }

    /// Its name and version.
    pub fn version(&self) -> String {
        let go = on_path("go").map_or_else(String::new, |go| format!(", {}", version(&go, &["version"])));
        format!("go-ycsb 1.0.1{go}")
    }

    /// Runs this many operations against a database that does nothing.
    pub fn run(&self, threads: u32, operations: u64) -> anyhow::Result<Figures> {
        let properties = [
            "workload=core",
            "recordcount=10000",
            &format!("operationcount={operations}"),
            &format!("threadcount={threads}"),
            "readproportion=0.95",
            "updateproportion=0.05",
            "scanproportion=0",
            "insertproportion=0",
            "requestdistribution=zipfian",
            "silence=true",
            "basicdb.simulatedelay=0",
            "basicdb.randomizedelay=false",
        ];
        let used = self.start("run", "basic", &properties)?;
        let seconds = used.output.lines().find_map(|line| seconds(line.strip_prefix("Run finished, takes ")?));
        let seconds = seconds.with_context(|| format!("go-ycsb did not say how long it took: {}", used.output))?;
        Ok(Figures::of(&used, operations as f64, operations as f64 / seconds))
    }

    /// Loads this many records into a table, which it creates if there is none.
    pub fn load(&self, binding: &Binding, records: u64) -> anyhow::Result<()> {
        let numbers = [format!("recordcount={records}"), format!("threadcount={LOADERS}")];
        let used = self.start("load", binding.name, &properties(&[&binding.place, &numbers]))?;
        let inserted = rows(&used.output).get("INSERT").map_or(Ok(0.0), |row| row.of("Count"))?;
        anyhow::ensure!(
            inserted == records as f64,
            "go-ycsb inserted {inserted} of {records} records: {}",
            used.output
        );
        Ok(())
    }

    /// Runs a workload. Returns the figures, and how many records it has inserted. Operations/s are
    /// those of its row TOTAL, which counts every statement that succeeded.
    pub fn measure(&self, run: &Run<'_>) -> anyhow::Result<(Figures, u64)> {
        let numbers = [
            format!("recordcount={}", run.records),
            format!("operationcount={}", run.operations),
            format!("threadcount={}", run.threads),
        ];
        let mut all = properties(&[&run.binding.place, &numbers]);
        all.extend(run.workload);
        let used = self.start("run", run.binding.name, &all)?;
        let rows = rows(&used.output);
        let total = rows.get("TOTAL").with_context(|| format!("go-ycsb did no operation: {}", used.output))?;
        let count = |name: &str| rows.get(name).map_or(Ok(0.0), |row| row.of("Count"));
        let mut failed = 0.0;
        for (_, row) in rows.iter().filter(|(name, _)| name.ends_with("_ERROR")) {
            failed += row.of("Count")?;
        }
        let figures = Figures {
            mean_us: Some(total.of("Avg(us)")?),
            p50_us: Some(total.of("50th(us)")?),
            p99_us: Some(total.of("99th(us)")?),
            errors: Some(failed),
            ..Figures::of(&used, total.of("Count")?, total.of("OPS")?)
        };
        Ok((figures, count("INSERT")? as u64 + count("INSERT_ERROR")? as u64))
    }

    fn start(&self, verb: &str, binding: &str, properties: &[&str]) -> anyhow::Result<Used> {
        let mut command = Command::new(&self.0);
        // One summary, at the end.
        command.args([verb, binding, "-p", "measurement.interval=3600"]);
        properties.iter().for_each(|property| {
            command.args(["-p", property]);
        });
        measure::run(&mut command)
    }
}

fn properties<'a>(lists: &[&'a [String]]) -> Vec<&'a str> {
    lists.iter().flat_map(|list| list.iter().map(String::as_str)).collect()
}

/// The rows of the summary: `READ   - Takes(s): 1.0, Count: 7, OPS: 7.0, …`.
fn rows(output: &str) -> BTreeMap<&str, Row<'_>> {
    let row = |line| {
        let (name, columns) = str::split_once(line, " - ")?;
        let columns = columns.split(", ").map(|column| {
            let (name, number) = column.split_once(": ")?;
            Some((name, number.trim().parse().ok()?))
        });
        Some((name.trim(), Row(columns.collect::<Option<_>>()?)))
    };
    output.lines().filter_map(row).collect()
}

/// Parses Go's notation of a duration: `1m2.5s`, `812.3ms`.
fn seconds(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut all = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let units = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(units);
        let factor = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "µs" | "us" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        all += number.parse::<f64>().ok()? * factor;
        rest = next;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::{rows, seconds};

    #[test]
    fn a_summary_is_read_by_rows() {
        let output = "Run finished, takes 1.5s\n\
                      READ   - Takes(s): 1.4, Count: 900, OPS: 642.9, Avg(us): 97, 99th(us): 210\n\
                      READ_ERROR - Takes(s): 1.4, Count: 2, OPS: 1.4, Avg(us): 97, 99th(us): 210\n\
                      no - row\n";
        let rows = rows(output);
        assert_eq!(rows.keys().copied().collect::<Vec<_>>(), ["READ", "READ_ERROR"]);
        assert_eq!((rows["READ"].of("Count").unwrap(), rows["READ"].of("99th(us)").unwrap()), (900.0, 210.0));
        assert!(rows["READ"].of("p99").is_err_and(|error| error.to_string().contains("no column p99")));
    }

    #[test]
    fn durations_are_read() {
        assert_eq!(seconds("1m2.5s"), Some(62.5));
        assert_eq!(seconds("812.5ms\n"), Some(0.8125));
        assert_eq!(seconds("soon"), None);
    }
}
