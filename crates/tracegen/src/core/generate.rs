//! From a specification to a trace set: distributes the fragments over threads and writes the manifest.

use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use schemas::TRACE_FORMAT_VERSION;
use schemas::arrivals::Arrivals;
use schemas::files;
use schemas::manifest::{self, Manifest};
use schemas::share::sessions_by_fragment;
use schemas::spec::Spec;
use schemas::vocabulary::Vocabulary;

use super::counts::{Counts, by_kind};
use super::error::GenerateError;
use super::fragment::{Generation, Written};
use super::generator::{Generator, VocabularyOf};
use super::options::GenerateOptions;
use super::room;
use super::target::Target;

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
    let written =
        write_fragments(&generation, 0..spec.fragments).map_err(|error| error.named(&target.folder(), folder))?;
    let manifest = describe(spec, workload_id, &generator, written);
    files::write_json(&target.folder().join(manifest::FILE_NAME), &manifest)?;
    target.put_in_place()?;
    Ok(manifest)
}

/// Writes these fragments. A thread that is done with a fragment takes the next one.
pub(crate) fn write_fragments<G: Generator>(
    generation: &Generation<'_, G>,
    fragments: Range<u32>,
) -> Result<Vec<Written<G>>, GenerateError> {
    let threads = match generation.options.threads {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        given => given,
    };
    let next = AtomicU32::new(fragments.start);
    let results = Mutex::new(Vec::new());
    let write_next = || {
        loop {
            let fragment = next.fetch_add(1, Ordering::Relaxed);
            if fragment >= fragments.end {
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
        for _ in 1..threads.min(fragments.len()) {
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
pub(crate) fn describe<G: Generator>(
    spec: &Spec,
    workload_id: String,
    generator: &G,
    written: Vec<Written<G>>,
) -> Manifest {
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
