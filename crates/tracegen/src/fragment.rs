//! Writes everything of one fragment: its data set and its operations.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use schemas::manifest::{FileEntry, FragmentCounts};
use schemas::spec::Spec;
use schemas::trace::{OPERATIONS, OperationsBuilder};

use crate::output::TableFile;
use crate::population::Population;
use crate::sessions::{Counts, Sessions};
use crate::statistics::{Degrees, TopFifth};
use crate::{GenerateError, GenerateOptions, dataset};

/// An operations file ends with the session that brings it to so many operations.
const PART_OPERATIONS: u64 = 4_194_304;

/// Operations go into the file with the session that brings them to so many.
const BATCH_OPERATIONS: usize = 16_384;

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
                    sessions.next_session(|row| rows.push(row));
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
