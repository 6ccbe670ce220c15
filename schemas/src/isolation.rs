//! Levels of isolation of transactions, in common words. Each store calls its own by other names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The setting in which a store says at which level it runs transactions. Its setting `isolation` is
/// what it promises to operations by themselves.
pub const TRANSACTIONS_SETTING: &str = "transactions";

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

    /// The level that a store promised to transactions, by its settings in effect. A remark may follow
    /// the level. None if transactions were not used, or the store has none.
    pub fn promised(settings: &BTreeMap<String, String>) -> Option<Isolation> {
        let words = settings.get(TRANSACTIONS_SETTING)?;
        Isolation::from_name(words.split(':').next().unwrap_or(words).trim())
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

    #[test]
    fn what_is_promised_to_transactions_is_not_what_operations_get() {
        let promised = |name: &str, words: &str| Isolation::promised(&[(name.to_string(), words.to_string())].into());
        assert_eq!(promised("transactions", "snapshot: MVCC"), Some(Isolation::Snapshot));
        assert_eq!(promised("transactions", "off: begin, commit and abort do nothing"), None);
        assert_eq!(promised("isolation", "serializable"), None);
    }
}
