//! Turns workload property files of other benchmarks, BG and YCSB, into
//! specifications.
//!
//! ```
//! use tracegen::properties::{Source, convert};
//!
//! let text = "workload=edu.usc.bg.workloads.CoreWorkload\nusercount=1000\nViewProfileAction=1\n";
//! let converted = convert(&[Source { file: "mine".into(), bytes: text.into() }]).unwrap();
//! let spec = converted.spec(&[]).unwrap();
//! assert_eq!((spec.name.as_str(), spec.data.members), ("mine", 1000));
//! assert!(converted.notes.iter().any(|note| note.contains("operationcount sets no limit")));
//! ```

mod bg;
mod parse;
mod table;
mod ycsb;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use schemas::files::{FileError, at};
use schemas::spec::{Access, Assignment, Data, Delay, Family, Spec, SpecError};

use table::Table;

/// How many sessions a file stands for that sets no limit.
const SESSIONS_WITHOUT_LIMIT: u64 = 1_000_000;

/// A property file in memory.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its name, for errors; the last part names the specification.
    pub file: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// Where a value was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The key, as it stands there.
    pub key: String,
    /// The value, as it stands there.
    pub value: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Passwords stand in property files; they must not reach an error or a note.
        let key = self.key.to_ascii_lowercase();
        let is_secret = ["pass", "pwd", "secret", "url"].iter().any(|part| key.contains(part));
        let value = if is_secret { "(hidden)" } else { &self.value };
        write!(f, "{}:{}: {}={value}", self.file, self.line, self.key)
    }
}

/// Property files that no workload can be made of.
#[derive(Debug, thiserror::Error)]
pub enum PropertiesError {
    /// A file cannot be read.
    #[error("{0}; is this the right file?")]
    File(#[from] FileError),
    /// One value is wrong.
    #[error("{place}: {message}")]
    Value {
        /// Where it is.
        place: Place,
        /// What is wrong and what to do.
        message: String,
    },
    /// Two values cannot both be.
    #[error("{second} contradicts {first}; {advice}")]
    Contradiction {
        /// The one that comes first.
        first: Box<Place>,
        /// The other.
        second: Box<Place>,
        /// What to do.
        advice: String,
    },
    /// Something is wrong with all files together.
    #[error("{files}: {message}")]
    Files {
        /// Their names.
        files: String,
        /// What is wrong and what to do.
        message: String,
    },
    /// The specification that they give, with the settings, is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// What property files say in the words of a specification.
#[derive(Debug, Clone)]
pub struct Converted {
    /// As the files have it; [`Converted::spec`] checks it.
    unchecked: Spec,
    /// What was decided that the files do not say, for people to read.
    pub notes: Vec<String>,
    /// Entries whose keys nobody here knows.
    pub unknown: Vec<Place>,
    /// The entries that decided a dotted key of the specification.
    origins: BTreeMap<String, Place>,
    files: String,
}

/// Reads files of one benchmark; together they are one workload.
pub fn read(files: &[PathBuf]) -> Result<Converted, PropertiesError> {
    let mut sources = Vec::with_capacity(files.len());
    for path in files {
        let bytes = std::fs::read(path).map_err(at(path))?;
        sources.push(Source { file: path.display().to_string(), bytes });
    }
    convert(&sources)
}

/// Converts files of one benchmark; together they are one workload.
pub fn convert(sources: &[Source]) -> Result<Converted, PropertiesError> {
    let mut table = Table::new(sources)?;
    let mut converted = Converted {
        unchecked: empty_spec(),
        notes: Vec::new(),
        unknown: Vec::new(),
        origins: BTreeMap::new(),
        files: table.files(),
    };
    match table.benchmark()? {
        Benchmark::Bg => bg::convert(&mut table, &mut converted)?,
        Benchmark::Ycsb => ycsb::convert(&mut table, &mut converted)?,
    }
    if converted.unchecked.name.is_empty() {
        converted.unchecked.name = sources.last().map(|source| name_of(&source.file)).unwrap_or_default();
    }
    converted.unknown = table.unknown();
    Ok(converted)
}

/// The benchmark that files belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Benchmark {
    Bg,
    Ycsb,
}

impl Converted {
    /// The specification, with settings (as of [`Spec::parse_with`]) that come
    /// after the files: what contradicts itself in them can be set right.
    pub fn spec(&self, settings: &[String]) -> Result<Spec, PropertiesError> {
        let spec = Spec::parse_unchecked(&self.unchecked.to_toml()?, &self.files, settings)?;
        self.check_resources(&spec)?;
        if spec.data.members == 0 && !self.origins.contains_key("data.members") {
            let message = "no file says how many members there are; give the file with usercount (BG) or recordcount \
                           (YCSB) too, or --set data.members=10000";
            return Err(PropertiesError::Files { files: self.files.clone(), message: message.into() });
        }
        if spec.kinds().is_empty() {
            let message = "no action or session has a share above 0; give the file with the mix too, or e.g. \
                           --set mix.view_profile=1";
            return Err(PropertiesError::Files { files: self.files.clone(), message: message.into() });
        }
        spec.check(&self.files).map_err(|error| self.with_place(error))?;
        Ok(spec)
    }

    /// Refuses actions on resources where there are none.
    fn check_resources(&self, spec: &Spec) -> Result<(), PropertiesError> {
        if spec.data.resources_per_member > 0 {
            return Ok(());
        }
        let advice = "change one of them, or give e.g. --set data.resources_per_member=10";
        for kind in spec.kinds() {
            let Some(share) = self.origins.get(&format!("mix.{}", kind.name)) else { continue };
            if !kind.steps.iter().any(|step| step.role.is_resource()) {
                continue;
            }
            return Err(match self.origins.get("data.resources_per_member") {
                Some(none) => PropertiesError::Contradiction {
                    first: Box::new(none.clone()),
                    second: Box::new(share.clone()),
                    advice: format!("there are no resources to act on: {advice}"),
                },
                None => PropertiesError::Value {
                    place: share.clone(),
                    message: "no file says how many resources there are to act on; give \
                              --set data.resources_per_member=10, or a file that does"
                        .into(),
                },
            });
        }
        Ok(())
    }

    /// The same error with the entry that is the cause, where one is.
    fn with_place(&self, error: SpecError) -> PropertiesError {
        match error {
            SpecError::Value { key, message, .. } if self.origins.contains_key(&key) => {
                PropertiesError::Value { place: self.origins[&key].clone(), message: format!("{key}: {message}") }
            }
            error => error.into(),
        }
    }

    /// Notes that an entry decided a key of the specification.
    fn origin(&mut self, key: &str, place: Option<&Place>) {
        if let Some(place) = place {
            self.origins.insert(key.into(), place.clone());
        }
    }

    /// Adds to a kind's share of the mix.
    fn add_share(&mut self, kind: &str, share: &Share) {
        if share.value > 0.0 {
            *self.unchecked.mix.entry(kind.into()).or_insert(0.0) += share.value;
            self.origin(&format!("mix.{kind}"), share.place.as_ref());
            if let Some(place) = &share.place {
                self.unchecked.name = name_of(&place.file);
            }
        }
    }

    /// Notes who decides here what some known keys of the table say.
    fn note_keys(&mut self, table: &mut Table, keys: &[(&str, &str)]) {
        for (key, decided_by) in keys {
            if let Some(place) = table.get(key) {
                self.notes.push(format!("{place}: not of a trace; here it is up to {decided_by}"));
            }
        }
    }

    /// The number of sessions: as in the files, or a default that is noted.
    fn set_sessions(&mut self, count: Option<(u64, Place)>) {
        match count {
            Some((count, place)) if count > 0 => {
                self.unchecked.sessions = count;
                self.origin("sessions", Some(&place));
            }
            _ => {
                self.unchecked.sessions = SESSIONS_WITHOUT_LIMIT;
                self.notes.push(format!(
                    "operationcount sets no limit: {SESSIONS_WITHOUT_LIMIT} sessions are generated; --sessions N asks \
                     for another number"
                ));
            }
        }
    }
}

/// A share of the mix and where it is from; nowhere when it is a default.
struct Share {
    value: f64,
    place: Option<Place>,
}

/// Refuses shares that are given and do not add up to 1.
fn check_sum(files: &str, shares: &[Share]) -> Result<(), PropertiesError> {
    let sum: f64 = shares.iter().map(|share| share.value).sum();
    if sum == 0.0 || (sum - 1.0).abs() <= 0.001 {
        return Ok(());
    }
    let given: Vec<String> =
        shares.iter().filter(|s| s.value > 0.0).filter_map(|s| s.place.as_ref()).map(Place::to_string).collect();
    let message = format!("the proportions add up to {}, not to 1: {}", round(sum), given.join(", "));
    Err(PropertiesError::Files { files: files.into(), message })
}

/// A sum of decimal fractions as people write it.
fn round(number: f64) -> f64 {
    (number * 1e9).round() / 1e9
}

/// The name of a specification for a file: its last part without `.properties`,
/// and without what names do not have.
fn name_of(file: &str) -> String {
    let last = Path::new(file).file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let stem = last.strip_suffix(".properties").unwrap_or(&last).trim_start_matches('.');
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = stem.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    if name.is_empty() { "properties".into() } else { name }
}

/// A specification in which nothing is said.
fn empty_spec() -> Spec {
    Spec {
        name: String::new(),
        family: Family::Social,
        seed: 1,
        sessions: 0,
        fragments: 1,
        fragment_weights: Vec::new(),
        data: Data {
            members: 0,
            friends_per_member: 0,
            confirmed_share: 1.0,
            pending_per_member: 0,
            friendships: Assignment::Ring,
            friendships_theta: 0.27,
            resources_per_member: 0,
            comments_per_resource: 0,
            top_k: 5,
            attribute_bytes: 200,
            image_bytes: 0,
            thumbnail_bytes: 0,
            resource_bytes: 64,
            comment_bytes: 64,
        },
        access: Access::default(),
        think_time: Delay::default(),
        inter_arrival_time: Delay::default(),
        mix: BTreeMap::new(),
        session: BTreeMap::new(),
    }
}
