//! A folder for what a task needs for a while.

use std::fs::File;
use std::path::{Path, PathBuf};

use schemas::files::{self, FileError, at};
use tempfile::TempDir;

/// The prefix of scratch folders.
const PREFIX: &str = ".encore-scratch-";

/// A folder that is removed when the value is dropped. What a killed process has left, the next one removes.
#[derive(Debug)]
pub struct Scratch {
    temporary: TempDir,
    /// Locked while the folder is in use.
    _lock: File,
}

impl Scratch {
    /// A new folder in this one, which is created if needed; default: the system's folder for temporary files.
    pub fn new(parent: Option<&Path>) -> Result<Scratch, FileError> {
        let parent = parent.map_or_else(std::env::temp_dir, PathBuf::from);
        std::fs::create_dir_all(&parent).map_err(at(&parent))?;
        files::sweep(&parent, PREFIX);
        let temporary = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent).map_err(at(&parent))?;
        let path = temporary.path().join(files::LOCK);
        let lock = File::create(&path).map_err(at(&path))?;
        // Without locks, a process that takes hours could lose its folder to another: only where the system has none.
        let _ = lock.try_lock();
        Ok(Scratch { temporary, _lock: lock })
    }

    /// A folder in it, which need not exist.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_remains() {
        let parent = tempfile::tempdir().expect("a folder");
        let inner = parent.path().join("new");
        let scratch = Scratch::new(Some(&inner)).expect("a folder");
        files::write_atomically(&scratch.folder("run").join("run.json"), b"{}").expect("written");
        drop(scratch);
        assert_eq!(std::fs::read_dir(inner).expect("the parent stays").count(), 0);
    }
}
