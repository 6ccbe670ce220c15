//! Writes everything of one fragment: its data set and its operations.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use schemas::manifest::{FileEntry, FragmentCounts};
use schemas::spec::Spec;
use schemas::trace::{OPERATIONS, OperationsBuilder};

use crate::output::TableFile;
use crate::population::Population;
use crate::sessions::{ActionCounts, Sessions};
use crate::{GenerateError, GenerateOptions, dataset};

/// Sessions of one operations file.
const PART_SESSIONS: u64 = 4_194_304;

/// Sessions that are made before they go into the file.
const BATCH_SESSIONS: u64 = 16_384;

/// What all fragments of one generation have in common.
pub(crate) struct Generation<'a> {
    /// The specification.
    pub(crate) spec: &'a Spec,
    /// Its members.
    pub(crate) population: &'a Population,
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
    pub(crate) counts: FragmentCounts,
    pub(crate) performed: ActionCounts,
    pub(crate) redrawn: ActionCounts,
    pub(crate) files: Vec<FileEntry>,
}

impl Generation<'_> {
    /// Writes a fragment.
    pub(crate) fn write(&self, fragment: u32) -> Result<Written, GenerateError> {
        let initial = &self.population.initial[fragment as usize];
        self.check_interrupted()?;
        let mut files = dataset::write(self.spec, initial, fragment, self.folder)?;
        let total = self.sessions[fragment as usize];
        let mut sessions = Sessions::new(self.spec, self.population, fragment);
        let mut rows = OperationsBuilder::new(self.spec.kinds().iter().map(|kind| kind.name.as_str()));
        let mut made = 0;
        while made < total {
            let relative = format!("operations/fragment={fragment}/part-{:05}.parquet", made / PART_SESSIONS);
            let mut file = TableFile::create(self.folder, relative, OPERATIONS.clone())?;
            let part_end = total.min(made + PART_SESSIONS);
            while made < part_end {
                self.check_interrupted()?;
                let batch = BATCH_SESSIONS.min(part_end - made);
                for _ in 0..batch {
                    rows.push(&sessions.next_session());
                }
                file.write(&rows.finish())?;
                made += batch;
                self.report(batch);
            }
            files.push(file.finish()?);
        }
        let counts = FragmentCounts {
            fragment,
            weight: self.population.weights[fragment as usize],
            members: initial.len() as u64,
            sessions: total,
            operations: sessions.performed.iter().sum(),
        };
        Ok(Written { counts, performed: sessions.performed, redrawn: sessions.redrawn, files })
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
