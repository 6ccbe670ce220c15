//! The folder of a trace set: filled under a temporary name, then renamed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use schemas::files::{self, FileError, at, read_json};
use schemas::manifest;
use tempfile::TempDir;

use super::error::GenerateError;

/// A folder that is being filled. Dropping it before it is [put in place](Target::put_in_place)
/// removes what was written, and keeps what was there before.
pub(crate) struct Target {
    place: PathBuf,
    temporary: TempDir,
    /// Locked while the folder is in use.
    _lock: File,
}

/// The prefix of temporary names.
const PREFIX: &str = ".tracegen-";

impl Target {
    /// A temporary folder beside `place`. `place` must not exist, or must hold a trace set of the
    /// same workload that is no longer than the new one.
    pub(crate) fn new(place: &Path, workload_id: &str, sessions: u64) -> Result<Target, GenerateError> {
        check_replaceable(place, workload_id, sessions)?;
        Target::beside(place)
    }

    /// The same for a trace set whose workload is known at its end: [`Target::check`] must follow. What is no
    /// trace set is refused at once.
    pub(crate) fn beside(place: &Path) -> Result<Target, GenerateError> {
        let is_other = place.symlink_metadata().is_ok() && !place.join(manifest::FILE_NAME).is_file();
        if is_other {
            check_replaceable(place, "", 0)?;
        }
        let parent = match place.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(parent).map_err(at(parent))?;
        files::sweep(parent, PREFIX);
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        // The folder becomes the trace set's, so it gets the usual permissions of the umask: others
        // may read it.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o777));
        }
        let temporary = builder.tempdir_in(parent).map_err(at(parent))?;
        let lock = temporary.path().join(files::LOCK);
        let lock = File::create(&lock).map_err(at(&lock))?;
        // On a file system without locks nothing breaks, as long as one trace set is generated here
        // at a time.
        let _ = lock.try_lock();
        std::fs::create_dir(temporary.path().join("new")).map_err(at(temporary.path()))?;
        Ok(Target { place: place.to_path_buf(), temporary, _lock: lock })
    }

    /// Refuses to replace anything but the trace set of this workload, if it is no longer.
    pub(crate) fn check(&self, workload_id: &str, sessions: u64) -> Result<(), GenerateError> {
        check_replaceable(&self.place, workload_id, sessions)
    }

    /// The folder to write to.
    pub(crate) fn folder(&self) -> PathBuf {
        self.temporary.path().join("new")
    }

    /// Renames the folder to its final name. A folder that has this name is moved aside first, and
    /// removed (with the temporary folder) only after success.
    pub(crate) fn put_in_place(self) -> Result<(), GenerateError> {
        let aside = self.temporary.path().join("old");
        let replaces = match std::fs::rename(&self.place, &aside) {
            Ok(()) => true,
            Err(e) if e.kind() == io::ErrorKind::NotFound => false,
            Err(e) => return Err(at(&self.place)(e).into()),
        };
        if let Err(e) = std::fs::rename(self.folder(), &self.place) {
            if replaces && let Err(e) = std::fs::rename(&aside, &self.place) {
                // The old set must survive, so the temporary folder must too.
                let kept = self.temporary.keep().join("old");
                let source =
                    io::Error::new(e.kind(), format!("cannot rename the old trace set back; it is here ({e})"));
                return Err(FileError { path: kept, source }.into());
            }
            return Err(at(&self.place)(e).into());
        }
        Ok(())
    }
}

/// Refuses to replace anything but a trace set of the same workload that is no longer than the new
/// one: existing runs may depend on the sessions of a longer one.
fn check_replaceable(place: &Path, workload_id: &str, sessions: u64) -> Result<(), GenerateError> {
    let occupied = |found: String| GenerateError::Occupied { folder: place.to_path_buf(), found };
    match std::fs::symlink_metadata(place) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(at(place)(e).into()),
        Ok(found) if !found.is_dir() => return Err(occupied("not a folder".into())),
        Ok(_) => {}
    }
    let manifest: Result<serde_json::Value, FileError> = read_json(&place.join(manifest::FILE_NAME));
    let manifest = manifest.ok();
    let longer = manifest.as_ref().and_then(|m| m["spec"]["sessions"].as_u64()).filter(|found| *found > sessions);
    match manifest.as_ref().and_then(|m| m["workload_id"].as_str()) {
        Some(found) if found == workload_id && longer.is_some() => Err(occupied(format!(
            "a longer trace set of this workload ({} sessions, not {sessions})",
            longer.unwrap_or_default()
        ))),
        Some(found) if found == workload_id => Ok(()),
        Some(found) => Err(occupied(format!("a trace set of another workload ({found}, not {workload_id})"))),
        None => Err(occupied(format!("not a trace set (no readable {})", manifest::FILE_NAME))),
    }
}
