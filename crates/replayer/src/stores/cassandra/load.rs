//! Loads a data set, checks it, digests what is there.

use std::sync::Arc;

use futures::stream::{self, StreamExt, TryStreamExt};
use schemas::digest::StateDigest;
use schemas::vocabulary::kv::Verb;
use scylla::client::session::Session;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;

use super::cells::Cell;
use super::layout::Layout;
use super::rows::{self, Whole};
use super::schema::{Found, KEY, RECORDS};
use super::statements::Texts;
use super::{Cassandra, schema, timestamps, words};
use crate::source::Source;
use crate::stores::fields::{Fields, lacks_field};
use crate::stores::kv::KvData;
use crate::stores::{Fate, LoadProgress, StoreError};

/// Inserts in flight, and the most bytes of their values.
const IN_FLIGHT: usize = 128;
const BYTES_IN_FLIGHT: u64 = 8 << 20;

/// How often an insert is tried: a node that collects garbage misses the server's time limit.
const TRIES: u32 = 5;

/// Replaces what Encore has loaded by the data set; the marker comes last. Every replica must have each
/// record before an experiment starts: what a read then misses was written by the experiment.
pub async fn load(store: &Cassandra, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
    let (fields, layout) = (Arc::new(Fields::of(source)), Layout::of(source, &store.url)?);
    let session = store.session().await?;
    if let Found::Foreign(table) = schema::look_into(store, &session).await? {
        return Err(schema::foreign(store, &table));
    }
    schema::make(store, &session, fields.names(), &layout).await?;

    // A session that has seen the new table knows the nodes of each row.
    let session = store.session().await?;
    let text = Texts::of_load(store, &layout).of_operation(Verb::Insert, fields.data.data.all_fields(), &fields);
    let mut insert = session.prepare(text).await.map_err(|error| store.with_advice(words::of_prepare(&error)))?;
    insert.set_consistency(Consistency::All);
    let bytes = fields.data.data.fields as u64 * fields.data.data.field_bytes as u64;
    let in_flight = (BYTES_IN_FLIGHT / bytes.max(1)).clamp(1, IN_FLIGHT as u64) as usize;
    let loader = Loader { store, session: &session, insert, fields: &fields, layout: &layout };
    let (total, mut done) = (KvData::count(source), 0);
    for fragment in source.fragments() {
        let records = KvData::records(source, fragment, &store.url)?.flat_map(|chunk| match chunk {
            Ok(records) => records.into_iter().map(Ok).collect::<Vec<Result<u64, StoreError>>>(),
            Err(error) => vec![Err(error)],
        });
        let loader = &loader;
        let sent = stream::iter(records).map(async |record| loader.insert(record?).await);
        let mut sent = sent.buffer_unordered(in_flight);
        while sent.try_next().await?.is_some() {
            done += 1;
            if done % 1_000 == 0 {
                progress(done.min(total), total);
            }
        }
    }
    schema::write_state(store, &session, &store.loaded(source)).await?;
    progress(total, total);
    Ok(())
}

/// Inserts records.
struct Loader<'a> {
    store: &'a Cassandra,
    session: &'a Session,
    insert: PreparedStatement,
    fields: &'a Fields,
    layout: &'a Layout,
}

impl Loader<'_> {
    async fn insert(&self, record: u64) -> Result<(), StoreError> {
        let key = self.fields.data.keys.key(record);
        let values = (0..self.fields.data.data.fields).map(|field| {
            let mut text = String::new();
            self.fields.data.initial(record, field, &mut text);
            text
        });
        let values: Vec<String> = values.collect();
        let mut cells: Vec<Cell<'_>> = self.layout.fragment(record).map(Cell::Int).into_iter().collect();
        cells.push(Cell::Text(&key));
        cells.extend(values.iter().map(|text| Cell::Text(text)));
        cells.push(Cell::Long(timestamps::LOADED));
        let mut tries = 1;
        loop {
            // The time limit of an insert is the server's: many are in flight.
            match self.session.execute_unpaged(&self.insert, &cells).await {
                Ok(_) => return Ok(()),
                Err(error) if tries < TRIES && words::fate(&error) == Fate::Lost => tries += 1,
                Err(error) => return Err(self.store.failed(&error)),
            }
        }
    }
}

/// Checks by counting that a freshly loaded store holds the data set.
pub async fn check_count(store: &Cassandra, source: &Source) -> Result<(), StoreError> {
    let (session, layout) = (store.session().await?, Layout::of(source, &store.url)?);
    let (found, expected) =
        (rows::count(store, &session, &Whole::records(store, &layout)).await?, KvData::count(source));
    match found == expected {
        true => Ok(()),
        false => {
            let what = format!("rows of {RECORDS}");
            Err(StoreError::miscounted(&store.url, &what, found as i64, expected as i64, source))
        }
    }
}

/// The digest of all records.
pub async fn digest(store: &Cassandra, source: &Source) -> Result<StateDigest, StoreError> {
    let (session, layout, fields) = (store.session().await?, Layout::of(source, &store.url)?, Fields::of(source));
    let columns = format!("{KEY}, {}", fields.names().join(", "));
    let failed =
        |message: String| StoreError::store(&store.url, format!("{message}; load it again with `encore replay load`"));
    let mut digest = StateDigest::default();
    rows::each(store, &session, &Whole::records(store, &layout), &columns, |cells| {
        let key = cells.first().copied().flatten().unwrap_or_default();
        let key = std::str::from_utf8(key).map_err(|_| failed("a key is not a text".into()))?;
        let named = cells.iter().skip(1).zip(fields.names());
        let values = named.map(|(value, name)| value.ok_or_else(|| failed(lacks_field(key, name))));
        digest.record(key, values.collect::<Result<Vec<&[u8]>, StoreError>>()?);
        Ok(())
    })
    .await?;
    Ok(digest)
}
