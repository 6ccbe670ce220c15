//! The trace set of a run: the one that the user names, one that was generated before, or a new
//! one. A longer one replaces it when it runs out.

use std::path::{Path, PathBuf};

use schemas::manifest::{FILE_NAME, Manifest, TraceSetError};
use schemas::spec::Spec;
use storage::{Remote, Scratch, StorageError, Url};

use crate::failure::Failure;
use crate::run::setting::Source;
use crate::run::tools;
use crate::terminal::{Interrupt, Voice, thousands};

/// A trace set with its manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSet {
    /// Its folder.
    pub folder: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// Where in object storage it was fetched from.
    pub url: Option<Url>,
}

impl TraceSet {
    /// Its absolute path, for documents: they may be read from another working directory.
    pub fn full_name(&self) -> PathBuf {
        std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone())
    }

    /// Gets the trace set of a run. One that was generated before is reused if it has the same
    /// workload, is undamaged, and is long enough.
    pub fn obtain(source: &Source, traces: &Path, voice: Voice, interrupt: &Interrupt) -> Result<TraceSet, Failure> {
        match source {
            Source::Given { folder, manifest, url } => {
                manifest.verify(folder)?;
                Ok(TraceSet { folder: folder.clone(), manifest: (**manifest).clone(), url: url.clone() })
            }
            Source::Spec(spec) => {
                let folder = folder_of(traces, spec);
                match Manifest::read(&folder) {
                    Ok(manifest) if fits(&manifest, spec) && manifest.verify(&folder).is_ok() => {
                        Ok(TraceSet { folder, manifest, url: None })
                    }
                    _ => generate(spec, folder, voice, interrupt),
                }
            }
        }
    }

    /// Gets a longer trace set of the same workload that begins with this one. It is written to
    /// the folder of generated trace sets: a trace set that the user names never changes.
    pub fn extended(
        &self,
        sessions: u64,
        traces: &Path,
        voice: Voice,
        interrupt: &Interrupt,
    ) -> Result<TraceSet, Failure> {
        let longer = Spec { sessions, ..self.manifest.spec.clone() };
        TraceSet::obtain(&Source::Spec(Box::new(longer)), traces, voice, interrupt)
    }
}

fn generate(spec: &Spec, folder: PathBuf, voice: Voice, interrupt: &Interrupt) -> Result<TraceSet, Failure> {
    let sessions = thousands(spec.sessions);
    voice.say(&format!("generating {}: {sessions} sessions of {}", folder.display(), spec.name));
    let manifest = tools::generate(spec, &folder, interrupt)?;
    Ok(TraceSet { folder, manifest, url: None })
}

/// Fetches a trace set from object storage into the folder of trace sets. Files that are there already are not fetched
/// again; what is wrong with one shows when the trace set is verified.
pub fn fetched(url: &Url, traces: &Path) -> Result<PathBuf, Failure> {
    let remote = Remote::open(url)?;
    let scratch = Scratch::new(None)?;
    remote.get(FILE_NAME, &scratch.folder("").join(FILE_NAME)).map_err(|error| match error {
        StorageError::NoObject { .. } => Failure::usage(format!(
            "--trace {url}: no {FILE_NAME}; is this a trace set? Create one with `encore trace gen`"
        )),
        error => error.into(),
    })?;
    let manifest = Manifest::read_alone(&scratch.folder(""))?;
    let plain = traces.join(url.name());
    let id = |folder: &Path| Manifest::read_alone(folder).map(|own| own.trace_id).ok();
    let folder = match plain.exists() && id(&plain) != Some(manifest.trace_id.clone()) {
        true => traces.join(format!("{}-{}.trace", url.name().trim_end_matches(".trace"), &manifest.trace_id[..8])),
        false => plain,
    };
    let bytes = |name: &str| std::fs::metadata(folder.join(name)).map(|file| file.len()).ok();
    let missing = manifest.files.iter().filter(|entry| bytes(&entry.path) != Some(entry.bytes));
    remote.get_all(missing.map(|entry| entry.path.as_str()), &folder)?;
    // The manifest comes last: if it is there, all other files are.
    if bytes(FILE_NAME).is_none() {
        remote.get(FILE_NAME, &folder.join(FILE_NAME))?;
    }
    Ok(folder)
}

/// Whether an existing trace set can serve for a spec.
fn fits(manifest: &Manifest, spec: &Spec) -> bool {
    manifest.workload_id == spec.workload_id() && manifest.sessions() >= spec.sessions
}

/// The folder of a spec's trace set: `NAME.trace`, or `NAME-ID.trace` with the workload's id if
/// another workload has that name.
fn folder_of(traces: &Path, spec: &Spec) -> PathBuf {
    let plain = traces.join(format!("{}.trace", spec.name));
    let id = spec.workload_id();
    let taken = match Manifest::read(&plain) {
        Ok(manifest) => manifest.workload_id != id,
        Err(TraceSetError::Version { .. }) => true,
        // Missing or damaged: it is generated again in its place.
        Err(_) => false,
    };
    if taken { traces.join(format!("{}-{}.trace", spec.name, &id[..8])) } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::testing;

    fn spec() -> Spec {
        Spec::parse("name = \"t\"\nsessions = 10\n[data]\nmembers = 9\n[mix]\nview_profile = 1\n", "t").unwrap()
    }

    fn manifest(spec: &Spec) -> Manifest {
        let workload_id = spec.workload_id();
        Manifest { workload_id, spec: spec.clone(), ..testing::manifest(spec.sessions, spec.sessions) }
    }

    #[test]
    fn only_a_long_enough_set_of_the_same_workload_fits() {
        let spec = spec();
        assert!(fits(&manifest(&spec), &spec));
        assert!(fits(&manifest(&Spec { sessions: 11, ..spec.clone() }), &spec));
        assert!(!fits(&manifest(&Spec { sessions: 9, ..spec.clone() }), &spec));
        assert!(!fits(&manifest(&Spec { seed: 9, ..spec.clone() }), &spec));
    }

    #[test]
    fn another_workload_of_the_same_name_keeps_its_place() {
        let traces = tempfile::tempdir().unwrap();
        let spec = spec();
        let plain = traces.path().join("t.trace");
        assert_eq!(folder_of(traces.path(), &spec), plain);
        let write =
            |spec: &Spec| schemas::files::write_json(&plain.join(FILE_NAME), &manifest(spec).identified()).unwrap();
        write(&spec);
        assert_eq!(folder_of(traces.path(), &spec), plain);
        write(&Spec { seed: 9, ..spec.clone() });
        let other = folder_of(traces.path(), &spec);
        assert_eq!(other, traces.path().join(format!("t-{}.trace", &spec.workload_id()[..8])));
    }
}
