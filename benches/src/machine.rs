//! The machine on which the figures were measured.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The properties of a machine that decide how fast programs are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Memory in GiB.
    pub memory_gib: u64,
    /// The operating system's kernel.
    pub system: String,
}

impl Machine {
    /// This machine.
    pub fn current() -> Machine {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let (cpus, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
        let kib = field(&memory, "MemTotal").and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        Machine {
            processor: field(&cpus, "model name").unwrap_or("unknown processor").to_string(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_gib: kib.unwrap_or(0).div_ceil(1 << 20),
            system: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
        }
    }
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim_start().strip_prefix(':')?.trim())
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} processors, {} GiB), {}", self.processor, self.cores, self.memory_gib, self.system)
    }
}
