//! The keyspace, its tables, and the marker.

use std::collections::HashMap;

use scylla::client::session::Session;
use scylla::statement::{Consistency, Statement};

use super::layout::Layout;
use super::level::Level;
use super::{Cassandra, nodes};
use crate::stores::url::StoreUrl;
use crate::stores::{HeldState, StoreError};

/// The table of the records.
pub const RECORDS: &str = "usertable";
/// The table of the marker.
pub const STATE: &str = "encore_state";
/// The column of a record's key, as in YCSB.
pub const KEY: &str = "y_id";
/// The column of a record's fragment, where that is the partition.
pub const FRAGMENT: &str = "fragment";

/// The comment of each table that Encore has made.
const COMMENT: &str = "made by Encore";

/// How many copies of a row there are in a new keyspace, if there are so many nodes.
const REPLICATION_FACTOR: u32 = 3;

/// Options of the table of the records that weaken or strengthen reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOptions {
    /// Whether reads that meet different replicas make them equal.
    pub read_repair: Option<String>,
    /// When a coordinator asks another replica, too.
    pub speculative_retry: Option<String>,
}

impl TableOptions {
    /// Those of a URL.
    pub fn of(url: &StoreUrl) -> Result<TableOptions, StoreError> {
        let words = [("BLOCKING", "BLOCKING"), ("NONE", "NONE")];
        let read_repair = url.text("read_repair").map(|_| url.choice("read_repair", &words)).transpose()?;
        let speculative_retry = url.text("speculative_retry").map(|text| {
            let is_number = |text: &str| text.parse::<f64>().is_ok_and(|number| number >= 0.0);
            let ends_well = ["PERCENTILE", "p", "ms"].iter().any(|end| text.strip_suffix(end).is_some_and(is_number));
            match ends_well || ["NEVER", "ALWAYS"].contains(&text) {
                true => Ok(text.to_string()),
                false => Err(StoreError::usage(
                    url,
                    format!("parameter speculative_retry: {text:?} is none of NEVER, ALWAYS, 99p, 50ms"),
                )),
            }
        });
        Ok(TableOptions {
            read_repair: read_repair.map(str::to_string),
            speculative_retry: speculative_retry.transpose()?,
        })
    }
}

/// What Encore finds in a keyspace.
pub enum Found {
    /// It does not exist, or has no tables.
    Empty,
    /// A table or view in it that Encore has not made.
    Foreign(String),
    /// Encore has begun to load it and has not finished.
    Unfinished,
    /// It is loaded.
    Held(HeldState),
}

/// What the keyspace holds; none if it is empty.
pub async fn held(store: &Cassandra, session: &Session) -> Result<Option<HeldState>, StoreError> {
    match look_into(store, session).await? {
        Found::Held(held) => Ok(Some(held)),
        Found::Empty | Found::Unfinished => Ok(None),
        Found::Foreign(table) => Err(foreign(store, &table)),
    }
}

/// Refuses a keyspace with a table of somebody else.
pub fn foreign(store: &Cassandra, table: &str) -> StoreError {
    let message = format!(
        "contains table {table}, which Encore has not made, and Encore overwrites the keyspace of the URL; choose \
         another keyspace"
    );
    StoreError::usage(&store.url, message)
}

/// What the keyspace holds.
pub async fn look_into(store: &Cassandra, session: &Session) -> Result<Found, StoreError> {
    let tables = names(store, session, "table_name", "tables").await?;
    let views = names(store, session, "view_name", "views").await?;
    let is_ours = tables.iter().any(|table| table == STATE);
    let own = if is_ours { own_tables(store, session).await? } else { Vec::new() };
    let is_foreign = |table: &&String| **table != STATE && !own.contains(table);
    if let Some(table) = tables.iter().chain(&views).find(is_foreign) {
        return Ok(Found::Foreign(table.clone()));
    }
    if !is_ours {
        return Ok(Found::Empty);
    }
    let query = format!("SELECT state FROM {} WHERE id = 0", store.place.table(STATE));
    match row::<(Option<String>,)>(store, session, quorum(query), ()).await? {
        None | Some((None,)) => Ok(Found::Unfinished),
        Some((Some(text),)) => serde_json::from_str(&text)
            .map(Found::Held)
            .map_err(|error| StoreError::store(&store.url, format!("{STATE}: {error}"))),
    }
}

/// The names of the keyspace's tables or views.
async fn names(store: &Cassandra, session: &Session, column: &str, of: &str) -> Result<Vec<String>, StoreError> {
    let query = format!("SELECT {column} FROM system_schema.{of} WHERE keyspace_name = ?");
    let answer = store.in_time(session.query_unpaged(query, (&store.place.keyspace,))).await?;
    let unreadable = |error: &dyn std::error::Error| StoreError::store(&store.url, error);
    let rows = answer.into_rows_result().map_err(|error| unreadable(&error))?;
    let rows = rows.rows::<(String,)>().map_err(|error| unreadable(&error))?;
    rows.map(|row| row.map(|(name,)| name).map_err(|error| unreadable(&error))).collect()
}

/// The only row of an answer.
pub async fn row<R>(
    store: &Cassandra,
    session: &Session,
    statement: impl Into<Statement>,
    values: impl scylla::serialize::row::SerializeRow,
) -> Result<Option<R>, StoreError>
where
    R: for<'frame, 'metadata> scylla::deserialize::row::DeserializeRow<'frame, 'metadata>,
{
    let answer = store.in_time(session.query_unpaged(statement, values)).await?;
    let rows = answer.into_rows_result().map_err(|error| StoreError::store(&store.url, error))?;
    rows.maybe_first_row::<R>().map_err(|error| StoreError::store(&store.url, error))
}

/// The marker is read and written so that all processes see the same, whatever the levels of operations.
fn quorum(text: String) -> Statement {
    let mut statement = Statement::new(text);
    statement.set_consistency(Consistency::Quorum);
    statement
}

/// Writes the marker.
pub async fn write_state(store: &Cassandra, session: &Session, state: &HeldState) -> Result<(), StoreError> {
    let text = serde_json::to_string(state).map_err(|error| StoreError::store(&store.url, error))?;
    let insert = quorum(format!("INSERT INTO {} (id, state) VALUES (0, ?)", store.place.table(STATE)));
    store.in_time(session.query_unpaged(insert, (text,))).await.map(drop)
}

/// What a table has, as CREATE TABLE says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// The columns and the key.
    pub columns: String,
    /// The clause of the order in a partition, if it has one.
    pub order: Option<String>,
}

/// Creates the keyspace and an empty table of records. From now on the keyspace is Encore's, and unfinished.
pub async fn make(store: &Cassandra, session: &Session, fields: &[String], layout: &Layout) -> Result<(), StoreError> {
    let fields: Vec<String> = fields.iter().map(|name| format!("{name} text")).collect();
    let fields = fields.join(", ");
    let columns = match layout.is_by_fragment() {
        true => format!("{FRAGMENT} int, {KEY} text, {fields}, PRIMARY KEY ({FRAGMENT}, {KEY})"),
        false => format!("{KEY} text PRIMARY KEY, {fields}"),
    };
    make_all(store, session, &[(RECORDS.to_string(), Columns { columns, order: None })]).await
}

/// Creates the keyspace and empty tables, and removes others that Encore has made. From now on the keyspace is Encore's,
/// and unfinished.
pub async fn make_all(store: &Cassandra, session: &Session, tables: &[(String, Columns)]) -> Result<(), StoreError> {
    let execute = async |text: String| store.in_time(session.query_unpaged(quorum(text), ())).await.map(drop);
    make_keyspace(store, session).await?;
    let state = store.place.table(STATE);
    execute(format!("CREATE TABLE IF NOT EXISTS {state} (id int PRIMARY KEY, state text, made text)")).await?;
    let made = row::<(Option<String>,)>(store, session, quorum(format!("SELECT made FROM {state} WHERE id = 0")), ());
    let made = made.await?.and_then(|(made,)| made);
    execute(format!("INSERT INTO {state} (id, state, made) VALUES (0, null, null)")).await?;
    let snapshots = has_snapshot_option(store, session).await?;
    let name = |table: &str| format!("\"{}\".\"{table}\"", store.place.keyspace);
    let create = |(table, columns): &(String, Columns)| create(store, &name(table), columns, snapshots);
    let creates: Vec<String> = tables.iter().map(create).collect();
    let known = own_tables(store, session).await?;
    let are_there = tables.iter().all(|(table, _)| known.contains(table)) && known.len() == tables.len();
    if made.as_ref() == Some(&creates.join(";\n")) && are_there {
        for (table, _) in tables {
            execute(format!("TRUNCATE {}", name(table))).await?;
        }
    } else {
        for table in &known {
            execute(format!("DROP TABLE IF EXISTS {}", name(table))).await?;
        }
        for create in &creates {
            execute(create.clone()).await?;
        }
    }
    let note = quorum(format!("UPDATE {state} SET made = ? WHERE id = 0"));
    store.in_time(session.query_unpaged(note, (creates.join(";\n"),))).await.map(drop)
}

/// The tables of the keyspace that Encore has made, except that of the marker.
async fn own_tables(store: &Cassandra, session: &Session) -> Result<Vec<String>, StoreError> {
    let query = "SELECT table_name, comment FROM system_schema.tables WHERE keyspace_name = ?";
    let answer = store.in_time(session.query_unpaged(query, (&store.place.keyspace,))).await?;
    let unreadable = |error: &dyn std::error::Error| StoreError::store(&store.url, error);
    let rows = answer.into_rows_result().map_err(|error| unreadable(&error))?;
    let rows = rows.rows::<(String, Option<String>)>().map_err(|error| unreadable(&error))?;
    let mut own = Vec::new();
    for row in rows {
        let (name, comment) = row.map_err(|error| unreadable(&error))?;
        if name != STATE && (name == RECORDS || comment.as_deref() == Some(COMMENT)) {
            own.push(name);
        }
    }
    Ok(own)
}

/// The statement that creates a table.
fn create(store: &Cassandra, table: &str, Columns { columns, order }: &Columns, snapshots: bool) -> String {
    let mut options: Vec<String> = order.iter().cloned().collect();
    options.push(format!("comment = '{COMMENT}'"));
    options.extend(store.options.read_repair.as_ref().map(|word| format!("read_repair = '{word}'")));
    options.extend(store.options.speculative_retry.as_ref().map(|word| format!("speculative_retry = '{word}'")));
    if snapshots {
        // Each load empties the table, and a snapshot each time would fill the disk.
        options.push("allow_auto_snapshot = false".to_string());
    }
    format!("CREATE TABLE {table} ({columns}) WITH {}", options.join(" AND "))
}

/// Whether the server has the option of tables that disables snapshots: Cassandra 4.1 or later.
async fn has_snapshot_option(store: &Cassandra, session: &Session) -> Result<bool, StoreError> {
    let version = row::<(String,)>(store, session, "SELECT release_version FROM system.local", ()).await?;
    let version = version.map_or(String::new(), |(version,)| version);
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or_default());
    Ok((numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default()) >= (4, 1))
}

/// Creates the keyspace if it is missing, and gives it the number of copies that the URL asks for.
async fn make_keyspace(store: &Cassandra, session: &Session) -> Result<(), StoreError> {
    let (known, nodes) = (replication_factor(store, session).await?, nodes::nodes_of_a_data_center(session));
    let wanted = store.replication_factor.or(known).unwrap_or(REPLICATION_FACTOR.min(nodes));
    if wanted > nodes {
        let whose = if store.replication_factor.is_some() { "the URL asks for" } else { "the keyspace has" };
        let message = format!(
            "{whose} {wanted} copies of each row, and the cluster has {nodes} nodes; use replication_factor={nodes} or \
             less, or add nodes"
        );
        return Err(StoreError::usage(&store.url, message));
    }
    check_levels_with(store, wanted)?;
    let verb = match known {
        Some(known) if known == wanted => return Ok(()),
        Some(_) => "ALTER KEYSPACE",
        None => "CREATE KEYSPACE IF NOT EXISTS",
    };
    let text = format!(
        "{verb} \"{}\" WITH replication = {{'class': 'NetworkTopologyStrategy', 'replication_factor': {wanted}}}",
        store.place.keyspace
    );
    store.in_time(session.query_unpaged(text, ())).await.map(drop)
}

/// The copies of each row in a data centre, the fewest of all; None without the keyspace.
pub async fn replication_factor(store: &Cassandra, session: &Session) -> Result<Option<u32>, StoreError> {
    Ok(replication(store, session).await?.and_then(|replication| {
        let counts = replication.iter().filter(|(name, _)| *name != "class");
        // A factor like 3/1 counts transient replicas, which hold no data of their own.
        counts.filter_map(|(_, count)| count.split('/').next()?.parse::<u32>().ok()).min()
    }))
}

/// How the keyspace is replicated; None without the keyspace.
pub async fn replication(store: &Cassandra, session: &Session) -> Result<Option<HashMap<String, String>>, StoreError> {
    let query = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = ?";
    let found = row::<(HashMap<String, String>,)>(store, session, query, (&store.place.keyspace,)).await?;
    Ok(found.map(|(replication,)| replication))
}

/// Refuses levels that the keyspace can never satisfy.
pub async fn check_levels(store: &Cassandra, session: &Session) -> Result<(), StoreError> {
    match replication_factor(store, session).await? {
        Some(factor) => check_levels_with(store, factor),
        None => Ok(()),
    }
}

/// Refuses levels that ask for more copies than the keyspace has, each with what asks for it.
pub async fn check_own_levels(
    store: &Cassandra,
    session: &Session,
    levels: &[(String, Level)],
) -> Result<(), StoreError> {
    let Some(factor) = replication_factor(store, session).await? else { return Ok(()) };
    levels.iter().try_for_each(|(of, level)| check_level(store, of, *level, factor))
}

fn check_levels_with(store: &Cassandra, factor: u32) -> Result<(), StoreError> {
    check_level(store, "parameter read_level", store.read_level, factor)?;
    check_level(store, "parameter write_level", store.write_level, factor)
}

/// Refuses a level that needs more copies of a row than there are. `of` is what asks for it.
fn check_level(store: &Cassandra, of: &str, level: Level, factor: u32) -> Result<(), StoreError> {
    match level.replicas(factor) {
        needed if needed > factor => Err(StoreError::usage(
            &store.url,
            format!(
                "{of}: {} needs {needed} copies of each row, and the keyspace has {factor}; use a lower level, or a greater \
                 replication_factor",
                level.name()
            ),
        )),
        _ => Ok(()),
    }
}
