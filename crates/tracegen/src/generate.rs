//! From a specification to a trace set: deals the fragments to threads and
//! writes the manifest.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use schemas::TRACE_FORMAT_VERSION;
use schemas::files::{self, FileError};
use schemas::manifest::{self, Manifest};
use schemas::share::sessions_by_fragment;
use schemas::spec::{Spec, SpecError};
use schemas::trace::TableError;

use crate::fragment::{Generation, Written};
use crate::population::Population;
use crate::room;
use crate::sessions::{Counts, by_kind};
use crate::statistics::{Degrees, TopFifth, statistics};
use crate::target::Target;

/// How to generate; none of it changes what is generated.
#[derive(Default)]
pub struct GenerateOptions<'a> {
    /// How many threads work on fragments; 0 for as many as there are processors.
    pub threads: usize,
    /// Is told how many sessions are done so far, by any of the threads.
    pub progress: Option<&'a (dyn Fn(u64) + Sync)>,
    /// Ends the generation with [`GenerateError::Interrupted`] once it is true.
    pub interrupted: Option<&'a AtomicBool>,
}

/// A trace set that could not be generated. Nothing is left of it, and what
/// was in its place before still is.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The specification is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A fragment is too small for its friendships and invitations.
    #[error(
        "data.friends_per_member, fragments: {friends} friends and {pending} invitations to and from each member \
         need more than {needed} members in a fragment, and fragment {fragment} of {fragments} has {members} (popular \
         members leave room for few others); take fewer friends, fewer fragments or more members"
    )]
    FewMembers {
        /// The fragment.
        fragment: u32,
        /// How many fragments there are.
        fragments: u32,
        /// How many members were dealt to it.
        members: u64,
        /// Friends of each member.
        friends: f64,
        /// Invitations that wait for each member.
        pending: f64,
        /// A fragment needs more members than this.
        needed: u64,
    },
    /// A fragment cannot have the share of all draws that its weight asks for.
    #[error(
        "fragment_weights: fragment {fragment} asks for {:.4}% of all draws, and the members that can be dealt to it \
         have {:.4}% (one member cannot be divided); take weights that differ less, fewer fragments or more members",
        asked * 100.0, found * 100.0
    )]
    UnequalShare {
        /// The fragment.
        fragment: u32,
        /// Its share by its weight, 0 to 1.
        asked: f64,
        /// Its share with the members that were dealt to it.
        found: f64,
    },
    /// Nothing of the mix can be done for any member who may act.
    #[error(
        "mix: fragment {fragment} of {fragments} made {made} of its {asked} sessions, then {noops} no-operations in a \
         row: the members who may act have none of the invitations, friendships or comments left that the mix needs; \
         {}give a share above 0 to what restores them (invite_friend, accept_friend_request, post_comment) or to a read",
        fewer(*enough_for)
    )]
    OnlyNoops {
        /// The fragment.
        fragment: u32,
        /// How many fragments there are.
        fragments: u32,
        /// How many sessions could be made of it.
        made: u64,
        /// How many it should have.
        asked: u64,
        /// No-operations after the last session.
        noops: u32,
        /// How long a trace over all fragments may be for this one's sessions to
        /// be enough.
        enough_for: u64,
    },
    /// The trace set would not fit on this machine.
    #[error("{what} take at least {needed} {kind}, and {whose} {there}; take less of them")]
    NoRoom {
        /// On disk, or of memory.
        kind: &'static str,
        /// So much.
        needed: String,
        /// What there is.
        there: String,
        /// Where.
        whose: String,
        /// What decides it.
        what: String,
    },
    /// The target folder holds something that must not be replaced.
    #[error("{}: exists and holds {found}; remove it, or choose another folder", folder.display())]
    Occupied {
        /// The folder.
        folder: PathBuf,
        /// What it holds.
        found: String,
    },
    /// A file or folder cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A table cannot be written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// It was asked to stop.
    #[error("interrupted; nothing was changed")]
    Interrupted,
}

/// The advice to make a shorter trace, if any session could be made.
fn fewer(sessions: u64) -> String {
    match sessions {
        0 => String::new(),
        most => format!("take {most} sessions or fewer over all fragments, or "),
    }
}

/// Generates the trace set of a specification into `folder`.
///
/// The bytes depend on the specification alone. A trace set of the same
/// workload that is in `folder` already is replaced; anything else there is an
/// error.
pub fn generate(spec: &Spec, folder: &Path, options: &GenerateOptions<'_>) -> Result<Manifest, GenerateError> {
    spec.check(&spec.name)?;
    room::check(spec, folder)?;
    let workload_id = spec.workload_id();
    let population = Population::new(spec)?;
    let top = TopFifth::new(&population);
    let target = Target::new(folder, &workload_id, spec.sessions)?;
    let sessions = sessions_by_fragment(&population.weights, spec.sessions);
    let generation = Generation {
        spec,
        population: &population,
        top: &top,
        sessions: &sessions,
        folder: &target.folder(),
        options,
        done: AtomicU64::new(0),
        failed: AtomicBool::new(false),
    };
    let written = write_fragments(&generation)?;
    let manifest = describe(spec, workload_id, &population, &top, written);
    files::write_json(&target.folder().join(manifest::FILE_NAME), &manifest)?;
    target.put_in_place()?;
    Ok(manifest)
}

/// Writes all fragments; each thread takes the next one when it is done with one.
fn write_fragments(generation: &Generation<'_>) -> Result<Vec<Written>, GenerateError> {
    let fragments = generation.spec.fragments;
    let threads = match generation.options.threads {
        0 => std::thread::available_parallelism().map_or(1, |n| n.get()),
        given => given,
    };
    let next = AtomicU32::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.min(fragments as usize) {
            scope.spawn(|| {
                loop {
                    let fragment = next.fetch_add(1, Ordering::Relaxed);
                    if fragment >= fragments {
                        break;
                    }
                    let result = generation.write(fragment);
                    let is_err = result.is_err();
                    // Nothing is done under the lock that could panic and poison it.
                    results.lock().unwrap_or_else(|e| e.into_inner()).push((fragment, result));
                    if is_err {
                        generation.failed.store(true, Ordering::Relaxed);
                        break;
                    }
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(|e| e.into_inner());
    results.sort_by_key(|(fragment, _)| *fragment);
    let mut written = Vec::with_capacity(results.len());
    let mut interrupted = None;
    for (_, result) in results {
        match result {
            Ok(one) => written.push(one),
            // The fragments that stopped because of a failure are not the reason for it.
            Err(e @ GenerateError::Interrupted) => interrupted = Some(e),
            Err(e) => return Err(e),
        }
    }
    interrupted.map_or(Ok(written), Err)
}

/// The manifest of what was written.
fn describe(
    spec: &Spec,
    workload_id: String,
    population: &Population,
    top: &TopFifth,
    written: Vec<Written>,
) -> Manifest {
    let kinds = spec.kinds();
    let (mut counts, mut degrees) = (Counts::new(kinds.len()), Degrees::default());
    let mut fragments = Vec::with_capacity(written.len());
    let mut files = Vec::new();
    for one in written {
        counts.merge(&one.counts);
        degrees.merge(&one.degrees);
        fragments.push(one.fragment);
        files.extend(one.files);
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let asked: f64 = kinds.iter().map(|kind| kind.share).sum();
    let manifest = Manifest {
        format_version: TRACE_FORMAT_VERSION,
        generator_version: env!("CARGO_PKG_VERSION").into(),
        workload_id,
        trace_id: String::new(),
        spec: spec.clone(),
        fragments,
        requested_mix: kinds.iter().map(|kind| (kind.name.clone(), kind.share / asked)).collect(),
        achieved_mix: counts.mix(spec),
        operations_by_action: counts.by_action(),
        noops: by_kind(spec, &counts.noops),
        ended_early: by_kind(spec, &counts.ended_early),
        statistics: statistics(spec, population, top, &degrees, &counts),
        files,
    };
    manifest.identified()
}
