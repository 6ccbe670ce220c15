//! The frames of a log file: finds the end of the last whole batch, and checks that each batch
//! has the layout of the format.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::LazyLock;

use arrow::datatypes::DataType;
use arrow::ipc::Message;

use super::{BATCH_ROWS_MAX, LOG};
use crate::table::TableError;

/// How a log file ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogEnd {
    /// With the closing mark: the log is complete.
    Closed,
    /// Without the closing mark: the replayer was killed. Whole batches are readable.
    Torn {
        /// Bytes at the end that are not a whole batch.
        trailing_bytes: u64,
    },
}

/// The layout of a column, or of a part of one.
#[derive(Clone, Copy)]
enum Part {
    /// Values of this many bytes.
    Fixed(i64),
    /// Values of any length: offsets, then their bytes.
    Bytes,
    /// Runs. The two parts that follow hold their ends and their values.
    Runs,
}

/// The parts of [`LOG`], in its order.
static PARTS: LazyLock<Vec<Part>> =
    LazyLock::new(|| LOG.fields().iter().flat_map(|field| parts_of(field.data_type())).collect());

fn parts_of(column: &DataType) -> Vec<Part> {
    match column {
        DataType::RunEndEncoded(ends, values) => {
            [vec![Part::Runs], parts_of(ends.data_type()), parts_of(values.data_type())].concat()
        }
        other => vec![other.primitive_width().map_or(Part::Bytes, |width| Part::Fixed(width as i64))],
    }
}

/// The observed values and the texts of a batch are always much shorter than this: a writer hands
/// over a few megabytes at a time.
const BATCH_BYTES_MAX: i64 = 1 << 26;

/// A compressed part of a batch. It begins with the number of its bytes before compression, or
/// with -1 if it is not compressed after all.
struct Compressed {
    /// Its offset in the batch's body.
    offset: i64,
    /// The maximum of that number.
    bytes_max: i64,
}

/// Checks that the parts of a batch lie within its body and are as long as its rows need. Returns
/// the compressed parts, whose length only their first bytes tell.
fn check_layout(message: &Message<'_>) -> Result<Vec<Compressed>, String> {
    if message.header_as_dictionary_batch().is_some() {
        return Err("a dictionary batch, which the format does not have".into());
    }
    let Some(batch) = message.header_as_record_batch() else { return Ok(Vec::new()) };
    let (Some(nodes), Some(buffers)) = (batch.nodes(), batch.buffers()) else {
        return Err("a batch without columns".into());
    };
    let rows = batch.length();
    let expected_buffers = PARTS.iter().map(|part| match part {
        Part::Fixed(_) => 2,
        Part::Bytes => 3,
        Part::Runs => 0,
    });
    if nodes.len() != PARTS.len() || buffers.len() != expected_buffers.sum::<usize>() {
        return Err("a batch with columns that differ from the format".into());
    }
    if !(0..=BATCH_ROWS_MAX as i64).contains(&rows) {
        return Err(format!("a batch of {rows} rows, more than the {BATCH_ROWS_MAX} of the format"));
    }
    for buffer in buffers.iter() {
        let end = buffer.offset().checked_add(buffer.length());
        if buffer.offset() < 0 || buffer.length() < 0 || end.is_none_or(|end| end > message.bodyLength()) {
            return Err("a column that lies outside of its batch".into());
        }
    }
    let is_compressed = batch.compression().is_some();
    let (mut buffers, mut compressed) = (buffers.iter(), Vec::new());
    for (at, (part, node)) in PARTS.iter().zip(nodes.iter()).enumerate() {
        let length = node.length();
        let runs_of = at.checked_sub(1).filter(|before| matches!(PARTS[*before], Part::Runs));
        let runs_of = runs_of.or_else(|| at.checked_sub(2).filter(|before| matches!(PARTS[*before], Part::Runs)));
        let is_length = if runs_of.is_some() { (0..=rows).contains(&length) } else { length == rows };
        if !is_length || !(0..=length).contains(&node.null_count()) {
            return Err(format!("part {at} has {length} values for {rows} rows"));
        }
        let valid = (length + 7) / 8;
        let needs: &[i64] = match part {
            Part::Runs => &[],
            Part::Fixed(width) => &[valid, width * length],
            Part::Bytes => &[valid, 4 * (length + 1), BATCH_BYTES_MAX],
        };
        for (place, bytes) in needs.iter().enumerate() {
            let Some(buffer) = buffers.next() else { return Err("a batch without one of its columns".into()) };
            // Validity bits are not needed where nothing is null, and texts may have any number
            // of bytes.
            let is_needed = if place == 0 { node.null_count() > 0 } else { place == 1 && length > 0 };
            if is_compressed {
                match buffer.length() {
                    0 if is_needed => return Err(format!("part {at} is shorter than its {length} values")),
                    0 => {}
                    1..8 => return Err(format!("part {at} is compressed, but does not say how long it was")),
                    // Writers may round up to whole cache lines.
                    _ => compressed.push(Compressed { offset: buffer.offset(), bytes_max: bytes + 64 }),
                }
            } else if is_needed && buffer.length() < *bytes {
                return Err(format!("part {at} is shorter than its {length} values"));
            }
        }
    }
    Ok(compressed)
}

/// Walks the messages of an IPC stream. Returns the number of bytes up to the end of the last
/// whole message, and how the stream ends.
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

/// Whether a log has begun: the file exists and holds a whole schema.
///
/// A replayer that is killed as it starts leaves no file, or less than a schema.
pub fn has_begun(path: &Path) -> Result<bool, TableError> {
    match File::open(path) {
        Ok(mut file) => Ok(walk_frames(&mut file, path)?.0 > 0),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(TableError::new(path, e)),
    }
}
