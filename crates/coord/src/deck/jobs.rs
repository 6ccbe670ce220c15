//! What the deck starts and stops: commands of this program, in processes and process groups of their own, so that
//! they outlive the deck. What one prints goes to a file in the folder of all runs.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use schemas::files;
use schemas::run::RunFolder;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use super::command::Typed;
use super::folder::{Name, OWN};
use crate::failure::Failure;
use crate::run::lock;

/// How much of what a job has printed is shown.
const SHOWN_BYTES: usize = 8000;

/// How long the deck waits for a command that it has started to work on its run.
const BEGIN: Duration = Duration::from_secs(3);

/// Starts a command that makes the run of this name. Returns when it works on the run, when it has ended, or
/// after a moment.
///
/// A second click on the button finds the command of the first one, and starts none.
pub(super) async fn start(runs: &Path, name: &Name, typed: &Typed) -> Result<(), Failure> {
    let Some((child, path)) = spawned(runs, name, typed)? else { return Ok(()) };
    let mut ended = tokio::spawn(reap(child, path));
    let there = async {
        // The folder of a run that is resumed is there already; its lock says that the command works on it.
        while holder(runs, name).is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        _ = &mut ended => {}
        () = there => {}
        () = tokio::time::sleep(BEGIN) => {}
    }
    Ok(())
}

/// Whether this command runs for the run of this name.
pub(super) fn runs_already(runs: &Path, name: &Name, typed: &Typed) -> bool {
    let text = std::fs::read_to_string(printed(runs, name)).unwrap_or_default();
    process(runs, name).is_some() && text.lines().next() == Some(format!("$ {}", typed.text()).as_str())
}

/// One command is started after the other, so that two clicks do not see the same state.
static STARTING: Mutex<()> = Mutex::new(());

/// Starts a command. None if the same one runs already for the run of this name; another one is an error.
fn spawned(runs: &Path, name: &Name, typed: &Typed) -> Result<Option<(Child, PathBuf)>, Failure> {
    let _one = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    let path = printed(runs, name);
    if process(runs, name).is_some() {
        return match runs_already(runs, name, typed) {
            true => Ok(None),
            false => Err(Failure::usage(format!("{name}: another command works on it; wait until that has ended"))),
        };
    }
    files::write_atomically(&path, format!("$ {}\n", typed.text()).as_bytes())?;
    let open = || File::options().append(true).open(&path).map_err(files::at(&path));
    let (out, err) = (open()?, open()?);
    // The command inherits the file with its lock, which says that it runs, also to a deck that is started later. A
    // file system without locks says nothing.
    let _ = out.try_lock();
    let mut command = this_program(typed)?;
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    // Ctrl-C in the terminal of the deck ends the deck alone.
    command.process_group(0);
    let child = command.spawn().map_err(|e| Failure::tool(format!("cannot start {}: {e}", typed.text())))?;
    drop(command);
    if let Some(pid) = child.id() {
        files::write_atomically(&pid_file(runs, name), pid.to_string().as_bytes())?;
    }
    Ok(Some((child, path)))
}

/// Waits for the end of a job, and adds it to what the job has printed.
async fn reap(mut child: Child, path: PathBuf) {
    use std::io::Write;
    let Ok(status) = child.wait().await else { return };
    // Who reads it later sees an end without a code otherwise.
    if let Ok(mut file) = File::options().append(true).open(path) {
        let _ = writeln!(file, "{}", in_words(status));
    }
}

fn in_words(status: ExitStatus) -> String {
    status.code().map_or_else(|| "[killed]".to_string(), |code| format!("[ended with exit code {code}]"))
}

/// The file of what the job of a run has printed.
fn printed(runs: &Path, name: &Name) -> PathBuf {
    runs.join(OWN).join(format!("{}.log", name.to_string().replace('/', "_")))
}

/// The end of what the job of a run has printed; None if the deck has not started it.
pub(super) fn output(runs: &Path, name: &Name) -> Option<String> {
    let text = std::fs::read(printed(runs, name)).ok()?;
    let text = String::from_utf8_lossy(&text[text.len().saturating_sub(SHOWN_BYTES)..]).into_owned();
    Some(text)
}

/// Whether the job of a run has ended, as far as its output says.
pub(super) fn has_ended(output: &str) -> bool {
    output.trim_end().lines().last().is_some_and(|line| line.starts_with('[') && line.ends_with(']'))
}

/// The file with the process id of the job of a run.
fn pid_file(runs: &Path, name: &Name) -> PathBuf {
    printed(runs, name).with_extension("pid")
}

/// The process of the job of a run or trace set, while it runs.
pub(super) fn process(runs: &Path, name: &Name) -> Option<i32> {
    let file = File::open(printed(runs, name)).ok()?;
    if !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return None;
    }
    std::fs::read_to_string(pid_file(runs, name)).ok()?.trim().parse().ok().filter(|pid| *pid > 1)
}

/// The process that works on a run or a comparison, or that generates a trace set.
fn holder(runs: &Path, name: &Name) -> Option<i32> {
    if name.is_trace_set() {
        return process(runs, name);
    }
    lock::holder(&RunFolder::new(name.folder(runs)))
}

/// The file with the process that was asked to stop.
fn stop_file(runs: &Path, name: &Name) -> PathBuf {
    printed(runs, name).with_extension("stop")
}

/// The process that works on a run, also before the run has begun: another one, or this one (`is_own`).
fn worker(runs: &Path, name: &Name, is_own: bool) -> Option<i32> {
    let own = is_own.then_some(std::process::id() as i32);
    own.or_else(|| holder(runs, name)).or_else(|| process(runs, name))
}

/// Whether the process that works on a run was asked to stop.
pub(super) fn is_stopping(runs: &Path, name: &Name, is_own: bool) -> bool {
    let asked = std::fs::read_to_string(stop_file(runs, name)).ok().and_then(|text| text.trim().parse().ok());
    asked.is_some() && asked == worker(runs, name, is_own)
}

/// Interrupts the process that works on a run, as Ctrl-C does; also one that has not begun. A second Ctrl-C would give up
/// what is under way, so there is only one.
pub(super) fn stop(runs: &Path, name: &Name, is_own: bool) -> Result<(), Failure> {
    let Some(pid) = worker(runs, name, is_own).filter(|_| !is_stopping(runs, name, is_own)) else { return Ok(()) };
    let Some(process) = Pid::from_raw(pid) else { return Ok(()) };
    let refused = |e| Failure::tool(format!("{name}: its process {pid} cannot be interrupted: {e}"));
    kill_process(process, Signal::INT).map_err(refused)?;
    Ok(files::write_atomically(&stop_file(runs, name), pid.to_string().as_bytes())?)
}

/// The most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Runs a command that only reads, for so long at most, and returns what it prints. An error is the message of the
/// command.
pub(super) async fn ask(typed: &Typed, within: Duration) -> Result<Vec<u8>, String> {
    let mut command = this_program(typed).map_err(|e| e.to_string())?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // A command that is killed leaves its temporary files; the deck removes them.
    let scratch = tempfile::tempdir().map_err(|e| format!("cannot make a temporary folder: {e}"))?;
    command.env("TMPDIR", scratch.path());
    let mut child = command.spawn().map_err(|e| format!("cannot start {}: {e}", typed.text()))?;
    let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("the command has no output".into());
    };
    let asked = async {
        let (mut answer, mut message) = (Vec::new(), Vec::new());
        let (mut out, mut err) = (out.take(ANSWER_BYTES_MAX + 1), err.take(1 << 16));
        // An answer that is too long ends both: the command would wait for a reader for ever.
        let answered = async {
            out.read_to_end(&mut answer).await.map_err(|e| e.to_string())?;
            let is_too_long = answer.len() as u64 > ANSWER_BYTES_MAX;
            let why = format!("the answer has more than {} MB; ask for less", ANSWER_BYTES_MAX >> 20);
            if is_too_long { Err(why) } else { Ok(()) }
        };
        let complained = async { err.read_to_end(&mut message).await.map_err(|e| e.to_string()) };
        tokio::try_join!(answered, complained)?;
        let status = child.wait().await.map_err(|e| e.to_string())?;
        // Code 1 says that an SLA was missed or a violation found.
        match status.code() {
            Some(0 | 1) => Ok(answer),
            _ => Err(plain(&message)),
        }
    };
    let late = format!("stopped after {} s; ask for less, or run the command in a terminal", within.as_secs());
    tokio::time::timeout(within, asked).await.unwrap_or(Err(late))
}

fn plain(message: &[u8]) -> String {
    let text = String::from_utf8_lossy(message);
    text.trim().strip_prefix("error: ").unwrap_or(text.trim()).to_string()
}

fn this_program(typed: &Typed) -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::tool(format!("cannot find this program: {e}")))?;
    let mut command = Command::new(program);
    command.args(&typed.0);
    Ok(command)
}
