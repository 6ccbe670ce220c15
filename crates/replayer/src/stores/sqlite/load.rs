//! Loads a data set, and resets the store by copying the loaded file.
//!
//! The first load builds `PATH.loaded` and copies it to `PATH`. Every later load of the same
//! workload and design only copies.

use std::path::{Path, PathBuf};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, QueryBuilder};

use super::{Sqlite, SqliteFile, held_in};
use crate::stores::relational::contents::{Contents, Value, do_work};
use crate::stores::relational::engine::Engine;
use crate::stores::relational::state::{insert_state, state_creation};
use crate::stores::{LoadProgress, StoreError};

/// See the module.
pub async fn load(store: &Sqlite, contents: &dyn Contents, progress: LoadProgress<'_>) -> Result<(), StoreError> {
    // Refuses a file that is not Encore's before anything is written.
    let path = &store.engine().path;
    held_in(store, path).await?;
    let loaded = beside(path, ".loaded");
    let in_place = match held_in(store, &loaded).await {
        Ok(held) => held.is_some_and(|held| held == contents.loaded()),
        Err(_) if loaded.exists() => {
            let message = format!(
                "{} exists but was not made by `encore replay load`; move it, or choose another path",
                loaded.display()
            );
            return Err(store.misused(message));
        }
        Err(error) => return Err(error),
    };
    if !in_place {
        let unfinished = beside(path, ".loading");
        let built = match remove(&unfinished) {
            Ok(()) => build(store, contents, &unfinished, progress).await,
            Err(error) => Err(store.failed(error)),
        };
        let placed = built.and_then(|()| std::fs::rename(&unfinished, &loaded).map_err(|e| store.failed(e)));
        if let Err(error) = placed {
            // The first error is the one to report.
            let _ = remove(&unfinished);
            return Err(error);
        }
    }
    let copy = beside(path, ".copying");
    let result = std::fs::copy(&loaded, &copy)
        // The journals of an earlier file must not be applied to this one.
        .and_then(|_| remove(path))
        .and_then(|()| remove(&beside(path, "-journal")))
        .and_then(|()| remove(&beside(path, "-wal")))
        .and_then(|()| remove(&beside(path, "-shm")))
        .and_then(|()| std::fs::rename(&copy, path));
    if result.is_err() {
        let _ = remove(&copy);
    }
    result.map_err(|e| store.failed(format!("{}: {e}", path.display())))?;
    progress(contents.source().rows_total(), contents.source().rows_total());
    Ok(())
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn remove(path: &Path) -> std::io::Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

async fn build(
    store: &Sqlite,
    contents: &dyn Contents,
    path: &Path,
    progress: LoadProgress<'_>,
) -> Result<(), StoreError> {
    // A missing folder is not created: the path may be mistyped, and the data would lie elsewhere.
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        return Err(store.misused(format!("there is no folder {}; create it, or correct the path", folder.display())));
    }
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        // The file is deleted if anything fails, so nothing has to be durable yet.
        .journal_mode(SqliteJournalMode::Off)
        .synchronous(SqliteSynchronous::Off);
    let mut client = options.connect().await.map_err(|e| store.failed(e))?;
    fill(contents, &mut client, progress).await.map_err(|e| store.failed(e))?;
    client.close().await.map_err(|e| store.failed(e))?;
    std::fs::File::open(path).and_then(|f| f.sync_all()).map_err(|e| store.failed(e))
}

/// Creates the tables, inserts all rows, then builds the indexes, which is faster than updating
/// them with every row.
async fn fill(
    contents: &dyn Contents,
    client: &mut SqliteConnection,
    progress: LoadProgress<'_>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    sqlx::raw_sql(state_creation(&SqliteFile::DIALECT)).execute(&mut *client).await?;
    for table in contents.tables(&SqliteFile::DIALECT) {
        sqlx::raw_sql(AssertSqlSafe(table.creation)).execute(&mut *client).await?;
    }
    sqlx::query("BEGIN").execute(&mut *client).await?;
    let total = contents.source().rows_total();
    let mut done = 0;
    for fragment in contents.source().fragments() {
        for batch in contents.rows(fragment)? {
            let batch = batch?;
            let mut query = QueryBuilder::<sqlx::Sqlite>::new("INSERT INTO ");
            query.push(&batch.table).push(" ");
            query.push_values(batch.rows, |mut row, values| {
                for value in values {
                    match value {
                        Value::Null => row.push_bind(None::<i64>),
                        Value::Integer(number) => row.push_bind(number),
                        Value::Float(number) => row.push_bind(number),
                        Value::Text(text) => row.push_bind(text),
                        Value::Bytes(bytes) => row.push_bind(bytes),
                    };
                }
            });
            query.build().execute(&mut *client).await?;
            done += batch.rows_of_data_set;
            progress(done.min(total), total);
        }
    }
    do_work(client, contents, &mut |count| {
        done += count;
        progress(done.min(total), total);
    })
    .await?;
    insert_state::<SqliteFile>(client, &contents.loaded()).await?;
    sqlx::query("COMMIT").execute(&mut *client).await?;
    for index in contents.indexes() {
        sqlx::raw_sql(AssertSqlSafe(index)).execute(&mut *client).await?;
    }
    sqlx::raw_sql("ANALYZE").execute(&mut *client).await?;
    Ok(())
}
