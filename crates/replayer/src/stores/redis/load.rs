//! Loads a data set, checks it, digests what is there.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use redis::Pipeline;
use redis::aio::MultiplexedConnection;
use schemas::digest::StateDigest;

use super::{HELD, INDEX, Redis, keys};
use crate::source::Source;
use crate::stores::fields::{Fields, has_scans, lacks_field};
use crate::stores::kv::KvData;
use crate::stores::{HeldState, LoadProgress, StoreError};

/// The most bytes of values (except for a single record) and records of one pipeline.
const PIPELINE_BYTES_MAX: u64 = 1 << 20;
const PIPELINE_RECORDS_MAX: u64 = 1_000;

/// What is counted.
pub const KEYS: &str = "keys of records";

/// Pipelines in flight: the next one is made while the server works.
const PIPELINES_IN_FLIGHT: usize = 3;

/// What Encore finds in a database.
pub enum Found {
    /// It has no keys.
    Empty,
    /// It has keys, and none of them is Encore's marker.
    Foreign(u64),
    /// Encore has begun to load it and has not finished.
    Unfinished,
    /// It is loaded.
    Held(HeldState),
}

/// What the database holds; none if it is empty.
pub async fn held(store: &Redis, connection: &mut MultiplexedConnection) -> Result<Option<HeldState>, StoreError> {
    match look_into(store, connection).await? {
        Found::Held(held) => Ok(Some(held)),
        Found::Empty | Found::Unfinished => Ok(None),
        Found::Foreign(count) => Err(foreign(store, count)),
    }
}

fn foreign(store: &Redis, count: u64) -> StoreError {
    let number = store.client.get_connection_info().redis_settings().db();
    StoreError::usage(
        &store.url,
        format!(
            "contains {count} keys that Encore has not made; choose another database, empty it with `redis-cli -n \
             {number} FLUSHDB`, or add --keep-data to run on records that YCSB has loaded"
        ),
    )
}

/// What the database holds.
pub async fn look_into(store: &Redis, connection: &mut MultiplexedConnection) -> Result<Found, StoreError> {
    let mut questions = redis::pipe();
    questions.cmd("GET").arg(HELD).cmd("DBSIZE");
    let (marker, count): (Option<String>, u64) = store.in_time(questions.query_async(connection)).await?;
    match marker {
        None if count == 0 => Ok(Found::Empty),
        None => Ok(Found::Foreign(count)),
        Some(text) if text.is_empty() => Ok(Found::Unfinished),
        Some(text) => serde_json::from_str(&text)
            .map(Found::Held)
            .map_err(|error| StoreError::store(&store.url, format!("{HELD}: {error}"))),
    }
}

/// Writes the marker.
pub async fn write_state(
    store: &Redis,
    connection: &mut MultiplexedConnection,
    state: &HeldState,
) -> Result<(), StoreError> {
    let text = serde_json::to_string(state).map_err(|error| StoreError::store(&store.url, error))?;
    store.in_time(redis::cmd("SET").arg(HELD).arg(text).exec_async(connection)).await
}

/// Removes all keys of Encore's and loads the data set; the marker comes last.
pub async fn load(store: &Redis, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
    let fields = Arc::new(Fields::of(source));
    let mut connection = store.keeper().await?;
    if let Found::Foreign(count) = look_into(store, &mut connection).await? {
        return Err(foreign(store, count));
    }
    keys::of_records(store, &mut connection, &fields.data.keys).await?;
    // From now on the database is Encore's, and unfinished.
    let mut empty = redis::pipe();
    empty.atomic().cmd("FLUSHDB").cmd("SET").arg(HELD).arg("");
    empty.exec_async(&mut connection).await.map_err(|error| store.failed(&error))?;

    let (total, index, ttl) = (KvData::count(source), has_scans(source), store.ttl);
    let mut done = 0;
    for fragment in source.fragments() {
        let pipelines = KvData::records(source, fragment, &store.url)?.flat_map({
            let fields = fields.clone();
            move |chunk| match chunk {
                Ok(records) => pipelines(&fields, &records, index, ttl).into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            }
        });
        let sent = stream::iter(pipelines).map(|made| {
            let mut connection = connection.clone();
            async move {
                let (pipeline, records) = made?;
                pipeline.exec_async(&mut connection).await.map_err(|error| store.failed(&error))?;
                Ok::<u64, StoreError>(records)
            }
        });
        let mut sent = sent.buffer_unordered(PIPELINES_IN_FLIGHT);
        while let Some(records) = sent.try_next().await? {
            done += records;
            progress(done.min(total), total);
        }
    }
    write_state(store, &mut connection, &store.loaded(source)).await?;
    progress(total, total);
    Ok(())
}

/// Builds the index of the keys of all records that are there.
pub async fn index(store: &Redis, connection: &mut MultiplexedConnection, source: &Source) -> Result<(), StoreError> {
    let keys = keys::of_records(store, connection, &KvData::of(source).keys).await?;
    store.in_time(redis::cmd("DEL").arg(INDEX).exec_async(connection)).await?;
    for some in keys.chunks(PIPELINE_RECORDS_MAX as usize) {
        let mut add = redis::cmd("ZADD").arg(INDEX).to_owned();
        for key in some {
            add.arg(0).arg(key);
        }
        store.in_time(add.exec_async(connection)).await?;
    }
    Ok(())
}

/// How many records a pipeline has.
fn records_at_once(fields: &Fields) -> usize {
    let bytes = fields.data.data.fields as u64 * fields.data.data.field_bytes as u64;
    (PIPELINE_BYTES_MAX / bytes.max(1)).clamp(1, PIPELINE_RECORDS_MAX) as usize
}

/// The commands that store some records, each with the number of its records.
fn pipelines(fields: &Fields, records: &[u64], index: bool, ttl: Option<u32>) -> Vec<(Pipeline, u64)> {
    let mut value = String::new();
    let made = records.chunks(records_at_once(fields)).map(|records| {
        let mut pipeline = redis::pipe();
        let keys: Vec<String> = records.iter().map(|record| fields.data.keys.key(*record)).collect();
        for (record, key) in records.iter().zip(&keys) {
            pipeline.cmd("HSET").arg(key);
            for (field, name) in (0..).zip(fields.names()) {
                fields.data.initial(*record, field, &mut value);
                pipeline.arg(name).arg(&value);
            }
            if let Some(seconds) = ttl {
                pipeline.cmd("EXPIRE").arg(key).arg(seconds);
            }
        }
        if index {
            pipeline.cmd("ZADD").arg(INDEX);
            for key in &keys {
                pipeline.arg(0).arg(key);
            }
        }
        (pipeline, records.len() as u64)
    });
    made.collect()
}

/// Checks by counting that a freshly loaded store holds the data set. With a time to live, records
/// may be missing.
pub async fn check_count(store: &Redis, source: &Source) -> Result<(), StoreError> {
    let mut connection = store.keeper().await?;
    let mut questions = redis::pipe();
    questions.cmd("DBSIZE").cmd("EXISTS").arg(INDEX).arg(keys::INDEX_OF_YCSB).cmd("ZCARD").arg(INDEX);
    let (keys, indexes, indexed): (u64, u64, u64) = store.in_time(questions.query_async(&mut connection)).await?;
    let (records, expected) = (keys.saturating_sub(1 + indexes), KvData::count(source));
    let wrong =
        |what: &str, found: u64| Err(StoreError::miscounted(&store.url, what, found as i64, expected as i64, source));
    if records > expected || (records < expected && store.ttl.is_none()) {
        return wrong(KEYS, records);
    }
    match has_scans(source) {
        true if indexed != expected => wrong(&format!("keys in {INDEX}"), indexed),
        _ => Ok(()),
    }
}

/// The digest of all records.
pub async fn digest(store: &Redis, source: &Source) -> Result<StateDigest, StoreError> {
    let fields = Fields::of(source);
    let mut connection = store.keeper().await?;
    let keys = keys::of_records(store, &mut connection, &fields.data.keys).await?;
    let failed =
        |message: String| StoreError::store(&store.url, format!("{message}; load it again with `encore replay load`"));
    if has_scans(source) {
        let count = redis::cmd("ZCARD").arg(INDEX).to_owned();
        let indexed: u64 = store.in_time(count.query_async(&mut connection)).await?;
        if indexed != keys.len() as u64 {
            return Err(failed(format!("{INDEX} has {indexed} keys, but there are {} records", keys.len())));
        }
    }
    let mut digest = StateDigest::default();
    for some in keys.chunks(records_at_once(&fields)) {
        let mut questions = redis::pipe();
        for key in some {
            questions.cmd("HMGET").arg(key).arg(fields.names());
        }
        let records: Vec<Vec<Option<Vec<u8>>>> = store.in_time(questions.query_async(&mut connection)).await?;
        for (key, values) in some.iter().zip(&records) {
            let named = values.iter().zip(fields.names());
            let values = named.map(|(value, name)| value.as_deref().ok_or_else(|| failed(lacks_field(key, name))));
            digest.record(key, values.collect::<Result<Vec<&[u8]>, StoreError>>()?);
        }
    }
    Ok(digest)
}
