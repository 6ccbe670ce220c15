//! go-ycsb against its `basic` database, which does nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::{on_path, version};
use crate::measure;
use crate::sample::Figures;

/// Its settings besides the numbers, for the report.
pub const SETTINGS: &str = "workload=core, 95% reads, 5% updates, zipfian, silence=true, \
                            basicdb.simulatedelay=0, basicdb.randomizedelay=false";

/// The program.
pub struct GoYcsb(PathBuf);

impl GoYcsb {
    /// Builds it once, with Go's own compiler.
    pub fn find(peers: &Path) -> anyhow::Result<GoYcsb> {
        let folder = peers.join("go-ycsb-1.0.1");
        let program = folder.join("go-ycsb");
        if !program.is_file() {
            let go = on_path("go").context("go is not installed")?;
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join("go.mod"), include_str!("../../go-ycsb/go.mod"))?;
            let mut build = Command::new(go);
            build.current_dir(&folder).args(["build", "-mod=mod", "-o", "go-ycsb"]);
            measure::run(build.arg("github.com/pingcap/go-ycsb/cmd/go-ycsb"))?;
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
        let mut command = Command::new(&self.0);
        command.args(["run", "basic"]);
        let properties = [
            "workload=core".to_string(),
            "recordcount=10000".into(),
            format!("operationcount={operations}"),
            format!("threadcount={threads}"),
            "readproportion=0.95".into(),
            "updateproportion=0.05".into(),
            "scanproportion=0".into(),
            "insertproportion=0".into(),
            "requestdistribution=zipfian".into(),
            "silence=true".into(),
            "measurement.interval=3600".into(),
            "basicdb.simulatedelay=0".into(),
            "basicdb.randomizedelay=false".into(),
        ];
        properties.iter().for_each(|property| {
            command.args(["-p", property]);
        });
        let used = measure::run(&mut command)?;
        let seconds = used.output.lines().find_map(|line| seconds(line.strip_prefix("Run finished, takes ")?));
        let seconds = seconds.with_context(|| format!("go-ycsb did not say how long it took: {}", used.output))?;
        Ok(Figures::of(&used, operations as f64, operations as f64 / seconds))
    }
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
    use super::seconds;

    #[test]
    fn durations_are_read() {
        assert_eq!(seconds("1m2.5s"), Some(62.5));
        assert_eq!(seconds("812.5ms\n"), Some(0.8125));
        assert_eq!(seconds("soon"), None);
    }
}
