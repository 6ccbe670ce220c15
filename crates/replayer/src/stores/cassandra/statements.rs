//! The five operations in CQL, prepared.

use std::collections::HashMap;

use futures::stream::{self, StreamExt, TryStreamExt};
use schemas::vocabulary::kv::Verb;
use scylla::client::session::Session;
use scylla::errors::PrepareError;
use scylla::statement::prepared::PreparedStatement;

use super::layout::Layout;
use super::schema::{FRAGMENT, KEY, RECORDS};
use super::{Cassandra, Conditions};
use crate::source::Source;
use crate::stores::fields::{Fields, places};

/// How many statements are prepared at the same time.
const PREPARING_MAX: usize = 16;

/// Statements by operation and fields.
pub type Prepared = HashMap<(Verb, u64), PreparedStatement>;

/// Who says which of two writes wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The last value of a write is its timestamp.
    Trace,
    /// The driver adds the time, or the lightweight transaction has its own.
    Time,
}

/// The texts of the statements.
#[derive(Debug, Clone)]
pub struct Texts {
    table: String,
    is_by_fragment: bool,
    /// How writes are ordered.
    pub order: Order,
    /// Whether writes check whether their row exists.
    pub conditions: Conditions,
}

impl Texts {
    /// Those for the sessions of a trace set.
    pub fn of(store: &Cassandra, source: &Source, layout: &Layout) -> Texts {
        // A lightweight transaction refuses a timestamp.
        let is_ordered = source.records().leaves_one_state(&source.manifest.spec);
        Texts {
            table: store.place.table(RECORDS),
            is_by_fragment: layout.is_by_fragment(),
            order: if is_ordered && store.conditions == Conditions::None { Order::Trace } else { Order::Time },
            conditions: store.conditions,
        }
    }

    /// Those of a load: rows that nothing else writes, older than all that sessions write.
    pub fn of_load(store: &Cassandra, layout: &Layout) -> Texts {
        Texts {
            table: store.place.table(RECORDS),
            is_by_fragment: layout.is_by_fragment(),
            order: Order::Trace,
            conditions: Conditions::None,
        }
    }

    /// The statement of an operation on these fields. Its values are the fragment, if that is the partition, and
    /// the key; of an update, after the values of the fields; of an insert, before them. A scan has the most
    /// rows last. A write that is ordered by the trace has its timestamp last, or first if it is no insert.
    pub fn of_operation(&self, verb: Verb, mask: u64, fields: &Fields) -> String {
        let table = &self.table;
        let names: Vec<&str> = places(mask).map(|place| fields.name(place)).collect();
        let columns = names.join(", ");
        let row = if self.is_by_fragment { format!("{FRAGMENT} = ? AND {KEY} = ?") } else { format!("{KEY} = ?") };
        let using = if self.order == Order::Trace { " USING TIMESTAMP ?" } else { "" };
        let only = |condition: &str| match self.conditions {
            Conditions::Lwt => format!(" {condition}"),
            Conditions::None => String::new(),
        };
        match verb {
            Verb::Read => format!("SELECT {columns} FROM {table} WHERE {row}"),
            Verb::Scan => format!("SELECT {KEY}, {columns} FROM {table} WHERE {FRAGMENT} = ? AND {KEY} >= ? LIMIT ?"),
            Verb::Insert => {
                let keys = if self.is_by_fragment { format!("{FRAGMENT}, {KEY}") } else { KEY.to_string() };
                let marks = vec!["?"; names.len() + 1 + usize::from(self.is_by_fragment)].join(", ");
                let only = only("IF NOT EXISTS");
                format!("INSERT INTO {table} ({keys}, {columns}) VALUES ({marks}){only}{using}")
            }
            Verb::Update => {
                let set: Vec<String> = names.iter().map(|name| format!("{name} = ?")).collect();
                format!("UPDATE {table}{using} SET {} WHERE {row}{}", set.join(", "), only("IF EXISTS"))
            }
            Verb::Delete => format!("DELETE FROM {table}{using} WHERE {row}{}", only("IF EXISTS")),
            Verb::Begin | Verb::Commit | Verb::Abort => String::new(),
        }
    }
}

/// Prepares an operation, at its level.
pub async fn prepare(
    store: &Levels,
    session: &Session,
    text: String,
    verb: Verb,
) -> Result<PreparedStatement, PrepareError> {
    let mut statement = session.prepare(text).await?;
    let level = if verb.writes() { store.write } else { store.read };
    statement.set_consistency(level.consistency());
    statement.set_serial_consistency(Some(store.write.of_conditions()));
    Ok(statement)
}

/// The levels of operations.
#[derive(Debug, Clone, Copy)]
pub struct Levels {
    /// Of reads and scans.
    pub read: super::Level,
    /// Of writes.
    pub write: super::Level,
}

/// Prepares what the sessions of a trace set ask for.
pub async fn prepare_all(
    levels: Levels,
    session: &Session,
    texts: &Texts,
    fields: &Fields,
    source: &Source,
) -> Result<Prepared, PrepareError> {
    let (access, all) = (source.records().access, fields.data.data.all_fields());
    let each = |wanted: bool| (0..fields.data.data.fields).filter(move |_| wanted).map(|field| 1 << field);
    let mut wanted = vec![(Verb::Read, all), (Verb::Insert, all), (Verb::Update, all), (Verb::Delete, 0)];
    wanted.extend(each(!access.read_all_fields).map(|mask| (Verb::Read, mask)));
    wanted.extend(each(!access.write_all_fields).map(|mask| (Verb::Update, mask)));
    if texts.is_by_fragment {
        wanted.push((Verb::Scan, all));
        wanted.extend(each(!access.read_all_fields).map(|mask| (Verb::Scan, mask)));
    }
    let prepared = stream::iter(wanted).map(async |(verb, mask)| {
        let text = texts.of_operation(verb, mask, fields);
        Ok(((verb, mask), prepare(&levels, session, text, verb).await?))
    });
    prepared.buffer_unordered(PREPARING_MAX).try_collect().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_have_conditions_or_timestamps() {
        let folder = tempfile::tempdir().unwrap();
        let text = "name = 't'\nfamily = 'kv'\nsessions = 5\n[data]\nrecords = 9\nfields = 3\n[mix]\nread = 1\n";
        let spec = schemas::spec::Spec::parse(text, "t.toml").unwrap();
        let trace = folder.path().join("t.trace");
        tracegen::generate(&spec, &trace, &tracegen::GenerateOptions::default()).unwrap();
        let fields = Fields::of(&Source::open(&trace).unwrap());
        let texts = |is_by_fragment, order, conditions| Texts { table: "t".into(), is_by_fragment, order, conditions };
        let check = |texts: &Texts, verb, mask, expect: &str| {
            assert_eq!(texts.of_operation(verb, mask, &fields), expect);
        };
        let plain = texts(false, Order::Trace, Conditions::None);
        check(&plain, Verb::Read, 0b101, "SELECT field0, field2 FROM t WHERE y_id = ?");
        check(&plain, Verb::Update, 0b110, "UPDATE t USING TIMESTAMP ? SET field1 = ?, field2 = ? WHERE y_id = ?");
        let insert = "INSERT INTO t (y_id, field0, field1, field2) VALUES (?, ?, ?, ?) USING TIMESTAMP ?";
        check(&plain, Verb::Insert, 0b111, insert);
        check(&plain, Verb::Delete, 0, "DELETE FROM t USING TIMESTAMP ? WHERE y_id = ?");
        let strict = texts(true, Order::Time, Conditions::Lwt);
        check(&strict, Verb::Read, 0b010, "SELECT field1 FROM t WHERE fragment = ? AND y_id = ?");
        check(&strict, Verb::Scan, 0b001, "SELECT y_id, field0 FROM t WHERE fragment = ? AND y_id >= ? LIMIT ?");
        check(&strict, Verb::Update, 0b010, "UPDATE t SET field1 = ? WHERE fragment = ? AND y_id = ? IF EXISTS");
        check(&strict, Verb::Insert, 0b001, "INSERT INTO t (fragment, y_id, field0) VALUES (?, ?, ?) IF NOT EXISTS");
        check(&strict, Verb::Delete, 0, "DELETE FROM t WHERE fragment = ? AND y_id = ? IF EXISTS");
    }
}
