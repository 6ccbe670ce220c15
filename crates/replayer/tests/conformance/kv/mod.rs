//! What every store that serves the vocabulary `kv` has to do. The reference is `memory:`.

mod answers;
mod databases;
mod foreign;
mod kept;
mod lies;
mod replays;
mod subjects;

use schemas::vocabulary::kv::{Operation, Verb, WriteId};

/// A workload in which every kind of session occurs, and popular records are written often.
const BUSY: &str = r#"
name = "busy"
family = "kv"
sessions = 600
[data]
records = 120
fields = 4
field_bytes = 40
[access]
distribution = "zipfian"
scan_length_max = 30
ordered_writes = true
[mix]
read = 30
update = 25
insert = 15
scan = 15
delete = 5
read_modify_write = 10
"#;

/// An operation that no trace has: the `number`-th of its session.
fn operation(verb: Verb, key: u64, fields: u64, number: u16) -> Operation {
    Operation { verb, key, fields, length: 0, id: WriteId::new(0, 1_000_000, number) }
}

/// A scan of some records.
fn scan(key: u64, fields: u64, length: u32) -> Operation {
    Operation { length, ..operation(Verb::Scan, key, fields, 0) }
}
