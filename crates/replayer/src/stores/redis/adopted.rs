//! Records that another tool has loaded, in the layout of YCSB's binding.

use super::{Redis, has_scans, keys, load};
use crate::source::Source;
use crate::stores::adoption::{Adopts, Marked, Records};
use crate::stores::kv::KvData;
use crate::stores::{HeldState, StoreError};

impl Adopts for Redis {
    async fn marked(&self) -> Result<Marked, StoreError> {
        Ok(match load::look_into(self, &mut self.nodes().await?).await? {
            load::Found::Empty => Marked::Empty,
            load::Found::Unfinished => Marked::Unfinished,
            load::Found::Foreign(_) => Marked::Foreign,
            load::Found::Held(held) => Marked::Held(held),
        })
    }

    async fn records(&self, source: &Source) -> Result<Records, StoreError> {
        let keys = keys::of_records(self, &mut self.nodes().await?, &KvData::of(source).keys).await?;
        Ok(Records { what: load::KEYS, count: keys.len() as u64, example: keys.into_iter().next() })
    }

    fn fresh(&self, source: &Source) -> HeldState {
        self.loaded(source)
    }

    async fn mark(&self, source: &Source, state: &HeldState) -> Result<(), StoreError> {
        let mut nodes = self.nodes().await?;
        if has_scans(source) {
            load::index(self, &mut nodes, source).await?;
        }
        load::write_state(self, &mut nodes, state).await
    }
}
