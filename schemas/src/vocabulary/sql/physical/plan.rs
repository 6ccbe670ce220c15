//! What a statement does to the collections of a design.

use std::collections::BTreeSet;

use super::design::Placed;
use super::logical::{Computed, Condition, Does, Logical, Match, Relation, Returns};
use super::recommend::{equal, has_key, needed};
use super::tables::{Column, Table, Tables};
use super::term::Term;
use super::value::{Datum, convert};

/// What to do for a statement. Collections are given by their places in the design.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Return rows.
    Find(Find),
    /// Return one row of values that are computed of all rows.
    Group(Group),
    /// Add rows.
    Insert(Insert),
    /// Change rows.
    Update(Update),
    /// Remove rows.
    Remove(Remove),
}

/// Rows of a collection.
#[derive(Debug, Clone, PartialEq)]
pub struct Find {
    /// The collection.
    pub collection: usize,
    /// Which rows.
    pub conditions: Vec<Condition>,
    /// The columns that are returned.
    pub columns: Vec<usize>,
    /// The order: columns, and whether it descends.
    pub order: Vec<(usize, bool)>,
    /// The most rows.
    pub limit: Option<Term>,
    /// How many rows are left out first.
    pub offset: Option<Term>,
}

/// Values of the rows of a collection.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The collection.
    pub collection: usize,
    /// Which rows.
    pub conditions: Vec<Condition>,
    /// The values.
    pub aggregates: Vec<Computed>,
}

/// New rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// The table.
    pub table: usize,
    /// A value for each column of the table.
    pub rows: Vec<Vec<Term>>,
    /// The collections, the whole one first.
    pub collections: Vec<usize>,
}

/// Other values for columns of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// Which rows.
    pub conditions: Vec<Condition>,
    /// Whether there is at most one row, found by its key.
    pub is_of_one: bool,
    /// What changes where, the whole collection first.
    pub changes: Vec<Change>,
}

/// What an update changes in a collection.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The collection.
    pub collection: usize,
    /// The columns that it holds of those that change, with their values.
    pub set: Vec<(usize, Term)>,
}

/// Rows to remove.
#[derive(Debug, Clone, PartialEq)]
pub struct Remove {
    /// Which rows.
    pub conditions: Vec<Condition>,
    /// Whether there is at most one row, found by its key.
    pub is_of_one: bool,
    /// The collections, the whole one first.
    pub collections: Vec<usize>,
}

impl Plan {
    /// How many collections it writes to.
    pub fn writes(&self) -> usize {
        match self {
            Plan::Find(_) | Plan::Group(_) => 0,
            Plan::Insert(insert) => insert.collections.len(),
            Plan::Update(update) => update.changes.len(),
            Plan::Remove(remove) => remove.collections.len(),
        }
    }
}

/// For each column of the key the condition that decides it; None if they do not decide all of them.
pub fn key_conditions<'a>(conditions: &'a [Condition], table: &Table) -> Option<Vec<&'a Term>> {
    let decided = |column: &usize| {
        conditions.iter().find_map(|condition| match &condition.is {
            Match::Is(Relation::Equal, term) if condition.column == *column => Some(term),
            _ => None,
        })
    };
    let all: Option<Vec<&Term>> = table.key.iter().map(decided).collect();
    all.filter(|all| !all.is_empty())
}

/// The plan of a statement. The error says what the design lacks.
pub(super) fn plan(logical: Logical, tables: &Tables, collections: &[Placed]) -> Result<Plan, String> {
    let table = &tables.0[logical.table];
    let needed = needed(&logical);
    let equal = equal(&logical.conditions);
    let own: Vec<usize> = (0..collections.len()).filter(|at| collections[*at].table == logical.table).collect();
    let is_of_one = has_key(table, &equal);
    let Logical { conditions, does, .. } = logical;
    Ok(match does {
        Does::Read { returns, order, limit, offset } => {
            let collection = choose(table, collections, &own, &needed, &equal)?;
            match returns {
                Returns::Columns(columns) => Plan::Find(Find { collection, conditions, columns, order, limit, offset }),
                Returns::Aggregates(aggregates) => Plan::Group(Group { collection, conditions, aggregates }),
            }
        }
        Does::Insert(rows) => Plan::Insert(Insert { table: logical.table, rows, collections: own }),
        Does::Update(set) => {
            let mut changes = Vec::new();
            for at in own {
                let collection = &collections[at];
                let held = set.iter().filter(|(column, _)| collection.columns.contains(column)).cloned();
                let set: Vec<(usize, Term)> = held.collect();
                if set.is_empty() {
                    continue;
                }
                let mut read: BTreeSet<usize> = conditions.iter().map(|condition| condition.column).collect();
                set.iter().for_each(|(_, term)| term.columns(&mut |column| _ = read.insert(column)));
                check_write(table, collection, &read, &equal)?;
                changes.push(Change { collection: at, set });
            }
            Plan::Update(Update { conditions, is_of_one, changes })
        }
        Does::Delete => {
            let read: BTreeSet<usize> = conditions.iter().map(|condition| condition.column).collect();
            for at in &own {
                check_write(table, &collections[*at], &read, &equal)?;
            }
            Plan::Remove(Remove { conditions, is_of_one, collections: own })
        }
    })
}

/// The collection that a query reads: one that holds all it needs, with the longest path that it knows.
fn choose(
    table: &Table,
    collections: &[Placed],
    own: &[usize],
    needed: &BTreeSet<usize>,
    equal: &BTreeSet<usize>,
) -> Result<usize, String> {
    if has_key(table, equal)
        && let Some(whole) = own.first()
    {
        return Ok(*whole);
    }
    let length = |at: &usize| {
        let known = collections[*at].paths.iter().filter(|path| path.iter().all(|column| equal.contains(column)));
        known.map(Vec::len).max()
    };
    let able = own.iter().filter(|at| needed.is_subset(&collections[**at].columns));
    match equal.is_empty() {
        // All rows, from the collection that surely holds all columns.
        true => own.first().copied().ok_or_else(|| format!("reads table {}, which has no collection", table.name)),
        false => {
            let best = able.filter_map(|at| length(at).map(|length| (length, std::cmp::Reverse(*at)))).max();
            best.map(|(_, at)| at.0).ok_or_else(|| {
                let path = table.names(equal.iter().copied()).join(", ");
                format!(
                    "reads table {} by {path}, and no collection with its columns has a path of these; add one",
                    table.name
                )
            })
        }
    }
}

/// Refuses a change that a collection cannot find its rows for.
fn check_write(
    table: &Table,
    collection: &Placed,
    read: &BTreeSet<usize>,
    equal: &BTreeSet<usize>,
) -> Result<(), String> {
    if let Some(missing) = read.iter().find(|column| !collection.columns.contains(column)) {
        let name = &table.columns[*missing].name;
        return Err(format!("changes collection {} by {name}, which it does not hold; add it", collection.name));
    }
    let is_known = |path: &Vec<usize>| path.iter().all(|column| equal.contains(column));
    if !has_key(table, equal) && !equal.is_empty() && !collection.paths.iter().any(is_known) {
        let path = table.names(equal.iter().copied()).join(", ");
        return Err(format!("changes collection {} by {path}, and it has no path of these; add one", collection.name));
    }
    Ok(())
}

impl Insert {
    /// The rows: a value for each column of the table, in the column's kind.
    pub fn rows(&self, table: &Table, parameters: &[Datum]) -> Result<Vec<Vec<Datum>>, String> {
        let value = |(term, column): (&Term, &Column)| {
            let value = term.value(parameters).and_then(|value| convert(value, column.kind));
            value.map_err(|why| format!("column {}: {why}", column.name))
        };
        self.rows.iter().map(|row| row.iter().zip(&table.columns).map(value).collect()).collect()
    }
}
