//! memtier_benchmark, if it is installed: gets of values as large as Encore's.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

use super::{on_path, version};
use crate::measure;
use crate::sample::Figures;

/// The program, and a folder for its report.
pub struct Memtier {
    program: PathBuf,
    report: PathBuf,
}

impl Memtier {
    /// The program on PATH.
    pub fn find(folder: &Path) -> anyhow::Result<Memtier> {
        let program = on_path("memtier_benchmark").context("memtier_benchmark is not installed")?;
        Ok(Memtier { program, report: folder.join("memtier.json") })
    }

    /// Its version.
    pub fn version(&self) -> String {
        version(&self.program, &["--version"])
    }

    /// First sets 10,000 keys of its own, then measures gets of them.
    pub fn run(&self, address: &str, threads: u32, seconds: u32, bytes: u64) -> anyhow::Result<Figures> {
        let (host, port) = address.rsplit_once(':').context("an address is HOST:PORT")?;
        let command = |more: &[&str]| {
            let mut command = Command::new(&self.program);
            command.args(["-s", host, "-p", port, "-P", "memcache_text", "--hide-histogram", "-t", "1"]);
            command.args(["--key-maximum=10000", "--key-prefix=memtier-", "-d", &bytes.to_string()]).args(more);
            command
        };
        measure::run(&mut command(&["-c", "1", "--ratio=1:0", "-n", "allkeys", "--key-pattern=S:S"]))?;
        let mut gets = command(&["-c", &threads.to_string(), "--ratio=0:1", "--test-time", &seconds.to_string()]);
        let used = measure::run(gets.arg("--json-out-file").arg(&self.report))?;
        let report: Value = serde_json::from_slice(&std::fs::read(&self.report)?)?;
        let gets = &report["ALL STATS"]["Gets"];
        let number = |value: &Value| value.as_f64().context("memtier's report is not as expected");
        let ms = |name: &str| gets["Percentile Latencies"][name].as_f64().map(|ms| ms * 1e3);
        let operations = number(&gets["Count"])?;
        let all = Figures::of(&used, operations, number(&gets["Ops/sec"])?);
        Ok(Figures {
            mean_us: gets["Average Latency"].as_f64().map(|ms| ms * 1e3),
            p50_us: ms("p50.00"),
            p99_us: ms("p99.00"),
            ..all
        })
    }
}
