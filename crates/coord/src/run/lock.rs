//! The lock on a run folder. The file has the process id of the coordinator that holds it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write;
use std::time::Duration;

use schemas::files;
use schemas::run::RunFolder;

use crate::failure::Failure;

/// How often, and after how long, the lock is tried again.
const MOMENTS: usize = 5;
const MOMENT: Duration = Duration::from_millis(10);

/// Locks the run folder, since two coordinators would write the same files at the same time. The
/// lock ends with the returned file, at the latest with this process.
pub fn claim(run: &RunFolder) -> Result<File, Failure> {
    let path = run.lock();
    std::fs::create_dir_all(run.root()).map_err(files::at(run.root()))?;
    // The file of another coordinator stays as it is.
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(files::at(&path))?;
    let mut locked = file.try_lock();
    // Who asks whether the lock is held holds it for a moment.
    for _ in 0..MOMENTS {
        if !matches!(locked, Err(TryLockError::WouldBlock)) {
            break;
        }
        std::thread::sleep(MOMENT);
        locked = file.try_lock();
    }
    match locked {
        Ok(()) => {
            let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
            written.map_err(files::at(&path))?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let shown = run.root().display();
            Err(Failure::usage(format!("{shown}: locked by another coordinator; wait until that one has ended")))
        }
        // A file system without locks cannot keep another coordinator out.
        Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// The process that works on the run, if it runs on this machine and its lock is held.
pub fn holder(run: &RunFolder) -> Option<i32> {
    if !run.is_locked() {
        return None;
    }
    std::fs::read_to_string(run.lock()).ok()?.trim().parse().ok().filter(|pid| *pid > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_known_while_the_lock_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::new(folder.path());
        assert_eq!(holder(&run), None);
        let lock = claim(&run).unwrap();
        assert_eq!(holder(&run), Some(std::process::id() as i32));
        assert!(claim(&run).unwrap_err().to_string().contains("locked by another coordinator"));
        assert_eq!(holder(&run), Some(std::process::id() as i32), "the second claim leaves the file as it is");
        drop(lock);
        assert_eq!(holder(&run), None);
    }
}
