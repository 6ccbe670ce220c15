//! The names of the collections of all families, for what handles a database whatever is in it.

use crate::stores::HeldState;

/// The collection of the records.
pub const RECORDS: &str = "usertable";

/// What the marker says of a store with records.
pub const DESIGN_OF_RECORDS: (&str, &str) = ("collection", RECORDS);

/// The collections of the social network.
pub const MEMBERS: &str = "members";
pub const RESOURCES: &str = "resources";
pub const COMMENTS: &str = "comments";

/// All collections of the social network, of any design.
pub const SOCIAL: [&str; 3] = [MEMBERS, RESOURCES, COMMENTS];

/// Whether a store holds records.
pub fn has_records(held: &HeldState) -> bool {
    let (name, value) = DESIGN_OF_RECORDS;
    held.design.get(name).is_some_and(|own| own == value)
}

/// What the marker says of the family in a store with the tables of a trace set.
pub const FAMILY_OF_TABLES: (&str, &str) = ("family", "sql");

/// Whether a store holds the tables of a trace set.
pub fn has_tables(held: &HeldState) -> bool {
    let (name, value) = FAMILY_OF_TABLES;
    held.design.get(name).is_some_and(|own| own == value)
}
