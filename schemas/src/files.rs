//! Writes and reads whole files, checks their names, and removes what killed processes left. A
//! file is written under a temporary name beside the target, then renamed.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An input or output error that names its file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    /// The file or folder.
    pub path: PathBuf,
    /// The operating system's error.
    #[source]
    pub source: io::Error,
}

/// One file of a trace set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path below the trace set's folder, with '/'.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Rows.
    pub rows: u64,
    /// BLAKE3 sum, hex.
    pub blake3: String,
}

/// Whether the system refuses a file because of the name that the user gave: no such file, or a
/// folder in its place. Otherwise the system itself is the cause: no space, no permission, or too
/// many open files.
pub fn is_about_the_name(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{
        AlreadyExists, InvalidData, InvalidInput, IsADirectory, NotADirectory, NotFound, UnexpectedEof,
    };
    matches!(kind, NotFound | NotADirectory | IsADirectory | AlreadyExists | InvalidInput | InvalidData | UnexpectedEof)
}

/// Adds the path to an [`io::Error`].
pub fn at(path: &Path) -> impl FnOnce(io::Error) -> FileError + '_ {
    move |source| FileError { path: path.to_path_buf(), source }
}

/// Writes a whole file. A reader sees the old or the new content, never a part of it, and a
/// failure leaves the old content.
pub fn write_atomically(path: &Path, content: &[u8]) -> Result<(), FileError> {
    write(path, content, 0o644)
}

/// Like [`write_atomically`], but only the owner may read the file, also while it is being
/// written.
pub fn write_privately(path: &Path, content: &[u8]) -> Result<(), FileError> {
    write(path, content, 0o600)
}

/// Writes a file with these permissions. While it is being written, only its owner may read it.
fn write(path: &Path, content: &[u8], mode: u32) -> Result<(), FileError> {
    let folder = match path.parent() {
        Some(p) if !p.as_os_str().is_empty() => p,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder).map_err(at(folder))?;
    let mut temporary = tempfile::NamedTempFile::new_in(folder).map_err(at(folder))?;
    temporary.write_all(content).map_err(at(path))?;
    temporary.as_file().sync_data().map_err(at(path))?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let permissions = std::fs::Permissions::from_mode(mode);
        temporary.as_file().set_permissions(permissions).map_err(at(path))?;
    }
    temporary.persist(path).map_err(|e| at(path)(e.error))?;
    Ok(())
}

/// The lock file of a temporary folder. [`sweep`] keeps the folder as long as a process locks it.
pub const LOCK: &str = "lock";

/// [`sweep`] keeps younger entries: a process may have created one and not locked it yet.
const SWEPT_AFTER: Duration = Duration::from_secs(60);

/// Removes from a folder what killed processes left under temporary names: files and folders with
/// this prefix that no process has locked (a folder by its [`LOCK`]). It keeps a folder with an
/// `old` entry, which is the former content of another folder. It ignores what it cannot remove.
pub fn sweep(folder: &Path, prefix: &str) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix)) {
        let path = entry.path();
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|modified| modified.elapsed().ok());
        if age.is_none_or(|age| age < SWEPT_AFTER) || path.join("old").exists() {
            continue;
        }
        let lock = if path.is_dir() { path.join(LOCK) } else { path.clone() };
        let is_held = File::open(lock).is_ok_and(|file| file.try_lock().is_err());
        if !is_held {
            let _ = if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        }
    }
}

/// Whether this is a valid name of a run, a specification or a plan, and so of a file: letters,
/// digits, `-`, `_` and `.`, but no `.` at the beginning.
pub fn is_plain_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain)
}

/// Writes a JSON document with [`write_atomically`].
pub fn write_json<X: serde::Serialize>(path: &Path, value: &X) -> Result<(), FileError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|e| at(path)(io::Error::other(e)))?;
    text.push('\n');
    write_atomically(path, text.as_bytes())
}

/// Reads a JSON document; the error names the file and the line.
pub fn read_json<X: serde::de::DeserializeOwned>(path: &Path) -> Result<X, FileError> {
    let text = std::fs::read_to_string(path).map_err(at(path))?;
    serde_json::from_str(&text).map_err(|e| at(path)(io::Error::new(io::ErrorKind::InvalidData, not_the_document(&e))))
}

/// Why a text is not the JSON document that it should be.
fn not_the_document(error: &serde_json::Error) -> String {
    let kind = if error.is_data() { "not the expected JSON document" } else { "not valid JSON" };
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    let message = text.strip_suffix(&place).unwrap_or(&text);
    format!("{kind}{place}: {message}; restore the file or make the run again")
}

/// The BLAKE3 sum of a file, as lower-case hex.
pub fn blake3_of(path: &Path) -> Result<String, FileError> {
    let mut hasher = blake3::Hasher::new();
    let mut file = File::open(path).map_err(at(path))?;
    io::copy(&mut file, &mut hasher).map_err(at(path))?;
    Ok(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sweep removes what a killed process left, and nothing else.
    #[test]
    fn leftovers_of_killed_processes_are_swept_away() {
        let folder = tempfile::tempdir().unwrap();
        let old = std::time::SystemTime::now() - 2 * SWEPT_AFTER;
        let age = |path: &Path| File::open(path).unwrap().set_modified(old).unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            let file = File::create(&path).unwrap();
            file.set_modified(old).unwrap();
            (path, file)
        };
        let (left, _) = file(".work-1");
        let (held, holder) = file(".work-2");
        holder.try_lock().unwrap();
        let (other, _) = file("work-3");
        let young = folder.path().join(".work-4");
        File::create(&young).unwrap();
        let keeps = folder.path().join(".work-5");
        std::fs::create_dir_all(keeps.join("old")).unwrap();
        age(&keeps);
        let dead = folder.path().join(".work-6");
        std::fs::create_dir_all(dead.join("new")).unwrap();
        File::create(dead.join(LOCK)).unwrap();
        age(&dead);
        sweep(folder.path(), ".work-");
        assert!(!left.exists() && !dead.exists());
        assert!(held.exists() && other.exists() && young.exists() && keeps.exists());
        drop(holder);
        sweep(folder.path(), ".work-");
        assert!(!held.exists());
    }

    #[test]
    fn damaged_documents_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rating.json");
        let check = |text: &str, expect: &str| {
            std::fs::write(&path, text).unwrap();
            let error = read_json::<std::collections::BTreeMap<String, f64>>(&path).unwrap_err().to_string();
            assert_eq!(error, format!("{}: {expect}; restore the file or make the run again", path.display()));
        };
        check("{\n\"a\": NaN}", "not valid JSON at line 2 column 6: expected value");
        check("[1]", "not the expected JSON document at line 1 column 0: invalid type: sequence, expected a map");
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        write_json(&path, &1).unwrap();
        // A folder where the file should go: the rename fails.
        let taken = dir.path().join("taken");
        std::fs::create_dir_all(taken.join("x")).unwrap();
        assert!(write_json(&taken, &2).is_err());
        assert_eq!(read_json::<i32>(&path).unwrap(), 1);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
