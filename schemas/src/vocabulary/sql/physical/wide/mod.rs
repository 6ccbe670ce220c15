//! From relational statements to tables that are divided into partitions, as Cassandra has them: a table for each access
//! path, whose partition is what queries compare with `=`, and whose rows are in the order that they ask for.
//!
//! A query reads one partition. A change goes to every table that holds a column of it, so it must decide the key of each.
//! The [`Plan`] of a statement is CQL with the values that it binds.

mod design;
mod plan;
mod recommend;

use super::logical;
use super::tables::Tables;
use super::{Work, Wrong};
use crate::vocabulary::sql::Statement;

pub use design::{Wide, WideDesign, WideTable};
pub use plan::{Bound, Cql, Plan, Read, Returned, Write, insert_of};

/// The schema of a trace set, its tables, and what to do for each of its statements.
#[derive(Debug)]
pub struct WideMapping {
    /// The tables of the schema.
    pub tables: Tables,
    /// The tables of the store.
    pub wide: Vec<Wide>,
    /// A plan for each statement, or why it has none.
    pub plans: Vec<Result<Plan, String>>,
}

/// The design for these statements: a table for each access path. The error says why the schema has none.
pub fn recommend(work: &Work<'_>) -> Result<WideDesign, String> {
    let tables = Tables::read(work.schema, work.dialect)?;
    recommend::recommend(&tables, &work.known(&tables))
}

impl WideMapping {
    /// The mapping of statements to a design. `keyspace` comes before the names of tables.
    pub fn new(work: &Work<'_>, design: &WideDesign, keyspace: &str) -> Result<WideMapping, Wrong> {
        let tables = Tables::read(work.schema, work.dialect).map_err(Wrong::whole)?;
        let wide = design.resolve(&tables)?;
        let plan = |one: &Statement| {
            let logical = logical::read(one, work.dialect, &tables)?;
            plan::plan(logical, one, &tables, &wide, keyspace)
        };
        let plans = work.statements.iter().map(plan).collect();
        Ok(WideMapping { tables, wide, plans })
    }

    /// The design of a file, or the recommended one without a file, and its mapping. The error says what is wrong, in
    /// which line of the file.
    pub fn of(work: &Work<'_>, file: Option<&str>, keyspace: &str) -> Result<(WideDesign, WideMapping), String> {
        let design = file.map_or_else(|| recommend(work), WideDesign::parse)?;
        let mapping = WideMapping::new(work, &design, keyspace);
        Ok((design, mapping.map_err(|wrong| wrong.in_text(file.unwrap_or_default(), design::ENTRIES))?))
    }

    /// What is refused: each used statement without a plan, with its number, name, reason and text.
    pub fn refused(&self, work: &Work<'_>) -> Vec<String> {
        work.refused(&self.plans, Plan::is_insert)
    }
}

#[cfg(test)]
mod tests;
