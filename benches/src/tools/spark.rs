//! Apache Spark, as a local cluster of executor processes, with the application of `deploy/spark`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::on_path;

/// Its version; `tests/run` installs the same.
pub const VERSION: &str = "pyspark 4.0.1";

/// Spark and a Java on which it starts.
pub struct Spark {
    python: PathBuf,
    packages: PathBuf,
    java: Option<PathBuf>,
}

impl Spark {
    /// What `tests/run` has put into the cache folder.
    pub fn find(cache: &Path) -> anyhow::Result<Spark> {
        let packages = cache.join(VERSION.replace(' ', "-"));
        ensure!(packages.is_dir(), "{} is not there; tests/run installs it", packages.display());
        let installed = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path());
        let is_17 =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("java-17-"));
        let java = installed.filter(is_17).find(|path| path.join("bin/java").is_file());
        Ok(Spark { python: on_path("python3").context("python3 is not installed")?, packages, java })
    }

    /// A command of the application, on so many workers of one processor and 1 GiB each. To be started in the folder of
    /// the repository.
    pub fn command(&self, workers: u32, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.python);
        command.env("PYTHONPATH", &self.packages).env("PYTHONDONTWRITEBYTECODE", "1");
        if let Some(java) = &self.java {
            command.env("JAVA_HOME", java);
        }
        command.arg("deploy/spark/encore_spark.py").args(["--master", &format!("local-cluster[{workers},1,1024]")]);
        command.args(["--conf", "spark.driver.memory=2g", "--conf", "spark.ui.enabled=false"]);
        command.arg("--binary").arg(program).args(arguments);
        command
    }
}
