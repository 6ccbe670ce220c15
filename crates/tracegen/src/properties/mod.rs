//! Turns workload property files of other benchmarks, BG, YCSB and YCSB+T, into
//! specifications.
//!
//! ```
//! use tracegen::properties::{Source, convert};
//!
//! let text = "workload=edu.usc.bg.workloads.CoreWorkload\nusercount=1000\nViewProfileAction=1\n";
//! let converted = convert(&[Source { file: "mine".into(), bytes: text.into() }]).unwrap();
//! let spec = converted.spec(&[]).unwrap();
//! let data = spec.workload::<schemas::workload::social::SocialWorkload>().unwrap().data;
//! assert_eq!((spec.name.as_str(), data.members), ("mine", 1000));
//! assert!(converted.notes.iter().any(|note| note.contains("operationcount sets no limit")));
//! ```

mod bg;
mod parse;
mod table;
mod ycsb;
mod ycsb_t;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use schemas::files::{FileError, at};
use schemas::spec::{Spec, SpecError, SpecOf};
use schemas::workload::Workload;

use table::Table;

/// How many sessions are generated for a file that sets no limit.
const SESSIONS_WITHOUT_LIMIT: u64 = 1_000_000;

/// A property file in memory.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its name, for errors. The last part of the path names the specification.
    pub file: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// A key and its value, and where a file has them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The key, as in the file.
    pub key: String,
    /// The value, as in the file.
    pub value: String,
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Property files contain passwords, which must not appear in an error or a note.
        let key = self.key.to_ascii_lowercase();
        let is_secret = ["pass", "pwd", "secret", "url"].iter().any(|part| key.contains(part));
        let value = if is_secret { "(hidden)" } else { &self.value };
        write!(f, "{}:{}: {}={value}", self.file, self.line, self.key)
    }
}

/// Property files that cannot be converted to a workload.
#[derive(Debug, thiserror::Error)]
pub enum PropertiesError {
    /// A file cannot be read.
    #[error("{0}; check the path of --properties")]
    File(#[from] FileError),
    /// One value is wrong.
    #[error("{property}: {message}")]
    Value {
        /// The property.
        property: Property,
        /// What is wrong and what to do.
        message: String,
    },
    /// Two values contradict each other.
    #[error("{second} contradicts {first}; {advice}")]
    Contradiction {
        /// The property that is contradicted.
        first: Box<Property>,
        /// The property that contradicts it.
        second: Box<Property>,
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
    /// The resulting specification, with the settings applied, is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// Property files converted to a specification.
#[derive(Debug, Clone)]
pub struct Converted {
    /// The values as in the files; [`Converted::spec`] checks them.
    unchecked: Spec,
    /// Decisions that the files leave open, as notes for the user.
    pub notes: Vec<String>,
    /// Properties whose keys are unknown.
    pub unknown: Vec<Property>,
    /// What the benchmark asks for besides what the specification's check does.
    check: fn(&Spec, &Origins) -> Result<(), PropertiesError>,
    origins: Origins,
}

/// Where the values of a specification come from.
#[derive(Debug, Clone)]
struct Origins {
    /// The property that decided each dotted key of the specification.
    properties: BTreeMap<String, Property>,
    /// The names of all files.
    files: String,
}

/// A specification that is being converted from the files of a benchmark.
struct Draft<W> {
    spec: SpecOf<W>,
    notes: Vec<String>,
    origins: Origins,
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
    let mut converted = match table.benchmark()? {
        Benchmark::Bg => bg::convert(&mut table)?,
        Benchmark::Ycsb => ycsb::convert(&mut table)?,
        Benchmark::YcsbT => ycsb_t::convert(&mut table)?,
    };
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
    YcsbT,
}

impl Converted {
    /// The specification, with settings (as of [`Spec::parse_with`]) applied after the files. So
    /// settings can resolve contradictions in the files.
    pub fn spec(&self, settings: &[String]) -> Result<Spec, PropertiesError> {
        let files = &self.origins.files;
        let spec = Spec::parse_unchecked(&self.unchecked.to_toml()?, files, settings)?;
        (self.check)(&spec, &self.origins)?;
        if spec.kinds().is_empty() {
            let message = "the mix is empty; add the file with the mix, or e.g. --set mix.view_profile=1 (BG), \
                           --set mix.read=1 (YCSB)";
            return Err(PropertiesError::Files { files: files.clone(), message: message.into() });
        }
        spec.check(files).map_err(|error| self.origins.with_property(error))?;
        Ok(spec)
    }
}

impl Origins {
    /// The property that decided a key of the specification.
    fn get(&self, key: &str) -> Option<&Property> {
        self.properties.get(key)
    }

    /// The same error, with the property that causes it, if there is one.
    fn with_property(&self, error: SpecError) -> PropertiesError {
        match error {
            SpecError::Value { key, message, .. } if self.properties.contains_key(&key) => {
                PropertiesError::Value { property: self.properties[&key].clone(), message: format!("{key}: {message}") }
            }
            error => error.into(),
        }
    }
}

impl<W: Workload> Draft<W> {
    /// A specification without any values from files.
    fn new(own: W, table: &Table) -> Draft<W> {
        let origins = Origins { properties: BTreeMap::new(), files: table.files() };
        Draft { spec: SpecOf::new(own), notes: Vec::new(), origins }
    }

    /// The conversion, with what the benchmark asks for besides the specification's check.
    fn converted(self, check: fn(&Spec, &Origins) -> Result<(), PropertiesError>) -> Converted {
        let Draft { spec, notes, origins } = self;
        Converted { unchecked: spec.whole(), notes, unknown: Vec::new(), check, origins }
    }

    /// Records which property decided a key of the specification.
    fn origin(&mut self, key: &str, property: Option<&Property>) {
        if let Some(property) = property {
            self.origins.properties.insert(key.into(), property.clone());
        }
    }

    /// Adds to a kind's share of the mix.
    fn add_share(&mut self, kind: &str, share: &Share) {
        if share.value > 0.0 {
            *self.spec.common.mix.entry(kind.into()).or_insert(0.0) += share.value;
            self.origin(&format!("mix.{kind}"), share.property.as_ref());
            if let Some(property) = &share.property {
                self.spec.common.name = name_of(&property.file);
            }
        }
    }

    /// Notes, for known keys of the table, where Encore decides what they set.
    fn note_keys(&mut self, table: &mut Table, keys: &[(&str, &str)]) {
        for (key, decided_by) in keys {
            if let Some(property) = table.get(key) {
                self.notes.push(format!("{property}: not part of a trace; {decided_by}"));
            }
        }
    }

    /// Sets the number of sessions: as in the files, or a default with a note.
    fn set_sessions(&mut self, count: Option<(u64, Property)>) {
        match count {
            Some((count, property)) if count > 0 => {
                self.spec.common.sessions = count;
                self.origin("sessions", Some(&property));
            }
            _ => {
                self.spec.common.sessions = SESSIONS_WITHOUT_LIMIT;
                self.notes.push(format!(
                    "operationcount sets no limit: generating {SESSIONS_WITHOUT_LIMIT} sessions; change this with \
                     --sessions N"
                ));
            }
        }
    }
}

/// A share of the mix, and the property that sets it; a default has none.
struct Share {
    value: f64,
    property: Option<Property>,
}

/// Refuses shares that are given and do not add up to 1.
fn check_sum(files: &str, shares: &[Share]) -> Result<(), PropertiesError> {
    let sum: f64 = shares.iter().map(|share| share.value).sum();
    if sum == 0.0 || (sum - 1.0).abs() <= 0.001 {
        return Ok(());
    }
    let given: Vec<String> =
        shares.iter().filter(|s| s.value > 0.0).filter_map(|s| s.property.as_ref()).map(Property::to_string).collect();
    let (sum, given) = (round(sum), given.join(", "));
    let message = format!("the proportions add up to {sum}, not to 1: {given}; change them so that they add up to 1");
    Err(PropertiesError::Files { files: files.into(), message })
}

/// Rounds a sum of decimal fractions to the digits that a user would write.
fn round(number: f64) -> f64 {
    (number * 1e9).round() / 1e9
}

/// The name of a specification for a file: the last part of its path without `.properties`, with a
/// dash for each character that names cannot have.
fn name_of(file: &str) -> String {
    let last = Path::new(file).file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let stem = last.strip_suffix(".properties").unwrap_or(&last).trim_start_matches('.');
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let name: String = stem.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    if name.is_empty() { "properties".into() } else { name }
}
