//! The frames of a log file: where its last whole batch ends, and whether each
//! batch is laid out as the format says.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use arrow::ipc::Message;

use crate::trace::TableError;

/// How a log file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnd {
    /// With its closing mark: complete.
    Closed,
    /// Without: the replayer was killed. Whole batches are readable.
    Torn {
        /// Bytes at the end that are not a whole batch.
        trailing_bytes: u64,
    },
}

/// Bytes of a value in each of the columns before `observed`.
const WIDTHS: [i64; 11] = [8, 2, 4, 8, 8, 8, 8, 8, 2, 1, 2];

/// What no batch comes near to: a writer hands over a few megabytes at a time.
const BATCH_BYTES_MAX: i64 = 1 << 30;

/// Nor the texts of the errors in one.
const NAMES_BYTES_MAX: i64 = 1 << 26;

/// A compressed part of a batch, which begins with the number of its bytes before
/// compression (-1 when it is not compressed after all).
struct Compressed {
    /// Where it begins in the batch's body.
    offset: i64,
    /// What that number is at the most.
    bytes_max: i64,
}

/// Checks that the parts of a batch lie within its body and are as long as its
/// rows need; gives those whose length only their first bytes tell.
fn check_layout(message: &Message<'_>) -> Result<Vec<Compressed>, String> {
    let body_bytes = message.bodyLength();
    let (batch, is_dictionary) = match (message.header_as_record_batch(), message.header_as_dictionary_batch()) {
        (Some(batch), _) => (batch, false),
        (_, Some(dictionary)) => (dictionary.data().ok_or("a dictionary without values")?, true),
        _ => return Ok(Vec::new()),
    };
    let (Some(nodes), Some(buffers)) = (batch.nodes(), batch.buffers()) else {
        return Err("a batch without columns".into());
    };
    let is_compressed = batch.compression().is_some();
    let mut compressed = Vec::new();
    let rows = batch.length();
    let mut needs = Vec::new();
    if is_dictionary {
        needs.push((0, rows, 4 * (rows + 1)));
    } else {
        needs.extend(WIDTHS.iter().enumerate().map(|(i, width)| (i, rows, width.saturating_mul(rows))));
        needs.push((11, rows, 4 * (rows + 1)));
        let values = nodes.iter().nth(12).map_or(-1, |node| node.length());
        needs.push((12, values, values.saturating_mul(8)));
    }
    let expected_buffers = if is_dictionary { 3 } else { 2 * needs.len() };
    if !(0..=i32::MAX as i64).contains(&rows) || nodes.len() != needs.len() || buffers.len() != expected_buffers {
        return Err("a batch whose columns are not the format's".into());
    }
    for buffer in buffers.iter() {
        let end = buffer.offset().checked_add(buffer.length());
        if buffer.offset() < 0 || buffer.length() < 0 || end.is_none_or(|end| end > body_bytes) {
            return Err("a column that lies outside of its batch".into());
        }
    }
    for (column, length, bytes) in needs {
        let (node, valid, data) = (nodes.get(column), buffers.get(2 * column), buffers.get(2 * column + 1));
        if is_compressed {
            if !(0..BATCH_BYTES_MAX).contains(&bytes) {
                return Err(format!("column {column} claims {bytes} bytes"));
            }
            for (buffer, bytes) in [(valid, (length + 7) / 8), (data, bytes)] {
                // Writers may round up to whole cache lines.
                let bytes_max = bytes + 64;
                match buffer.length() {
                    0 => {}
                    1..8 => return Err(format!("column {column} is compressed, but does not say how long it was")),
                    _ => compressed.push(Compressed { offset: buffer.offset(), bytes_max }),
                }
            }
        }
        let no_bits = node.null_count() > 0 && valid.length() < if is_compressed { 8 } else { (length + 7) / 8 };
        let is_short = length > 0 && data.length() < if is_compressed { bytes.min(8) } else { bytes };
        if node.length() != length || length < 0 || !(0..=length).contains(&node.null_count()) || no_bits || is_short {
            return Err(format!("column {column} is shorter than its {length} rows"));
        }
    }
    if let Some(names) = buffers.iter().nth(2).filter(|names| is_compressed && is_dictionary && names.length() >= 8) {
        compressed.push(Compressed { offset: names.offset(), bytes_max: NAMES_BYTES_MAX });
    }
    Ok(compressed)
}

/// Walks the messages of an IPC stream; the bytes up to the last whole message
/// and how the stream ends.
pub(super) fn walk_frames(file: &mut File, path: &Path) -> Result<(u64, LogEnd), TableError> {
    let wrong = |at: u64, e: &dyn std::fmt::Display| {
        TableError::new(path, format!("byte {at}: {e}; the file is damaged or is not an operation log"))
    };
    let size = file.metadata().map_err(|e| wrong(0, &e))?.len();
    let mut at = 0;
    let mut metadata = Vec::new();
    loop {
        let torn = LogEnd::Torn { trailing_bytes: size - at };
        if size - at < 8 {
            return Ok((at, torn));
        }
        let mut prefix = [0; 8];
        file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut prefix)).map_err(|e| wrong(at, &e))?;
        let [a, b, c, d, e, f, g, h] = prefix;
        if u32::from_le_bytes([a, b, c, d]) != u32::MAX {
            return Err(wrong(at, &"no Arrow message starts here"));
        }
        let metadata_bytes = u32::from_le_bytes([e, f, g, h]) as u64;
        if metadata_bytes == 0 {
            let after = size - at - 8;
            return if after == 0 {
                Ok((size, LogEnd::Closed))
            } else {
                Err(wrong(at + 8, &format!("{after} bytes follow the closing mark")))
            };
        }
        if metadata_bytes > size - at - 8 {
            return Ok((at, torn));
        }
        metadata.resize(metadata_bytes as usize, 0);
        file.read_exact(&mut metadata).map_err(|e| wrong(at, &e))?;
        let message = arrow::ipc::root_as_message(&metadata).map_err(|e| wrong(at, &e))?;
        let body_bytes = u64::try_from(message.bodyLength()).map_err(|e| wrong(at, &e))?;
        let compressed = check_layout(&message).map_err(|e| wrong(at, &e))?;
        let Some(next) = at.checked_add(8 + metadata_bytes).and_then(|n| n.checked_add(body_bytes)) else {
            return Err(wrong(at, &"a message longer than any file"));
        };
        if next > size {
            return Ok((at, torn));
        }
        for part in compressed {
            let mut bytes = [0; 8];
            let start = at + 8 + metadata_bytes + part.offset as u64;
            file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(&mut bytes)).map_err(|e| wrong(at, &e))?;
            let bytes = i64::from_le_bytes(bytes);
            if !(-1..=part.bytes_max).contains(&bytes) {
                return Err(wrong(at, &format!("a compressed column claims {bytes} bytes")));
            }
        }
        at = next;
    }
}

/// Whether a log has begun: the file is there and holds a whole schema.
///
/// A replayer that is killed as it starts leaves none, or less than that.
pub fn has_begun(path: &Path) -> Result<bool, TableError> {
    match File::open(path) {
        Ok(mut file) => Ok(walk_frames(&mut file, path)?.0 > 0),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(TableError::new(path, e)),
    }
}
