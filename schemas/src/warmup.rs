//! Counts how many sessions of a trace set hold a number of operations.

use std::path::Path;

use crate::manifest::Manifest;
use crate::share::next_fragment;
use crate::table::TableError;
use crate::trace::SessionNumbers;

/// Rows that are read at once.
const CHUNK_ROWS: usize = 8192;

/// The number of first sessions of the global order that hold at least `operations` operations.
///
/// They are counted, not estimated from the mean: sessions become longer or shorter as the graph
/// changes, and a trace set may be extended. If the trace set is too short, the mean is used for
/// the rest.
pub(crate) fn sessions_with(operations: u64, folder: &Path, manifest: &Manifest) -> Result<u64, TableError> {
    let weights = manifest.weights();
    let files = manifest.fragments.iter().map(|f| manifest.operation_files(folder, f.fragment));
    let mut fragments: Vec<Lengths> = files.map(|files| Lengths::new(SessionNumbers::new(files, CHUNK_ROWS))).collect();
    let mut positions = vec![0; weights.len()];
    let (mut sessions, mut held) = (0u64, 0u64);
    while held < operations {
        let next = next_fragment(&weights, &positions);
        let length = match fragments.get_mut(next) {
            Some(fragment) => fragment.next()?,
            None => None,
        };
        let Some(length) = length else {
            let missing = (operations - held) as u128 * manifest.sessions() as u128;
            let missing = missing.div_ceil(manifest.operations().max(1) as u128);
            return Ok(sessions.saturating_add(u64::try_from(missing).unwrap_or(u64::MAX)));
        };
        held += length;
        sessions += 1;
        positions[next] += 1;
    }
    Ok(sessions)
}

/// The lengths of a fragment's sessions, one after the other.
struct Lengths {
    reader: SessionNumbers,
    chunk: Vec<i64>,
    at: usize,
}

impl Lengths {
    fn new(reader: SessionNumbers) -> Lengths {
        Lengths { reader, chunk: Vec::new(), at: 0 }
    }

    /// The operations of the next session, which may cross the end of a chunk.
    fn next(&mut self) -> Result<Option<u64>, TableError> {
        let mut current = None;
        let mut length = 0;
        loop {
            if self.at == self.chunk.len() {
                self.at = 0;
                if !self.reader.next(&mut self.chunk)? {
                    return Ok(current.map(|_| length));
                }
            }
            let session = self.chunk[self.at];
            if current.is_some_and(|current| current != session) {
                return Ok(Some(length));
            }
            current = Some(session);
            length += 1;
            self.at += 1;
        }
    }
}
