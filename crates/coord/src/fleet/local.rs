//! A replayer on this machine: a child process that the coordinator calls over gRPC like any
//! other.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::address::Address;
use super::link::PATIENCE;
use crate::failure::Failure;

/// How many lines of a replayer's stderr are kept for an error.
const LAST_LINES: usize = 10;

/// A replayer process.
pub struct Process {
    child: Child,
    /// The replayer ends when this closes, however the coordinator ends.
    stdin: ChildStdin,
    /// Kept open: a replayer that prints to a closed pipe would die.
    _stdout: Lines<BufReader<ChildStdout>>,
    stderr: LastLines,
}

impl Process {
    /// Starts this program again as a replayer that requires this token. Also returns where the
    /// replayer listens.
    pub async fn start(token: &str) -> Result<(Process, Address), Failure> {
        let program = std::env::current_exe().map_err(|e| Failure::tool(format!("cannot find this program: {e}")))?;
        let mut command = Command::new(&program);
        // The replayer runs as this user: it may read and write what the coordinator may.
        command.args(["replayer", "serve", "--listen", "127.0.0.1:0", "--exit-with-stdin", "--share", "/"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // Ctrl-C on the terminal reaches the whole foreground group. The replayer must outlive
        // it, to close its log when the coordinator asks it to.
        #[cfg(unix)]
        command.process_group(0);
        let cannot = |what: &str| Failure::tool(format!("cannot start {} as a replayer: {what}", program.display()));
        let mut child = command.spawn().map_err(|e| cannot(&e.to_string()))?;
        let (Some(mut stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            unreachable!("all three are piped, and taken once");
        };
        let mut stderr = LastLines::collect(stderr);
        // A replayer that ends at once says why on its stderr, which the error below contains.
        let _ = stdin.write_all(format!("{token}\n").as_bytes()).await;
        let mut lines = BufReader::new(stdout).lines();
        let address = match tokio::time::timeout(PATIENCE, address(&mut lines)).await {
            Ok(Ok(address)) => address,
            Ok(Err(what)) => return Err(cannot(&format!("{what}{}", stderr.text().await))),
            Err(_) => return Err(cannot(&format!("it printed no address within {PATIENCE:?}"))),
        };
        Ok((Process { child, stdin, _stdout: lines, stderr }, address))
    }

    /// How the process ended, if it is ending, and its last lines.
    pub async fn death(&mut self) -> Option<String> {
        // The connection is lost, so the process is ending, if it has not ended yet.
        let exit: ExitStatus = tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await.ok()?.ok()?;
        Some(format!("it died ({exit}){}", self.stderr.text().await))
    }

    /// Ends the process: closes its stdin, and kills it if that is not enough.
    pub async fn end(mut self) {
        drop(self.stdin);
        if tokio::time::timeout(PATIENCE, self.child.wait()).await.is_err() {
            // The process may have ended in this very moment.
            let _ = self.child.kill().await;
        }
    }

    /// Kills the process.
    pub async fn kill(mut self) {
        // The process may have ended before.
        let _ = self.child.kill().await;
    }
}

/// The address in the line `listening on ADDRESS`.
async fn address(lines: &mut Lines<BufReader<ChildStdout>>) -> Result<Address, String> {
    match lines.next_line().await {
        Ok(Some(line)) => {
            let address = line.strip_prefix("listening on ").and_then(|address| address.trim().parse().ok());
            address.ok_or_else(|| format!("it printed {line:?} instead of its address"))
        }
        Ok(None) => Err("it ended at once".to_string()),
        Err(e) => Err(e.to_string()),
    }
}

/// The last lines of a process's stderr.
struct LastLines {
    lines: Arc<Mutex<VecDeque<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl LastLines {
    fn collect(stderr: ChildStderr) -> LastLines {
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let kept = lines.clone();
        let reader = tokio::spawn(async move {
            let mut stderr = BufReader::new(stderr).lines();
            // A line that is not UTF-8 ends the collection, which only serves an error message.
            while let Ok(Some(line)) = stderr.next_line().await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == LAST_LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        });
        LastLines { lines, reader: Some(reader) }
    }

    /// The last lines of a process that has ended, as the end of a sentence.
    async fn text(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            // The pipe is closed, so this ends at once, unless a grandchild holds it.
            let _ = tokio::time::timeout(Duration::from_secs(2), reader).await;
        }
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() {
            return String::new();
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        format!("; last output:\n{}", lines.join("\n"))
    }
}
