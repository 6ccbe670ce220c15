//! Takes records that another tool has loaded, such as YCSB or go-ycsb, as the data set of a trace
//! set.
//!
//! The records are checked and marked, never changed. What counts is their number, and a sample that
//! is read through the same connection as the operations of an experiment. A value that is not one of
//! Encore's counts as initial. So a table into which a run of Encore has written is refused unless the
//! marker says where that run stopped: the ids of its writes would come again.

use schemas::run::FragmentPosition;
use schemas::vocabulary::kv::{Found, Kv, Operation, Verb, WriteId};

use super::kv::KvData;
use super::{Answer, Connection, HeldState, LOAD_AGAIN, Serves, StoreError};
use crate::source::Source;

/// The most records that are read for the check.
const SAMPLED_MAX: u64 = 1_000;

/// What the marker of a store says.
#[derive(Debug)]
pub enum Marked {
    /// There is nothing in the store.
    Empty,
    /// Encore has begun to load it and has not finished.
    Unfinished,
    /// Encore has not marked what is there.
    Foreign,
    /// It is loaded, and may have been written since.
    Held(HeldState),
}

/// The records that a store has.
#[derive(Debug)]
pub struct Records {
    /// What is counted, such as `rows of table usertable`.
    pub what: &'static str,
    /// How many there are. A store that cannot count says how many of the data set it has.
    pub count: u64,
    /// The key of one of them; None if there is none.
    pub example: Option<String>,
}

/// A store whose records other tools load too.
pub trait Adopts: Serves<Kv> {
    /// What the marker says.
    fn marked(&self) -> impl Future<Output = Result<Marked, StoreError>>;

    /// The records that are there. An error if there is nothing that could be records.
    fn records(&self, source: &Source) -> impl Future<Output = Result<Records, StoreError>>;

    /// Refuses records with fields that cannot hold so many bytes. Most stores have no such limit.
    fn check_room(&self, _value_bytes: u32) -> impl Future<Output = Result<(), StoreError>> {
        std::future::ready(Ok(()))
    }

    /// The marker of a store that was just loaded.
    fn fresh(&self, source: &Source) -> HeldState;

    /// Marks the store, which may have no marker yet, and makes what Encore needs beside the records.
    fn mark(&self, source: &Source, state: &HeldState) -> impl Future<Output = Result<(), StoreError>>;
}

/// Takes the records of a store as the data set of a trace set, see [`Serves::adopt`]. The marker then
/// says how far the trace has been replayed on them.
pub async fn adopt<S: Adopts>(store: &S, source: &Source) -> Result<(), StoreError> {
    let refused = |message: String| Err(StoreError::usage(store.url(), message));
    match store.marked().await? {
        Marked::Empty => {
            return refused(
                "contains no records to keep; load them with YCSB or go-ycsb, or remove --keep-data".to_string(),
            );
        }
        Marked::Unfinished => {
            return refused("contains the beginning of a load by Encore; remove --keep-data".to_string());
        }
        Marked::Held(held) if !held.adopted => {
            return refused("was loaded by Encore, which can load it again; remove --keep-data".to_string());
        }
        Marked::Held(held) if continues(&held, store, source)? => return count(store, source, &held.positions).await,
        Marked::Held(_) | Marked::Foreign => {}
    }
    count(store, source, &[]).await?;
    if KvData::has_values_written(source) {
        store.check_room(KvData::of(source).data.field_bytes).await?;
    }
    check_sample(store, source).await?;
    store.mark(source, &HeldState { adopted: true, ..store.fresh(source) }).await
}

/// Whether the trace continues where an earlier run has stopped. Refuses records in which ids of that
/// run cannot be told from those of the next one.
fn continues<S: Adopts>(held: &HeldState, store: &S, source: &Source) -> Result<bool, StoreError> {
    let refused = |why: String| Err(StoreError::state(store.url(), format!("{why}; {LOAD_AGAIN}")));
    if let Some(why) = &held.diverged {
        return refused(format!("is in an unknown state: {why}"));
    }
    match held.has_moved() {
        true if held.workload_id != source.manifest.workload_id => refused(format!(
            "contains what a run of workload {} has written, and {} is of workload {}, whose writes have the same ids",
            held.workload_id,
            source.folder.display(),
            source.manifest.workload_id
        )),
        true => store.check_design(held).map(|()| true),
        false => Ok(false),
    }
}

/// Checks the number of records. Later in the trace, it is known only if no session inserts or deletes.
async fn count<S: Adopts>(store: &S, source: &Source, positions: &[FragmentPosition]) -> Result<(), StoreError> {
    if !positions.is_empty() && KvData::changes_count(source) {
        return Ok(());
    }
    let Records { what, count, example } = store.records(source).await?;
    let expected = KvData::count(source);
    if count == expected {
        return Ok(());
    }
    let error = StoreError::miscounted(store.url(), what, count as i64, expected as i64, source);
    Err(error.with(&advice(source, example)))
}

/// What to do if the records are not those of the data set.
fn advice(source: &Source, example: Option<String>) -> String {
    let data = KvData::of(source);
    format!(
        "use a trace set whose data.records, data.first_record, data.key_order and data.key_digits are recordcount, \
         insertstart, insertorder and zeropadding of the load (data.key_order = \"hashed_go\" for go-ycsb), or load \
         again (the first key of the trace set is {}{})",
        data.keys.key(data.data.first_record),
        example.map_or(String::new(), |key| format!(", the store has {key}"))
    )
}

/// Reads some of the records, evenly spread from the first to the last. All of their fields must be
/// there, with values that no run of Encore has written.
async fn check_sample<S: Adopts>(store: &S, source: &Source) -> Result<(), StoreError> {
    let data = KvData::of(source);
    let Some(mut connection) = store.connect(source, 0..1).await?.pop() else { return Ok(()) };
    let mut answer = Answer::default();
    let refused = |message: String| Err(StoreError::usage(store.url(), message));
    for record in sample(data.data.first_record, data.data.records) {
        let read = Operation {
            verb: Verb::Read,
            key: record,
            fields: data.data.all_fields(),
            length: 0,
            id: WriteId::new(0, 0, 0),
            amount: 0,
        };
        answer.clear();
        let done = connection.execute(&read, &mut answer).await;
        let key = || data.keys.key(record);
        let unreadable = |why: &str| {
            refused(format!(
                "cannot read record {} with the {} fields of {} (data.fields; YCSB: fieldcount): {why}; use a trace set \
                 with the fields of the load, or load again",
                key(),
                data.data.fields,
                source.folder.display()
            ))
        };
        if let Err(error) = done {
            return unreadable(&error.into_message());
        }
        match Found::read(&answer.values) {
            Ok(Some(found)) if found.written().any(|(_, id)| id.is_some()) => {
                return refused(format!("record {} has a value that a run of Encore has written; {LOAD_AGAIN}", key()));
            }
            Ok(Some(found)) => {
                if let Some(field) = found.first_absent() {
                    return unreadable(&format!("field{field} has no value"));
                }
            }
            Ok(None) | Err(_) => {
                let example = store.records(source).await?.example;
                let lacks = format!("has no record {} of the data set of {}", key(), source.folder.display());
                return refused(format!("{lacks}; {}", advice(source, example)));
            }
        }
    }
    Ok(())
}

/// At most [`SAMPLED_MAX`] numbers from `first` on, evenly spread over `count`, with the first and the
/// last.
fn sample(first: u64, count: u64) -> impl Iterator<Item = u64> {
    let (sampled, last) = (count.min(SAMPLED_MAX), count.saturating_sub(1));
    (0..sampled).map(move |n| first + (n as u128 * last as u128 / sampled.saturating_sub(1).max(1) as u128) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_reaches_from_the_first_record_to_the_last() {
        let check = |first, count, expect: &[u64]| assert_eq!(sample(first, count).collect::<Vec<_>>(), expect);
        check(7, 1, &[7]);
        check(0, 3, &[0, 1, 2]);
        let many: Vec<u64> = sample(5, 1_000_000_000).collect();
        assert_eq!((many.len(), many[0], many[999]), (1_000, 5, 1_000_000_004));
        assert!(many.is_sorted_by(|one, next| one < next));
    }
}
