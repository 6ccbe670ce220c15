//! What a statement does to the tables of a design, in CQL.

use std::collections::BTreeSet;

use super::super::super::{Statement, Type};
use super::super::logical::{Aggregate, Computed, Condition, Does, Logical, Match, Relation, Returns};
use super::super::recommend::{has_key, needed};
use super::super::tables::{Kind, Table, Tables};
use super::super::term::Term;
use super::design::Wide;
use super::recommend::is_reversed;

/// What to do for a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Plan {
    /// Return rows.
    Read(Read),
    /// Change rows.
    Write(Write),
}

/// A query of one partition.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The query.
    pub cql: Cql,
    /// What it returns.
    pub returns: Vec<Returned>,
    /// Whether it returns one row of values that are computed of all rows.
    pub is_aggregate: bool,
}

/// A value that a query returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Returned {
    /// Its kind.
    pub kind: Kind,
    /// The place among the values of a number; the value is NULL if that is 0. It is after those that are returned.
    pub unless_none: Option<usize>,
    /// Whether it is a number of rows, which is 0 without any.
    pub is_count: bool,
}

/// Changes of rows, each in every table that holds a column of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// For each row what to do, the whole table first.
    pub rows: Vec<Vec<Cql>>,
    /// The condition of a lightweight transaction on the row of the whole table.
    pub only: &'static str,
}

/// A statement of CQL.
#[derive(Debug, Clone, PartialEq)]
pub struct Cql {
    /// The text, with a `?` for each value.
    pub text: String,
    /// The values.
    pub values: Vec<Bound>,
}

/// A value of a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The expression.
    pub term: Term,
    /// The kind of its column; None for a number of rows.
    pub kind: Option<Kind>,
    /// Whether it is of the key, which has no NULL.
    pub is_key: bool,
}

/// The condition of an insert.
const IF_NEW: &str = " IF NOT EXISTS";
/// The condition of an update and of a delete.
const IF_THERE: &str = " IF EXISTS";

impl Plan {
    /// Whether it adds rows.
    pub fn is_insert(&self) -> bool {
        matches!(self, Plan::Write(write) if write.is_insert())
    }

    /// How many tables it writes to.
    pub fn writes(&self) -> usize {
        match self {
            Plan::Read(_) => 0,
            Plan::Write(write) => write.rows.iter().map(Vec::len).max().unwrap_or(0),
        }
    }
}

impl Write {
    /// Whether it adds rows.
    pub fn is_insert(&self) -> bool {
        self.only == IF_NEW
    }
}

/// A quoted name.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A statement on a schema's tables that is being planned.
struct Planner<'a> {
    table: &'a Table,
    statement: &'a Statement,
    conditions: Vec<Condition>,
    keyspace: &'a str,
}

/// The plan of a statement. The error says what CQL cannot do.
pub(super) fn plan(
    logical: Logical,
    statement: &Statement,
    tables: &Tables,
    wide: &[Wide],
    keyspace: &str,
) -> Result<Plan, String> {
    let columns = needed(&logical);
    let Logical { table: place, conditions, does } = logical;
    let own: Vec<&Wide> = wide.iter().filter(|one| one.table == place).collect();
    let planner = Planner { table: &tables.0[place], statement, conditions, keyspace };
    planner.check_conditions()?;
    match does {
        Does::Read { returns, order, limit, offset } => {
            if offset.is_some() {
                return Err("skips rows with OFFSET, which CQL does not have".to_string());
            }
            planner.read(&own, &columns, &returns, &order, limit).map(Plan::Read)
        }
        Does::Insert(rows) => {
            let row = |row: Vec<Term>| own.iter().map(|wide| insert_of(planner.table, wide, &row, keyspace)).collect();
            Ok(Plan::Write(Write { rows: rows.into_iter().map(row).collect(), only: IF_NEW }))
        }
        Does::Update(set) => planner.update(&own, &set).map(Plan::Write),
        Does::Delete => {
            let delete = |wide: &&Wide| {
                let (row, values) = planner.of_row(wide)?;
                Ok(Cql { text: format!("DELETE FROM {} WHERE {row}", planner.name(wide)), values })
            };
            let all = own.iter().map(delete).collect::<Result<_, String>>()?;
            Ok(Plan::Write(Write { rows: vec![all], only: IF_THERE }))
        }
    }
}

/// An insert of a row, which has a value for each column of its table, into a table of the store.
pub fn insert_of(table: &Table, wide: &Wide, row: &[Term], keyspace: &str) -> Cql {
    let key: BTreeSet<usize> = wide.key().collect();
    let names: Vec<String> = wide.columns.iter().map(|column| quoted(&table.columns[*column].name)).collect();
    let marks = vec!["?"; names.len()].join(", ");
    let bound = |column: &usize| Bound {
        term: row[*column].clone(),
        kind: Some(table.columns[*column].kind),
        is_key: key.contains(column),
    };
    Cql {
        text: format!("INSERT INTO {keyspace}{} ({}) VALUES ({marks})", quoted(&wide.name), names.join(", ")),
        values: wide.columns.iter().map(bound).collect(),
    }
}

impl Planner<'_> {
    fn name(&self, wide: &Wide) -> String {
        format!("{}{}", self.keyspace, quoted(&wide.name))
    }

    fn column(&self, column: usize) -> &str {
        &self.table.columns[column].name
    }

    fn bound(&self, column: usize, term: &Term, is_key: bool) -> Bound {
        Bound { term: term.clone(), kind: Some(self.table.columns[column].kind), is_key }
    }

    /// Refuses what no condition of CQL can say.
    fn check_conditions(&self) -> Result<(), String> {
        let mut equal = BTreeSet::new();
        for condition in &self.conditions {
            let name = self.column(condition.column);
            match &condition.is {
                Match::Is(Relation::NotEqual, _) => {
                    return Err(format!("has the condition {name} <>, which CQL lacks"));
                }
                Match::Null(_) => return Err(format!("asks whether {name} is NULL, which CQL cannot")),
                Match::In(_) => {
                    return Err(format!("has {name} IN a list, which reads several partitions; read them one by one"));
                }
                Match::Is(Relation::Equal, _) if !equal.insert(condition.column) => {
                    return Err(format!("compares {name} twice with =, which CQL refuses"));
                }
                Match::Is(_, Term::Parameter(at)) => {
                    let declared = self.statement.parameters.get(*at).copied();
                    let is_whole = self.table.columns[condition.column].kind == Kind::Integer;
                    if is_whole && matches!(declared, Some(Type::Decimal | Type::Float)) {
                        return Err(format!(
                            "compares {name}, a whole number, with parameter {}, which is none",
                            at + 1
                        ));
                    }
                }
                Match::Is(..) => {}
            }
        }
        Ok(())
    }

    fn equal(&self) -> BTreeSet<usize> {
        super::super::recommend::equal(&self.conditions)
    }

    /// The conditions that decide a row of a table, and their values.
    fn of_row(&self, wide: &Wide) -> Result<(String, Vec<Bound>), String> {
        let (mut texts, mut values) = (Vec::new(), Vec::new());
        let key: BTreeSet<usize> = wide.key().collect();
        for condition in &self.conditions {
            let name = self.column(condition.column);
            match &condition.is {
                Match::Is(Relation::Equal, term) if key.contains(&condition.column) => {
                    texts.push(format!("{} = ?", quoted(name)));
                    values.push(self.bound(condition.column, term, true));
                }
                _ => {
                    return Err(format!(
                        "changes rows under a condition on {name}, which is not = of the key of table {}; CQL changes rows \
                         by their keys only",
                        wide.name
                    ));
                }
            }
        }
        let lacks: Vec<usize> = key.difference(&self.equal()).copied().collect();
        match lacks.is_empty() {
            true => Ok((texts.join(" AND "), values)),
            false => Err(format!(
                "changes rows of table {} without a condition on {} of its key; CQL changes rows by whole keys only, so \
                 read them first and change them one by one",
                wide.name,
                self.table.names(lacks).join(", ")
            )),
        }
    }

    fn update(&self, own: &[&Wide], set: &[(usize, Term)]) -> Result<Write, String> {
        if let Some((column, _)) = set.iter().find(|(_, term)| !term.is_fixed()) {
            return Err(format!(
                "computes {} from the row that it changes, which CQL cannot; read the row, and write the result",
                self.column(*column)
            ));
        }
        let mut all = Vec::new();
        for wide in own {
            let held: Vec<&(usize, Term)> = set.iter().filter(|(column, _)| wide.columns.contains(column)).collect();
            if held.is_empty() {
                continue;
            }
            if let Some((column, _)) = held.iter().find(|(column, _)| wide.key().any(|key| key == *column)) {
                return Err(format!(
                    "changes {}, which is of the key of table {}; a key cannot change",
                    self.column(*column),
                    wide.name
                ));
            }
            let (row, of_row) = self.of_row(wide)?;
            let texts = held.iter().map(|(column, _)| format!("{} = ?", quoted(self.column(*column))));
            let text = texts.collect::<Vec<_>>().join(", ");
            let mut values: Vec<Bound> = held.iter().map(|(column, term)| self.bound(*column, term, false)).collect();
            values.extend(of_row);
            all.push(Cql { text: format!("UPDATE {} SET {text} WHERE {row}", self.name(wide)), values });
        }
        Ok(Write { rows: vec![all], only: IF_THERE })
    }

    /// A query of the first table that can answer it.
    fn read(
        &self,
        own: &[&Wide],
        needed: &BTreeSet<usize>,
        returns: &Returns,
        order: &[(usize, bool)],
        limit: Option<Term>,
    ) -> Result<Read, String> {
        let equal = self.equal();
        if equal.is_empty() {
            return Err(format!(
                "reads table {} by no column with =; Cassandra finds rows by their partition",
                self.table.name
            ));
        }
        let path = self.table.names(equal.iter().copied()).join(", ");
        let mut why = format!(
            "reads table {} by {path}, and no table with its columns has a partition of these; add one",
            self.table.name
        );
        for wide in own {
            let knows = wide.partition.iter().all(|column| equal.contains(column));
            if !knows || !needed.is_subset(&wide.columns) {
                continue;
            }
            match self.query(wide, own[0].name == wide.name, returns, order, &limit, &equal) {
                Ok(read) => return Ok(read),
                Err(wrong) => why = wrong,
            }
        }
        Err(why)
    }

    fn query(
        &self,
        wide: &Wide,
        is_whole: bool,
        returns: &Returns,
        order: &[(usize, bool)],
        limit: &Option<Term>,
        equal: &BTreeSet<usize>,
    ) -> Result<Read, String> {
        let is_one = has_key(self.table, equal);
        let is_decided = |column: usize| self.conditions.iter().any(|condition| condition.column == column);
        let nullable = wide.key().find(|column| !self.table.columns[*column].is_required && !is_decided(*column));
        if let Some(column) = nullable.filter(|_| !is_whole) {
            return Err(format!(
                "needs the rows of table {} in an order of {}, which may be NULL and then is in no key; declare it NOT NULL",
                wide.name,
                self.column(column)
            ));
        }
        let order_text = if is_one { String::new() } else { self.order(wide, order, equal)? };
        let is_aggregate = matches!(returns, Returns::Aggregates(_));
        let (texts, returns) = self.returned(returns)?;
        let mut text = format!("SELECT {} FROM {} WHERE ", texts.join(", "), self.name(wide));
        let mut values = Vec::new();
        for (number, condition) in self.conditions.iter().enumerate() {
            let Match::Is(relation, term) = &condition.is else { continue };
            let and = if number == 0 { "" } else { " AND " };
            text += &format!("{and}{} {} ?", quoted(self.column(condition.column)), word(*relation));
            values.push(self.bound(condition.column, term, true));
        }
        text += &order_text;
        if let Some(limit) = limit {
            text += " LIMIT ?";
            values.push(Bound { term: limit.clone(), kind: None, is_key: false });
        }
        if self.filters(wide, equal) {
            // All rows that it looks at are in one partition.
            text += " ALLOW FILTERING";
        }
        Ok(Read { cql: Cql { text, values }, returns, is_aggregate })
    }

    /// The clause for an order that is not that of the clustering columns as they are.
    fn order(&self, wide: &Wide, order: &[(usize, bool)], equal: &BTreeSet<usize>) -> Result<String, String> {
        let open = |one: &&(usize, bool)| !equal.contains(&one.0);
        let own: Vec<(usize, bool)> = wide.clustering.iter().filter(open).copied().collect();
        let wanted: Vec<(usize, bool)> = order.iter().filter(open).copied().collect();
        match is_reversed(&own, &wanted) {
            Some(false) => Ok(String::new()),
            Some(true) => {
                let one = |(column, down): &(usize, bool)| {
                    format!("{} {}", quoted(self.column(*column)), if *down { "ASC" } else { "DESC" })
                };
                let all: Vec<String> = wide.clustering.iter().map(one).collect();
                Ok(format!(" ORDER BY {}", all.join(", ")))
            }
            None => Err(format!(
                "orders by {}, and the rows of table {} are in another order; add a table with these as first clustering \
                 columns",
                self.table.names(wanted.iter().map(|(column, _)| *column)).join(", "),
                wide.name
            )),
        }
    }

    /// Whether conditions are on other columns than the first ones of the key.
    fn filters(&self, wide: &Wide, equal: &BTreeSet<usize>) -> bool {
        let mut known: BTreeSet<usize> = wide.partition.iter().copied().collect();
        for (column, _) in &wide.clustering {
            known.insert(*column);
            if !equal.contains(column) {
                break;
            }
        }
        self.conditions.iter().any(|condition| !known.contains(&condition.column))
    }

    /// What is selected, and what of it is returned.
    fn returned(&self, returns: &Returns) -> Result<(Vec<String>, Vec<Returned>), String> {
        let name = |column: usize| quoted(self.column(column));
        let kind = |column: usize| self.table.columns[column].kind;
        let all = match returns {
            Returns::Columns(columns) => {
                let plain = |column: &usize| {
                    (name(*column), Returned { kind: kind(*column), unless_none: None, is_count: false })
                };
                return Ok(columns.iter().map(plain).unzip());
            }
            Returns::Aggregates(all) => all,
        };
        let (mut texts, mut counts, mut returned) = (Vec::new(), Vec::new(), Vec::new());
        for Computed { aggregate, digits } in all {
            if digits.is_some() {
                return Err("rounds what it returns, which CQL cannot".to_string());
            }
            let (text, kind, counted) = match aggregate {
                Aggregate::Count => ("count(*)".to_string(), Kind::Integer, None),
                Aggregate::CountOf(column) => (format!("count({})", name(*column)), Kind::Integer, None),
                Aggregate::Sum(column) => (format!("sum({})", name(*column)), kind(*column), Some(*column)),
                Aggregate::Least(column) => (format!("min({})", name(*column)), kind(*column), None),
                Aggregate::Greatest(column) => (format!("max({})", name(*column)), kind(*column), None),
            };
            if counted.is_some() && !matches!(kind, Kind::Integer | Kind::Decimal | Kind::Float | Kind::Float32) {
                return Err("adds up what is no number".to_string());
            }
            // CQL's sum of no values is 0.
            let unless_none = counted.map(|column| {
                counts.push(format!("count({})", name(column)));
                all.len() + counts.len() - 1
            });
            texts.push(text);
            let is_count = matches!(aggregate, Aggregate::Count | Aggregate::CountOf(_));
            returned.push(Returned { kind, unless_none, is_count });
        }
        texts.extend(counts);
        Ok((texts, returned))
    }
}

fn word(relation: Relation) -> &'static str {
    match relation {
        Relation::Equal => "=",
        // It is refused before.
        Relation::NotEqual => "!=",
        Relation::Less => "<",
        Relation::LessOrEqual => "<=",
        Relation::Greater => ">",
        Relation::GreaterOrEqual => ">=",
    }
}
