//! Runs a program to its end, and reports what it used.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, bail};

/// What a program used, and its output.
#[derive(Debug, Clone)]
pub struct Used {
    /// User and system time of all its threads.
    pub cpu_s: f64,
    /// Its peak resident memory.
    pub memory_bytes: u64,
    /// Its standard output.
    pub output: String,
}

/// Runs a program. A failure is an error with the last lines of the program's standard error.
pub fn run(command: &mut Command) -> anyhow::Result<Used> {
    run_to(command, &[0])
}

/// Runs a program that must end with one of these exit codes.
pub fn run_to(command: &mut Command, codes: &[i32]) -> anyhow::Result<Used> {
    let said = format!("{command:?}");
    let errors = tempfile::tempfile()?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors.try_clone()?)
        .spawn()
        .with_context(|| format!("cannot start {said}"))?;
    let memory = Peak::watch(child.id());
    let mut output = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut output)?;
    }
    let (status, usage) = wait(&child)?;
    let memory_bytes = memory.end();
    if !codes.iter().any(|code| status == code << 8) {
        let mut text = String::new();
        std::io::Seek::rewind(&mut &errors)?;
        (&errors).read_to_string(&mut text)?;
        let tail: Vec<&str> = text.lines().rev().take(8).collect();
        bail!("{said} failed:\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Used { cpu_s: seconds(usage.ru_utime) + seconds(usage.ru_stime), memory_bytes, output })
}

/// The peak resident memory of a process, read while it runs. The figure that the system reports
/// for an ended child includes the memory that its parent had at its start.
struct Peak {
    is_over: Arc<AtomicBool>,
    watcher: JoinHandle<u64>,
}

impl Peak {
    fn watch(process: u32) -> Peak {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        // It is read once before anything else: a short program may have ended when the watcher begins.
        let mut most = peak_bytes(process).unwrap_or(0);
        let watcher = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                most = peak_bytes(process).unwrap_or(0).max(most);
                std::thread::sleep(Duration::from_millis(20));
            }
            most
        });
        Peak { is_over, watcher }
    }

    fn end(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.watcher.join().unwrap_or(0)
    }
}

/// `VmHWM` of `/proc/ID/status`, which is in KiB.
fn peak_bytes(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

/// Waits for a child's end. The standard library does too, but does not report what the child used.
fn wait(child: &Child) -> anyhow::Result<(i32, libc::rusage)> {
    let mut status = 0;
    // SAFETY: both addresses are valid for writing, all-zero bytes are a valid rusage, and no other
    // code waits for this child.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        if libc::wait4(child.id() as i32, &mut status, 0, &mut usage) < 0 {
            bail!("cannot wait for process {}: {}", child.id(), std::io::Error::last_os_error());
        }
        Ok((status, usage))
    }
}

/// CPU time that a server's processes have used so far, including processes that have ended.
pub fn server_cpu_s(processes: &[u32]) -> f64 {
    let ticks: u64 = processes.iter().filter_map(|id| cpu_ticks(*id)).sum();
    // SAFETY: asks only for a number.
    ticks as f64 / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64
}

/// CPU time that all processes of the machine have used so far.
pub fn machine_cpu_s() -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string("/proc/stat").context("/proc/stat")?;
    let line = stat.lines().next().unwrap_or_default();
    // User, nice, system, idle, waiting for disks, interrupts.
    let fields: Vec<u64> = line.split_whitespace().skip(1).filter_map(|field| field.parse().ok()).collect();
    anyhow::ensure!(fields.len() >= 7, "/proc/stat begins with {line:?}");
    let ticks = fields[0] + fields[1] + fields[2] + fields[5] + fields[6];
    // SAFETY: asks only for a number.
    Ok(ticks as f64 / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64)
}

/// Fields 14 to 17 of `/proc/ID/stat`: user and system time of a process and of
/// its children that have ended.
fn cpu_ticks(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the name in parentheses, and may contain spaces.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<u64> = rest.split_whitespace().skip(11).take(4).filter_map(|f| f.parse().ok()).collect();
    (fields.len() == 4).then(|| fields.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_used_is_its_own() {
        let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo done";
        let used = run(Command::new("sh").args(["-c", busy])).unwrap();
        assert_eq!(used.output, "done\n");
        assert!(used.cpu_s > 0.0 && used.memory_bytes > 100_000, "{used:?}");
    }

    #[test]
    fn a_program_that_fails_is_an_error_with_its_words() {
        let error = run(Command::new("sh").args(["-c", "echo why >&2; exit 3"])).unwrap_err();
        assert!(error.to_string().contains("why"), "{error}");
    }
}
