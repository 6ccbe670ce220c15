//! Writes everything of one fragment: its data set and its operations.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use schemas::arrivals::{NeverDue, Profile};
use schemas::manifest::{FileEntry, FragmentCounts};
use schemas::share::sessions_enough;
use schemas::spec::Spec;
use schemas::trace::{OperationsBuilder, TraceRow, operations_schema};
use schemas::vocabulary::Operation as _;

use super::arrivals::DueTimes;
use super::counts::Counts;
use super::error::GenerateError;
use super::generator::{Drawn, Generator, OperationOf, Sessions, VocabularyOf};
use super::options::GenerateOptions;
use super::output::TableFile;

/// An operations file is closed after the session that brings it to this many operations.
const PART_OPERATIONS: u64 = 4_194_304;

/// Operations are written to the file after the session that brings the batch to this many.
const BATCH_OPERATIONS: usize = 16_384;

/// Generation ends with an error after this many no-operations in a row. Drawing the least popular
/// of 10,000 actors takes some 34,000 draws with theta = 0.27. So by then there is hardly an actor
/// left who could do anything. A million tries take less than a second, and are far fewer than a
/// trace can count (2^31).
const NOOPS_MAX: u32 = 1_000_000;

/// What all fragments of one generation have in common.
pub(crate) struct Generation<'a, G> {
    /// The specification.
    pub(crate) spec: &'a Spec,
    /// The family's part of the work.
    pub(crate) generator: &'a G,
    /// The rate of arrivals in an open loop.
    pub(crate) profile: Option<Profile>,
    /// How many sessions each fragment gets.
    pub(crate) sessions: &'a [u64],
    /// The folder to write to.
    pub(crate) folder: &'a Path,
    /// Progress and interruption.
    pub(crate) options: &'a GenerateOptions<'a>,
    /// Sessions made so far.
    pub(crate) done: AtomicU64,
    /// Set when another fragment failed, so that this one can stop.
    pub(crate) failed: AtomicBool,
}

/// What was written of a fragment.
pub(crate) struct Written<G: Generator> {
    pub(crate) fragment: FragmentCounts,
    pub(crate) counts: Counts,
    pub(crate) tally: G::Tally,
    pub(crate) files: Vec<FileEntry>,
}

impl<G: Generator> Generation<'_, G> {
    /// Writes a fragment: its data set and its operations.
    pub(crate) fn write(&self, fragment: u32) -> Result<Written<G>, GenerateError> {
        self.check_interrupted()?;
        let mut files = self.generator.write_dataset(fragment, self.folder)?;
        let total = self.sessions[fragment as usize];
        let mut sessions = self.generator.sessions(fragment);
        let mut due_times = self.due_times(fragment);
        let notes = G::notes(fragment);
        let mut notes = notes.map(|(path, schema)| TableFile::create(self.folder, path, schema)).transpose()?;
        let mut rows = OperationsBuilder::new(self.spec.kinds().into_iter().map(|(name, _)| name));
        let (mut made, mut part) = (0, 0);
        while made < total {
            let relative = format!("operations/fragment={fragment}/part-{part:05}.parquet");
            let mut file = TableFile::create(self.folder, relative, operations_schema::<VocabularyOf<G>>())?;
            while made < total && file.rows() < PART_OPERATIONS {
                self.check_interrupted()?;
                let before = made;
                let room = BATCH_OPERATIONS.min((PART_OPERATIONS - file.rows()) as usize);
                while made < total && rows.len() < room {
                    let due_us = match (sessions.next_due_us(), &mut due_times) {
                        (Some(due_us), _) => Some(due_us),
                        (None, Some(arrivals)) => Some(self.next_due(fragment, made, arrivals)?),
                        (None, None) => None,
                    };
                    self.make_session(fragment, made, due_us, &mut sessions, &mut rows)?;
                    made += 1;
                }
                file.write(&rows.finish())?;
                if let (Some(notes), Some(batch)) = (&mut notes, sessions.take_notes()) {
                    notes.write(&batch)?;
                }
                self.report(made - before);
            }
            files.push(file.finish()?);
            part += 1;
        }
        files.extend(notes.map(TableFile::finish).transpose()?);
        let counts = sessions.counts().clone();
        let fragment_counts = FragmentCounts {
            fragment,
            weight: self.generator.weights()[fragment as usize],
            actors: self.generator.actors(fragment),
            sessions: total,
            operations: counts.operations.iter().sum(),
        };
        Ok(Written { fragment: fragment_counts, counts, tally: self.generator.tally(fragment, &sessions), files })
    }

    /// The due times of a fragment's sessions, in an open loop.
    fn due_times(&self, fragment: u32) -> Option<DueTimes<'_>> {
        let (arrivals, profile) = (self.spec.arrivals.as_ref()?, self.profile.as_ref()?);
        let weight = self.generator.weights()[fragment as usize];
        Some(DueTimes::new(arrivals, profile, self.spec, fragment, weight))
    }

    /// The due time of the session that follows `made` others.
    fn next_due(&self, fragment: u32, made: u64, due_times: &mut DueTimes<'_>) -> Result<u64, GenerateError> {
        due_times.next_us().map_err(|never| {
            let session = format!("arrivals: session {made} of fragment {fragment}");
            GenerateError::Infeasible(match never {
                NeverDue::Beyond { .. } => format!(
                    "{session} is due after 2^40 µs (12.7 days), the longest time that a trace can take; use a greater \
                     rate or fewer sessions"
                ),
                NeverDue::NoRate { .. } => format!("{session} is never due: {}", never.words(self.spec.sessions)),
            })
        })
    }

    /// Draws actors until one has a session. `made` is the number of sessions made before.
    fn make_session(
        &self,
        fragment: u32,
        made: u64,
        due_us: Option<u64>,
        sessions: &mut G::Sessions<'_>,
        rows: &mut OperationsBuilder<VocabularyOf<G>>,
    ) -> Result<(), GenerateError> {
        loop {
            let before = rows.variable().len();
            let push = |row: &TraceRow<OperationOf<G>>| {
                let row = TraceRow { operation: row.operation.moved(before), ..*row };
                match row.step {
                    0 if due_us.is_some() => rows.push(&TraceRow { due_us, ..row }),
                    _ => rows.push(&row),
                }
            };
            match sessions.try_next(push) {
                Drawn::Session => {
                    rows.variable().extend_from_slice(sessions.variable());
                    return Ok(());
                }
                Drawn::Nothing { noops } if noops >= NOOPS_MAX => return Err(self.only_noops(fragment, made, noops)),
                Drawn::Never { noops } => return Err(self.only_noops(fragment, made, noops)),
                // A batch of sessions with many no-operations each takes long, so it can be interrupted here.
                Drawn::Nothing { .. } => self.check_interrupted()?,
            }
        }
    }

    /// The error for a fragment for which no more sessions can be made.
    fn only_noops(&self, fragment: u32, made: u64, noops: u32) -> GenerateError {
        let mut one_more = vec![0; self.sessions.len()];
        one_more[fragment as usize] = made + 1;
        GenerateError::OnlyNoops {
            fragment,
            fragments: self.spec.fragments,
            made,
            asked: self.sessions[fragment as usize],
            noops,
            enough_for: sessions_enough(self.generator.weights(), &one_more) - 1,
            why: G::NOTHING_TO_DO,
        }
    }

    fn check_interrupted(&self) -> Result<(), GenerateError> {
        let asked = self.options.interrupted.is_some_and(|flag| flag.load(Ordering::Relaxed));
        if asked || self.failed.load(Ordering::Relaxed) { Err(GenerateError::Interrupted) } else { Ok(()) }
    }

    fn report(&self, sessions: u64) {
        let done = self.done.fetch_add(sessions, Ordering::Relaxed) + sessions;
        if let Some(progress) = self.options.progress {
            progress(done);
        }
    }
}

#[cfg(test)]
mod tests {
    use schemas::workload::social::SocialWorkload;

    use super::*;
    use crate::social::Social;

    /// No member has an invitation, so the search for a session never succeeds.
    #[test]
    fn the_search_for_a_session_is_bounded_and_can_be_interrupted() {
        let text = "name = 't'\nsessions = 9\n[data]\nmembers = 10\n[mix]\naccept_friend_request = 1\n";
        let spec = Spec::parse(text, "t.toml").unwrap();
        let generator = Social::new(spec.of::<SocialWorkload>().unwrap()).unwrap();
        let search = |flag: bool| {
            let interrupted = AtomicBool::new(flag);
            let generation = Generation {
                spec: &spec,
                generator: &generator,
                profile: None,
                sessions: &[9],
                folder: Path::new("unused"),
                options: &GenerateOptions { interrupted: Some(&interrupted), ..GenerateOptions::default() },
                done: AtomicU64::new(0),
                failed: AtomicBool::new(false),
            };
            let mut sessions = generator.sessions(0);
            let mut rows = OperationsBuilder::new(["accept_friend_request"]);
            generation.make_session(0, 0, None, &mut sessions, &mut rows).unwrap_err()
        };
        assert!(matches!(search(true), GenerateError::Interrupted));
        let error = search(false);
        assert!(matches!(error, GenerateError::OnlyNoops { noops: NOOPS_MAX, made: 0, asked: 9, .. }), "{error}");
    }
}
