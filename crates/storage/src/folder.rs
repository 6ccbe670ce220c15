//! Whole folders: fetch what a task needs, and publish what it has made, documents last.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

use schemas::files::{FileError, at};

use crate::error::StorageError;
use crate::remote::{Object, Remote};

impl Remote {
    /// Reads the objects whose names are wanted into a folder, and returns all objects below the prefix.
    pub fn fetch(&self, wanted: impl Fn(&str) -> bool, into: &Path) -> Result<Vec<Object>, StorageError> {
        let all = self.list("")?;
        self.get_all(all.iter().map(|object| object.name.as_str()).filter(|name| wanted(name)), into)?;
        Ok(all)
    }

    /// Writes files of a folder, so that a reader never finds a document before what it describes: first the data,
    /// then the JSON documents, then `last`, in this order.
    pub fn publish<'a>(&self, folder: &Path, names: &[&'a str], last: &[&'a str]) -> Result<(), StorageError> {
        let is_document = |name: &str| name.ends_with(".json");
        let (others, mut at_end): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| !last.contains(name));
        at_end.sort_by_key(|name| last.iter().position(|one| one == name));
        self.put_all(folder, others.iter().copied().filter(|name| !is_document(name)))?;
        self.put_all(folder, others.iter().copied().filter(|name| is_document(name)))?;
        at_end.into_iter().try_for_each(|name| self.put(&folder.join(name), name))
    }
}

/// The files of a folder at one moment, to find those that a task has made or changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    files: BTreeMap<String, Seen>,
}

/// What tells whether a file has changed: a file that was replaced has another inode.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    bytes: u64,
    changed: Option<SystemTime>,
    inode: u64,
}

impl Seen {
    fn of(file: &Metadata) -> Seen {
        #[cfg(unix)]
        let inode = std::os::unix::fs::MetadataExt::ino(file);
        #[cfg(not(unix))]
        let inode = 0;
        Seen { bytes: file.len(), changed: file.modified().ok(), inode }
    }
}

impl Snapshot {
    /// The files of a folder, without hidden ones, which are no results.
    pub fn of(folder: &Path) -> Result<Snapshot, FileError> {
        let mut files = BTreeMap::new();
        collect(folder, "", &mut files)?;
        Ok(Snapshot { files })
    }

    /// The names of the files, with '/', in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The names of the files that are new or changed since an earlier moment.
    pub fn since<'a>(&'a self, earlier: &Snapshot) -> Vec<&'a str> {
        let is_new = |name: &str, seen: &Seen| earlier.files.get(name) != Some(seen);
        self.files.iter().filter(|(name, seen)| is_new(name, seen)).map(|(name, _)| name.as_str()).collect()
    }
}

fn collect(folder: &Path, name: &str, files: &mut BTreeMap<String, Seen>) -> Result<(), FileError> {
    for entry in std::fs::read_dir(folder).map_err(at(folder))? {
        let entry = entry.map_err(at(folder))?;
        // Encore gives no file a name that is not Unicode.
        let Ok(own) = entry.file_name().into_string() else { continue };
        if own.starts_with('.') {
            continue;
        }
        let path = entry.path();
        let name = if name.is_empty() { own } else { format!("{name}/{own}") };
        let metadata = entry.metadata().map_err(at(&path))?;
        if metadata.is_dir() {
            collect(&path, &name, files)?;
        } else if metadata.is_file() {
            files.insert(name, Seen::of(&metadata));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_task_has_made_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            schemas::files::write_atomically(&folder.path().join(name), text.as_bytes()).expect("written");
        };
        write("run.json", "{}");
        write("log/fragment-0.arrows", "rows");
        let before = Snapshot::of(folder.path()).expect("a snapshot");
        assert_eq!(before.names().collect::<Vec<_>>(), ["log/fragment-0.arrows", "run.json"]);
        write("operations/fragment=0/part-0.parquet", "table");
        write("run.json", "[]");
        write(".verified.json", "{}");
        let after = Snapshot::of(folder.path()).expect("a snapshot");
        assert_eq!(after.since(&before), ["operations/fragment=0/part-0.parquet", "run.json"]);
        assert!(after.since(&after).is_empty());
    }
}
