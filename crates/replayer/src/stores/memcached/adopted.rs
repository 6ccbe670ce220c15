//! Records that another tool has loaded, in the layout of YCSB's binding.

use super::{Memcached, load};
use crate::source::Source;
use crate::stores::adoption::{Adopts, Marked, Records};
use crate::stores::{HeldState, Store, StoreError};

impl Adopts for Memcached {
    async fn marked(&self) -> Result<Marked, StoreError> {
        Ok(match load::marker(self, &mut self.keeper().await?).await? {
            load::Marker::Missing => Marked::Foreign,
            load::Marker::Unfinished => Marked::Unfinished,
            load::Marker::Held(held) => Marked::Held(held),
        })
    }

    async fn records(&self, source: &Source) -> Result<Records, StoreError> {
        let count = load::count(self, source).await?;
        Ok(Records { what: load::ITEMS, count, example: load::example(self).await? })
    }

    fn fresh(&self, source: &Source) -> HeldState {
        self.loaded(source)
    }

    async fn mark(&self, _source: &Source, state: &HeldState) -> Result<(), StoreError> {
        self.set_held(state).await
    }
}
