//! The `kv` family: the table `usertable`, as YCSB's JDBC binding and go-ycsb have it.
//!
//! ```text
//!  usertable (YCSB_KEY VARCHAR(255) PRIMARY KEY, FIELD0 TEXT, FIELD1 TEXT, …)
//! ```
//!
//! Keys are ordered by their bytes, whatever the database's own collation. The parameters of a URL
//! that choose a physical design are those of the `social` family; they change nothing here.

mod actions;
mod rows;
pub mod statements;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use schemas::digest::StateDigest;
use schemas::isolation::Isolation;
use schemas::vocabulary::kv::Kv;

use super::contents::Contents;
use super::engine::{Client, Engine, Fields};
use super::perform::Performer;
use super::state::{self, sql};
use super::{LOCKING, Relational};
use crate::source::Source;
use crate::stores::adoption::{Adopts, Marked, Records, adopt};
use crate::stores::fields::lacks_field;
use crate::stores::kv::KvData;
use crate::stores::{HeldState, LoadProgress, Serves, Store, StoreError};
use actions::Actions;
use rows::DataSet;
use statements::Statements;

/// The table.
pub const TABLE: &str = "usertable";

/// What is counted.
const ROWS: &str = "rows of table usertable";

/// The version of the table. A store with another version must be loaded again.
const LAYOUT: u32 = 1;

/// Whether a marker is that of this family: it has no physical design to choose.
pub(super) fn has_loaded(held: &HeldState) -> bool {
    held.design.is_empty()
}

/// A thread's connection.
pub type KvConnection<E> = Performer<E, Actions>;

/// The name of the column of a field.
fn column(field: u32) -> String {
    format!("FIELD{field}")
}

/// The fields of a mask, in ascending order.
#[inline]
fn fields_of(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let field = (mask != 0).then(|| mask.trailing_zeros())?;
        mask &= mask - 1;
        Some(field)
    })
}

impl<E: Engine> Serves<Kv> for Relational<E> {
    type Connection = KvConnection<E>;

    fn transactions(&self) -> Option<Isolation> {
        Some(self.engine().isolation())
    }

    fn design_settings(&self, _source: &Source) -> BTreeMap<String, String> {
        let locking = if self.has_locking_reads() { "read" } else { "none" };
        BTreeMap::from([(LOCKING.to_string(), locking.to_string())])
    }

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        E::load(self, &DataSet::of(source), progress).await
    }

    fn check_design(&self, held: &HeldState) -> Result<(), StoreError> {
        held.check(self.url(), LAYOUT, &[])
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        let found = self.count(&mut client, &format!("SELECT count(*) FROM {TABLE}")).await?;
        self.in_time(client.disconnect()).await?;
        let expected = KvData::count(source);
        if found == expected {
            return Ok(());
        }
        Err(StoreError::miscounted(self.url(), ROWS, found as i64, expected as i64, source))
    }

    async fn adopt(&self, source: &Source) -> Result<(), StoreError> {
        adopt(self, source).await
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        KvData::has_one_state(source, self.url())?;
        let mut client = self.client().await?;
        let fields = KvData::of(source).data.fields as usize;
        let mut digest = StateDigest::default();
        let mut take = |row: &<E::Client as Client>::Row| {
            let key = std::str::from_utf8(row.octets(0)?).map_err(|e| sqlx::Error::Decode(e.into()))?;
            let value = |number: usize| {
                let lacks = || sqlx::Error::Decode(lacks_field(key, &column(number as u32 - 1)).into());
                row.octets_or_null(number)?.ok_or_else(lacks)
            };
            let values = (1..=fields).map(value).collect::<Result<Vec<_>, _>>()?;
            digest.record(key, values);
            Ok(())
        };
        let all = statements::every_row(fields as u32);
        client.visit(sql(all), &mut take).await.map_err(|e| self.driver_failed(e))?;
        self.in_time(client.disconnect()).await?;
        Ok(digest)
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<KvConnection<E>>, StoreError> {
        self.performers(threads, self.actions(source)).await
    }

    async fn connect_to_latest(
        &self,
        source: &Source,
        threads: Range<u32>,
    ) -> Result<Vec<KvConnection<E>>, StoreError> {
        self.performers_on(&self.engine, threads, self.actions(source)).await
    }
}

impl<E: Engine> Relational<E> {
    /// Makes what each connection needs to perform operations.
    fn actions(&self, source: &Source) -> impl Fn() -> Actions {
        let data = Arc::new(KvData::of(source));
        let statements = Arc::new(Statements::new(data.data.fields, &E::DIALECT));
        let has_locking_reads = self.has_locking_reads();
        move || Actions::new(statements.clone(), data.clone(), has_locking_reads)
    }
}

impl<E: Engine> Adopts for Relational<E> {
    async fn marked(&self) -> Result<Marked, StoreError> {
        match Relational::marked(self).await? {
            Marked::Held(held) if !has_loaded(&held) => Err(self.misused(format!(
                "contains a data set of another family beside table {TABLE}; load {TABLE} into a database of its own"
            ))),
            marked => Ok(marked),
        }
    }

    async fn records(&self, _source: &Source) -> Result<Records, StoreError> {
        let mut client = self.client().await?;
        let (mut count, mut example) = (0, None);
        let mut take = |row: &<E::Client as Client>::Row| {
            count = row.integer(0)? as u64;
            // Without rows there is no least key.
            example = row.octets(1).ok().map(|key| String::from_utf8_lossy(key).into_owned());
            Ok(())
        };
        let query = sql(format!("SELECT count(*), min(YCSB_KEY) FROM {TABLE}"));
        let counted = client.visit(query, &mut take).await;
        self.in_time(client.disconnect()).await?;
        match counted {
            Ok(()) => Ok(Records { what: ROWS, count, example }),
            Err(error) if error.as_database_error().is_some() => Err(self.misused(format!(
                "has no table {TABLE} with a column YCSB_KEY that can be kept ({}); load it with YCSB or go-ycsb, or \
                 remove --keep-data",
                super::words(&error)
            ))),
            Err(error) => Err(self.driver_failed(error)),
        }
    }

    async fn check_room(&self, value_bytes: u32) -> Result<(), StoreError> {
        let Some(widths) = E::DIALECT.widths else { return Ok(()) };
        let mut narrowest: Option<(i64, String)> = None;
        let mut take = |row: &<E::Client as Client>::Row| {
            let (name, width) = (String::from_utf8_lossy(row.octets(0)?).into_owned(), row.integer(1)?);
            let is_field = name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("field"));
            if is_field && narrowest.as_ref().is_none_or(|(least, _)| width < *least) {
                narrowest = Some((width, name));
            }
            Ok(())
        };
        let mut client = self.client().await?;
        let query = sql(format!("{widths} AND character_maximum_length < {value_bytes}"));
        self.in_time(client.visit(query, &mut take)).await?;
        self.in_time(client.disconnect()).await?;
        match narrowest {
            None => Ok(()),
            Some((width, name)) => Err(self.misused(format!(
                "column {name} of table {TABLE} holds at most {width} characters, and the trace set writes values of up \
                 to {value_bytes} (data.field_bytes); generate one with data.field_bytes = {width} or less, or widen \
                 the columns"
            ))),
        }
    }

    fn fresh(&self, source: &Source) -> HeldState {
        DataSet::of(source).loaded()
    }

    async fn mark(&self, _source: &Source, state: &HeldState) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        self.in_time(state::mark::<E>(&mut client, state)).await?;
        self.in_time(client.disconnect()).await
    }
}
