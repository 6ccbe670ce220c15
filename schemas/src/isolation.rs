//! Levels of isolation of transactions, in common words. Each store calls its own by other names.

use serde::{Deserialize, Serialize};

/// What a store promises to transactions that run at the same time, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// A statement may see what is never committed.
    ReadUncommitted,
    /// Each statement sees what was committed when it began.
    ReadCommitted,
    /// A record that a transaction has read stays as it is, for this transaction.
    RepeatableRead,
    /// A transaction sees one state, and the first of two that write the same record wins. Two
    /// transactions may each write what the other has read.
    Snapshot,
    /// Transactions are as if one came after the other.
    Serializable,
    /// The same, in an order in which none comes before one that had ended when it began.
    StrictSerializable,
}

impl Isolation {
    /// Every level, from the weakest to the strongest.
    pub const ALL: [Isolation; 6] = [
        Isolation::ReadUncommitted,
        Isolation::ReadCommitted,
        Isolation::RepeatableRead,
        Isolation::Snapshot,
        Isolation::Serializable,
        Isolation::StrictSerializable,
    ];

    /// The level in words, as stores say what they promise.
    pub const fn name(self) -> &'static str {
        match self {
            Isolation::ReadUncommitted => "read uncommitted",
            Isolation::ReadCommitted => "read committed",
            Isolation::RepeatableRead => "repeatable read",
            Isolation::Snapshot => "snapshot",
            Isolation::Serializable => "serializable",
            Isolation::StrictSerializable => "strict serializable",
        }
    }

    /// The level with this name; hyphens count as spaces, as in URLs. None if there is none.
    pub fn from_name(name: &str) -> Option<Isolation> {
        let name = name.replace('-', " ");
        Isolation::ALL.into_iter().find(|level| level.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_found_by_their_names() {
        for level in Isolation::ALL {
            assert_eq!(Isolation::from_name(level.name()), Some(level));
            assert_eq!(serde_json::to_value(level).unwrap(), level.name().replace(' ', "-"));
        }
        assert_eq!(Isolation::from_name("read-committed"), Some(Isolation::ReadCommitted));
        assert_eq!(Isolation::from_name("chaos"), None);
    }
}
