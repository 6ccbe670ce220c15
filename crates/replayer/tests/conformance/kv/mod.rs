//! What every store that serves the vocabulary `kv` has to do. The reference is `memory:`.

mod answers;
mod cassandra;
mod databases;
mod foreign;
mod kept;
mod lies;
mod lost;
mod memcached;
mod model;
mod mongodb;
mod redis;
mod redis_cluster;
mod replays;
mod replicas;
mod subjects;
mod transactions;

use replayer::stores::{Blame, StoreError};
use schemas::vocabulary::kv::{Operation, Verb, WriteId};

use crate::place::Place;

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

/// Every kind of session but scans.
const POINTS: &str = "read = 30\nupdate = 30\ninsert = 15\ndelete = 8\nread_modify_write = 17\n";

/// A workload of 240 records with these kinds of sessions.
fn with_mix(mix: &str, settings: &[&str]) -> Place {
    let text = format!(
        "name = 'records'\nfamily = 'kv'\nsessions = 900\n[data]\nrecords = 240\nfields = 4\nfield_bytes = 40\n\
         field_bytes_min = 20\nfield_length = 'uniform'\n[access]\nread_all_fields = false\nordered_writes = true\n\
         [mix]\n{mix}"
    );
    Place::with(&text, settings)
}

/// The same without scans, so that every store can be loaded with it.
fn points(settings: &[&str]) -> Place {
    with_mix(POINTS, settings)
}

/// The refusal of something, by its blame and words.
pub fn refused<X>(result: Result<X, StoreError>, blame: Blame, words: &[&str]) {
    let error = result.err().expect("a refusal");
    assert_eq!(error.blame, blame, "{error}");
    for word in words {
        assert!(error.message.contains(word), "{error} lacks {word:?}");
    }
}

/// An operation that no trace has: the `number`-th of its session.
fn operation(verb: Verb, key: u64, fields: u64, number: u16) -> Operation {
    Operation { verb, key, fields, length: 0, id: WriteId::new(0, 1_000_000, number), amount: 0 }
}

/// A scan of some records.
fn scan(key: u64, fields: u64, length: u32) -> Operation {
    Operation { length, ..operation(Verb::Scan, key, fields, 0) }
}
