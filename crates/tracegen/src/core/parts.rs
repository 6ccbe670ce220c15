//! Trace sets in parts: some fragments by themselves, and the manifest of all of them. Fragments share nothing, so
//! each can be generated on another machine.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use schemas::TRACE_FORMAT_VERSION;
use schemas::arrivals::Arrivals;
use schemas::files::{self, FileError, at};
use schemas::manifest::{self, Manifest, TraceSetError};
use schemas::part::{self, Part, PartError};
use schemas::share::sessions_by_fragment;
use schemas::spec::{Spec, SpecError};
use schemas::words::plural;
use tempfile::TempDir;

use super::error::GenerateError;
use super::fragment::{Generation, Written};
use super::generate::{describe, write_fragments};
use super::generator::Generator;
use super::options::GenerateOptions;
use super::room::{self, Need};

/// The prefix of the folders in which fragments are made, in the trace set's.
const PREFIX: &str = ".part-";

/// Why the parts of a trace set do not make a whole. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    /// There are none.
    #[error(
        "{}: no parts of a trace set; generate them with `encore trace gen SPEC.toml -o {} --only-fragments A..B`",
        .0.display(), .0.display()
    )]
    NoParts(PathBuf),
    /// Some are not there.
    #[error(
        "{}: {} of the trace set missing ({missing}); generate what is missing with --only-fragments and the same \
         specification",
        folder.display(), plural(*count, "fragment")
    )]
    Missing {
        /// The trace set's folder.
        folder: PathBuf,
        /// How many are missing.
        count: u64,
        /// Which ones, as ranges.
        missing: String,
    },
    /// Two parts are not of one trace set.
    #[error(
        "{} and {}: {what} differ, so they are no parts of one trace set; generate one of the fragments again",
        first.display(), second.display()
    )]
    Different {
        /// A part.
        first: PathBuf,
        /// Another part.
        second: PathBuf,
        /// What is not the same.
        what: &'static str,
    },
    /// A part says of its family what the family does not count.
    #[error("a part is damaged ({0}); generate its fragment again")]
    Damaged(serde_json::Error),
    /// The trace sets of the family are not generated.
    #[error("{0}")]
    NotGenerated(String),
    /// The generator cannot be set up.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A part cannot be used.
    #[error(transparent)]
    Part(#[from] PartError),
    /// A file that a part lists is not there, or the manifest that is there is damaged.
    #[error(transparent)]
    TraceSet(#[from] TraceSetError),
    /// The specification is of a family that this program does not know.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Generates some fragments of a checked specification into `folder`, and a part for each.
pub(crate) fn generate_with<G: Generator>(
    spec: &Spec,
    folder: &Path,
    fragments: Range<u32>,
    options: &GenerateOptions<'_>,
) -> Result<Vec<Part>, GenerateError> {
    check_range(spec, &fragments)?;
    if let Some(complete) = check_target(spec, folder)? {
        return Ok(complete);
    }
    let made = make_parts::<G>(spec, folder, fragments, options);
    // An engine may run a task twice at once. If the other one's parts are assembled by now, these are not wanted, and
    // the assembly may have removed them half-written.
    match check_target(spec, folder)? {
        Some(complete) => {
            clear(folder)?;
            Ok(complete)
        }
        None => made,
    }
}

fn make_parts<G: Generator>(
    spec: &Spec,
    folder: &Path,
    fragments: Range<u32>,
    options: &GenerateOptions<'_>,
) -> Result<Vec<Part>, GenerateError> {
    let own = spec.of::<G::Workload>()?;
    let need = G::need(&own);
    let share = fragments.len() as f64 / spec.fragments as f64;
    room::check(&Need { disk_bytes: need.disk_bytes * share, ..need }, folder)?;
    let generator = G::new(own)?;
    // Whoever sees this folder knows what the others are.
    std::fs::create_dir_all(folder.join(part::FOLDER)).map_err(at(folder))?;
    let temporary = temporary(folder)?;
    let generation = Generation {
        spec,
        generator: &generator,
        profile: spec.arrivals.as_ref().map(Arrivals::profile),
        sessions: &sessions_by_fragment(generator.weights(), spec.sessions),
        folder: temporary.path(),
        options,
        done: AtomicU64::new(0),
        failed: AtomicBool::new(false),
    };
    let written = write_fragments(&generation, fragments).map_err(|error| error.named(temporary.path(), folder))?;
    let mut parts = Vec::with_capacity(written.len());
    for one in written {
        let part = described(spec, one);
        for entry in &part.files {
            put_in_place(&temporary.path().join(&entry.path), &folder.join(&entry.path))?;
        }
        part.write(folder)?;
        parts.push(part);
    }
    Ok(parts)
}

fn check_range(spec: &Spec, asked: &Range<u32>) -> Result<(), GenerateError> {
    if asked.start < asked.end && asked.end <= spec.fragments {
        return Ok(());
    }
    Err(GenerateError::Infeasible(format!(
        "--only-fragments {}..{}: the specification has {}, so the first number is at most {}, and the second is \
         greater than it and at most {}",
        asked.start,
        asked.end,
        plural(spec.fragments as u64, "fragment"),
        spec.fragments - 1,
        spec.fragments
    )))
}

/// Refuses a folder that holds anything but parts of this trace set. If the trace set is complete, nothing is left to
/// do, and there are no parts any more.
fn check_target(spec: &Spec, folder: &Path) -> Result<Option<Vec<Part>>, GenerateError> {
    let occupied = |found: String| GenerateError::Occupied { folder: folder.to_path_buf(), found };
    match std::fs::symlink_metadata(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(at(folder)(e).into()),
        Ok(found) if !found.is_dir() => return Err(occupied("not a folder".into())),
        Ok(_) => {}
    }
    if folder.join(manifest::FILE_NAME).exists() {
        let is_same = Manifest::read_alone(folder).is_ok_and(|manifest| manifest.spec == *spec);
        return if is_same {
            Ok(Some(Vec::new()))
        } else {
            Err(occupied("another trace set, which is complete".into()))
        };
    }
    for path in part::paths(folder)? {
        // A damaged part is replaced, or `assemble` refuses it.
        let Ok(other) = Part::read(&path) else { continue };
        if other.spec != *spec {
            let sessions = plural(other.spec.sessions, "session");
            return Err(occupied(format!(
                "parts of another trace set (workload {}, {sessions}, {})",
                other.workload_id,
                plural(other.spec.fragments as u64, "fragment")
            )));
        }
    }
    let entries = std::fs::read_dir(folder).map_err(at(folder))?.filter_map(Result::ok);
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    match names.find(|name| !name.starts_with('.')) {
        Some(name) if !folder.join(part::FOLDER).is_dir() => {
            Err(occupied(format!("not a trace set (it holds {name})")))
        }
        _ => Ok(None),
    }
}

/// A folder on the same file system, so that files can be renamed into place. It is the trace set's own, which no one
/// else reads before it is complete.
fn temporary(folder: &Path) -> Result<TempDir, GenerateError> {
    Ok(tempfile::Builder::new().prefix(PREFIX).tempdir_in(folder).map_err(at(folder))?)
}

fn put_in_place(from: &Path, to: &Path) -> Result<(), FileError> {
    let parent = to.parent().unwrap_or(to);
    std::fs::create_dir_all(parent).map_err(at(parent))?;
    std::fs::rename(from, to).map_err(at(to))
}

fn described<G: Generator>(spec: &Spec, written: Written<G>) -> Part {
    let plain = |value: Result<serde_json::Value, serde_json::Error>| {
        value.unwrap_or_else(|e| unreachable!("counts are plain data: {e}"))
    };
    Part {
        format_version: TRACE_FORMAT_VERSION,
        generator_version: env!("CARGO_PKG_VERSION").into(),
        workload_id: spec.workload_id(),
        spec: spec.clone(),
        fragment: written.fragment,
        counts: plain(serde_json::to_value(&written.counts)),
        tally: plain(serde_json::to_value(&written.tally)),
        files: written.files,
    }
}

/// Makes the trace set of the parts in `folder`; `make` makes the manifest of them, and `check` checks that its files
/// are there.
pub(crate) fn assemble(
    folder: &Path,
    check: impl FnOnce(&Manifest) -> Result<(), TraceSetError>,
    make: impl FnOnce(Vec<Part>, &Spec) -> Result<Manifest, AssembleError>,
) -> Result<Manifest, AssembleError> {
    let paths = part::paths(folder)?;
    if folder.join(manifest::FILE_NAME).exists() {
        let manifest = Manifest::read_alone(folder)?;
        check(&manifest)?;
        clear(folder)?;
        return Ok(manifest);
    }
    let parts = whole(folder, &paths)?;
    let spec = parts[0].spec.clone();
    let manifest = make(parts, &spec)?;
    check(&manifest)?;
    files::write_json(&folder.join(manifest::FILE_NAME), &manifest)?;
    clear(folder)?;
    Ok(manifest)
}

/// All parts, in order of their fragments.
fn whole(folder: &Path, paths: &[PathBuf]) -> Result<Vec<Part>, AssembleError> {
    let Some(first_path) = paths.first() else { return Err(AssembleError::NoParts(folder.to_path_buf())) };
    let mut parts: BTreeMap<u32, Part> = BTreeMap::new();
    let first = Part::read(first_path)?;
    let (spec, version) = (first.spec.clone(), first.generator_version.clone());
    for path in paths {
        let part = Part::read(path)?;
        let differ = |what| AssembleError::Different { first: first_path.clone(), second: path.clone(), what };
        if part.spec != spec {
            return Err(differ("their specifications"));
        }
        if part.generator_version != version {
            return Err(differ("the versions of Encore that wrote them"));
        }
        parts.insert(part.fragment.fragment, part);
    }
    let missing: Vec<u32> = (0..spec.fragments).filter(|fragment| !parts.contains_key(fragment)).collect();
    if !missing.is_empty() {
        let (folder, count) = (folder.to_path_buf(), missing.len() as u64);
        return Err(AssembleError::Missing { folder, count, missing: ranges(&missing) });
    }
    Ok(parts.into_values().collect())
}

/// Ascending numbers, as `--only-fragments` takes them: `3..5, 7..8`.
fn ranges(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let words: Vec<String> = runs.map(|run| format!("{}..{}", run[0], run[run.len() - 1] + 1)).collect();
    words.join(", ")
}

/// Removes the parts, and what killed processes left.
fn clear(folder: &Path) -> Result<(), FileError> {
    let parts = folder.join(part::FOLDER);
    match std::fs::remove_dir_all(&parts) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(at(&parts)(e)),
        _ => {}
    }
    let entries = std::fs::read_dir(folder).map_err(at(folder))?.filter_map(Result::ok);
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        // What cannot be removed does no harm: no one reads it.
        let _ = std::fs::remove_dir_all(entry.path());
    }
    Ok(())
}

/// The manifest of all parts of a trace set, in order of their fragments.
pub(crate) fn assemble_with<G: Generator>(parts: Vec<Part>) -> Result<Manifest, AssembleError> {
    let spec = parts[0].spec.clone();
    let generator = G::new(spec.of::<G::Workload>()?)?;
    let mut written: Vec<Written<G>> = Vec::with_capacity(parts.len());
    for part in parts {
        written.push(Written {
            fragment: part.fragment,
            counts: serde_json::from_value(part.counts).map_err(AssembleError::Damaged)?,
            tally: serde_json::from_value(part.tally).map_err(AssembleError::Damaged)?,
            files: part.files,
        });
    }
    Ok(describe(&spec, spec.workload_id(), &generator, written))
}
