//! The conformance suite: what every store has to do to be compared with
//! others. `subjects.rs` lists the stores; the reference is `memory:`.

mod answers;
mod concurrency;
mod databases;
mod files;
mod kv;
mod place;
mod preconditions;
mod subjects;
