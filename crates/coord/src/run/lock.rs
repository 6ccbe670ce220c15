//! The lock on a run folder.

use std::fs::{File, TryLockError};

use schemas::files;
use schemas::run::RunFolder;

use crate::failure::Failure;

/// Locks the run folder, since two coordinators would write the same files at the same time. The
/// lock ends with the returned file, at the latest with this process.
pub fn claim(run: &RunFolder) -> Result<File, Failure> {
    let path = run.lock();
    std::fs::create_dir_all(run.root()).map_err(files::at(run.root()))?;
    let file = File::create(&path).map_err(files::at(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let shown = run.root().display();
            Err(Failure::usage(format!("{shown}: locked by another coordinator; wait until that one has ended")))
        }
        // A file system without locks cannot keep another coordinator out.
        Err(TryLockError::Error(_)) => Ok(file),
    }
}
