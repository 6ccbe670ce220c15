//! YCSB against its BasicDB, which does nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::{on_path, version};
use crate::measure;
use crate::sample::Figures;

/// Its settings besides the numbers, for the report.
pub const SETTINGS: &str = "CoreWorkload, 95% reads, 5% updates, zipfian, \
                            basicdb.verbose=false, basicdb.simulatedelay=0";

/// Java, and the folder of YCSB's classes.
pub struct Ycsb {
    java: PathBuf,
    classes: PathBuf,
}

impl Ycsb {
    /// Lets Maven download it once.
    pub fn find(peers: &Path) -> anyhow::Result<Ycsb> {
        let java = on_path("java").context("java is not installed")?;
        let folder = peers.join("ycsb-0.17.0");
        let classes = folder.join("classes");
        if !classes.join("core-0.17.0.jar").is_file() {
            let maven = on_path("mvn").context("mvn is not installed")?;
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join("pom.xml"), include_str!("../../ycsb/pom.xml"))?;
            let mut fetch = Command::new(maven);
            fetch.current_dir(&folder).args(["-q", "dependency:copy-dependencies"]);
            measure::run(fetch.arg(format!("-DoutputDirectory={}", classes.display())))?;
        }
        Ok(Ycsb { java, classes })
    }

    /// Its name and version.
    pub fn version(&self) -> String {
        format!("YCSB 0.17.0, {}", version(&self.java, &["-version"]))
    }

    /// Runs this many operations against a database that does nothing.
    pub fn run(&self, threads: u32, operations: u64) -> anyhow::Result<Figures> {
        let mut command = Command::new(&self.java);
        command.arg("-cp").arg(self.classes.join("*"));
        command.args(["site.ycsb.Client", "-t", "-db", "site.ycsb.BasicDB", "-threads", &threads.to_string()]);
        let properties = [
            "workload=site.ycsb.workloads.CoreWorkload".to_string(),
            "recordcount=10000".into(),
            format!("operationcount={operations}"),
            "readproportion=0.95".into(),
            "updateproportion=0.05".into(),
            "scanproportion=0".into(),
            "insertproportion=0".into(),
            "requestdistribution=zipfian".into(),
            "basicdb.verbose=false".into(),
            "basicdb.simulatedelay=0".into(),
        ];
        properties.iter().for_each(|property| {
            command.args(["-p", property]);
        });
        let used = measure::run(&mut command)?;
        let throughput = used.output.lines().find_map(|line| {
            line.strip_prefix("[OVERALL], Throughput(ops/sec), ").and_then(|text| text.trim().parse().ok())
        });
        // YCSB gives each thread the same whole number of operations.
        let done = operations / u64::from(threads) * u64::from(threads);
        Ok(Figures::of(&used, done as f64, throughput.context("YCSB did not say its throughput")?))
    }
}
