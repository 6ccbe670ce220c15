//! Loads a data set, checks it, digests what is there.

use std::collections::BTreeSet;
use std::path::Path;

use memcache::exp::{AsyncMetaConnection, Error, GetOptions, MetaResponse, ReturnCode, SetMode, build_get, build_set};
use schemas::digest::StateDigest;
use schemas::trace::OperationsReader;
use schemas::vocabulary::kv::{Kv, Verb};

use super::connection::set_options;
use super::record::{self, Record};
use super::{Memcached, text};
use crate::source::Source;
use crate::stores::fields::{Fields, lacks_field};
use crate::stores::kv::KvData;
use crate::stores::{HeldState, LoadProgress, StoreError};

/// The key of the marker.
const HELD: &str = "encore-held";

/// What is counted.
pub const ITEMS: &str = "items of records";

/// What the marker says during a load.
const UNFINISHED: &str = "unfinished";

/// The most bytes of values (except for a single record) and records that are sent together.
const BATCH_BYTES_MAX: u64 = 1 << 20;
const BATCH_RECORDS_MAX: u64 = 1_000;

/// How many operations of a trace are read at a time.
const CHUNK_ROWS: usize = 16_384;

/// What the marker says.
pub enum Marker {
    Missing,
    Unfinished,
    Held(HeldState),
}

/// Reads the marker.
pub async fn marker(store: &Memcached, link: &mut AsyncMetaConnection) -> Result<Marker, StoreError> {
    let look = build_get(HELD, &GetOptions::default()).map_err(|error| store.failed(&error))?;
    let answer = store.in_time(link.execute(&look)).await?;
    let Some(text) = answer.value() else { return Ok(Marker::Missing) };
    if text == UNFINISHED.as_bytes() {
        return Ok(Marker::Unfinished);
    }
    let held = serde_json::from_slice(text);
    held.map(Marker::Held).map_err(|error| StoreError::store(&store.url, format!("{HELD}: {error}")))
}

async fn set_marker(store: &Memcached, link: &mut AsyncMetaConnection, text: &str) -> Result<(), StoreError> {
    let set = build_set(HELD, text, &set_options(SetMode::Set, None)).map_err(|error| store.failed(&error))?;
    let answer = store.in_time(link.execute(&set)).await?;
    check_stored(store, &[answer])
}

/// What the server holds; none without a marker, which it may have evicted.
pub async fn held(store: &Memcached, link: &mut AsyncMetaConnection) -> Result<Option<HeldState>, StoreError> {
    match marker(store, link).await? {
        Marker::Held(held) => Ok(Some(held)),
        Marker::Missing | Marker::Unfinished => Ok(None),
    }
}

/// Writes the marker.
pub async fn write_state(
    store: &Memcached,
    link: &mut AsyncMetaConnection,
    state: &HeldState,
) -> Result<(), StoreError> {
    let text = serde_json::to_string(state).map_err(|error| StoreError::store(&store.url, error))?;
    set_marker(store, link, &text).await
}

/// Refuses a server with items that Encore has not made.
async fn check_foreign(store: &Memcached, is_marked: bool, fields: &Fields) -> Result<(), StoreError> {
    let mut foreign = None;
    let is_own = |key: &str| {
        let record = record::record_key(key).and_then(|key| fields.data.keys.parse(key));
        is_marked && (record.is_some() || key == HELD)
    };
    let listed = text::each_key(&store.address, store.patience(), |key| {
        if foreign.is_none() && !is_own(key) {
            foreign = Some(key.to_string());
        }
    });
    listed.await.map_err(|error| store.unreachable(&error))?;
    match foreign {
        None => Ok(()),
        Some(key) => Err(StoreError::usage(
            &store.url,
            format!(
                "contains the item {key:?}, which Encore has not made; use another server, or empty this one with \
                 flush_all"
            ),
        )),
    }
}

/// Removes all items, all of which are Encore's, and loads the data set; the marker comes last. Refuses
/// a data set that does not fit into the server's memory, and leaves the server empty then.
pub async fn load(store: &Memcached, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
    let fields = Fields::of(source);
    let mut link = store.keeper().await?;
    let is_marked = !matches!(marker(store, &mut link).await?, Marker::Missing);
    check_foreign(store, is_marked, &fields).await?;
    empty(store).await?;
    let evicted_before = Memory::of(store).await?.evicted;
    set_marker(store, &mut link, UNFINISHED).await?;

    let total = KvData::count(source);
    let mut done = 0;
    let mut key = String::new();
    for fragment in source.fragments() {
        for records in KvData::records(source, fragment, &store.url)? {
            for records in records?.chunks(records_at_once(&fields)) {
                let mut commands = Vec::with_capacity(records.len());
                for record in records {
                    record::item_key(&fields.data.keys.key(*record), &mut key);
                    let item = record::whole(&fields, |field, text| fields.data.initial(*record, field, text));
                    let command = build_set(&key, item, &set_options(SetMode::Set, store.ttl));
                    commands.push(command.map_err(|error| store.failed(&error))?);
                }
                check_stored(store, &store.in_time(link.execute_batch(&commands)).await?)?;
                done += records.len() as u64;
                progress(done.min(total), total);
            }
        }
    }
    let memory = Memory::of(store).await?;
    if memory.evicted > evicted_before {
        empty(store).await?;
        return Err(StoreError::usage(&store.url, memory.lacks_room_for(total, &source.folder)));
    }
    write_state(store, &mut link, &store.loaded(source)).await
}

/// Removes all items.
async fn empty(store: &Memcached) -> Result<(), StoreError> {
    let emptied = text::ask(&store.address, "flush_all", store.patience()).await;
    match emptied.map_err(|error| store.unreachable(&error))?.as_slice() {
        [answer] if answer == "OK" => Ok(()),
        other => Err(StoreError::store(&store.url, format!("unexpected answer to flush_all: {other:?}"))),
    }
}

/// What the server says of its memory.
struct Memory {
    /// How many items it has evicted since its start.
    evicted: u64,
    /// How many items it holds.
    items: u64,
    /// The bytes that all items may take.
    bytes_max: u64,
}

impl Memory {
    async fn of(store: &Memcached) -> Result<Memory, StoreError> {
        let [evictions, items, limit] = ["evictions", "curr_items", "limit_maxbytes"];
        let stats = store.stats("stats", &[evictions, items, limit]).await?;
        let number = |name: &str| stats.get(name).and_then(|text| text.parse().ok()).unwrap_or_default();
        Ok(Memory { evicted: number(evictions), items: number(items), bytes_max: number(limit) })
    }

    /// Why a data set of so many records cannot be loaded, and what to do.
    fn lacks_room_for(&self, records: u64, trace: &Path) -> String {
        const MIB: u64 = 1 << 20;
        let (has, items) = (self.bytes_max / MIB, self.items.max(1));
        // In proportion to what fits, and a tenth more.
        let needed = (self.bytes_max as u128 * records as u128 * 11 / 10 / items as u128).div_ceil(MIB as u128);
        format!(
            "the {records} records of {} do not fit into the server's {has} MB, so it has evicted some of them; start \
             memcached with more memory (-m {needed} or more), or use a trace set with fewer or smaller records \
             (data.records, data.fields, data.field_bytes)",
            trace.display()
        )
    }
}

fn check_stored(store: &Memcached, answers: &[MetaResponse]) -> Result<(), StoreError> {
    match answers.iter().find(|answer| answer.rc() != ReturnCode::Hd) {
        None => Ok(()),
        Some(answer) => Err(StoreError::store(&store.url, format!("an item was not stored: {:?}", answer.rc()))),
    }
}

fn records_at_once(fields: &Fields) -> usize {
    let bytes = fields.data.data.fields as u64 * fields.data.data.field_bytes as u64;
    (BATCH_BYTES_MAX / bytes.max(1)).clamp(1, BATCH_RECORDS_MAX) as usize
}

/// Looks items of records up, without a change of what is evicted first.
async fn look(
    store: &Memcached,
    link: &mut AsyncMetaConnection,
    keys: &[String],
    value: bool,
) -> Result<Vec<MetaResponse>, StoreError> {
    let options = {
        let mut options = GetOptions::default();
        (options.value, options.no_lru_bump) = (value, true);
        options
    };
    let mut item_key = String::new();
    let commands = keys.iter().map(|key| {
        record::item_key(key, &mut item_key);
        build_get(&item_key, &options)
    });
    let commands = commands.collect::<Result<Vec<_>, Error>>().map_err(|error| store.failed(&error))?;
    store.in_time(link.execute_batch(&commands)).await
}

/// How many records of the data set the server holds.
pub async fn count(store: &Memcached, source: &Source) -> Result<u64, StoreError> {
    let fields = Fields::of(source);
    let mut link = store.keeper().await?;
    let mut found = 0;
    for fragment in source.fragments() {
        for records in KvData::records(source, fragment, &store.url)? {
            let keys: Vec<String> = records?.iter().map(|record| fields.data.keys.key(*record)).collect();
            for keys in keys.chunks(BATCH_RECORDS_MAX as usize) {
                let answers = look(store, &mut link, keys, false).await?;
                found += answers.iter().filter(|answer| answer.rc() == ReturnCode::Hd).count() as u64;
            }
        }
    }
    Ok(found)
}

/// The key of a record that the server lists, whatever tool has made it.
pub async fn example(store: &Memcached) -> Result<Option<String>, StoreError> {
    let mut example = None;
    let listed = text::each_key(&store.address, store.patience(), |key| {
        example = example.take().or_else(|| record::record_key(key).map(str::to_string));
    });
    listed.await.map_err(|error| store.unreachable(&error))?;
    Ok(example)
}

/// Checks that a freshly loaded server holds every record of the data set. With a time to live,
/// records may be missing.
pub async fn check_all(store: &Memcached, source: &Source) -> Result<(), StoreError> {
    if store.ttl.is_some() {
        return Ok(());
    }
    let (found, expected) = (count(store, source).await?, KvData::count(source));
    if found == expected {
        return Ok(());
    }
    let error = StoreError::miscounted(&store.url, ITEMS, found as i64, expected as i64, source);
    Err(error.with("start memcached with more memory (-m)"))
}

/// The digest of all records of the data set and all that sessions insert: memcached cannot list
/// its items exactly.
pub async fn digest(store: &Memcached, source: &Source) -> Result<StateDigest, StoreError> {
    let fields = Fields::of(source);
    let keys: Vec<String> = numbers(store, source)?.into_iter().map(|record| fields.data.keys.key(record)).collect();
    let mut link = store.keeper().await?;
    let mut digest = StateDigest::default();
    for keys in keys.chunks(records_at_once(&fields)) {
        let failed = |message: String| StoreError::store(&store.url, message);
        for (key, answer) in keys.iter().zip(&look(store, &mut link, keys, true).await?) {
            let Some(item) = answer.value() else { continue };
            let record = Record::parse(item).map_err(failed)?;
            let values = record
                .values(fields.data.data.all_fields(), &fields)
                .map(|(field, value)| value.ok_or_else(|| failed(lacks_field(key, fields.name(field)))));
            digest.record(key, values.collect::<Result<Vec<&[u8]>, StoreError>>()?);
        }
    }
    Ok(digest)
}

/// The records that can be there, whatever sessions have run.
fn numbers(store: &Memcached, source: &Source) -> Result<BTreeSet<u64>, StoreError> {
    let mut numbers = BTreeSet::new();
    let mut rows = Vec::with_capacity(CHUNK_ROWS);
    for fragment in source.fragments() {
        for records in KvData::records(source, fragment, &store.url)? {
            numbers.extend(records?);
        }
        let files = source.manifest.operation_files(&source.folder, fragment);
        let mut reader = OperationsReader::<Kv>::new(fragment, files, CHUNK_ROWS);
        while reader.next_rows(&mut rows).map_err(|error| StoreError::usage(&store.url, error))? {
            let inserts = rows.iter().filter(|row| row.operation.verb == Verb::Insert);
            numbers.extend(inserts.map(|row| row.operation.key));
        }
    }
    Ok(numbers)
}
