//! Checks that a trace set fits on this machine, before any of it is made.
//!
//! The check compares the least that a trace set takes with the room that the machine has. It
//! refuses at once a specification with three zeros too many, and never one that would fit.

use std::path::Path;

use super::error::GenerateError;

/// The least number of bytes on disk for a row of the operations or the data set. Encoded and
/// compressed, usual rows take 4 to 8.
pub const ROW_BYTES: f64 = 1.0;

/// Refuses a specification whose trace set does not fit on this machine.
pub(crate) fn check(need: &Need, folder: &Path) -> Result<(), GenerateError> {
    let refuse = |kind: &'static str, needed: f64, there: u64, whose: String| match needed > there as f64 {
        true => Err(GenerateError::NoRoom {
            kind,
            needed: size(needed),
            there: size(there as f64),
            whose,
            what: need.what.clone(),
        }),
        false => Ok(()),
    };
    if let Some((free, place)) = free_disk(folder) {
        refuse("on disk", need.disk_bytes, free, format!("the free space of {place} is"))?;
    }
    if let Some(memory) = memory_bytes() {
        refuse("of memory", need.memory_bytes, memory, "this machine has".into())?;
    }
    Ok(())
}

/// The least that a trace set takes.
pub struct Need {
    /// Bytes on disk.
    pub disk_bytes: f64,
    /// Bytes of memory while it is generated.
    pub memory_bytes: f64,
    /// The settings that decide the size, in words.
    pub what: String,
}

/// The bytes that a user may still write at the place of a folder (which need not exist), and that place.
fn free_disk(folder: &Path) -> Option<(u64, String)> {
    let folder = std::path::absolute(folder).ok()?;
    let place = folder.ancestors().find(|ancestor| ancestor.is_dir())?;
    let disk = rustix::fs::statvfs(place).ok()?;
    Some((disk.f_bavail.saturating_mul(disk.f_frsize), place.display().to_string()))
}

/// Memory and swap space of this machine, if the system reports them.
fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse::<u64>().ok()
    };
    Some((kib("MemTotal")? + kib("SwapTotal").unwrap_or(0)) * 1024)
}

/// Bytes with a readable unit.
fn size(bytes: f64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut bytes = bytes;
    let mut unit = 0;
    while bytes >= 1024.0 && unit + 1 < units.len() {
        bytes /= 1024.0;
        unit += 1;
    }
    format!("{bytes:.0} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!(
            [0.0, 1023.0, 1024.0, 3e9, 1e30].map(size),
            ["0 bytes", "1023 bytes", "1 KiB", "3 GiB", "867361737988 EiB"]
        );
    }
}
