//! What a replay has touched since the data set was loaded. A store must restore all of
//! this to hold its data set again. The trace says exactly what it is.

use std::collections::BTreeSet;

use schemas::run::FragmentPosition;
use schemas::social::{Change, ListKind, Social};
use schemas::table::TableError;

use crate::source::Source;

/// Operations that are read at a time.
const CHUNK: usize = 8192;

/// What the writes of a part of a trace may have changed.
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
    /// What the sessions before each fragment's position have touched, whatever their outcome.
    pub fn before(source: &Source, positions: &[FragmentPosition]) -> Result<Touched, TableError> {
        let mut touched = Touched::default();
        for position in positions.iter().filter(|position| position.next_session > 0) {
            let mut reader = source.manifest.reader::<Social>(&source.folder, position.fragment, CHUNK)?;
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
