//! The tools, one file each: how each is found or built, started, and its output parsed.

pub mod bare;
pub mod driver;
pub mod encore;
pub mod go_tpc;
pub mod go_ycsb;
pub mod memtier;
pub mod pgbench;
pub mod pgbench_kv;
pub mod pgreplay;
pub mod redis_benchmark;
pub mod spark;
pub mod unlogged;
pub mod ycsb;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of this name on PATH.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// The first line of a program's version output.
pub fn version(program: &Path, arguments: &[&str]) -> String {
    let said = Command::new(program).args(arguments).output();
    let text = said.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().next().unwrap_or("version unknown").trim().to_string()
}
