//! Rows in the formats of PostgreSQL's COPY (PostgreSQL's manual, COPY): the binary one, and the text format, in
//! which PostgreSQL converts each value to the type of its column.

use std::io::Write;

use crate::stores::relational::contents::Value;

/// The header of a stream of rows: signature, no flags, no extension.
const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The end of a stream of rows.
const TRAILER: [u8; 2] = (-1i16).to_be_bytes();

/// A format of COPY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The bytes of values have the types of their columns.
    Binary,
    /// Values are texts.
    Text,
}

impl Format {
    /// Its name in a statement.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Binary => "binary",
            Format::Text => "text",
        }
    }
}

/// Rows to be sent into a table.
#[derive(Debug)]
pub struct CopyBuffer {
    format: Format,
    bytes: Vec<u8>,
}

impl CopyBuffer {
    /// The beginning of a stream.
    pub fn new(format: Format) -> CopyBuffer {
        let bytes = if format == Format::Binary { HEADER.to_vec() } else { Vec::new() };
        CopyBuffer { format, bytes }
    }

    /// Adds a row.
    pub fn push(&mut self, row: &[Value]) {
        match self.format {
            Format::Binary => self.push_binary(row),
            Format::Text => self.push_text(row),
        }
    }

    fn push_text(&mut self, row: &[Value]) {
        for (column, value) in row.iter().enumerate() {
            if column > 0 {
                self.bytes.push(b'\t');
            }
            // Writing to bytes cannot fail.
            let _ = match value {
                Value::Null => self.bytes.write_all(b"\\N"),
                Value::Integer(number) => write!(self.bytes, "{number}"),
                Value::Float(number) => write!(self.bytes, "{number}"),
                Value::Text(text) => {
                    self.escape(text);
                    Ok(())
                }
                Value::Bytes(bytes) => self
                    .bytes
                    .write_all(b"\\\\x")
                    .and_then(|()| bytes.iter().try_for_each(|byte| write!(self.bytes, "{byte:02x}"))),
            };
        }
        self.bytes.push(b'\n');
    }

    fn escape(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                b'\\' => self.bytes.extend_from_slice(b"\\\\"),
                b'\t' => self.bytes.extend_from_slice(b"\\t"),
                b'\n' => self.bytes.extend_from_slice(b"\\n"),
                b'\r' => self.bytes.extend_from_slice(b"\\r"),
                other => self.bytes.push(other),
            }
        }
    }

    fn push_binary(&mut self, row: &[Value]) {
        // No table has more than a handful of columns.
        self.bytes.extend_from_slice(&(row.len() as i16).to_be_bytes());
        for value in row {
            match value {
                Value::Null => self.bytes.extend_from_slice(&(-1i32).to_be_bytes()),
                Value::Integer(number) => self.field(&number.to_be_bytes()),
                Value::Float(number) => self.field(&number.to_be_bytes()),
                Value::Text(text) => self.field(text.as_bytes()),
                Value::Bytes(bytes) => self.field(bytes),
            }
        }
    }

    fn field(&mut self, bytes: &[u8]) {
        // PostgreSQL's values are below 1 GiB.
        self.bytes.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    /// The end of the stream.
    pub fn finish(&mut self) {
        if self.format == Format::Binary {
            self.bytes.extend_from_slice(&TRAILER);
        }
    }

    /// Takes the bytes, if there are at least this many.
    pub fn take(&mut self, at_least: usize) -> Option<Vec<u8>> {
        (self.bytes.len() >= at_least.max(1)).then(|| std::mem::take(&mut self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_texts_is_escaped() {
        let mut buffer = CopyBuffer::new(Format::Text);
        let text = Value::Text("a\tb\\N\n".into());
        buffer.push(&[Value::Null, Value::Integer(-3), Value::Float(0.5), text, Value::Bytes(vec![0, 255])]);
        buffer.finish();
        let bytes = buffer.take(0).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), "\\N\t-3\t0.5\ta\\tb\\\\N\\n\t\\\\x00ff\n");
        assert_eq!(buffer.take(0), None);
    }

    /// The bytes of a row are spelled out in PostgreSQL's manual.
    #[test]
    fn a_row_is_what_the_manual_says() {
        let mut buffer = CopyBuffer::new(Format::Binary);
        buffer.push(&[Value::Integer(258), Value::Text("ab".into()), Value::Bytes(vec![])]);
        buffer.finish();
        assert_eq!(buffer.take(10_000), None);
        let bytes = buffer.take(0).unwrap();
        let row = [0, 3, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 2, b'a', b'b', 0, 0, 0, 0, 0xff, 0xff];
        assert_eq!((&bytes[..19], &bytes[19..]), (HEADER.as_slice(), row.as_slice()));
        assert_eq!(buffer.take(0), None);
    }
}
