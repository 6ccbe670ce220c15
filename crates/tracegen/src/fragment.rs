//! Writes everything of one fragment: its data set and its operations.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use schemas::manifest::{FileEntry, FragmentCounts};
use schemas::share::sessions_enough;
use schemas::spec::Spec;
use schemas::trace::{OPERATIONS, OperationsBuilder};

use crate::output::TableFile;
use crate::population::Population;
use crate::sessions::{Counts, Drawn, Sessions};
use crate::statistics::{Degrees, TopFifth};
use crate::{GenerateError, GenerateOptions, dataset};

/// An operations file ends with the session that brings it to so many operations.
const PART_OPERATIONS: u64 = 4_194_304;

/// Operations go into the file with the session that brings them to so many.
const BATCH_OPERATIONS: usize = 16_384;

/// Generation ends with an error after so many no-operations in a row. Drawing the
/// least popular of 10,000 members takes some 34,000 draws with theta = 0.27, so
/// by then hardly a member is left who could do anything. A million are tried in
/// less than a second, and are far fewer than a trace can count (2^31).
const NOOPS_MAX: u32 = 1_000_000;

/// What all fragments of one generation have in common.
pub(crate) struct Generation<'a> {
    /// The specification.
    pub(crate) spec: &'a Spec,
    /// Its members.
    pub(crate) population: &'a Population,
    /// The most popular of them.
    pub(crate) top: &'a TopFifth,
    /// How many sessions each fragment gets.
    pub(crate) sessions: &'a [u64],
    /// Where to write.
    pub(crate) folder: &'a Path,
    /// Progress and interruption.
    pub(crate) options: &'a GenerateOptions<'a>,
    /// Sessions made so far.
    pub(crate) done: AtomicU64,
    /// Set when another fragment failed, so that this one need not go on.
    pub(crate) failed: AtomicBool,
}

/// What was written of a fragment.
pub(crate) struct Written {
    pub(crate) fragment: FragmentCounts,
    pub(crate) counts: Counts,
    pub(crate) degrees: Degrees,
    pub(crate) files: Vec<FileEntry>,
}

impl Generation<'_> {
    /// Writes a fragment.
    pub(crate) fn write(&self, fragment: u32) -> Result<Written, GenerateError> {
        let initial = &self.population.initial[fragment as usize];
        self.check_interrupted()?;
        let mut files = dataset::write(self.spec, initial, fragment, self.folder)?;
        let total = self.sessions[fragment as usize];
        let mut sessions = Sessions::new(self.spec, self.population, self.top, fragment);
        let mut rows = OperationsBuilder::new(self.spec.kinds().iter().map(|kind| kind.name.as_str()));
        let (mut made, mut part) = (0, 0);
        while made < total {
            let relative = format!("operations/fragment={fragment}/part-{part:05}.parquet");
            let mut file = TableFile::create(self.folder, relative, OPERATIONS.clone())?;
            while made < total && file.rows() < PART_OPERATIONS {
                self.check_interrupted()?;
                let before = made;
                let room = BATCH_OPERATIONS.min((PART_OPERATIONS - file.rows()) as usize);
                while made < total && rows.len() < room {
                    self.make_session(fragment, made, &mut sessions, &mut rows)?;
                    made += 1;
                }
                file.write(&rows.finish())?;
                self.report(made - before);
            }
            files.push(file.finish()?);
            part += 1;
        }
        let counts = sessions.counts();
        let fragment_counts = FragmentCounts {
            fragment,
            weight: self.population.weights[fragment as usize],
            members: initial.len() as u64,
            sessions: total,
            operations: counts.operations.iter().sum(),
        };
        let degrees = Degrees::of(self.spec, initial, fragment);
        Ok(Written { fragment: fragment_counts, counts, degrees, files })
    }

    /// Draws socialites until one has a session, the one after `made` others.
    fn make_session(
        &self,
        fragment: u32,
        made: u64,
        sessions: &mut Sessions<'_>,
        rows: &mut OperationsBuilder,
    ) -> Result<(), GenerateError> {
        loop {
            match sessions.try_next(|row| rows.push(row)) {
                Drawn::Session => return Ok(()),
                Drawn::Nothing { noops } if noops >= NOOPS_MAX => return Err(self.only_noops(fragment, made, noops)),
                // A batch of sessions with many no-operations each takes long.
                Drawn::Nothing { .. } => self.check_interrupted()?,
            }
        }
    }

    /// The error of a fragment of which nothing more can be made.
    fn only_noops(&self, fragment: u32, made: u64, noops: u32) -> GenerateError {
        let mut one_more = vec![0; self.sessions.len()];
        one_more[fragment as usize] = made + 1;
        GenerateError::OnlyNoops {
            fragment,
            fragments: self.spec.fragments,
            made,
            asked: self.sessions[fragment as usize],
            noops,
            enough_for: sessions_enough(&self.population.weights, &one_more) - 1,
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
    use super::*;

    /// No member has an invitation, so that the search for a session never succeeds.
    #[test]
    fn the_search_for_a_session_is_bounded_and_can_be_interrupted() {
        let text = "name = 't'\nsessions = 9\n[data]\nmembers = 10\n[mix]\naccept_friend_request = 1\n";
        let spec = Spec::parse(text, "t.toml").unwrap();
        let population = Population::new(&spec).unwrap();
        let top = TopFifth::new(&population);
        let search = |flag: bool| {
            let interrupted = AtomicBool::new(flag);
            let generation = Generation {
                spec: &spec,
                population: &population,
                top: &top,
                sessions: &[9],
                folder: Path::new("unused"),
                options: &GenerateOptions { interrupted: Some(&interrupted), ..GenerateOptions::default() },
                done: AtomicU64::new(0),
                failed: AtomicBool::new(false),
            };
            let mut sessions = Sessions::new(&spec, &population, &top, 0);
            let mut rows = OperationsBuilder::new(["accept_friend_request"]);
            generation.make_session(0, 0, &mut sessions, &mut rows).unwrap_err()
        };
        assert!(matches!(search(true), GenerateError::Interrupted));
        let error = search(false);
        assert!(matches!(error, GenerateError::OnlyNoops { noops: NOOPS_MAX, made: 0, asked: 9, .. }), "{error}");
    }
}
