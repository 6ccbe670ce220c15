//! What a replay has touched since the data set was loaded: all that a store
//! has to take back to be as loaded again. The trace says it, exactly.

use std::collections::BTreeSet;

use schemas::run::FragmentPosition;
use schemas::social::{Change, ListKind};
use schemas::trace::{OperationsReader, TableError};

use crate::source::Source;

/// Operations that are read at a time.
const CHUNK: usize = 8192;

/// The identities that the writes of a part of a trace are about.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Pairs of members whose relation may have changed, in both orders.
    pub pairs: BTreeSet<(u64, u64)>,
    /// Members whose counts may have changed.
    pub members: BTreeSet<u64>,
    /// Comments that may have been posted or deleted.
    pub comments: BTreeSet<u64>,
}

impl Touched {
    /// By the sessions before each fragment's position, whatever became of them.
    pub fn before(source: &Source, positions: &[FragmentPosition]) -> Result<Touched, TableError> {
        let mut touched = Touched::default();
        for position in positions.iter().filter(|position| position.next_session > 0) {
            let files = source.manifest.operation_files(&source.folder, position.fragment);
            let mut reader = OperationsReader::new(files, CHUNK);
            let mut rows = Vec::new();
            'fragment: while reader.next_rows(&mut rows)? {
                for row in &rows {
                    if row.session >= position.next_session {
                        break 'fragment;
                    }
                    row.operation.changes().iter().for_each(|change| touched.add(change));
                }
            }
        }
        Ok(touched)
    }

    fn add(&mut self, change: Change) {
        match change {
            Change::Count { owner, .. } => {
                self.members.insert(owner);
            }
            Change::Element { kind: ListKind::Friends | ListKind::Pending, owner, element, .. } => {
                self.pairs.extend([(owner, element), (element, owner)]);
            }
            Change::Element { kind: ListKind::Comments, element, .. } => {
                self.comments.insert(element);
            }
        }
    }
}
