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

use std::ops::Range;
use std::sync::Arc;

use schemas::digest::StateDigest;
use schemas::vocabulary::kv::Kv;

use super::Relational;
use super::engine::{Client, Engine, Fields};
use super::perform::Performer;
use super::state::sql;
use crate::source::Source;
use crate::stores::kv::KvData;
use crate::stores::{HeldState, LoadProgress, Serves, Store, StoreError};
use actions::Actions;
use rows::DataSet;
use statements::Statements;

/// The table.
pub const TABLE: &str = "usertable";

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
        Err(self.misused(format!(
            "table {TABLE} has {found} rows, expected {expected} after a load; load it again with `encore replay load`"
        )))
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        KvData::has_one_state(source, self.url())?;
        let mut client = self.client().await?;
        let fields = KvData::of(source).data.fields as usize;
        let mut digest = StateDigest::default();
        let mut take = |row: &<E::Client as Client>::Row| {
            let key = std::str::from_utf8(row.octets(0)?).map_err(|e| sqlx::Error::Decode(e.into()))?;
            let values = (1..=fields).map(|column| row.octets(column)).collect::<Result<Vec<_>, _>>()?;
            digest.record(key, values);
            Ok(())
        };
        let all = statements::every_row(fields as u32);
        client.visit(sql(all), &mut take).await.map_err(|e| self.driver_failed(e))?;
        self.in_time(client.disconnect()).await?;
        Ok(digest)
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<KvConnection<E>>, StoreError> {
        let data = Arc::new(KvData::of(source));
        let statements = Arc::new(Statements::new(data.data.fields, &E::DIALECT));
        self.performers(threads, || Actions::new(statements.clone(), data.clone())).await
    }
}
