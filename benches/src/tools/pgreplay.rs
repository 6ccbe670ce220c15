//! pgreplay: it replays a log of PostgreSQL on a copy of the database, which has the name that the log says.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::Context;

use super::{on_path, version};
use crate::measure;

/// The program.
pub struct Pgreplay(PathBuf);

/// What a replay has reported.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// How long it took, or when it was stopped.
    pub seconds: f64,
    /// Whether it was stopped before its end.
    pub is_stopped: bool,
    /// Its own words on how far it fell behind, the last of them.
    pub behind: Option<String>,
    /// Processor time of its process.
    pub cpu_s: f64,
}

impl Pgreplay {
    /// Finds it on PATH.
    pub fn find() -> anyhow::Result<Pgreplay> {
        Ok(Pgreplay(on_path("pgreplay").context("pgreplay is not installed")?))
    }

    /// Its version.
    pub fn version(&self) -> String {
        version(&self.0, &["-v"])
    }

    /// Replays a log in PostgreSQL's CSV format, and stops it after so many seconds.
    pub fn replay(&self, log: &Path, port: u16, password: &str, seconds_max: u32) -> anyhow::Result<Replayed> {
        let began = Instant::now();
        // `timeout` ends with 124 if it had to stop the program.
        let mut command = Command::new("timeout");
        command.arg(seconds_max.to_string()).arg("stdbuf").arg("-oL").arg(&self.0);
        command.args(["-c", "-h", "127.0.0.1", "-p", &port.to_string(), "-W", password]).arg(log);
        let used = measure::run_to(&mut command, &[0, 124])?;
        let seconds = began.elapsed().as_secs_f64();
        let is_stopped = seconds >= f64::from(seconds_max);
        Ok(Replayed { seconds, is_stopped, behind: behind(&used.output), cpu_s: used.cpu_s })
    }
}

/// The last sentence on its delay: `Execution is 30 seconds behind schedule`, or at its end `Maximum lag behind schedule:
/// 3 seconds`.
fn behind(output: &str) -> Option<String> {
    output.lines().rev().find_map(|line| {
        let line = line.trim();
        let running = line.strip_prefix("Execution is ").and_then(|rest| rest.strip_suffix(" behind schedule"));
        running.or_else(|| line.strip_prefix("Maximum lag behind schedule: ")).map(str::to_string)
    })
}

#[cfg(test)]
mod tests {
    use super::behind;

    #[test]
    fn the_last_word_on_the_delay_counts() {
        let stopped = "Execution is 10 seconds behind schedule\nExecution is 1 minute behind schedule\n";
        assert_eq!(behind(stopped).as_deref(), Some("1 minute"));
        let done = format!("{stopped}Total run time: 6.063 seconds\nMaximum lag behind schedule: 3 seconds\n");
        assert_eq!(behind(&done).as_deref(), Some("3 seconds"));
        assert_eq!(behind("Replay statistics\n"), None);
    }
}
