//! From a specification to a trace set: distributes the fragments over threads and writes the manifest.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use schemas::TRACE_FORMAT_VERSION;
use schemas::arrivals::Arrivals;
use schemas::files::{self, FileError};
use schemas::manifest::{self, Manifest};
use schemas::share::sessions_by_fragment;
use schemas::spec::{Spec, SpecError};
use schemas::table::TableError;
use schemas::vocabulary::Vocabulary;

use super::counts::{Counts, by_kind};
use super::fragment::{Generation, Written};
use super::generator::{Generator, VocabularyOf};
use super::room;
use super::target::Target;

/// How to generate. No option changes what is generated.
#[derive(Default)]
pub struct GenerateOptions<'a> {
    /// How many threads work on fragments; 0 stands for the number of processors.
    pub threads: usize,
    /// A callback with the number of sessions done so far. Any of the threads may call it.
    pub progress: Option<&'a (dyn Fn(u64) + Sync)>,
    /// Ends the generation with [`GenerateError::Interrupted`] once it is true.
    pub interrupted: Option<&'a AtomicBool>,
}

/// A trace set that could not be generated. No part of it remains, and the folder is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The specification is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// No trace set can be what the specification asks for. The text names its keys.
    #[error("{0}")]
    Infeasible(String),
    /// A fragment cannot have the share of all draws that its weight asks for.
    #[error(
        "fragment_weights: fragment {fragment} should have {:.4}% of all draws, but has {:.4}%, because one {what} \
         cannot be split; use weights that differ less, fewer fragments or more {what}s",
        asked * 100.0, found * 100.0
    )]
    UnequalShare {
        /// The fragment.
        fragment: u32,
        /// Its share by its weight, 0 to 1.
        asked: f64,
        /// Its share with the members or records that were assigned to it.
        found: f64,
        /// What cannot be split.
        what: &'static str,
    },
    /// No actor who may act can do anything of the mix.
    #[error(
        "mix: fragment {fragment} of {fragments} ended after {made} of {asked} sessions ({noops} no-operations in a \
         row): {}; {}{}",
        why[0], fewer(*enough_for), why[1]
    )]
    OnlyNoops {
        /// The fragment.
        fragment: u32,
        /// How many fragments there are.
        fragments: u32,
        /// How many sessions could be made.
        made: u64,
        /// How many sessions it should have.
        asked: u64,
        /// No-operations after the last session.
        noops: u32,
        /// How many sessions a trace over all fragments may have, so that this fragment needs no
        /// more sessions than it could make.
        enough_for: u64,
        /// Why nothing can be done, and what helps.
        why: [&'static str; 2],
    },
    /// The trace set would not fit on this machine.
    #[error("the trace set needs at least {needed} {kind}, but {whose} only {there} ({what}); reduce these numbers")]
    NoRoom {
        /// `on disk` or `of memory`.
        kind: &'static str,
        /// How much is needed.
        needed: String,
        /// How much is available.
        there: String,
        /// The disk or memory that it is about.
        whose: String,
        /// The settings that decide the size.
        what: String,
    },
    /// The target folder holds something that must not be replaced.
    #[error("{}: already exists and is {found}; remove it, or choose another folder", folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// What it is.
        found: String,
    },
    /// A file or folder cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A table cannot be written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The caller asked to stop.
    #[error("interrupted; nothing was changed")]
    Interrupted,
}

impl GenerateError {
    /// The same error, with the path of the final file in place of that of the temporary one.
    fn named(mut self, temporary: &Path, wanted: &Path) -> GenerateError {
        let path = match &mut self {
            GenerateError::File(error) => &mut error.path,
            GenerateError::Table(error) => &mut error.path,
            _ => return self,
        };
        if let Ok(below) = path.strip_prefix(temporary) {
            *path = wanted.join(below);
        }
        self
    }
}

/// The advice to make a shorter trace, if any session could be made.
fn fewer(sessions: u64) -> String {
    match sessions {
        0 => String::new(),
        most => format!("generate at most {most} sessions in total, or "),
    }
}

/// Generates the trace set of a checked specification into `folder`.
pub(crate) fn generate_with<G: Generator>(
    spec: &Spec,
    folder: &Path,
    options: &GenerateOptions<'_>,
) -> Result<Manifest, GenerateError> {
    let workload_id = spec.workload_id();
    let own = spec.of::<G::Workload>()?;
    room::check(&G::need(&own), folder)?;
    let generator = G::new(own)?;
    let target = Target::new(folder, &workload_id, spec.sessions)?;
    let sessions = sessions_by_fragment(generator.weights(), spec.sessions);
    let generation = Generation {
        spec,
        generator: &generator,
        profile: spec.arrivals.as_ref().map(Arrivals::profile),
        sessions: &sessions,
        folder: &target.folder(),
        options,
        done: AtomicU64::new(0),
        failed: AtomicBool::new(false),
    };
    let written = write_fragments(&generation).map_err(|error| error.named(&target.folder(), folder))?;
    let manifest = describe(spec, workload_id, &generator, written);
    files::write_json(&target.folder().join(manifest::FILE_NAME), &manifest)?;
    target.put_in_place()?;
    Ok(manifest)
}

/// Writes all fragments. A thread that is done with a fragment takes the next one.
fn write_fragments<G: Generator>(generation: &Generation<'_, G>) -> Result<Vec<Written<G>>, GenerateError> {
    let fragments = generation.spec.fragments;
    let threads = match generation.options.threads {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        given => given,
    };
    let next = AtomicU32::new(0);
    let results = Mutex::new(Vec::new());
    let write_next = || {
        loop {
            let fragment = next.fetch_add(1, Ordering::Relaxed);
            if fragment >= fragments {
                break;
            }
            let result = generation.write(fragment);
            let is_err = result.is_err();
            // Nothing that could panic, and so poison the lock, runs while it is held.
            results.lock().unwrap_or_else(|e| e.into_inner()).push((fragment, result));
            if is_err {
                generation.failed.store(true, Ordering::Relaxed);
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(fragments as usize) {
            // If the system refuses more threads, fewer threads do the work.
            if std::thread::Builder::new().spawn_scoped(scope, write_next).is_err() {
                break;
            }
        }
        write_next();
    });
    let mut results = results.into_inner().unwrap_or_else(|e| e.into_inner());
    results.sort_by_key(|(fragment, _)| *fragment);
    let mut written = Vec::with_capacity(results.len());
    let mut interrupted = None;
    for (_, result) in results {
        match result {
            Ok(one) => written.push(one),
            // Fragments that stopped because another one failed are not the cause of the failure.
            Err(e @ GenerateError::Interrupted) => interrupted = Some(e),
            Err(e) => return Err(e),
        }
    }
    interrupted.map_or(Ok(written), Err)
}

/// The manifest of what was written.
fn describe<G: Generator>(spec: &Spec, workload_id: String, generator: &G, written: Vec<Written<G>>) -> Manifest {
    let kinds = spec.kinds();
    let mut counts = Counts::new(kinds.len(), VocabularyOf::<G>::KINDS.len());
    let mut fragments = Vec::with_capacity(written.len());
    let (mut files, mut tallies) = (Vec::new(), Vec::new());
    for one in written {
        counts.merge(&one.counts);
        tallies.push(one.tally);
        fragments.push(one.fragment);
        files.extend(one.files);
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let asked: f64 = kinds.iter().map(|(_, share)| share).sum();
    let (active_threads_max, statistics) = generator.statistics(tallies);
    let manifest = Manifest {
        format_version: TRACE_FORMAT_VERSION,
        generator_version: env!("CARGO_PKG_VERSION").into(),
        workload_id,
        trace_id: String::new(),
        spec: spec.clone(),
        fragments,
        requested_mix: kinds.iter().map(|(name, share)| (name.to_string(), share / asked)).collect(),
        achieved_mix: counts.mix(spec),
        operations_by_name: counts.by_name::<VocabularyOf<G>>(),
        noops: by_kind(spec, &counts.noops),
        ended_early: by_kind(spec, &counts.ended_early),
        active_threads_max,
        statistics: manifest::plain(&statistics),
        files,
    };
    manifest.identified()
}
