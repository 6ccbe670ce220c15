//! What the items of the family are called, in tables and in sentences.

use schemas::vocabulary::kv::ABSENT;

use crate::family::{ItemIs, ItemWords};
use crate::validate::SHAPE;

/// A field of a record.
pub(super) const FIELD: &str = "field";

/// Whether a record exists.
pub(super) const EXISTENCE: &str = "existence";

/// The words for an item.
pub(super) fn words(item: &str) -> Option<ItemWords> {
    let of_record = |is| Some(ItemWords { owner: "record", is });
    match item {
        FIELD => of_record(ItemIs::Register { noun: "field", absent: ABSENT }),
        EXISTENCE => of_record(ItemIs::Existence),
        SHAPE => of_record(ItemIs::Answer("a field that was not asked for, or records that are out of order")),
        _ => None,
    }
}
