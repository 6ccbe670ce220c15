//! The physical design of the data: what the URL's parameters choose.
//!
//! Each parameter's first value is its default:
//!
//! - `friendship`: `two-row` has a row for each of the two friends, and invitations in a table of
//!   their own. `one-row` has one row for a relation, pending or confirmed (bg-2013, Figure 1.c).
//! - `images`: `inline` has them in the member's row. `table` has profile images in a table of their
//!   own, and thumbnails in the member's row. With `none` they are outside the store.
//! - `counts`: `computed` counts rows at each read. `stored` has the counts in the member's row.
//! - `indexes`: `on` or `off`, for secondary indexes.
//!
//! docs/src/explanation/designs.md shows the tables of each.

use std::collections::BTreeMap;
use std::fmt;

use crate::source::Source;
use crate::stores::url::StoreUrl;
use crate::stores::{HeldState, StoreError};

/// The version of the tables of all designs. A store with another version must be loaded again.
const LAYOUT: u32 = 2;

/// How friendships and invitations are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Friendship {
    /// Two rows a friendship, one for each friend; invitations are another table.
    TwoRow,
    /// One row a relation, with a status.
    OneRow,
}

/// Where profile images and thumbnails are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Images {
    /// Both in the member's row.
    Inline,
    /// Profile images in a table of their own, thumbnails in the member's row.
    Table,
    /// Not in the store: for example on a file server.
    None,
}

/// Where friend, pending and resource counts come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// The lists are counted at each read.
    Computed,
    /// The member's row has them; each write updates them in its transaction.
    Stored,
}

/// Whether there are secondary indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Indexes {
    /// Every read finds its rows by an index.
    On,
    /// Only primary keys.
    Off,
}

impl Friendship {
    const ALL: [Friendship; 2] = [Friendship::TwoRow, Friendship::OneRow];

    const fn name(self) -> &'static str {
        match self {
            Friendship::TwoRow => "two-row",
            Friendship::OneRow => "one-row",
        }
    }
}

impl Images {
    const ALL: [Images; 3] = [Images::Inline, Images::Table, Images::None];

    const fn name(self) -> &'static str {
        match self {
            Images::Inline => "inline",
            Images::Table => "table",
            Images::None => "none",
        }
    }
}

impl Counts {
    const ALL: [Counts; 2] = [Counts::Computed, Counts::Stored];

    const fn name(self) -> &'static str {
        match self {
            Counts::Computed => "computed",
            Counts::Stored => "stored",
        }
    }
}

impl Indexes {
    const ALL: [Indexes; 2] = [Indexes::On, Indexes::Off];

    const fn name(self) -> &'static str {
        match self {
            Indexes::On => "on",
            Indexes::Off => "off",
        }
    }
}

/// A physical design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Design {
    /// How friendships and invitations are stored.
    pub friendship: Friendship,
    /// Where profile images and thumbnails are.
    pub images: Images,
    /// Where counts come from.
    pub counts: Counts,
    /// Whether there are secondary indexes.
    pub indexes: Indexes,
}

impl Design {
    /// The parameters of a URL that choose it.
    pub const PARAMETERS: [&str; 4] = ["friendship", "images", "counts", "indexes"];

    /// The design that a URL asks for.
    pub fn of(url: &StoreUrl) -> Result<Design, StoreError> {
        let [friendship, images, counts, indexes] = Design::PARAMETERS;
        Ok(Design {
            friendship: url.choice(friendship, &Friendship::ALL.map(|choice| (choice.name(), choice)))?,
            images: url.choice(images, &Images::ALL.map(|choice| (choice.name(), choice)))?,
            counts: url.choice(counts, &Counts::ALL.map(|choice| (choice.name(), choice)))?,
            indexes: url.choice(indexes, &Indexes::ALL.map(|choice| (choice.name(), choice)))?,
        })
    }

    /// Every design, the default first.
    pub fn all() -> impl Iterator<Item = Design> {
        Friendship::ALL.into_iter().flat_map(|friendship| {
            Images::ALL.into_iter().flat_map(move |images| {
                Counts::ALL.into_iter().flat_map(move |counts| {
                    Indexes::ALL.into_iter().map(move |indexes| Design { friendship, images, counts, indexes })
                })
            })
        })
    }

    fn choices(&self) -> [&'static str; 4] {
        [self.friendship.name(), self.images.name(), self.counts.name(), self.indexes.name()]
    }

    /// Parameter and value, for a store's settings and its held state.
    pub fn settings(&self) -> BTreeMap<String, String> {
        Design::PARAMETERS.map(String::from).into_iter().zip(self.choices().map(String::from)).collect()
    }

    /// The marker of a freshly loaded store.
    pub fn loaded(&self, source: &Source) -> HeldState {
        HeldState::loaded(LAYOUT, self.settings(), source)
    }

    /// Refuses a store that was loaded with other tables than these.
    pub fn check(&self, url: &StoreUrl, held: &HeldState) -> Result<(), StoreError> {
        let wanted: Vec<(&str, &str)> = Design::PARAMETERS.into_iter().zip(self.choices()).collect();
        held.check(url, LAYOUT, &wanted)
    }
}

impl fmt::Display for Design {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (parameter, choice)) in Design::PARAMETERS.iter().zip(self.choices()).enumerate() {
            write!(f, "{}{parameter}={choice}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_design_is_what_its_parameters_ask_for() {
        let mut names = std::collections::BTreeSet::new();
        for design in Design::all() {
            let name = design.to_string();
            let url = StoreUrl::parse(&format!("sqlite:a.db?{}", name.replace(", ", "&"))).unwrap();
            assert_eq!(Design::of(&url).unwrap(), design);
            names.insert(name);
        }
        assert_eq!(names.len(), 24);
        let default = Design::of(&StoreUrl::parse("sqlite:a.db").unwrap()).unwrap();
        assert_eq!(default.to_string(), "friendship=two-row, images=inline, counts=computed, indexes=on");
        assert_eq!(Design::all().next(), Some(default));
    }
}
