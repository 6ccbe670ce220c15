//! The properties of all files as one table. The table records which keys the converter asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use super::parse::parse;
use super::{Benchmark, PropertiesError, Property, Share, Source};

/// Keys that only BG has.
const BG_SIGNS: [&str; 4] = ["usercount", "friendcountperuser", "resourcecountperuser", "confperc"];

/// Keys that only YCSB has.
const YCSB_SIGNS: [&str; 5] =
    ["recordcount", "readproportion", "updateproportion", "scanproportion", "readmodifywriteproportion"];

/// All properties by key.
pub(super) struct Table {
    entries: BTreeMap<String, Property>,
    asked: BTreeSet<String>,
    files: Vec<String>,
}

impl Table {
    /// The properties of all files. Refuses a key that has two different values.
    pub(super) fn new(sources: &[Source]) -> Result<Table, PropertiesError> {
        let mut entries: BTreeMap<String, Property> = BTreeMap::new();
        for source in sources {
            for entry in parse(&source.bytes) {
                let property = Property {
                    file: source.file.clone(),
                    line: entry.line,
                    key: entry.key.clone(),
                    value: entry.value,
                };
                match entries.get(&entry.key) {
                    Some(first) if first.value != property.value => {
                        let advice = "remove one of them".into();
                        return Err(PropertiesError::Contradiction {
                            first: Box::new(first.clone()),
                            second: Box::new(property),
                            advice,
                        });
                    }
                    Some(_) => {}
                    None => {
                        entries.insert(entry.key, property);
                    }
                }
            }
        }
        Ok(Table { entries, asked: BTreeSet::new(), files: sources.iter().map(|s| s.file.clone()).collect() })
    }

    /// The names of the files.
    pub(super) fn files(&self) -> String {
        self.files.join(" and ")
    }

    /// The benchmark that the files are for. The class of the workload decides, else keys that only
    /// one of the two has.
    pub(super) fn benchmark(&self) -> Result<Benchmark, PropertiesError> {
        let bg = self.entries.values().find(|property| {
            BG_SIGNS.contains(&property.key.as_str())
                || property.key.ends_with("Action")
                || property.key.ends_with("Session")
        });
        let ycsb = self.entries.values().find(|property| YCSB_SIGNS.contains(&property.key.as_str()));
        if let (Some(first), Some(second)) = (bg, ycsb) {
            let advice = "one key is BG's and the other YCSB's; use files of one benchmark".into();
            return Err(PropertiesError::Contradiction {
                first: Box::new(first.clone()),
                second: Box::new(second.clone()),
                advice,
            });
        }
        match (self.entries.get("workload"), bg, ycsb) {
            (Some(class), ..) if class.value.starts_with("edu.usc.bg.") => Ok(Benchmark::Bg),
            (Some(class), ..) if is_ycsb_core(&class.value) => Ok(Benchmark::Ycsb),
            (Some(class), ..) if is_closed_economy(&class.value) => Ok(Benchmark::YcsbT),
            (Some(class), ..) => Err(PropertiesError::Value {
                property: class.clone(),
                message: "unknown workload class; use edu.usc.bg.workloads.CoreWorkload (BG), \
                          site.ycsb.workloads.CoreWorkload (YCSB) or \
                          com.yahoo.ycsb.workloads.ClosedEconomyWorkload (YCSB+T)"
                    .into(),
            }),
            (None, Some(_), None) => Ok(Benchmark::Bg),
            (None, None, Some(_)) => Ok(Benchmark::Ycsb),
            (None, ..) => Err(PropertiesError::Files {
                files: self.files(),
                message: "no key of BG or YCSB found; check that this is a workload file of one of them".into(),
            }),
        }
    }

    /// The property of a key.
    pub(super) fn get(&mut self, key: &str) -> Option<Property> {
        self.asked.insert(key.into());
        self.entries.get(key).cloned()
    }

    /// The value of a key as a number.
    pub(super) fn number<T: FromStr>(&mut self, key: &str) -> Result<Option<(T, Property)>, PropertiesError> {
        let Some(property) = self.get(key) else { return Ok(None) };
        match property.value.parse() {
            Ok(number) => Ok(Some((number, property))),
            Err(_) => {
                let takes_fractions = "1.5".parse::<T>().is_ok();
                let whole = "is not a whole number of at least 0, or is too large";
                let message = if takes_fractions { "is not a number" } else { whole };
                Err(PropertiesError::Value { property, message: message.into() })
            }
        }
    }

    /// The value of a key as a share between 0 and 1.
    pub(super) fn share(&mut self, key: &str, default: f64) -> Result<Share, PropertiesError> {
        match self.number::<f64>(key)? {
            None => Ok(Share { value: default, property: None }),
            Some((value, property)) if (0.0..=1.0).contains(&value) => Ok(Share { value, property: Some(property) }),
            Some((_, property)) => Err(PropertiesError::Value { property, message: "is not between 0 and 1".into() }),
        }
    }

    /// The value of a key as true or false.
    pub(super) fn switch(&mut self, key: &str) -> Result<Option<(bool, Property)>, PropertiesError> {
        let Some(property) = self.get(key) else { return Ok(None) };
        match property.value.to_ascii_lowercase().as_str() {
            "true" => Ok(Some((true, property))),
            "false" => Ok(Some((false, property))),
            _ => Err(PropertiesError::Value { property, message: "is neither true nor false".into() }),
        }
    }

    /// Marks keys as known but without effect. A key that ends with a full stop stands for all keys
    /// that begin with it.
    pub(super) fn ignore(&mut self, keys: &[&str]) {
        for key in keys {
            match key.strip_suffix('.') {
                Some(_) => self.asked.extend(self.entries.keys().filter(|k| k.starts_with(key)).cloned()),
                None => {
                    self.asked.insert((*key).into());
                }
            }
        }
    }

    /// The properties that the converter did not ask for, by file and line.
    pub(super) fn unknown(&self) -> Vec<Property> {
        let mut unknown: Vec<Property> =
            self.entries.values().filter(|property| !self.asked.contains(&property.key)).cloned().collect();
        unknown.sort_by(|a, b| {
            let file = |property: &Property| self.files.iter().position(|file| *file == property.file);
            (file(a), a.line).cmp(&(file(b), b.line))
        });
        unknown
    }
}

/// The class of YCSB+T, which has YCSB's keys.
fn is_closed_economy(class: &str) -> bool {
    matches!(class, "com.yahoo.ycsb.workloads.ClosedEconomyWorkload" | "site.ycsb.workloads.ClosedEconomyWorkload")
}

fn is_ycsb_core(class: &str) -> bool {
    matches!(class, "site.ycsb.workloads.CoreWorkload" | "com.yahoo.ycsb.workloads.CoreWorkload")
}
