//! Loads a data set into a database, and resets the database by copying another one.
//!
//! The first load fills `DATABASE_encore_loaded`, which is the template of `DATABASE`. Every
//! later load of the same workload and design only copies it (`reset=template`). With
//! `reset=reload` there is no second database, and every load inserts all rows.

use sqlx::postgres::PgConnection;
use sqlx::{Connection, Error, Row};

use super::copy::{CopyBuffer, Format};
use super::{Postgres, PostgresServer, Reset, replica};
use crate::stores::relational::contents::{Batch, Contents, do_work};
use crate::stores::relational::database::{Found, drop_all, find};
use crate::stores::relational::engine::{Client, Engine};
use crate::stores::relational::state::{insert_state, sql, state_creation};
use crate::stores::{HeldState, LoadProgress, StoreError};

/// Bytes of rows that are sent at a time.
const SEND_BYTES: usize = 1 << 20;

/// Identifiers of PostgreSQL are cut at this length.
const NAME_BYTES_MAX: usize = 63;

const LOADED: &str = "_encore_loaded";
const LOADING: &str = "_encore_loading";
const COPYING: &str = "_encore_copying";

/// What the database holds; none when there is no such database, or nothing in it.
pub async fn held(store: &Postgres) -> Result<Option<HeldState>, StoreError> {
    store.held_in(look_into(store, &store.engine().database).await?)
}

/// Looks into a database; a missing one counts as empty.
async fn look_into(store: &Postgres, database: &str) -> Result<Found, StoreError> {
    let options = store.engine().options.clone().database(database);
    let looked = store.in_time(async {
        let mut client = match PgConnection::connect_with(&options).await {
            Ok(client) => client,
            Err(error) if code_of(&error).as_deref() == Some("3D000") => return Ok(Found::Empty),
            Err(error) => return Err(error),
        };
        let found = find::<PostgresServer>(&mut client).await?;
        client.close().await?;
        Ok(found)
    });
    looked.await
}

fn code_of(error: &Error) -> Option<String> {
    error.as_database_error().and_then(|e| e.code()).map(|code| code.into_owned())
}

/// See the module.
pub async fn load(store: &Postgres, contents: &dyn Contents, progress: LoadProgress<'_>) -> Result<(), StoreError> {
    let server = store.engine();
    replica::check(store).await?;
    held(store).await?;
    match server.reset {
        Reset::Copy => load_by_copy(store, contents, progress).await?,
        Reset::Reload => load_in_place(store, contents, progress).await?,
    }
    replica::await_caught_up(store).await?;
    progress(contents.source().rows_total(), contents.source().rows_total());
    Ok(())
}

async fn load_by_copy(store: &Postgres, contents: &dyn Contents, progress: LoadProgress<'_>) -> Result<(), StoreError> {
    let server = store.engine();
    let database = &server.database;
    if database.len() + COPYING.len() > NAME_BYTES_MAX {
        let most = NAME_BYTES_MAX - COPYING.len();
        return Err(store.misused(format!("the database's name is longer than {most} bytes; choose a shorter one")));
    }
    let [loaded, loading, copying] = [LOADED, LOADING, COPYING].map(|suffix| format!("{database}{suffix}"));
    let mut keeper = keeper(store).await?;
    let in_place = match look_into(store, &loaded).await? {
        Found::Held(held) => held == contents.loaded(),
        Found::Empty | Found::Unfinished => false,
        Found::Foreign(_) => {
            return Err(store.misused(format!(
                "the database {loaded} exists, and Encore has not made it; drop it, or choose another database"
            )));
        }
    };
    let done = async {
        if !in_place {
            drop_database(&mut keeper, &loading).await?;
            keeper.run(sql(format!("CREATE DATABASE {} TEMPLATE template0", quoted(&loading)))).await?;
            let mut client = PgConnection::connect_with(&server.options.clone().database(&loading)).await?;
            fill(contents, &mut client, progress).await?;
            client.close().await?;
            drop_database(&mut keeper, &loaded).await?;
            rename(&mut keeper, &loading, &loaded).await?;
        }
        // The old database is dropped when the new one is complete.
        let settings = settings_of_database(&mut keeper, database).await?;
        drop_database(&mut keeper, &copying).await?;
        keeper.run(sql(format!("CREATE DATABASE {} TEMPLATE {}", quoted(&copying), quoted(&loaded)))).await?;
        drop_database(&mut keeper, database).await?;
        rename(&mut keeper, &copying, database).await?;
        for setting in settings {
            keeper.run(sql(format!("ALTER DATABASE {} SET {setting}", quoted(database)))).await?;
        }
        Ok::<_, Error>(())
    };
    done.await.map_err(|error| store.driver_failed(error))?;
    store.in_time(keeper.close()).await
}

/// A connection to a database that is neither copied nor dropped.
pub(super) async fn keeper(store: &Postgres) -> Result<PgConnection, StoreError> {
    let options = &store.engine().options;
    match store.in_time(PgConnection::connect_with(&options.clone().database("postgres"))).await {
        Ok(client) => Ok(client),
        Err(_) => store.in_time(PgConnection::connect_with(&options.clone().database("template1"))).await,
    }
}

async fn drop_database(keeper: &mut PgConnection, database: &str) -> Result<(), Error> {
    keeper.run(sql(format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", quoted(database)))).await
}

async fn rename(keeper: &mut PgConnection, from: &str, to: &str) -> Result<(), Error> {
    keeper.run(sql(format!("ALTER DATABASE {} RENAME TO {}", quoted(from), quoted(to)))).await
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The settings of the database (`ALTER DATABASE … SET`), as `name TO value`. A copy of another
/// database would lose them.
async fn settings_of_database(keeper: &mut PgConnection, database: &str) -> Result<Vec<String>, Error> {
    let rows = sqlx::query(
        "SELECT unnest(s.setconfig) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase \
         WHERE s.setrole = 0 AND d.datname = $1",
    )
    .bind(database)
    .fetch_all(keeper)
    .await?;
    let mut settings = Vec::new();
    for row in rows {
        let setting: String = row.try_get(0)?;
        let Some((name, value)) = setting.split_once('=') else { continue };
        // Values that are lists are stored with their own quotes.
        let is_list = name == "search_path" || name == "temp_tablespaces" || name.ends_with("_preload_libraries");
        let value = if is_list { value.to_string() } else { format!("'{}'", value.replace('\'', "''")) };
        settings.push(format!("{} TO {value}", quoted(name)));
    }
    Ok(settings)
}

/// Fills the database itself, and overwrites what Encore has loaded there.
async fn load_in_place(
    store: &Postgres,
    contents: &dyn Contents,
    progress: LoadProgress<'_>,
) -> Result<(), StoreError> {
    let server = store.engine();
    if let Err(error) = store.client().await {
        // The database may be missing: the replayer creates it, if the user may.
        let mut keeper = keeper(store).await?;
        let made = keeper.run(sql(format!("CREATE DATABASE {}", quoted(&server.database)))).await;
        if made.is_err() {
            return Err(error);
        }
    }
    let mut client = store.client().await?;
    fill(contents, &mut client, progress).await.map_err(|e| store.driver_failed(e))?;
    store.in_time(client.close()).await
}

/// Replaces tables, rows and indexes in one transaction, and gathers statistics. Because it is
/// one transaction, COPY can write rows that the server need not visit again (FREEZE).
async fn fill(contents: &dyn Contents, client: &mut PgConnection, progress: LoadProgress<'_>) -> Result<(), Error> {
    let dialect = &PostgresServer::DIALECT;
    client.run(sql("BEGIN")).await?;
    drop_all::<PostgresServer>(client).await?;
    client.run(state_creation(dialect)).await?;
    for table in contents.tables(dialect) {
        client.run(sql(table.creation)).await?;
    }
    let total = contents.source().rows_total();
    let format = if contents.are_converted() { Format::Text } else { Format::Binary };
    let mut done = 0;
    for fragment in contents.source().fragments() {
        let mut batches = contents.rows(fragment).map_err(unreadable)?.peekable();
        while let Some(first) = batches.next_if(|_| true) {
            let first = first.map_err(unreadable)?;
            let table = first.table.clone();
            let statement = format!("COPY {table} FROM STDIN WITH (FORMAT {}, FREEZE)", format.name());
            let mut copy = client.copy_in_raw(&statement).await?;
            let mut buffer = CopyBuffer::new(format);
            let mut batch = Some(first);
            while let Some(rows) = batch {
                rows.rows.iter().for_each(|row| buffer.push(row));
                done += rows.rows_of_data_set;
                if let Some(bytes) = buffer.take(SEND_BYTES) {
                    copy.send(bytes).await?;
                    progress(done.min(total), total);
                }
                let same = |next: &Result<Batch, _>| next.as_ref().is_ok_and(|next| next.table == table);
                batch = batches.next_if(same).transpose().map_err(unreadable)?;
            }
            buffer.finish();
            if let Some(bytes) = buffer.take(0) {
                copy.send(bytes).await?;
            }
            copy.finish().await?;
        }
    }
    do_work(client, contents, &mut |count| {
        done += count;
        progress(done.min(total), total);
    })
    .await?;
    for index in contents.indexes() {
        client.run(sql(index)).await?;
    }
    insert_state::<PostgresServer>(client, &contents.loaded()).await?;
    client.run(sql("COMMIT")).await?;
    client.run(sql("ANALYZE")).await
}

fn unreadable(error: schemas::table::TableError) -> Error {
    Error::Encode(Box::new(error))
}
