//! From relational statements to a store of documents, as a pure function of schema and statements
//! (benchfoundry-2016, sections 3.3 and 4.3).
//!
//! A table becomes a collection of all its columns, whose documents have the primary key as their id. Each further
//! access path, which is a set of columns that a query of the table compares with `=`, becomes a collection of the
//! columns that its queries need. A query reads one collection. A change goes to every collection that holds a column
//! of it. Nothing here knows a database: an adapter executes the [`Plan`] of each statement.

mod design;
mod logical;
mod number;
mod plan;
mod recommend;
mod tables;
mod term;
mod value;

use std::fmt::Write;

use super::Statement;
use super::text::Dialect;

pub use design::{Collection, Design, Placed};
pub use logical::{Aggregate, Condition, Match, Relation};
pub use plan::{Change, Find, Group, Insert, Plan, Remove, Update, key_conditions};
pub use tables::{Column, Kind, Table, Tables};
pub use term::{Constant, Operator, Term, Test};
pub use value::{Datum, convert};

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
pub fn recommend(schema: &str, dialect: Dialect, statements: &[Statement]) -> Result<Design, String> {
    let tables = Tables::read(schema, dialect)?;
    let known = statements.iter().filter_map(|one| logical::read(one, dialect, &tables).ok()).collect::<Vec<_>>();
    Ok(recommend::recommend(&tables, &known))
}

impl Mapping {
    /// The mapping of statements to a design.
    pub fn new(schema: &str, dialect: Dialect, statements: &[Statement], design: &Design) -> Result<Mapping, String> {
        let tables = Tables::read(schema, dialect)?;
        let collections = design.resolve(&tables)?;
        let plan = |one: &Statement| {
            logical::read(one, dialect, &tables).and_then(|logical| plan::plan(logical, &tables, &collections))
        };
        let plans = statements.iter().map(plan).collect();
        Ok(Mapping { tables, collections, plans })
    }

    /// What is refused: each statement without a plan that `is_used`, with its number, name, reason and text.
    pub fn refused(&self, statements: &[Statement], is_used: impl Fn(usize) -> bool) -> Vec<String> {
        let all = self.plans.iter().zip(statements).enumerate().filter(|(number, _)| is_used(*number));
        let refused = all.filter_map(|(number, (plan, statement))| {
            let why = plan.as_ref().err()?;
            let mut line = format!("statement {number}");
            if !statement.name.is_empty() && statement.name != number.to_string() {
                // Writing to a text cannot fail.
                let _ = write!(line, " ({})", statement.name);
            }
            Some(format!("{line} {why}: {}", statement.text))
        });
        refused.collect()
    }
}

#[cfg(test)]
mod tests;
