//! From relational statements to a store without SQL, as a pure function of schema and statements
//! (benchfoundry-2016, sections 3.3 and 4.3).
//!
//! For documents, a table becomes a collection of all its columns, whose documents have the primary key as their id. Each
//! further access path, which is a set of columns that a query of the table compares with `=`, becomes a collection of
//! the columns that its queries need. A query reads one collection. A change goes to every collection that holds a column
//! of it. [`wide`] does the same for tables that are divided into partitions. Nothing here talks to a database: an adapter
//! executes the [`Plan`] of each statement.

mod design;
mod file;
mod logical;
mod models;
mod number;
mod plan;
mod recommend;
mod rows;
mod tables;
mod term;
mod value;
pub mod wide;

use std::collections::BTreeSet;
use std::fmt::Write;

use super::Statement;
use super::text::Dialect;
use logical::Logical;

pub use design::{Collection, Design, Placed};
pub use file::Wrong;
pub use logical::{Aggregate, Computed, Condition, Match, Relation};
pub use models::{MODELS, Model, Outline};
pub use number::Number;
pub use plan::{Change, Find, Group, Insert, Plan, Remove, Update, key_conditions};
pub use rows::row_of;
pub use tables::{Column, Kind, Table, Tables};
pub use term::{Constant, Operator, Term, Test};
pub use value::{Datum, convert};

/// What a physical schema is made for.
#[derive(Debug, Clone, Copy)]
pub struct Work<'a> {
    /// The schema.
    pub schema: &'a str,
    /// How it and the statements are written.
    pub dialect: Dialect,
    /// The statements.
    pub statements: &'a [Statement],
    /// How often sessions have each of them; a statement that is missing may be used.
    pub uses: &'a [u64],
    /// The statements that fill the tables, where a load is to be checked too.
    pub loads: &'a BTreeSet<u32>,
}

/// No statement that fills a table, for [`Work::loads`].
pub static NO_LOADS: BTreeSet<u32> = BTreeSet::new();

impl Work<'_> {
    fn is_used(&self, number: usize) -> bool {
        self.uses.get(number).is_none_or(|uses| *uses > 0)
    }

    /// The statements that sessions have and that can be read.
    fn known(&self, tables: &Tables) -> Vec<Logical> {
        let used = self.statements.iter().enumerate().filter(|(number, _)| self.is_used(*number));
        used.filter_map(|(_, one)| logical::read(one, self.dialect, tables).ok()).collect()
    }

    /// What is refused: each used statement without a plan, with its number, name, reason and text.
    fn refused<P>(&self, plans: &[Result<P, String>], is_insert: impl Fn(&P) -> bool) -> Vec<String> {
        let mut refused = Vec::new();
        for (number, (plan, statement)) in plans.iter().zip(self.statements).enumerate() {
            let is_loaded = u32::try_from(number).is_ok_and(|number| self.loads.contains(&number));
            let why = match plan {
                Err(why) if self.is_used(number) || is_loaded => why,
                Ok(plan) if is_loaded && !is_insert(plan) => "fills tables and is no insert, which a load cannot have",
                _ => continue,
            };
            let mut line = format!("statement {number}");
            if !statement.name.is_empty() && statement.name != number.to_string() {
                // Writing to a text cannot fail.
                let _ = write!(line, " ({})", statement.name);
            }
            refused.push(format!("{line} {why}: {}", statement.text));
        }
        refused
    }
}

/// The refused statements in words, the first ones of many.
pub fn listed(refused: &[String]) -> String {
    const SHOWN_MAX: usize = 10;
    let shown = refused.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join("\n  ");
    match refused.len().checked_sub(SHOWN_MAX) {
        None | Some(0) => shown,
        Some(more) => format!("{shown}\n  and {more} more"),
    }
}

/// The schema of a trace set, its collections, and what to do for each of its statements.
#[derive(Debug)]
pub struct Mapping {
    /// The tables.
    pub tables: Tables,
    /// The collections.
    pub collections: Vec<Placed>,
    /// A plan for each statement, or why it has none.
    pub plans: Vec<Result<Plan, String>>,
}

/// The design for these statements: a collection for each access path. The error says why the schema has none.
pub fn recommend(work: &Work<'_>) -> Result<Design, String> {
    let tables = Tables::read(work.schema, work.dialect)?;
    Ok(recommend::recommend(&tables, &work.known(&tables)))
}

impl Mapping {
    /// The mapping of statements to a design.
    pub fn new(work: &Work<'_>, design: &Design) -> Result<Mapping, Wrong> {
        let tables = Tables::read(work.schema, work.dialect).map_err(Wrong::whole)?;
        let collections = design.resolve(&tables)?;
        let plan = |one: &Statement| {
            logical::read(one, work.dialect, &tables).and_then(|logical| plan::plan(logical, &tables, &collections))
        };
        let plans = work.statements.iter().map(plan).collect();
        Ok(Mapping { tables, collections, plans })
    }

    /// The design of a file, or the recommended one without a file, and its mapping. The error says what is wrong, in
    /// which line of the file.
    pub fn of(work: &Work<'_>, file: Option<&str>) -> Result<(Design, Mapping), String> {
        let design = file.map_or_else(|| recommend(work), Design::parse)?;
        let mapping = Mapping::new(work, &design);
        Ok((design, mapping.map_err(|wrong| wrong.in_text(file.unwrap_or_default(), design::ENTRIES))?))
    }

    /// What is refused: each used statement without a plan, with its number, name, reason and text.
    pub fn refused(&self, work: &Work<'_>) -> Vec<String> {
        work.refused(&self.plans, |plan| matches!(plan, Plan::Insert(_)))
    }
}

#[cfg(test)]
mod tests;
