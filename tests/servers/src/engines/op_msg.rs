//! The part of MongoDB's protocol that is needed to initiate a replica set.
//!
//! A command is one BSON document in an OP_MSG message, and so is its reply
//! (mongodb.com, "MongoDB Wire Protocol"; bsonspec.org, version 1.1).

use std::io::{Error, ErrorKind, Read, Result, Write};

const OP_MSG: u32 = 2013;
/// Length, request, response to, operation; then flags and the kind of the section.
const HEADER_BYTES: usize = 16;
const BODY_START: usize = HEADER_BYTES + 5;
/// No message of MongoDB is longer.
const MESSAGE_BYTES_MAX: usize = 48_000_000;

/// A value of a command.
pub enum Value<'a> {
    /// A 32-bit integer.
    Int32(i32),
    /// A boolean.
    Flag(bool),
    /// A string.
    Text(String),
    /// Names with values.
    Document(Vec<(&'a str, Value<'a>)>),
    /// Values.
    Array(Vec<Value<'a>>),
}

/// Sends a command to the `admin` database, and returns the reply.
pub fn send(stream: &mut (impl Read + Write), mut command: Vec<(&str, Value)>) -> Result<Reply> {
    command.push(("$db", Value::Text("admin".to_string())));
    let mut message = vec![0; BODY_START];
    write_document(&mut message, &mut command.iter().map(|(name, value)| (*name, value)));
    let length = message.len() as u32;
    message[..4].copy_from_slice(&length.to_le_bytes());
    message[12..16].copy_from_slice(&OP_MSG.to_le_bytes());
    stream.write_all(&message)?;

    let mut header = [0; HEADER_BYTES];
    stream.read_exact(&mut header)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
    if !(BODY_START..MESSAGE_BYTES_MAX).contains(&length) {
        return Err(malformed());
    }
    let mut body = vec![0; length - HEADER_BYTES];
    stream.read_exact(&mut body)?;
    Ok(Reply { fields: read_document(&body[BODY_START - HEADER_BYTES..]).ok_or_else(malformed)? })
}

fn malformed() -> Error {
    Error::new(ErrorKind::InvalidData, "not a reply of MongoDB")
}

fn write_document<'a>(out: &mut Vec<u8>, fields: &mut dyn Iterator<Item = (&'a str, &'a Value<'a>)>) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    for (name, value) in fields {
        out.push(match value {
            Value::Int32(_) => 0x10,
            Value::Flag(_) => 0x08,
            Value::Text(_) => 0x02,
            Value::Document(_) => 0x03,
            Value::Array(_) => 0x04,
        });
        out.extend_from_slice(name.as_bytes());
        out.push(0);
        match value {
            Value::Int32(number) => out.extend_from_slice(&number.to_le_bytes()),
            Value::Flag(flag) => out.push(u8::from(*flag)),
            Value::Text(text) => {
                out.extend_from_slice(&(text.len() as u32 + 1).to_le_bytes());
                out.extend_from_slice(text.as_bytes());
                out.push(0);
            }
            Value::Document(fields) => write_document(out, &mut fields.iter().map(|(name, value)| (*name, value))),
            Value::Array(values) => {
                let names: Vec<String> = (0..values.len()).map(|index| index.to_string()).collect();
                write_document(out, &mut names.iter().map(String::as_str).zip(values));
            }
        }
    }
    out.push(0);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// The fields of a reply that are booleans, numbers or strings.
pub struct Reply {
    fields: Vec<(String, Field)>,
}

enum Field {
    Flag(bool),
    Number(f64),
    Text(String),
}

impl Reply {
    /// A boolean.
    pub fn flag(&self, name: &str) -> Option<bool> {
        self.find(name, |field| if let Field::Flag(flag) = field { Some(*flag) } else { None })
    }

    /// A floating-point number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.find(name, |field| if let Field::Number(number) = field { Some(*number) } else { None })
    }

    /// A string.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.find(name, |field| if let Field::Text(text) = field { Some(text.as_str()) } else { None })
    }

    fn find<'a, T>(&'a self, name: &str, as_type: impl FnOnce(&'a Field) -> Option<T>) -> Option<T> {
        self.fields.iter().find(|(found, _)| found == name).and_then(|(_, field)| as_type(field))
    }
}

/// The fields of a document; `None` if the bytes are not a document.
fn read_document(bytes: &[u8]) -> Option<Vec<(String, Field)>> {
    let mut rest = bytes.get(4..)?;
    let mut fields = Vec::new();
    loop {
        let (&kind, after) = rest.split_first()?;
        if kind == 0 {
            return Some(fields);
        }
        let name_length = after.iter().position(|&byte| byte == 0)?;
        let name = String::from_utf8_lossy(&after[..name_length]).into_owned();
        let value = &after[name_length + 1..];
        let length = value_length(kind, value)?;
        let content = value.get(..length)?;
        match kind {
            0x01 => fields.push((name, Field::Number(f64::from_le_bytes(content.try_into().ok()?)))),
            0x02 => fields.push((name, Field::Text(String::from_utf8_lossy(content.get(4..length - 1)?).into_owned()))),
            0x08 => fields.push((name, Field::Flag(content[0] != 0))),
            _ => {}
        }
        rest = &value[length..];
    }
}

/// How many bytes a value of this type takes.
fn value_length(kind: u8, value: &[u8]) -> Option<usize> {
    let prefix = || Some(u32::from_le_bytes(value.get(..4)?.try_into().ok()?) as usize);
    Some(match kind {
        // Double, date, timestamp, 64-bit integer.
        0x01 | 0x09 | 0x11 | 0x12 => 8,
        // String: its length does not count itself.
        0x02 => prefix()?.max(1) + 4,
        // Document, array.
        0x03 | 0x04 => prefix()?.max(5),
        // Binary: neither length nor subtype counted.
        0x05 => prefix()? + 5,
        // Object id.
        0x07 => 12,
        // Boolean.
        0x08 => 1,
        // Null.
        0x0a => 0,
        // 32-bit integer.
        0x10 => 4,
        _ => return None,
    })
}
