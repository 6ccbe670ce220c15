//! The `sql` family: statements of any application on a relational database, in transactions, as sessions
//! (benchfoundry-2016, section 3.3). A trace set is made from somebody's files (`encore trace import`), so
//! its specification describes it and generates nothing.
//!
//! ```text
//! statements.parquet          the statements
//! schema.sql                  the definitions of the tables
//! checks.toml                 conditions that the data keep, if there are any
//! dataset/fragment=N/TABLE.parquet   rows of the tables
//! dataset/preload.parquet     the statements, with parameters, that fill the tables after the rows
//! operations/fragment=N/…     the sessions; those of the warm-up come first
//! recorded/fragment=N.parquet  what the log said of their statements that the trace set was imported from
//! ```

pub mod checks;
pub mod dataset;
pub mod recorded;
pub mod rows;
mod rules;
mod statistics;

use serde::{Deserialize, Serialize};

use super::{ActorWords, Workload};
use crate::spec::{SpecOf, Wrong};
use crate::trace::Rules;
use crate::vocabulary::sql::Sql;
use crate::vocabulary::sql::text::Dialect;
use crate::words::thousands;

pub use statistics::{CustomUse, SqlStatistics};

/// What a specification of the family says besides what every one has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SqlWorkload {
    /// Where the trace set comes from, and what it holds.
    pub data: Data,
    /// What is logged of what statements return.
    #[serde(default)]
    pub results: Results,
}

/// Where a trace set comes from, and what it holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// What it was made from, such as `benchfoundry`.
    pub source: String,
    /// The SQL of statements and schema.
    pub dialect: Dialect,
    /// BLAKE3 over the schema, the statements, the preload and the operations, in hexadecimal digits. Two trace
    /// sets with the same content are the same workload.
    pub content: String,
    /// How many tables the schema has.
    pub tables: u64,
    /// How many statements there are.
    pub statements: u64,
    /// How many statements fill the tables.
    pub preload: u64,
    /// On behalf of how many clients the sessions run, such as connections of an application. A client
    /// acts in one session at a time.
    pub clients: u64,
    /// How many of the first sessions of all fragments are the warm-up.
    pub warmup_sessions: u64,
    /// How many conditions the data keep.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub checks: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What is logged of what statements return.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Results {
    /// Whether the log has the rows. Otherwise it has their number and a hash.
    pub log_results: bool,
}

/// What a store needs to know of a trace set of this vocabulary, whatever its family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqlSet {
    /// The SQL of statements and schema.
    pub dialect: Dialect,
    /// Whether the log has the rows that statements return.
    pub log_results: bool,
}

/// The rules of a trace set with these statements, for a family of this vocabulary.
pub(super) fn rules_of(statistics: &SqlStatistics) -> Result<Box<dyn Rules<Sql>>, String> {
    Ok(Box::new(rules::SqlRules::new(statistics)?))
}

impl Workload for SqlWorkload {
    const FAMILY: &'static str = "sql";
    const KEYS: &'static [&'static str] = &["data", "results"];
    const ACTORS: ActorWords = ActorWords { plural: "clients", keys: &["data.clients"] };
    type Vocabulary = Sql;
    type Statistics = SqlStatistics;

    fn check(spec: &SpecOf<SqlWorkload>) -> Result<(), Wrong> {
        let data = &spec.own.data;
        let is_sum = data.content.len() == 64 && data.content.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_sum {
            return Err(Wrong::new(
                "data.content",
                format!("{:?} is no BLAKE3 sum; import the trace set", data.content),
            ));
        }
        if data.clients == 0 {
            return Err(Wrong::new("data.clients", "must be at least 1"));
        }
        if data.statements == 0 {
            return Err(Wrong::new("data.statements", "must be at least 1"));
        }
        let sessions = spec.common.sessions;
        if data.warmup_sessions > sessions {
            let message = format!("{} is more than the {sessions} sessions that there are", data.warmup_sessions);
            return Err(Wrong::new("data.warmup_sessions", message));
        }
        Ok(())
    }

    fn rules(
        _spec: &SpecOf<SqlWorkload>,
        statistics: &SqlStatistics,
        _fragment: u32,
    ) -> Result<Box<dyn Rules<Sql>>, String> {
        rules_of(statistics)
    }

    fn sql(&self) -> Option<SqlSet> {
        Some(SqlSet { dialect: self.data.dialect, log_results: self.results.log_results })
    }

    fn actors(&self) -> u64 {
        self.data.clients
    }

    fn size(&self) -> String {
        let Data { tables, statements, preload, .. } = self.data;
        format!("{} tables filled by {}, {} statements", thousands(tables), thousands(preload), thousands(statements))
    }

    fn has_conditions(spec: &SpecOf<SqlWorkload>) -> bool {
        spec.own.data.checks > 0
    }

    fn warmup_sessions(spec: &SpecOf<SqlWorkload>) -> u64 {
        spec.own.data.warmup_sessions
    }

    fn unchecked(_spec: &SpecOf<SqlWorkload>) -> Option<String> {
        Some(
            "what statements of any application may return is not known, so reads are not checked; their number of rows \
             and a hash are logged, and `encore analyze compare --results` compares them between runs"
                .into(),
        )
    }
}
