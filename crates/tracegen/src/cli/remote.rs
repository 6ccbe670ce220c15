//! Trace sets in object storage: what a command needs is fetched into a temporary folder, and what it has made is
//! published, the manifest last. Nothing else of this tool knows URLs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use schemas::files::at;
use schemas::manifest::{self, Manifest, TraceSetError};
use schemas::part::{self, Part};
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

/// Whether an object is a part of a trace set.
fn is_part(name: &str) -> bool {
    name.strip_prefix(part::FOLDER).is_some_and(|rest| rest.starts_with('/') && rest.ends_with(".json"))
}

/// A folder on this machine that stands for a prefix in object storage.
struct Stand {
    remote: Remote,
    objects: Vec<Object>,
    scratch: Scratch,
}

impl Stand {
    /// For the prefix of a URL; it contains the objects that are wanted.
    fn open(
        url: &Url,
        wanted: impl Fn(&[Object], &str) -> bool,
        interrupted: Option<Arc<AtomicBool>>,
    ) -> Result<Stand, Failure> {
        let remote = Remote::open(url)?;
        let remote = if let Some(flag) = interrupted { remote.until(flag) } else { remote };
        let scratch = Scratch::new(None).map_err(Failure::tool)?;
        let mut stand = Stand { remote, objects: Vec::new(), scratch };
        stand.objects = stand.remote.list("")?;
        let names = stand.objects.iter().map(|object| object.name.as_str());
        stand.remote.get_all(names.filter(|name| wanted(&stand.objects, name)), &stand.folder())?;
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
                let stand = Stand::open(&url, |_, name| wanted(name), None)?;
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
    /// The folder to write to. For a prefix in object storage, it holds what tells which trace set is there: its
    /// manifest, or one of its parts.
    pub(super) fn new(place: &Path, interrupted: &Arc<AtomicBool>) -> Result<Target, Failure> {
        let url = match Place::of(place)? {
            Place::Local(folder) => return Ok(Target { folder, stand: None, former: None }),
            Place::Remote(url) => url,
        };
        let first_part =
            |objects: &[Object]| objects.iter().find(|object| is_part(&object.name)).map(|part| part.name.clone());
        let tells = |objects: &[Object], name: &str| {
            name == manifest::FILE_NAME || first_part(objects).is_some_and(|part| part == name)
        };
        let stand = Stand::open(&url, tells, Some(interrupted.clone()))?;
        let former = std::fs::read(stand.folder().join(manifest::FILE_NAME)).ok();
        let is_ours = |name: &str| is_part(name) || DATA.iter().any(|folder| name.starts_with(folder));
        if let (None, Some(other)) = (&former, stand.objects.iter().find(|object| !is_ours(&object.name))) {
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

    /// Publishes fragments that were generated by themselves: their files, then the parts that list them.
    pub(super) fn publish_parts(&self, parts: &[Part]) -> Result<(), Failure> {
        let Some(stand) = &self.stand else { return Ok(()) };
        let documents: Vec<String> = parts.iter().map(|part| part::name(part.fragment.fragment)).collect();
        let files = parts.iter().flat_map(|part| part.files.iter().map(|entry| entry.path.as_str()));
        let names: Vec<&str> = files.chain(documents.iter().map(String::as_str)).collect();
        Ok(stand.remote.publish(&self.folder, &names, &[])?)
    }
}

/// The parts of a trace set that is to be assembled.
pub(super) struct Parts {
    source: Source,
}

impl Parts {
    /// The parts in a folder, or below a URL.
    pub(super) fn of(place: &Path) -> Result<Parts, Failure> {
        Ok(Parts { source: Source::of(place, |name| name == manifest::FILE_NAME || is_part(name))? })
    }

    /// The folder of the parts on this machine.
    pub(super) fn folder(&self) -> &Path {
        self.source.folder()
    }

    /// The error of a command, with the place that the user has named.
    pub(super) fn named(&self, failure: Failure) -> Failure {
        self.source.named(failure)
    }

    /// Checks that all files of a manifest are there.
    pub(super) fn check_files(&self, manifest: &Manifest) -> Result<(), TraceSetError> {
        match &self.source.stand {
            Some(stand) => stand.check_sizes(manifest),
            None => manifest.check_files(self.folder()),
        }
    }

    /// Publishes the manifest, and deletes the parts, which it replaces.
    pub(super) fn publish(&self) -> Result<(), Failure> {
        let Some(stand) = &self.source.stand else { return Ok(()) };
        let has_manifest = stand.objects.iter().any(|object| object.name == manifest::FILE_NAME);
        if !has_manifest {
            stand.remote.put(&self.folder().join(manifest::FILE_NAME), manifest::FILE_NAME)?;
        }
        let mut parts = stand.objects.iter().filter(|object| is_part(&object.name));
        parts.try_for_each(|part| Ok(stand.remote.delete(&part.name)?))
    }
}
