//! Which settings of the stores differ, and whether they decide what a store
//! promises: stores that promise different things are not compared in silence.

use std::collections::{BTreeMap, BTreeSet};

use schemas::comparison::{Cell, Concern, SettingDifference};

/// Beginnings of the words of a setting's name that decide what survives a crash.
const DURABILITY: [&str; 8] = ["durab", "fsync", "sync", "journal", "flush", "commit", "doublewrite", "wal"];

/// The same for what transactions see of each other.
const ISOLATION: [&str; 3] = ["isolation", "uncommitted", "consistency"];

/// The settings in which stores differ, those that matter most first. A store
/// is known by what its rated cells have recorded.
pub fn differences(cells: &[Cell]) -> Vec<SettingDifference> {
    let mut by_store: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| !cell.store_settings.is_empty()) {
        let settings = by_store.entry(&cell.store).or_default();
        for (name, value) in &cell.store_settings {
            settings.entry(name).or_default().insert(value);
        }
    }
    let names: BTreeSet<&str> = by_store.values().flat_map(|settings| settings.keys().copied()).collect();
    let mut found: Vec<SettingDifference> = names
        .into_iter()
        .filter(|name| {
            let values: BTreeSet<Option<&BTreeSet<&str>>> = by_store.values().map(|s| s.get(name)).collect();
            values.len() > 1
        })
        .map(|name| SettingDifference {
            setting: name.to_string(),
            concern: concern(name),
            values: by_store
                .iter()
                .filter_map(|(store, settings)| {
                    let values: Vec<&str> = settings.get(name)?.iter().copied().collect();
                    Some((store.to_string(), values.join(" or ")))
                })
                .collect(),
        })
        .collect();
    found.sort_by_key(|difference| difference.concern);
    found
}

/// What a setting decides, as far as its name tells.
pub fn concern(name: &str) -> Concern {
    let name = name.to_lowercase().replace("write_concern", "durability").replace("read_concern", "isolation");
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    let any = |list: &[&str], word: &str| list.iter().any(|beginning| word.starts_with(beginning));
    words
        .find_map(|word| match word {
            _ if any(&DURABILITY, word) => Some(Concern::Durability),
            _ if any(&ISOLATION, word) => Some(Concern::Isolation),
            _ => None,
        })
        .unwrap_or(Concern::Other)
}

#[cfg(test)]
mod tests {
    use schemas::comparison::Outcome;

    use super::*;

    fn cell(store: &str, settings: &[(&str, &str)]) -> Cell {
        Cell {
            point: String::new(),
            store: store.into(),
            run: String::new(),
            workload_id: String::new(),
            outcome: Outcome::Missing,
            store_settings: settings.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect(),
        }
    }

    #[test]
    fn names_tell_what_a_setting_decides() {
        for name in ["synchronous", "journal_mode", "fsync", "synchronous_commit", "flush_log_at_trx_commit"] {
            assert_eq!(concern(name), Concern::Durability, "{name}");
        }
        for name in ["wal_level", "write_concern", "sync_binlog", "durability", "innodb_doublewrite"] {
            assert_eq!(concern(name), Concern::Durability, "{name}");
        }
        for name in ["isolation", "read_uncommitted", "transaction_isolation", "read_concern", "consistency"] {
            assert_eq!(concern(name), Concern::Isolation, "{name}");
        }
        for name in ["version", "page_size", "cache_size", "images", "friendship", "max_connections"] {
            assert_eq!(concern(name), Concern::Other, "{name}");
        }
    }

    #[test]
    fn equal_settings_are_no_difference_and_unsaid_ones_are() {
        let full = [("synchronous", "full"), ("version", "3")];
        assert_eq!(differences(&[cell("a", &full), cell("b", &full), cell("b", &[])]), []);
        let found = differences(&[
            cell("a", &[("images", "inline"), ("synchronous", "full"), ("isolation", "serializable")]),
            cell("b", &[("images", "table"), ("synchronous", "full")]),
            cell("b", &[("images", "table"), ("synchronous", "off")]),
            cell("never rated", &[]),
        ]);
        let said: Vec<(&str, Concern, Vec<&str>)> = found
            .iter()
            .map(|d| (d.setting.as_str(), d.concern, d.values.values().map(String::as_str).collect()))
            .collect();
        assert_eq!(
            said,
            [
                ("synchronous", Concern::Durability, vec!["full", "full or off"]),
                ("isolation", Concern::Isolation, vec!["serializable"]),
                ("images", Concern::Other, vec!["inline", "table"]),
            ]
        );
    }
}
