//! Trace sets that coordinators have sent: each file once, under its checksum.
//!
//! ```text
//! files/SUM            a file that is complete, and has this BLAKE3 sum
//! files/SUM.part       a file that is incomplete; sending resumes at its end
//! files/SUM.whole      a file from object storage that is not checked yet
//! traces/TRACE_ID/     a trace set, whose files are links to those
//! lock                 locked by the replayer that uses the folder
//! ```
//!
//! A trace set that was made longer shares most of its files with the shorter one,
//! so these are not sent again.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use schemas::files::{self, FileError, at};
use schemas::manifest::{FILE_NAME, FileEntry, Manifest};

use super::paths::is_below;

/// The largest file of a trace set.
const FILE_BYTES_MAX: u64 = 1 << 40;

/// Why something cannot be put on the shelf.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
    /// Not a valid trace set.
    #[error("{0}")]
    Manifest(String),
    /// Another replayer has the folder.
    #[error("the work folder {} is in use by another replayer; start each replayer with its own --work", .0.display())]
    Taken(PathBuf),
    /// There is no room for it.
    #[error("{0}")]
    NoRoom(String),
    /// A file arrived damaged; its bytes were deleted.
    #[error("{path} arrived damaged: BLAKE3 checksum {found}, expected {expected}")]
    Damaged {
        /// As the manifest names it.
        path: String,
        /// The checksum of what arrived.
        found: String,
        /// The checksum that the manifest has.
        expected: String,
    },
    /// A file of this machine.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The trace sets in a work folder.
#[derive(Debug, Clone)]
pub struct Shelf {
    work: PathBuf,
    bytes_max: u64,
    lock: Arc<Mutex<Option<File>>>,
}

impl Shelf {
    /// The trace sets in `work`, of at most `bytes_max` bytes each.
    pub fn new(work: PathBuf, bytes_max: u64) -> Shelf {
        Shelf { work, bytes_max, lock: Arc::default() }
    }

    /// Locks the work folder, before anything is written there: two replayers would write the
    /// same files at the same time. The lock ends with this process.
    pub fn claim(&self) -> Result<(), ShelfError> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_some() {
            return Ok(());
        }
        std::fs::create_dir_all(&self.work).map_err(at(&self.work))?;
        let path = self.work.join("lock");
        let file = File::create(&path).map_err(at(&path))?;
        match file.try_lock() {
            Ok(()) => *lock = Some(file),
            Err(TryLockError::WouldBlock) => return Err(ShelfError::Taken(self.work.clone())),
            Err(TryLockError::Error(e)) => return Err(at(&path)(e).into()),
        }
        Ok(())
    }

    /// Reads a manifest from the network, and trusts nothing in it.
    pub fn manifest(&self, json: &str) -> Result<Manifest, ShelfError> {
        let wrong = |message: String| ShelfError::Manifest(format!("the manifest of the trace set {message}"));
        let value: serde_json::Value = serde_json::from_str(json).map_err(|e| wrong(format!("is not JSON: {e}")))?;
        let (found, expected) = (&value["format_version"], schemas::TRACE_FORMAT_VERSION);
        if *found != expected {
            return Err(wrong(format!("has format version {found}, this replayer reads version {expected}")));
        }
        let manifest: Manifest = serde_json::from_str(json).map_err(|e| wrong(format!("cannot be read: {e}")))?;
        for entry in &manifest.files {
            let is_sum = entry.blake3.len() == 64 && entry.blake3.bytes().all(|b| b.is_ascii_hexdigit());
            if !is_below(&entry.path) || !is_sum || entry.bytes > FILE_BYTES_MAX {
                return Err(wrong(format!("lists an invalid file {:?} (path, checksum or size)", entry.path)));
            }
        }
        manifest.check_ids().map_err(|message| wrong(format!("does not match its own ids: {message}")))?;
        let bytes = manifest.files.iter().fold(0u64, |sum, entry| sum.saturating_add(entry.bytes));
        if bytes > self.bytes_max {
            let max = self.bytes_max;
            return Err(ShelfError::NoRoom(format!(
                "the trace set has {bytes} bytes, this replayer's limit is {max}; raise its --trace-bytes-max"
            )));
        }
        Ok(manifest)
    }

    fn file(&self, entry: &FileEntry) -> PathBuf {
        self.work.join("files").join(entry.blake3.to_ascii_lowercase())
    }

    fn part(&self, entry: &FileEntry) -> PathBuf {
        self.work.join("files").join(format!("{}.part", entry.blake3.to_ascii_lowercase()))
    }

    /// The files of a trace set that are missing here, and how many bytes of each have arrived.
    pub fn lacked(&self, manifest: &Manifest) -> Vec<(FileEntry, u64)> {
        let length = |path: PathBuf| std::fs::metadata(path).map(|metadata| metadata.len()).ok();
        let lacked = manifest.files.iter().filter(|entry| length(self.file(entry)) != Some(entry.bytes));
        lacked.map(|entry| (entry.clone(), length(self.part(entry)).unwrap_or(0).min(entry.bytes))).collect()
    }

    /// Begins to receive a file from `offset` on. The bytes before `offset` are read, since the
    /// checksum is over the whole file.
    pub fn receive(&self, entry: &FileEntry, offset: u64) -> Result<Receiving, ShelfError> {
        let path = self.part(entry);
        let folder = self.work.join("files");
        std::fs::create_dir_all(&folder).map_err(at(&folder))?;
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(&path).map_err(at(&path))?;
        let there = file.metadata().map_err(at(&path))?.len();
        if offset > there {
            let message = format!("{}: cannot resume at byte {offset}, only {there} bytes have arrived", entry.path);
            return Err(ShelfError::Manifest(message));
        }
        let mut hasher = blake3::Hasher::new();
        std::io::copy(&mut Read::by_ref(&mut file).take(offset), &mut hasher).map_err(at(&path))?;
        file.set_len(offset).map_err(at(&path))?;
        file.seek(SeekFrom::Start(offset)).map_err(at(&path))?;
        Ok(Receiving { entry: entry.clone(), done: self.file(entry), path, file, hasher, bytes: offset })
    }

    /// Where a file goes that arrives as a whole.
    pub fn arriving(&self, entry: &FileEntry) -> PathBuf {
        self.work.join("files").join(format!("{}.whole", entry.blake3.to_ascii_lowercase()))
    }

    /// Checks a file that has arrived as a whole, and gives it its final name.
    pub fn take(&self, entry: &FileEntry, arrived: &Path) -> Result<(), ShelfError> {
        let found = files::blake3_of(arrived)?;
        if !found.eq_ignore_ascii_case(&entry.blake3) {
            std::fs::remove_file(arrived).map_err(at(arrived))?;
            return Err(ShelfError::Damaged { path: entry.path.clone(), found, expected: entry.blake3.clone() });
        }
        let file = self.file(entry);
        std::fs::rename(arrived, &file).map_err(at(&file))?;
        Ok(())
    }

    /// The folder of a trace set whose files have all arrived.
    pub fn assemble(&self, manifest: &Manifest) -> Result<PathBuf, ShelfError> {
        let folder = self.work.join("traces").join(&manifest.trace_id);
        if folder.join(FILE_NAME).exists() {
            return Ok(folder);
        }
        for entry in &manifest.files {
            let link = folder.join(&entry.path);
            let parent = link.parent().unwrap_or(&folder);
            std::fs::create_dir_all(parent).map_err(at(parent))?;
            match std::fs::hard_link(self.file(entry), &link) {
                Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(at(&link)(e).into()),
                _ => {}
            }
        }
        // The manifest comes last: if it exists, all other files do.
        files::write_json(&folder.join(FILE_NAME), manifest)?;
        Ok(folder)
    }
}

/// A file that is being received.
pub struct Receiving {
    entry: FileEntry,
    path: PathBuf,
    done: PathBuf,
    file: File,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Receiving {
    /// Appends data to the file.
    pub fn write(&mut self, data: &[u8]) -> Result<(), ShelfError> {
        self.bytes += data.len() as u64;
        if self.bytes > self.entry.bytes {
            let (path, bytes) = (&self.entry.path, self.entry.bytes);
            return Err(ShelfError::Manifest(format!("{path} should have {bytes} bytes, more were sent")));
        }
        self.hasher.update(data);
        Ok(self.file.write_all(data).map_err(at(&self.path))?)
    }

    /// Checks the file, and gives it its final name. A file that is incomplete keeps what has arrived.
    pub fn finish(self) -> Result<(), ShelfError> {
        let Receiving { entry, path, done, file, hasher, bytes } = self;
        if bytes < entry.bytes {
            return Err(ShelfError::Manifest(format!("{} ended after {bytes} of {} bytes", entry.path, entry.bytes)));
        }
        let found = hasher.finalize().to_hex().to_string();
        if !found.eq_ignore_ascii_case(&entry.blake3) {
            std::fs::remove_file(&path).map_err(at(&path))?;
            return Err(ShelfError::Damaged { path: entry.path, found, expected: entry.blake3 });
        }
        file.sync_data().map_err(at(&path))?;
        std::fs::rename(&path, &done).map_err(at(&done))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use schemas::spec::Spec;

    use super::*;
    use schemas::workload::social::SocialWorkload;

    /// A shelf in a folder of its own, and a trace set beside it.
    fn shelf() -> (tempfile::TempDir, Shelf, PathBuf, Manifest) {
        let folder = tempfile::tempdir().unwrap();
        let trace = folder.path().join("a.trace");
        let text = "name = 'a'\nsessions = 50\n[data]\nmembers = 40\nfriends_per_member = 2\n[mix]\nview_profile = 1\n";
        let spec = Spec::parse(text, "a.toml").unwrap();
        let manifest = tracegen::generate(&spec, &trace, &Default::default()).unwrap();
        let shelf = Shelf::new(folder.path().join("work"), 1 << 30);
        (folder, shelf, trace, manifest)
    }

    fn send(shelf: &Shelf, entry: &FileEntry, offset: u64, content: &[u8]) -> Result<(), ShelfError> {
        let mut receiving = shelf.receive(entry, offset)?;
        receiving.write(content)?;
        receiving.finish()
    }

    #[test]
    fn a_work_folder_is_one_replayers() {
        let (_folder, shelf, _trace, _manifest) = shelf();
        let other = Shelf::new(shelf.work.clone(), 1 << 30);
        shelf.claim().unwrap();
        shelf.clone().claim().unwrap();
        let refused = other.claim().unwrap_err().to_string();
        assert!(refused.contains("--work") && refused.contains("in use by another replayer"), "{refused}");
        drop(shelf);
        other.claim().unwrap();
    }

    #[test]
    fn a_trace_set_arrives_file_by_file_and_is_never_half_there() {
        let (_folder, shelf, trace, manifest) = shelf();
        assert_eq!(shelf.lacked(&manifest).len(), manifest.files.len());
        let (first, rest) = manifest.files.split_first().unwrap();
        let content = std::fs::read(trace.join(&first.path)).unwrap();
        // Sending ends half-way, and resumes from there.
        let error = send(&shelf, first, 0, &content[..100]).unwrap_err().to_string();
        assert!(error.contains("ended after 100 of"), "{error}");
        assert_eq!(shelf.lacked(&manifest)[0].1, 100);
        assert!(send(&shelf, first, 101, &content[101..]).is_err());
        send(&shelf, first, 100, &content[100..]).unwrap();
        assert_eq!(shelf.lacked(&manifest).len(), rest.len());
        assert!(shelf.assemble(&manifest).is_err());
        for entry in rest {
            send(&shelf, entry, 0, &std::fs::read(trace.join(&entry.path)).unwrap()).unwrap();
        }
        assert!(shelf.lacked(&manifest).is_empty());
        let folder = shelf.assemble(&manifest).unwrap();
        assert_eq!(shelf.assemble(&manifest).unwrap(), folder);
        Manifest::read(&folder).unwrap().verify(&folder).unwrap();
    }

    /// No file contains the sizes of the payloads. The trace set that arrived first must not
    /// stand for the other.
    #[test]
    fn trace_sets_of_the_same_files_and_other_payloads_lie_apart() {
        let (_folder, shelf, trace, manifest) = shelf();
        for entry in &manifest.files {
            send(&shelf, entry, 0, &std::fs::read(trace.join(&entry.path)).unwrap()).unwrap();
        }
        let mut spec = manifest.spec.of::<SocialWorkload>().unwrap();
        spec.own.data.image_bytes = 12_288;
        let images = tracegen::generate(&spec.whole(), &trace.with_extension("images"), &Default::default()).unwrap();
        assert_eq!(images.files, manifest.files);
        let (one, other) = (shelf.assemble(&manifest).unwrap(), shelf.assemble(&images).unwrap());
        assert_ne!(one, other);
        let read: SocialWorkload = Manifest::read(&other).unwrap().spec.workload().unwrap();
        assert_eq!(read.data.image_bytes, 12_288);
    }

    #[test]
    fn a_damaged_file_is_not_kept() {
        let (_folder, shelf, trace, manifest) = shelf();
        let entry = &manifest.files[0];
        let mut content = std::fs::read(trace.join(&entry.path)).unwrap();
        content[7] ^= 1;
        let error = send(&shelf, entry, 0, &content).unwrap_err();
        assert!(matches!(&error, ShelfError::Damaged { path, .. } if *path == entry.path), "{error}");
        assert_eq!(shelf.lacked(&manifest)[0].1, 0);
        content.push(0);
        assert!(send(&shelf, entry, 0, &content).unwrap_err().to_string().contains("more were sent"));
    }

    #[test]
    fn a_manifest_is_not_believed() {
        let (_folder, shelf, _, manifest) = shelf();
        let refused = |manifest: &Manifest| shelf.manifest(&serde_json::to_string(manifest).unwrap()).unwrap_err();
        shelf.manifest(&serde_json::to_string(&manifest).unwrap()).unwrap();
        for path in ["../../etc/passwd", "/etc/passwd", "a/../../b"] {
            let mut evil = manifest.clone();
            evil.files[0].path = path.into();
            let evil = evil.identified();
            assert!(refused(&evil).to_string().contains("lists an invalid file"), "{path}");
        }
        let mut evil = manifest.clone();
        evil.files[0].blake3 = "../../../x".into();
        let evil = evil.identified();
        assert!(refused(&evil).to_string().contains("lists an invalid file"));
        let mut evil = manifest.clone();
        evil.trace_id = "../x".into();
        assert!(refused(&evil).to_string().contains("does not match its own ids"));
        let small = Shelf::new("unused".into(), 10);
        let error = small.manifest(&serde_json::to_string(&manifest).unwrap()).unwrap_err();
        assert!(matches!(error, ShelfError::NoRoom(_)), "{error}");
    }

    proptest! {
        /// Any text from the network is refused or understood, and causes no panic.
        #[test]
        fn no_manifest_brings_the_replayer_down(text in "\\PC{0,60}|\\{\"format_version\":[0-9]{1,3},.{0,40}\\}") {
            let _ = Shelf::new("unused".into(), 10).manifest(&text);
        }
    }
}
