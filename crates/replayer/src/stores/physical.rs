//! What the stores share that need a physical schema for statements of SQL: what it is made for, and its file.

use std::collections::{BTreeMap, BTreeSet};

use schemas::run::NOTE;
use schemas::vocabulary::sql::physical::{Work, listed};
use schemas::vocabulary::sql::text::Dialect;
use schemas::vocabulary::sql::{Statement, read_statements};
use schemas::words::plural;
use schemas::workload::sql::dataset::{preloaded, read_schema};
use schemas::workload::sql::{SqlStatistics, SqlWorkload};

use super::StoreError;
use super::url::StoreUrl;
use crate::source::Source;

/// The parameter of the URL that names the file, and what the marker says of its content.
pub(crate) const PHYSICAL: &str = "physical";

/// The setting of a run that has the content of the file.
const PHYSICAL_SETTING: &str = "physical_schema";

/// The statements of a trace set, and what they are on.
pub(crate) struct Described {
    folder: String,
    schema: String,
    dialect: Dialect,
    pub statements: Vec<Statement>,
    uses: Vec<u64>,
    loads: BTreeSet<u32>,
}

impl Described {
    /// Those of a trace set; with the statements that fill its tables if a load is to be checked.
    pub fn of(source: &Source, checks_load: bool) -> Result<Described, String> {
        let statements = read_statements(&source.folder).map_err(|error| error.to_string())?;
        let loads = match checks_load {
            true => preloaded(&source.folder, statements.len()).map_err(|error| error.to_string())?,
            false => BTreeSet::new(),
        };
        // The statistics of each family of this vocabulary have those of its statements.
        let statistics = source.manifest.statistics_of::<SqlWorkload>();
        Ok(Described {
            folder: source.folder.display().to_string(),
            schema: read_schema(&source.folder).map_err(|error| error.to_string())?,
            dialect: source.sql().dialect,
            statements,
            uses: statistics.unwrap_or_else(|_| SqlStatistics::default()).uses,
            loads,
        })
    }

    /// What the schema is made for.
    pub fn work(&self) -> Work<'_> {
        let Described { schema, dialect, statements, uses, loads, .. } = self;
        Work { schema, dialect: *dialect, statements, uses, loads }
    }

    /// An error with the file that it is in: that of the URL, or the trace set.
    pub fn blamed(&self, url: &StoreUrl, why: &str) -> String {
        match url.text(PHYSICAL) {
            Some(file) => format!("{PHYSICAL}={file}: {why}"),
            None => format!("{}: {why}", self.folder),
        }
    }

    /// Refuses statements that cannot be mapped.
    pub fn check(&self, url: &StoreUrl, refused: &[String]) -> Result<(), StoreError> {
        if refused.is_empty() {
            return Ok(());
        }
        let remedy = match url.text(PHYSICAL) {
            Some(file) => format!("correct {file}, leave them out, or choose a relational store"),
            None => "leave them out, or choose a relational store".to_string(),
        };
        let message = format!(
            "cannot run {} of {}; {remedy}\n  {}",
            plural(refused.len() as u64, "statement"),
            self.folder,
            listed(refused)
        );
        Err(StoreError::usage(url, message))
    }
}

/// The settings of a run with this physical schema. A schema that cannot be used has none: it is refused when the threads
/// connect.
pub(crate) fn settings(source: &Source, schema: Option<String>) -> BTreeMap<String, String> {
    let mut settings: BTreeMap<String, String> =
        schema.into_iter().map(|text| (PHYSICAL_SETTING.to_string(), text)).collect();
    if source.has_conditions() {
        let note = "this store cannot check the consistency conditions, which join tables, so they are not checked; compare \
                    the rows with those of a run on a relational store (`encore analyze compare --results`)";
        settings.insert(NOTE.to_string(), note.to_string());
    }
    settings
}

/// The text of the file that the URL names, if it names one.
pub(crate) fn physical_file(url: &StoreUrl) -> Result<Option<String>, StoreError> {
    let Some(file) = url.text(PHYSICAL) else { return Ok(None) };
    std::fs::read_to_string(file).map(Some).map_err(|error| {
        let again = "write it with `encore trace physical TRACE --for STORE -o FILE`, or correct the path in the URL";
        StoreError::usage(url, format!("{PHYSICAL}={file}: {error}; {again}"))
    })
}
