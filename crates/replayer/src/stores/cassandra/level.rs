//! Consistency levels: how many replicas answer an operation.

use scylla::statement::{Consistency, SerialConsistency};

use crate::stores::StoreError;
use crate::stores::url::StoreUrl;

/// What a level is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Reads and scans.
    Reads,
    /// Inserts, updates and deletes.
    Writes,
}

/// A consistency level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(Consistency);

/// Every level with Cassandra's name of it.
const LEVELS: [(&str, Consistency); 11] = [
    ("ONE", Consistency::One),
    ("TWO", Consistency::Two),
    ("THREE", Consistency::Three),
    ("QUORUM", Consistency::Quorum),
    ("ALL", Consistency::All),
    ("LOCAL_ONE", Consistency::LocalOne),
    ("LOCAL_QUORUM", Consistency::LocalQuorum),
    ("EACH_QUORUM", Consistency::EachQuorum),
    ("ANY", Consistency::Any),
    ("SERIAL", Consistency::Serial),
    ("LOCAL_SERIAL", Consistency::LocalSerial),
];

impl Level {
    /// The level that a parameter names; QUORUM without it.
    pub fn of(url: &StoreUrl, parameter: &str, used_for: Use) -> Result<Level, StoreError> {
        let Some(text) = url.text(parameter) else { return Ok(Level(Consistency::Quorum)) };
        Level::named(text, used_for).map_err(|why| StoreError::usage(url, format!("parameter {parameter}: {why}")))
    }

    /// The level with this name, in capitals or not. The error says why it cannot be used.
    pub fn named(text: &str, used_for: Use) -> Result<Level, String> {
        let Some((name, level)) = LEVELS.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) else {
            let names = LEVELS.map(|(name, _)| name).join(", ");
            return Err(format!("{text:?} is not one of {names}"));
        };
        match (used_for, level) {
            (Use::Reads, Consistency::Any) => Err(format!("{name} is a level of writes; reads need ONE or more")),
            (Use::Writes, Consistency::Serial | Consistency::LocalSerial) => {
                Err(format!("{name} is a level of reads; for such writes use conditions=lwt and QUORUM"))
            }
            _ => Ok(Level(level)),
        }
    }

    /// As the driver says it.
    pub fn consistency(self) -> Consistency {
        self.0
    }

    /// The level at which the conditions of writes at this one are checked.
    pub fn of_conditions(self) -> SerialConsistency {
        match self.is_local() {
            true => SerialConsistency::LocalSerial,
            false => SerialConsistency::Serial,
        }
    }

    /// Cassandra's name.
    pub fn name(self) -> &'static str {
        LEVELS.iter().find(|(_, level)| *level == self.0).map_or("unknown", |(name, _)| name)
    }

    fn is_local(self) -> bool {
        matches!(self.0, Consistency::LocalOne | Consistency::LocalQuorum | Consistency::LocalSerial)
    }

    /// How many replicas of a data centre answer, of so many. ANY is satisfied by a note for later.
    pub fn replicas(self, factor: u32) -> u32 {
        match self.0 {
            Consistency::Any => 0,
            Consistency::One | Consistency::LocalOne => 1,
            Consistency::Two => 2,
            Consistency::Three => 3,
            Consistency::All => factor,
            _ => factor / 2 + 1,
        }
    }
}

/// Whether each read meets the last write, on at least one of the replicas in each data centre.
pub fn meet(read: Level, write: Level, factor: u32) -> bool {
    read.replicas(factor) + write.replicas(factor) > factor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_is_known_and_says_how_many_replicas_answer() {
        let level = |name: &str| {
            let url = StoreUrl::parse(&format!("cassandra://h/k?l={name}")).unwrap();
            Level::of(&url, "l", if name == "ANY" { Use::Writes } else { Use::Reads }).unwrap()
        };
        for (name, of_three, of_one) in [
            ("ANY", 0, 0),
            ("ONE", 1, 1),
            ("LOCAL_ONE", 1, 1),
            ("TWO", 2, 2),
            ("THREE", 3, 3),
            ("QUORUM", 2, 1),
            ("LOCAL_QUORUM", 2, 1),
            ("EACH_QUORUM", 2, 1),
            ("SERIAL", 2, 1),
            ("LOCAL_SERIAL", 2, 1),
            ("ALL", 3, 1),
        ] {
            let level = level(name);
            assert_eq!((level.name(), level.replicas(3), level.replicas(1)), (name, of_three, of_one));
        }
        assert!(meet(level("QUORUM"), level("QUORUM"), 3) && meet(level("ONE"), level("ALL"), 3));
        assert!(!meet(level("ONE"), level("QUORUM"), 3) && !meet(level("TWO"), level("TWO"), 5));
        assert!(meet(level("ONE"), level("ONE"), 1) && !meet(level("ONE"), level("ANY"), 1));
        assert_eq!(level("local_quorum").of_conditions(), SerialConsistency::LocalSerial);
    }
}
