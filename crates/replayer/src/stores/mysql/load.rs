//! Loads a data set into a database, and resets the database to it.
//!
//! The first load fills `DATABASE_encore_loaded` and copies its tables. Every later load of the
//! same workload and design restores, in one transaction, the rows that the replayed part of the
//! trace has touched (`reset=copy`). This takes as long as what was written, not as what is
//! there. All rows are copied again only if the trace set cannot tell: a replayer was killed, or
//! a longer trace set of the same workload was replayed. With `reset=reload` there is no second
//! database, and every load inserts all rows.

use sqlx::mysql::MySqlConnection;
use sqlx::{Connection, Error, QueryBuilder};

use super::{MySql, MySqlServer, Reset, code, number_of};
use crate::source::Source;
use crate::stores::relational::contents::{Batch, Contents, Touched, Value, do_work};
use crate::stores::relational::database::{Found, drop_all, find};
use crate::stores::relational::engine::{Client, Engine};
use crate::stores::relational::state::{insert_state, sql, state_creation};
use crate::stores::{HeldState, LoadProgress, RUNNING, StoreError};

/// The most bytes of payload in one statement, except for a single row: servers refuse packets
/// larger than `max_allowed_packet`, 16 MiB by default.
const STATEMENT_BYTES_MAX: usize = 1 << 20;

/// Rows of the data set between two commits of a load, so that the log of a transaction is bounded.
const COMMIT_ROWS: u64 = 20_000;

/// Identifiers of MySQL are at most this long.
const NAME_CHARS_MAX: usize = 64;

/// The most rows of a statement that lists touched rows: it has a parameter for each value.
const TOUCHED_ROWS_MAX: usize = 2_000;

const LOADED: &str = "_encore_loaded";

/// A database that is always there and never Encore's.
const NEUTRAL: &str = "information_schema";

/// What the database holds; none when there is no such database, or nothing in it.
pub async fn held(store: &MySql) -> Result<Option<HeldState>, StoreError> {
    store.held_in(look_into(store, &store.engine().database).await?)
}

/// Looks into a database; a missing one counts as empty.
async fn look_into(store: &MySql, database: &str) -> Result<Found, StoreError> {
    let looked = store.in_time(async {
        let mut client = match store.engine().connect_to(database).await {
            Ok(client) => client,
            Err(error) if number_of(&error) == Some(code::UNKNOWN_DATABASE) => return Ok(Found::Empty),
            Err(error) => return Err(error),
        };
        let found = find::<MySqlServer>(&mut client).await?;
        client.close().await?;
        Ok(found)
    });
    looked.await
}

/// See the module.
pub async fn load(store: &MySql, contents: &dyn Contents, progress: LoadProgress<'_>) -> Result<(), StoreError> {
    let server = store.engine();
    let held = held(store).await?;
    let done = match server.reset {
        Reset::Reload => fill(store, contents, &server.database, progress).await,
        Reset::Copy => {
            let loaded = format!("{}{LOADED}", server.database);
            if loaded.chars().count() > NAME_CHARS_MAX {
                let most = NAME_CHARS_MAX - LOADED.len();
                return Err(store
                    .misused(format!("the database's name is longer than {most} characters; choose a shorter one")));
            }
            let fresh = contents.loaded();
            let filled = match look_into(store, &loaded).await? {
                Found::Held(held) if held == fresh => Ok(()),
                Found::Foreign(_) => {
                    return Err(store.misused(format!(
                        "the database {loaded} exists, and Encore has not made it; drop it, or choose another database"
                    )));
                }
                _ => fill(store, contents, &loaded, progress).await,
            };
            match (filled, held) {
                (Err(error), _) => Err(error),
                (Ok(()), Some(held)) if contents.is_restorable() && is_known(&held, &fresh, contents.source()) => {
                    let touched =
                        contents.touched(&MySqlServer::DIALECT, &held.positions).map_err(|e| store.failed(e))?;
                    restore(store, contents, &loaded, touched).await
                }
                (Ok(()), _) => copy(store, contents, &loaded).await,
            }
        }
    };
    done.map_err(|error| store.driver_failed(error))?;
    progress(contents.source().rows_total(), contents.source().rows_total());
    Ok(())
}

/// Whether a store holds the tables and the workload of a freshly loaded one, and this trace set
/// has all that was done to the store since. It does not if a longer trace set of the same
/// workload was replayed beyond the end of this one.
fn is_known(held: &HeldState, fresh: &HeldState, source: &Source) -> bool {
    let is_like = (held.layout, &held.design, &held.workload_id) == (fresh.layout, &fresh.design, &fresh.workload_id);
    let sessions =
        |fragment| source.manifest.fragments.iter().find(|f| f.fragment == fragment).map_or(0, |f| f.sessions);
    let is_in_trace = held.positions.iter().all(|position| position.next_session <= sessions(position.fragment));
    is_like && is_in_trace && held.diverged.as_deref() != Some(RUNNING)
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A connection to a database without any of Encore's tables except an empty marker. (A prepared
/// statement stays with the database in which it was prepared, so each database gets its own connection.)
async fn empty_database(
    server: &MySqlServer,
    contents: &dyn Contents,
    database: &str,
) -> Result<MySqlConnection, Error> {
    let mut client = server.connect_to(NEUTRAL).await?;
    client.run(sql(format!("CREATE DATABASE IF NOT EXISTS {}", quoted(database)))).await?;
    client.close().await?;
    let mut client = server.connect_to(database).await?;
    // The marker's table is dropped last: a database with some of the tables stays Encore's.
    if let Ok(()) = client.run(sql("SELECT 1 FROM encore_state")).await {
        client.run(sql("DELETE FROM encore_state")).await?;
    }
    // Tables may refer to each other.
    client.run(sql("SET SESSION foreign_key_checks = 0")).await?;
    drop_all::<MySqlServer>(&mut client).await?;
    client.run(state_creation(&MySqlServer::DIALECT)).await?;
    if let Some(begun) = contents.begun() {
        insert_state::<MySqlServer>(&mut client, &begun).await?;
    }
    Ok(client)
}

/// Copies all tables of the loaded database.
async fn copy(store: &MySql, contents: &dyn Contents, loaded: &str) -> Result<(), Error> {
    let from = quoted(loaded);
    let mut client = empty_database(store.engine(), contents, &store.engine().database).await?;
    for table in contents.tables(&MySqlServer::DIALECT) {
        let name = table.name;
        // LIKE leaves out foreign keys.
        let creation = match contents.is_restorable() {
            true => format!("CREATE TABLE {name} LIKE {from}.{name}"),
            false => table.creation,
        };
        client.run(sql(creation)).await?;
        client.run(sql(format!("INSERT INTO {name} SELECT * FROM {from}.{name}"))).await?;
        // The answer is a row, which is ignored.
        client.run(sql(format!("ANALYZE TABLE {name}"))).await?;
    }
    if !contents.is_restorable() {
        for index in contents.indexes() {
            client.run(sql(index)).await?;
        }
    }
    write_loaded(&mut client, contents).await?;
    client.close().await
}

/// Replaces the marker of a load that has begun, if there is one.
async fn write_loaded(client: &mut MySqlConnection, contents: &dyn Contents) -> Result<(), Error> {
    client.run(sql("DELETE FROM encore_state")).await?;
    insert_state::<MySqlServer>(client, &contents.loaded()).await
}

/// Restores the rows that a replay has touched, all at once or not at all.
async fn restore(store: &MySql, contents: &dyn Contents, loaded: &str, touched: Vec<Touched>) -> Result<(), Error> {
    let (to, from) = (quoted(&store.engine().database), quoted(loaded));
    let mut client = store.engine().connect().await?;
    for Touched { table, columns, kind, rows } in touched {
        let key = columns.join(", ");
        let typed = columns.iter().map(|column| format!("{column} {kind}")).collect::<Vec<_>>().join(", ");
        client.run(sql(format!("CREATE TEMPORARY TABLE {table} ({typed}, PRIMARY KEY ({key}))"))).await?;
        for some in rows.chunks(TOUCHED_ROWS_MAX) {
            insert(&mut client, &Batch { table: table.into(), rows: some.to_vec(), rows_of_data_set: 0 }).await?;
        }
    }
    // No other client writes there: locks of ranges would only cost time.
    client.run(sql("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")).await?;
    client.run(sql("START TRANSACTION")).await?;
    for statement in contents.restoration(&to, &from) {
        client.run(sql(statement)).await?;
    }
    client.run(sql("DELETE FROM encore_state")).await?;
    insert_state::<MySqlServer>(&mut client, &contents.loaded()).await?;
    client.run(sql("COMMIT")).await?;
    client.close().await
}

/// Fills a database with all tables, rows and indexes; the marker's row comes last.
async fn fill(store: &MySql, contents: &dyn Contents, database: &str, progress: LoadProgress<'_>) -> Result<(), Error> {
    let dialect = &MySqlServer::DIALECT;
    let mut client = empty_database(store.engine(), contents, database).await?;
    for table in contents.tables(dialect) {
        client.run(sql(table.creation)).await?;
    }
    let total = contents.source().rows_total();
    let (mut done, mut committed) = (0, 0);
    client.run(sql("START TRANSACTION")).await?;
    for fragment in contents.source().fragments() {
        for batch in contents.rows(fragment).map_err(|e| Error::Encode(Box::new(e)))? {
            let batch = batch.map_err(|e| Error::Encode(Box::new(e)))?;
            insert(&mut client, &batch).await?;
            done += batch.rows_of_data_set;
            if done - committed >= COMMIT_ROWS {
                client.run(sql("COMMIT")).await?;
                client.run(sql("START TRANSACTION")).await?;
                committed = done;
                progress(done.min(total), total);
            }
        }
    }
    do_work(&mut client, contents, &mut |count| {
        done += count;
        progress(done.min(total), total);
    })
    .await?;
    client.run(sql("COMMIT")).await?;
    for index in contents.indexes() {
        client.run(sql(index)).await?;
    }
    for table in contents.tables(dialect) {
        client.run(sql(format!("ANALYZE TABLE {}", table.name))).await?;
    }
    write_loaded(&mut client, contents).await?;
    client.close().await
}

/// Inserts a batch in statements that are not too large.
async fn insert(client: &mut MySqlConnection, batch: &Batch) -> Result<(), Error> {
    let mut rows = batch.rows.as_slice();
    while !rows.is_empty() {
        let mut bytes = 0;
        let fits = rows.iter().take_while(|row| {
            bytes += row.iter().map(size).sum::<usize>();
            bytes <= STATEMENT_BYTES_MAX
        });
        let (some, rest) = rows.split_at(fits.count().max(1));
        let mut query = QueryBuilder::<sqlx::MySql>::new(format!("INSERT INTO {} ", batch.table));
        query.push_values(some, |mut row, values| {
            for value in values {
                match value {
                    Value::Null => row.push_bind(None::<i64>),
                    Value::Integer(number) => row.push_bind(*number),
                    Value::Float(number) => row.push_bind(*number),
                    Value::Text(text) => row.push_bind(text.as_str()),
                    Value::Bytes(bytes) => row.push_bind(bytes.as_slice()),
                };
            }
        });
        query.build().execute(&mut *client).await?;
        rows = rest;
    }
    Ok(())
}

fn size(value: &Value) -> usize {
    match value {
        Value::Null => 1,
        Value::Integer(_) | Value::Float(_) => 8,
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
    }
}
