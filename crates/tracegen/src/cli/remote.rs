//! Trace sets in object storage: what a command needs is fetched into a temporary folder, and what it has made is
//! published, the manifest last. Nothing else of this tool knows URLs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use schemas::files::at;
use schemas::manifest::{self, Manifest, TraceSetError};
use schemas::program;
use storage::{Object, Place, Remote, Scratch, StorageError, Url};

use super::{Failure, with_causes};
use crate::GenerateError;

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Failure {
        match error {
            StorageError::Interrupted { .. } => Failure { code: program::INTERRUPTED, error: error.into() },
            error if error.is_of_user() => Failure::input(error),
            error => Failure::tool(error),
        }
    }
}

/// Whether the user has named a place in object storage, rightly or wrongly.
pub(super) fn is_remote(place: &Path) -> bool {
    !matches!(Place::of(place), Ok(Place::Local(_)))
}

/// The folders of a trace set with its data.
const DATA: [&str; 2] = ["dataset/", "operations/"];

/// A folder on this machine that stands for a prefix in object storage.
struct Stand {
    remote: Remote,
    objects: Vec<Object>,
    scratch: Scratch,
}

impl Stand {
    /// For the prefix of a URL; it contains the objects that are wanted.
    fn open(url: &Url, wanted: impl Fn(&str) -> bool, interrupted: Option<Arc<AtomicBool>>) -> Result<Stand, Failure> {
        let remote = Remote::open(url)?;
        let remote = if let Some(flag) = interrupted { remote.until(flag) } else { remote };
        let scratch = Scratch::new(None).map_err(Failure::tool)?;
        let mut stand = Stand { remote, objects: Vec::new(), scratch };
        stand.objects = stand.remote.fetch(wanted, &stand.folder())?;
        Ok(stand)
    }

    /// The folder. It exists if anything was fetched.
    fn folder(&self) -> PathBuf {
        self.scratch.folder("x.trace")
    }

    /// Checks that all files of a manifest are objects of their sizes.
    fn check_sizes(&self, manifest: &Manifest) -> Result<(), TraceSetError> {
        let size = |path: &str| {
            let found = self.objects.binary_search_by(|object| object.name.as_str().cmp(path));
            found.ok().map(|index| self.objects[index].bytes)
        };
        manifest.files.iter().try_for_each(|entry| entry.check_size(&self.folder(), size(&entry.path)))
    }

    /// The same error, with the URL in place of the folder.
    fn named(&self, failure: Failure) -> Failure {
        let (folder, url) = (self.folder().display().to_string(), self.remote.url().to_string());
        let text = with_causes(&failure.error).replace(&folder, &url);
        Failure { error: anyhow::Error::msg(text), ..failure }
    }
}

/// A trace set that a command reads.
pub(super) struct Source {
    folder: PathBuf,
    stand: Option<Stand>,
}

impl Source {
    /// All of a trace set.
    pub(super) fn whole(place: &Path) -> Result<Source, Failure> {
        Source::of(place, |_| true)
    }

    /// The manifest of a trace set whose files are all there, with their sizes.
    pub(super) fn manifest(place: &Path) -> Result<Manifest, Failure> {
        let source = Source::of(place, |name| name == manifest::FILE_NAME)?;
        source.read_manifest().map_err(|failure| source.named(failure))
    }

    fn of(place: &Path, wanted: impl Fn(&str) -> bool) -> Result<Source, Failure> {
        match Place::of(place)? {
            Place::Local(folder) => Ok(Source { folder, stand: None }),
            Place::Remote(url) => {
                let stand = Stand::open(&url, wanted, None)?;
                Ok(Source { folder: stand.folder(), stand: Some(stand) })
            }
        }
    }

    fn read_manifest(&self) -> Result<Manifest, Failure> {
        let Some(stand) = &self.stand else { return Ok(Manifest::read(&self.folder)?) };
        let manifest = Manifest::read_alone(&self.folder).map_err(Failure::input)?;
        stand.check_sizes(&manifest)?;
        Ok(manifest)
    }

    /// The folder on this machine.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The error of a command, with the place that the user has named.
    pub(super) fn named(&self, failure: Failure) -> Failure {
        match &self.stand {
            Some(stand) => stand.named(failure),
            None => failure,
        }
    }
}

/// Where a trace set is written.
pub(super) struct Target {
    folder: PathBuf,
    stand: Option<Stand>,
    /// The manifest that the prefix has.
    former: Option<Vec<u8>>,
}

impl Target {
    /// The folder to write to. For a prefix in object storage, it holds the manifest of the trace set that is there.
    pub(super) fn new(place: &Path, interrupted: &Arc<AtomicBool>) -> Result<Target, Failure> {
        let url = match Place::of(place)? {
            Place::Local(folder) => return Ok(Target { folder, stand: None, former: None }),
            Place::Remote(url) => url,
        };
        let stand = Stand::open(&url, |name| name == manifest::FILE_NAME, Some(interrupted.clone()))?;
        let former = std::fs::read(stand.folder().join(manifest::FILE_NAME)).ok();
        let is_data = |object: &&Object| DATA.iter().any(|folder| object.name.starts_with(folder));
        if let (None, Some(other)) = (&former, stand.objects.iter().find(|object| !is_data(object))) {
            // Data alone is what an interrupted command has left.
            let found = format!("not a trace set (it has {})", other.name);
            return Err(Failure::input(GenerateError::Occupied { folder: url.to_string().into(), found }));
        }
        Ok(Target { folder: stand.folder(), stand: Some(stand), former })
    }

    /// The folder on this machine.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The error of a command, with the place that the user has named.
    pub(super) fn named(&self, failure: Failure) -> Failure {
        match &self.stand {
            Some(stand) => stand.named(failure),
            None => failure,
        }
    }

    /// Publishes the trace set in the folder. From the first change to the last, the prefix has no manifest, so that
    /// nobody takes a mixture for a trace set.
    pub(super) fn publish(&self, manifest: &Manifest) -> Result<(), Failure> {
        let Some(stand) = &self.stand else { return Ok(()) };
        let path = self.folder.join(manifest::FILE_NAME);
        let new = std::fs::read(&path).map_err(at(&path)).map_err(Failure::tool)?;
        if self.former.as_ref() == Some(&new) && stand.check_sizes(manifest).is_ok() {
            return Ok(());
        }
        if self.former.is_some() {
            stand.remote.delete(manifest::FILE_NAME)?;
        }
        let mut names: Vec<&str> = manifest.files.iter().map(|entry| entry.path.as_str()).collect();
        names.push(manifest::FILE_NAME);
        stand.remote.publish(&self.folder, &names, &[manifest::FILE_NAME])?;
        // Files of the former trace set, which no manifest lists any more.
        let is_left = |name: &str| DATA.iter().any(|folder| name.starts_with(folder)) && !names.contains(&name);
        for object in stand.objects.iter().filter(|object| is_left(&object.name)) {
            stand.remote.delete(&object.name)?;
        }
        Ok(())
    }
}
