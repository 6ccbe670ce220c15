//! Loads a data set, checks it, digests what is there.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use redis::Pipeline;
use schemas::digest::StateDigest;

use super::nodes::Nodes;
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

/// Pipelines in flight for each node: the next one is made while the server works.
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
pub async fn held(store: &Redis, nodes: &mut Nodes) -> Result<Option<HeldState>, StoreError> {
    match look_into(store, nodes).await? {
        Found::Held(held) => Ok(Some(held)),
        Found::Empty | Found::Unfinished => Ok(None),
        Found::Foreign(count) => Err(foreign(store, count)),
    }
}

fn foreign(store: &Redis, count: u64) -> StoreError {
    let remedy = match store.topology.is_cluster() {
        true => "use another cluster, empty each primary with `redis-cli FLUSHDB`".to_string(),
        false => format!("choose another database, empty it with `redis-cli -n {} FLUSHDB`", store.topology.database()),
    };
    StoreError::usage(
        &store.url,
        format!(
            "contains {count} keys that Encore has not made; {remedy}, or add --keep-data to run on records that YCSB \
             has loaded"
        ),
    )
}

/// How many keys all nodes have together.
async fn count_keys(store: &Redis, nodes: &mut Nodes) -> Result<u64, StoreError> {
    let mut count = 0;
    for node in nodes.all() {
        count += store.in_time(redis::cmd("DBSIZE").query_async::<u64>(node)).await?;
    }
    Ok(count)
}

/// What the database holds.
pub async fn look_into(store: &Redis, nodes: &mut Nodes) -> Result<Found, StoreError> {
    let marker = redis::cmd("GET").arg(HELD).to_owned();
    let marker: Option<String> = store.in_time(marker.query_async(nodes.of(HELD))).await?;
    let count = count_keys(store, nodes).await?;
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
pub async fn write_state(store: &Redis, nodes: &mut Nodes, state: &HeldState) -> Result<(), StoreError> {
    let text = serde_json::to_string(state).map_err(|error| StoreError::store(&store.url, error))?;
    store.in_time(redis::cmd("SET").arg(HELD).arg(text).exec_async(nodes.of(HELD))).await
}

/// Removes all keys, all of which are Encore's. From now on the database is Encore's, and unfinished.
async fn empty(store: &Redis, nodes: &mut Nodes) -> Result<(), StoreError> {
    let marked = nodes.place(HELD);
    let failed = |error| store.failed(&error);
    // The marker first: a load that is interrupted here must not leave nodes with keys and no marker.
    redis::cmd("SET").arg(HELD).arg("").exec_async(nodes.of(HELD)).await.map_err(failed)?;
    for (place, node) in nodes.all().iter_mut().enumerate() {
        let mut empty = redis::pipe();
        empty.atomic().cmd("FLUSHDB");
        if place == marked {
            empty.cmd("SET").arg(HELD).arg("");
        }
        empty.exec_async(node).await.map_err(failed)?;
    }
    Ok(())
}

/// Removes all keys of Encore's and loads the data set; the marker comes last.
pub async fn load(store: &Redis, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
    let fields = Arc::new(Fields::of(source));
    let mut nodes = store.nodes().await?;
    store.await_replica(&mut nodes).await?;
    if let Found::Foreign(count) = look_into(store, &mut nodes).await? {
        return Err(foreign(store, count));
    }
    keys::of_records(store, &mut nodes, &fields.data.keys).await?;
    empty(store, &mut nodes).await?;

    let (total, index, ttl) = (KvData::count(source), has_scans(source), store.ttl);
    let mut done = 0;
    for fragment in source.fragments() {
        let nodes = &nodes;
        let pipelines = KvData::records(source, fragment, &store.url)?.flat_map({
            let fields = fields.clone();
            move |chunk| match chunk {
                Ok(records) => pipelines(nodes, &fields, &records, index, ttl).into_iter().map(Ok).collect(),
                Err(error) => vec![Err(error)],
            }
        });
        let sent = stream::iter(pipelines).map(|made: Result<Batch, StoreError>| async move {
            let Batch { place, pipeline, records } = made?;
            let mut connection = nodes.handle(place);
            pipeline.exec_async(&mut connection).await.map_err(|error| store.failed(&error))?;
            Ok::<u64, StoreError>(records)
        });
        let mut sent = sent.buffer_unordered(PIPELINES_IN_FLIGHT * nodes.count());
        while let Some(records) = sent.try_next().await? {
            done += records;
            progress(done.min(total), total);
        }
    }
    write_state(store, &mut nodes, &store.loaded(source)).await?;
    store.await_replica(&mut nodes).await?;
    progress(total, total);
    Ok(())
}

/// Builds the index of the keys of all records that are there.
pub async fn index(store: &Redis, nodes: &mut Nodes, source: &Source) -> Result<(), StoreError> {
    let keys = keys::of_records(store, nodes, &KvData::of(source).keys).await?;
    let node = nodes.of(INDEX);
    store.in_time(redis::cmd("DEL").arg(INDEX).exec_async(node)).await?;
    for some in keys.chunks(PIPELINE_RECORDS_MAX as usize) {
        let mut add = redis::cmd("ZADD").arg(INDEX).to_owned();
        for key in some {
            add.arg(0).arg(key);
        }
        store.in_time(add.exec_async(node)).await?;
    }
    Ok(())
}

/// How many records a pipeline has.
fn records_at_once(fields: &Fields) -> usize {
    let bytes = fields.data.data.fields as u64 * fields.data.data.field_bytes as u64;
    (PIPELINE_BYTES_MAX / bytes.max(1)).clamp(1, PIPELINE_RECORDS_MAX) as usize
}

/// Commands for one node.
struct Batch {
    place: usize,
    pipeline: Pipeline,
    /// How many records they store.
    records: u64,
}

/// The commands that store some records.
fn pipelines(nodes: &Nodes, fields: &Fields, records: &[u64], index: bool, ttl: Option<u32>) -> Vec<Batch> {
    let mut value = String::new();
    let made = records.chunks(records_at_once(fields)).flat_map(|records| {
        let empty = |place| Batch { place, pipeline: redis::pipe(), records: 0 };
        let mut batches: Vec<Batch> = (0..nodes.count()).map(empty).collect();
        let keys: Vec<String> = records.iter().map(|record| fields.data.keys.key(*record)).collect();
        for (record, key) in records.iter().zip(&keys) {
            let Batch { pipeline, records, .. } = &mut batches[nodes.place(key)];
            *records += 1;
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
            let pipeline = &mut batches[nodes.place(INDEX)].pipeline;
            pipeline.cmd("ZADD").arg(INDEX);
            for key in &keys {
                pipeline.arg(0).arg(key);
            }
        }
        batches.into_iter().filter(|batch| !batch.pipeline.is_empty())
    });
    made.collect()
}

/// How many members the index of keys has.
async fn count_indexed(store: &Redis, nodes: &mut Nodes) -> Result<u64, StoreError> {
    let count = redis::cmd("ZCARD").arg(INDEX).to_owned();
    store.in_time(count.query_async(nodes.of(INDEX))).await
}

/// Checks by counting that a freshly loaded store holds the data set. With a time to live, records
/// may be missing.
pub async fn check_count(store: &Redis, source: &Source) -> Result<(), StoreError> {
    let mut nodes = store.nodes().await?;
    let keys = count_keys(store, &mut nodes).await?;
    let mut indexes = 0;
    for name in [INDEX, keys::INDEX_OF_YCSB] {
        let exists = redis::cmd("EXISTS").arg(name).to_owned();
        indexes += store.in_time(exists.query_async::<u64>(nodes.of(name))).await?;
    }
    let indexed = count_indexed(store, &mut nodes).await?;
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
    let mut nodes = store.nodes().await?;
    let keys = keys::of_records(store, &mut nodes, &fields.data.keys).await?;
    let failed =
        |message: String| StoreError::store(&store.url, format!("{message}; load it again with `encore replay load`"));
    if has_scans(source) {
        let indexed = count_indexed(store, &mut nodes).await?;
        if indexed != keys.len() as u64 {
            return Err(failed(format!("{INDEX} has {indexed} keys, but there are {} records", keys.len())));
        }
    }
    let mut of_nodes = vec![Vec::new(); nodes.count()];
    keys.iter().for_each(|key| of_nodes[nodes.place(key)].push(key));
    let mut digest = StateDigest::default();
    for (node, keys) in nodes.all().iter_mut().zip(&of_nodes) {
        for some in keys.chunks(records_at_once(&fields)) {
            let mut questions = redis::pipe();
            for key in some {
                questions.cmd("HMGET").arg(key).arg(fields.names());
            }
            let records: Vec<Vec<Option<Vec<u8>>>> = store.in_time(questions.query_async(node)).await?;
            for (key, values) in some.iter().zip(&records) {
                let named = values.iter().zip(fields.names());
                let values = named.map(|(value, name)| value.as_deref().ok_or_else(|| failed(lacks_field(key, name))));
                digest.record(key, values.collect::<Result<Vec<&[u8]>, StoreError>>()?);
            }
        }
    }
    Ok(digest)
}
