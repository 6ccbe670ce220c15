//! What each store promises, in which settings the stores differ, and whether that makes them
//! unequal. A comparison always reports stores that promise different things.
//!
//! Every store names two of its settings in words that all stores share:
//!
//! | setting | words |
//! |---|---|
//! | `durability` | `every commit`, `within a second`, `at checkpoints`, `none` |
//! | `isolation` | `linearizable`, `serializable`, `repeatable read`, `read committed`, `read uncommitted`, `stale reads`, `none` |
//!
//! Text after a `:` in them is a remark. If all stores name such a setting, its words alone
//! decide whether they promise the same: other settings differ in name and value between kinds of
//! stores. If a store does not name it, settings whose names sound like durability or isolation
//! decide. Then a setting that one store names and another does not is a difference.

use std::collections::{BTreeMap, BTreeSet};

use schemas::comparison::{Cell, ComparedStore, Concern, SettingDifference};

/// The settings that stores name in shared words.
const DURABILITY_WORDS: &str = "durability";
const ISOLATION_WORDS: &str = "isolation";

/// Prefixes of the words in a setting's name that decide what survives a crash.
const DURABILITY: [&str; 8] = ["durab", "fsync", "sync", "journal", "flush", "commit", "doublewrite", "wal"];

/// The same for what transactions see of each other.
const ISOLATION: [&str; 3] = ["isolation", "uncommitted", "consistency"];

/// What a store promises.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Promise {
    /// The store's label.
    pub store: String,
    /// What survives a crash, in shared words; none if the store does not name it.
    pub durability: Option<String>,
    /// What transactions see of each other, likewise.
    pub isolation: Option<String>,
    /// The store's own settings that decide the two, by name.
    pub decided_by: Vec<(String, String)>,
}

/// The values of each setting, by name; several if a store's cells differ.
type Settings<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The settings of each store, by label, as far as its cells have recorded them.
fn by_store(cells: &[Cell]) -> BTreeMap<&str, Settings<'_>> {
    let mut by_store: BTreeMap<&str, Settings> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| !cell.store_settings.is_empty()) {
        let settings = by_store.entry(&cell.store).or_default();
        for (name, value) in &cell.store_settings {
            settings.entry(name).or_default().insert(value);
        }
    }
    by_store
}

fn joined(values: &BTreeSet<&str>) -> String {
    values.iter().copied().collect::<Vec<_>>().join(" or ")
}

/// What the stores promise, in the plan's order. Stores without recorded settings are left out.
pub fn promises(stores: &[ComparedStore], cells: &[Cell]) -> Vec<Promise> {
    let by_store = by_store(cells);
    let known = stores.iter().filter_map(|store| Some((store, by_store.get(store.label.as_str())?)));
    let promise = |(store, settings): (&ComparedStore, &Settings)| Promise {
        store: store.label.clone(),
        durability: settings.get(DURABILITY_WORDS).map(joined),
        isolation: settings.get(ISOLATION_WORDS).map(joined),
        decided_by: settings
            .iter()
            .filter(|(name, _)| ![DURABILITY_WORDS, ISOLATION_WORDS].contains(name) && concern(name) != Concern::Other)
            .map(|(name, values)| (name.to_string(), joined(values)))
            .collect(),
    };
    known.map(promise).collect()
}

/// The settings in which stores differ, those that matter most first. A setting that only stores
/// of one kind name is compared among these alone.
pub fn differences(stores: &[ComparedStore], cells: &[Cell]) -> Vec<SettingDifference> {
    let by_store = by_store(cells);
    let kinds: BTreeMap<&str, &str> = stores.iter().map(|store| (store.label.as_str(), kind(&store.url))).collect();
    let names: BTreeSet<&str> = by_store.values().flat_map(|settings| settings.keys().copied()).collect();
    let mut found: Vec<SettingDifference> = names
        .into_iter()
        .filter_map(|name| Some((name, judged(name, &by_store, &kinds)?)))
        .map(|(name, concern)| SettingDifference {
            setting: name.to_string(),
            concern,
            values: by_store
                .iter()
                .filter_map(|(store, settings)| Some((store.to_string(), joined(settings.get(name)?))))
                .collect(),
        })
        .collect();
    found.sort_by_key(|difference| difference.concern);
    found
}

/// The concern of a setting in which the stores differ; none if they do not differ.
fn judged(name: &str, by_store: &BTreeMap<&str, Settings>, kinds: &BTreeMap<&str, &str>) -> Option<Concern> {
    let words = match concern(name) {
        Concern::Durability => Some(DURABILITY_WORDS),
        Concern::Isolation => Some(ISOLATION_WORDS),
        Concern::Other => None,
    };
    if let Some(words) = words {
        let is_said = by_store.values().all(|settings| settings.contains_key(words));
        let differs = |of: fn(&str) -> String| {
            let said: BTreeSet<Option<BTreeSet<String>>> = by_store
                .values()
                .map(|settings| Some(settings.get(name)?.iter().map(|value| of(value)).collect()))
                .collect();
            said.len() > 1
        };
        match is_said {
            true if name == words && differs(common_words) => return Some(concern(name)),
            // The shared words decide, so this setting is like any other.
            true => {}
            false => return differs(str::to_string).then(|| concern(name)),
        }
    }
    let kind_of = |store: &str| kinds.get(store).copied().unwrap_or_default();
    let naming: BTreeSet<&str> =
        by_store.iter().filter(|(_, settings)| settings.contains_key(name)).map(|(store, _)| kind_of(store)).collect();
    let compared = by_store.iter().filter(|(store, _)| naming.contains(kind_of(store)));
    let values: BTreeSet<Option<&BTreeSet<&str>>> = compared.map(|(_, settings)| settings.get(name)).collect();
    (values.len() > 1).then_some(Concern::Other)
}

/// The kind of a store: the scheme of its URL.
fn kind(url: &str) -> &str {
    url.split_once(':').map_or(url, |(scheme, _)| scheme)
}

/// The words before the remark.
fn common_words(value: &str) -> String {
    value.split_once(':').map_or(value, |(words, _)| words).trim().to_lowercase()
}

/// What a setting decides, judged by its name.
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

    /// Stores by label and URL.
    fn stores(stores: &[(&str, &str)]) -> Vec<ComparedStore> {
        stores
            .iter()
            .map(|(label, url)| ComparedStore {
                label: label.to_string(),
                url: url.to_string(),
                from: BTreeMap::new(),
                replayers: None,
                transactions: None,
            })
            .collect()
    }

    fn said(found: &[SettingDifference]) -> Vec<(&str, Concern, Vec<&str>)> {
        found.iter().map(|d| (d.setting.as_str(), d.concern, d.values.values().map(String::as_str).collect())).collect()
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

    /// Every store was unequal for ever, because it did not name the settings of another kind of
    /// store.
    #[test]
    fn kinds_of_stores_are_equal_when_their_common_words_are() {
        let kinds =
            stores(&[("lite", "sqlite:"), ("pg", "postgres://db/x"), ("cache", "casql+postgres://db/x?ttl_s=30")]);
        let lite = [("durability", "every commit"), ("isolation", "serializable"), ("synchronous", "full")];
        let pg = [("durability", "Every commit: fsync"), ("isolation", "serializable"), ("synchronous_commit", "on")];
        let cache = [("isolation", "none: values up to 30 s old"), ("ttl_s", "30"), ("consistency", "ttl")];
        let cache: Vec<_> = pg.iter().filter(|(name, _)| *name != "isolation").chain(&cache).copied().collect();
        let found = differences(&kinds, &[cell("lite", &lite), cell("pg", &pg)]);
        // The remark is a difference, but not of what is promised.
        assert_eq!(said(&found), [("durability", Concern::Other, vec!["every commit", "Every commit: fsync"])]);
        let found = differences(&kinds, &[cell("pg", &pg), cell("cache", &cache)]);
        let unequal = ("isolation", Concern::Isolation, vec!["none: values up to 30 s old", "serializable"]);
        assert_eq!(said(&found), [unequal]);
    }

    #[test]
    fn where_a_store_does_not_say_the_common_words_names_decide() {
        let kinds = stores(&[("lite", "sqlite:"), ("pg", "postgres://db/x")]);
        let lite = [("isolation", "serializable"), ("synchronous", "full")];
        let pg = [("durability", "every commit"), ("isolation", "serializable"), ("fsync", "on")];
        let found = differences(&kinds, &[cell("lite", &lite), cell("pg", &pg)]);
        assert_eq!(
            said(&found),
            [
                ("durability", Concern::Durability, vec!["every commit"]),
                ("fsync", Concern::Durability, vec!["on"]),
                ("synchronous", Concern::Durability, vec!["full"]),
            ]
        );
    }

    #[test]
    fn settings_of_one_kind_differ_only_within_it() {
        let kinds =
            stores(&[("one", "casql+sqlite:a"), ("two", "casql+sqlite:b"), ("lite", "sqlite:"), ("m", "memory:")]);
        let words = [("durability", "every commit"), ("isolation", "serializable")];
        let with = |more: &[(&'static str, &'static str)]| [&words[..], more].concat();
        let found = differences(
            &kinds,
            &[
                cell(
                    "one",
                    &with(&[("ttl_s", "30"), ("compress", "on"), ("consistency", "ttl"), ("page_size", "4096")]),
                ),
                cell("two", &with(&[("compress", "on"), ("consistency", "lease"), ("page_size", "4096")])),
                cell("lite", &with(&[("cache_size", "9"), ("page_size", "1024")])),
                cell("m", &with(&[("lies_told", "3")])),
            ],
        );
        assert_eq!(
            said(&found),
            [
                ("consistency", Concern::Other, vec!["ttl", "lease"]),
                ("page_size", Concern::Other, vec!["1024", "4096", "4096"]),
                ("ttl_s", Concern::Other, vec!["30"]),
            ]
        );
    }

    #[test]
    fn equal_settings_are_no_difference_and_unsaid_ones_are() {
        let kinds = stores(&[("a", "sqlite:"), ("b", "sqlite:?images=table"), ("never rated", "sqlite:c")]);
        let full = [("synchronous", "full"), ("version", "3")];
        assert_eq!(differences(&kinds, &[cell("a", &full), cell("b", &full), cell("b", &[])]), []);
        let found = differences(
            &kinds,
            &[
                cell("a", &[("images", "inline"), ("synchronous", "full"), ("isolation", "serializable")]),
                cell("b", &[("images", "table"), ("synchronous", "full")]),
                cell("b", &[("images", "table"), ("synchronous", "off")]),
                cell("never rated", &[]),
            ],
        );
        assert_eq!(
            said(&found),
            [
                ("synchronous", Concern::Durability, vec!["full", "full or off"]),
                ("isolation", Concern::Isolation, vec!["serializable"]),
                ("images", Concern::Other, vec!["inline", "table"]),
            ]
        );
    }

    #[test]
    fn promises_are_told_in_the_plans_order() {
        let kinds = stores(&[("lite", "sqlite:"), ("a", "memory:"), ("unknown", "memory:")]);
        let cells = [
            cell("a", &[("durability", "none: in memory"), ("lies_told", "3")]),
            cell("lite", &[("isolation", "serializable"), ("synchronous", "full"), ("journal_mode", "wal")]),
            cell("lite", &[("isolation", "serializable"), ("synchronous", "off"), ("journal_mode", "wal")]),
            cell("unknown", &[]),
        ];
        let promise =
            |store: &str, durability: Option<&str>, isolation: Option<&str>, decided: &[(&str, &str)]| Promise {
                store: store.into(),
                durability: durability.map(String::from),
                isolation: isolation.map(String::from),
                decided_by: decided.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect(),
            };
        let lite = [("journal_mode", "wal"), ("synchronous", "full or off")];
        assert_eq!(
            promises(&kinds, &cells),
            [promise("lite", None, Some("serializable"), &lite), promise("a", Some("none: in memory"), None, &[])]
        );
    }
}
