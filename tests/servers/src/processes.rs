//! Finds all processes of a server, and sends signals to them.

use std::time::{Duration, Instant};

/// How long processes may take to follow a signal.
const PATIENCE: Duration = Duration::from_secs(600);
/// The time between two checks.
const PAUSE: Duration = Duration::from_millis(2);

/// The fields of `/proc/PID/stat` that are needed.
struct Process {
    id: u32,
    parent: u32,
    state: char,
}

impl Process {
    fn read(id: u32) -> Option<Process> {
        let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name in parentheses may contain any characters, parentheses too.
        let mut fields = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        Some(Process { id, parent: fields.next()?.parse().ok()?, state })
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }
}

/// Whether a process is running or stopped.
pub fn is_alive(id: u32) -> bool {
    Process::read(id).is_some_and(|process| !process.has_ended())
}

/// A process and its living descendants.
pub fn tree(root: u32) -> Vec<u32> {
    living_tree(root).iter().map(|process| process.id).collect()
}

/// Stops all processes of a tree.
pub fn pause(root: u32) {
    await_true("be stopped", || {
        // The root may fork until it has stopped, so each round looks for processes again.
        let running: Vec<u32> = living_tree(root).iter().filter(|p| !p.is_stopped()).map(|p| p.id).collect();
        running.iter().for_each(|&id| signal(id, libc::SIGSTOP));
        running.is_empty()
    });
}

/// Resumes all processes of a stopped tree.
pub fn resume(root: u32) {
    tree(root).into_iter().for_each(|id| signal(id, libc::SIGCONT));
}

/// Kills all processes of a tree, as if at one instant, and waits for their end.
pub fn kill(root: u32) {
    pause(root);
    let all = tree(root);
    all.iter().for_each(|&id| signal(id, libc::SIGKILL));
    await_true("be killed", || !all.iter().any(|&id| is_alive(id)));
}

/// Asks the root of a tree to end, and waits until all its processes have ended.
pub fn end(root: u32, how: i32) {
    let all = tree(root);
    signal(root, how);
    await_true("end", || !all.iter().any(|&id| is_alive(id)));
}

fn signal(id: u32, signal: i32) {
    // SAFETY: kill only takes numbers. A process that has just ended is no error.
    unsafe { libc::kill(id as i32, signal) };
}

fn living_tree(root: u32) -> Vec<Process> {
    let mut others: Vec<Process> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| Process::read(entry.ok()?.file_name().to_str()?.parse().ok()?))
        .filter(|process| !process.has_ended())
        .collect();
    let mut tree: Vec<Process> = others.extract_if(.., |process| process.id == root).collect();
    let mut next = 0;
    while let Some(parent) = tree.get(next).map(|process| process.id) {
        tree.extend(others.extract_if(.., |process| process.parent == parent));
        next += 1;
    }
    tree
}

fn await_true(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "a server's processes did not {what} within {PATIENCE:?}");
        std::thread::sleep(PAUSE);
    }
}
