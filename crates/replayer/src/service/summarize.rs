//! Summarizes logs that stay on this host. The analyzer does so, in a process of its own: what it
//! needs (DuckDB, memory for a validation) is no part of a replayer.

use std::path::Path;
use std::process::{Command, Stdio};

use schemas::files;
use schemas::run::{ExperimentFolder, ReplayReport};
use schemas::sla::Sla;
use tonic::Status;

use super::status::file_status;

/// Has the analyzer write `summary.json` from the logs in an experiment's folder.
pub fn summarize(folder: &ExperimentFolder, report: &ReplayReport, sla: &Sla) -> Result<(), Status> {
    files::write_json(&folder.fleet_report(), report).map_err(|e| file_status(&e))?;
    let root = std::path::absolute(folder.root()).map_err(files::at(folder.root())).map_err(|e| file_status(&e))?;
    let mut command = analyzer();
    command
        .arg("summarize")
        .arg(&root)
        .args(["--sla", &sla.to_string(), "--report"])
        .arg(ExperimentFolder::new(&root).fleet_report());
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|e| {
        let program = command.get_program().to_string_lossy().into_owned();
        Status::internal(format!("cannot start {program} to summarize the logs: {e}; install it beside this program"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Status::internal(format!("the logs could not be summarized: {}", said.trim().trim_start_matches("error: "))))
}

/// The analyzer: this program if it is all tools in one, else the program beside it, else the one on PATH.
fn analyzer() -> Command {
    let own = std::env::current_exe().unwrap_or_default();
    if own.file_stem().is_none_or(|name| name != "replayer") {
        let mut command = Command::new(own);
        command.arg("analyze");
        return command;
    }
    let beside = own.parent().unwrap_or(Path::new("")).join("analyzer");
    if beside.exists() { Command::new(beside) } else { Command::new("analyzer") }
}
