//! The entries of all files as one table, which knows what was asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use super::parse::parse;
use super::{Benchmark, Place, PropertiesError, Share, Source};

/// Keys that only BG has.
const BG_SIGNS: [&str; 4] = ["usercount", "friendcountperuser", "resourcecountperuser", "confperc"];

/// Keys that only YCSB has.
const YCSB_SIGNS: [&str; 5] =
    ["recordcount", "readproportion", "updateproportion", "scanproportion", "readmodifywriteproportion"];

/// Every entry by its key.
pub(super) struct Table {
    entries: BTreeMap<String, Place>,
    asked: BTreeSet<String>,
    files: Vec<String>,
}

impl Table {
    /// The entries of all files, none of which may say a key twice differently.
    pub(super) fn new(sources: &[Source]) -> Result<Table, PropertiesError> {
        let mut entries: BTreeMap<String, Place> = BTreeMap::new();
        for source in sources {
            for entry in parse(&source.bytes) {
                let place =
                    Place { file: source.file.clone(), line: entry.line, key: entry.key.clone(), value: entry.value };
                match entries.get(&entry.key) {
                    Some(first) if first.value != place.value => {
                        let advice = "remove one of them".into();
                        return Err(PropertiesError::Contradiction {
                            first: Box::new(first.clone()),
                            second: Box::new(place),
                            advice,
                        });
                    }
                    Some(_) => {}
                    None => {
                        entries.insert(entry.key, place);
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

    /// Which benchmark the files are for: by the class of the workload, else by
    /// keys that only one of the two has.
    pub(super) fn benchmark(&self) -> Result<Benchmark, PropertiesError> {
        let bg = self.entries.values().find(|place| {
            BG_SIGNS.contains(&place.key.as_str()) || place.key.ends_with("Action") || place.key.ends_with("Session")
        });
        let ycsb = self.entries.values().find(|place| YCSB_SIGNS.contains(&place.key.as_str()));
        if let (Some(first), Some(second)) = (bg, ycsb) {
            let advice = "one is a key of BG and one of YCSB: give files of one benchmark".into();
            return Err(PropertiesError::Contradiction {
                first: Box::new(first.clone()),
                second: Box::new(second.clone()),
                advice,
            });
        }
        match (self.entries.get("workload"), bg, ycsb) {
            (Some(class), ..) if class.value.starts_with("edu.usc.bg.") => Ok(Benchmark::Bg),
            (Some(class), ..) if is_ycsb_core(&class.value) => Ok(Benchmark::Ycsb),
            (Some(class), ..) => Err(PropertiesError::Value {
                place: class.clone(),
                message: "is no workload that is known here; there are BG's edu.usc.bg.workloads.CoreWorkload and \
                          YCSB's site.ycsb.workloads.CoreWorkload"
                    .into(),
            }),
            (None, Some(_), None) => Ok(Benchmark::Bg),
            (None, None, Some(_)) => Ok(Benchmark::Ycsb),
            (None, ..) => Err(PropertiesError::Files {
                files: self.files(),
                message: "neither BG's nor YCSB's keys are there; is it a workload file of one of them?".into(),
            }),
        }
    }

    /// The entry of a key.
    pub(super) fn get(&mut self, key: &str) -> Option<Place> {
        self.asked.insert(key.into());
        self.entries.get(key).cloned()
    }

    /// The value of a key as a number.
    pub(super) fn number<T: FromStr>(&mut self, key: &str) -> Result<Option<(T, Place)>, PropertiesError> {
        let Some(place) = self.get(key) else { return Ok(None) };
        match place.value.parse() {
            Ok(number) => Ok(Some((number, place))),
            Err(_) => {
                let what = if "1.5".parse::<T>().is_ok() { "number" } else { "whole number of at least 0" };
                Err(PropertiesError::Value { place, message: format!("is not a {what} that fits") })
            }
        }
    }

    /// The value of a key as a share between 0 and 1.
    pub(super) fn share(&mut self, key: &str, default: f64) -> Result<Share, PropertiesError> {
        match self.number::<f64>(key)? {
            None => Ok(Share { value: default, place: None }),
            Some((value, place)) if (0.0..=1.0).contains(&value) => Ok(Share { value, place: Some(place) }),
            Some((_, place)) => Err(PropertiesError::Value { place, message: "is not between 0 and 1".into() }),
        }
    }

    /// The value of a key as true or false.
    pub(super) fn switch(&mut self, key: &str) -> Result<Option<(bool, Place)>, PropertiesError> {
        let Some(place) = self.get(key) else { return Ok(None) };
        match place.value.to_ascii_lowercase().as_str() {
            "true" => Ok(Some((true, place))),
            "false" => Ok(Some((false, place))),
            _ => Err(PropertiesError::Value { place, message: "is neither true nor false".into() }),
        }
    }

    /// Takes note that keys are known and mean nothing here. One that ends with
    /// a full stop stands for all that begin with it.
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

    /// The entries that nobody asked for, by file and line.
    pub(super) fn unknown(&self) -> Vec<Place> {
        let mut unknown: Vec<Place> =
            self.entries.values().filter(|place| !self.asked.contains(&place.key)).cloned().collect();
        unknown.sort_by(|a, b| {
            let file = |place: &Place| self.files.iter().position(|file| *file == place.file);
            (file(a), a.line).cmp(&(file(b), b.line))
        });
        unknown
    }
}

fn is_ycsb_core(class: &str) -> bool {
    matches!(class, "site.ycsb.workloads.CoreWorkload" | "com.yahoo.ycsb.workloads.CoreWorkload")
}
