//! Loads a data set, and brings a loaded file back by copying it.
//!
//! The first load builds `PATH.loaded` and copies it to `PATH`; every later one
//! of the same workload only copies.

use std::path::{Path, PathBuf};

use futures::TryStreamExt;
use schemas::dataset::Table;
use schemas::digest::StateDigest;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, QueryBuilder, Row};

use super::Sqlite;
use crate::source::{Payload, Source};
use crate::stores::{HeldState, LoadProgress, StoreError};

/// The version of [`TABLES`] and [`INDEXES`]: a file with other ones is built anew.
const LAYOUT: u32 = 1;

/// The tables; the keys that rows are found by come first.
const TABLES: &str = "
    CREATE TABLE encore_state (state TEXT NOT NULL);
    CREATE TABLE members (member INTEGER PRIMARY KEY, attributes TEXT NOT NULL, image BLOB NOT NULL, thumbnail BLOB NOT NULL);
    CREATE TABLE friendships (member INTEGER NOT NULL, friend INTEGER NOT NULL, PRIMARY KEY (member, friend)) WITHOUT ROWID;
    CREATE TABLE invitations (invitee INTEGER NOT NULL, inviter INTEGER NOT NULL, PRIMARY KEY (invitee, inviter)) WITHOUT ROWID;
    CREATE TABLE resources (resource INTEGER PRIMARY KEY, owner INTEGER NOT NULL, wall INTEGER NOT NULL, body TEXT NOT NULL);
    CREATE TABLE comments (comment INTEGER PRIMARY KEY, resource INTEGER NOT NULL, author INTEGER NOT NULL, body TEXT NOT NULL);
";

/// Built when the rows are in, which is faster than keeping them up meanwhile.
const INDEXES: &str = "
    CREATE INDEX resources_by_wall ON resources (wall, resource);
    CREATE INDEX comments_by_resource ON comments (resource);
    ANALYZE;
";

/// Rows in one INSERT.
const ROWS_EACH: usize = 100;

/// See the module.
pub async fn load(store: &Sqlite, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
    // Refuses a file that is not Encore's before anything is written.
    store.held_in(&store.path).await?;
    let loaded = beside(&store.path, ".loaded");
    let in_place = match store.held_in(&loaded).await {
        Ok(held) => held.is_some_and(|held| held == fresh(source)),
        Err(_) if loaded.exists() => {
            let message = format!("{} is in the way and was not made by `replayer load`", loaded.display());
            return Err(StoreError::usage(&store.url, message));
        }
        Err(error) => return Err(error),
    };
    if !in_place {
        let unfinished = beside(&store.path, ".loading");
        let built = match remove(&unfinished) {
            Ok(()) => build(store, source, &unfinished, progress).await,
            Err(error) => Err(store.failed(error)),
        };
        let placed = built.and_then(|()| std::fs::rename(&unfinished, &loaded).map_err(|e| store.failed(e)));
        if let Err(error) = placed {
            // The error that matters is the first one.
            let _ = remove(&unfinished);
            return Err(error);
        }
    }
    let copy = beside(&store.path, ".copying");
    let result = std::fs::copy(&loaded, &copy)
        // What an earlier file left in its journals must not be played into this one.
        .and_then(|_| remove(&store.path))
        .and_then(|()| remove(&beside(&store.path, "-journal")))
        .and_then(|()| remove(&beside(&store.path, "-wal")))
        .and_then(|()| remove(&beside(&store.path, "-shm")))
        .and_then(|()| std::fs::rename(&copy, &store.path));
    if result.is_err() {
        let _ = remove(&copy);
    }
    result.map_err(|e| store.failed(format!("{}: {e}", store.path.display())))?;
    progress(source.rows_total(), source.rows_total());
    Ok(())
}

/// What a freshly loaded file says of itself.
fn fresh(source: &Source) -> HeldState {
    let workload_id = source.manifest.workload_id.clone();
    HeldState { layout: LAYOUT, workload_id, positions: vec![], diverged: None }
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

async fn build(store: &Sqlite, source: &Source, path: &Path, progress: LoadProgress<'_>) -> Result<(), StoreError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| store.failed(format!("{}: {e}", folder.display())))?;
    }
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        // The file is thrown away when anything goes wrong, so nothing has to be safe yet.
        .journal_mode(SqliteJournalMode::Off)
        .synchronous(SqliteSynchronous::Off);
    let mut client = options.connect().await.map_err(|e| store.failed(e))?;
    let mut loader =
        Loader { client: &mut client, payload: source.payload(), done: 0, total: source.rows_total(), progress };
    let result: Result<(), LoadError> = async {
        sqlx::raw_sql(TABLES).execute(&mut *loader.client).await?;
        sqlx::query("BEGIN").execute(&mut *loader.client).await?;
        for fragment in source.fragments() {
            loader.fragment(source, fragment).await?;
        }
        let state = serde_json::to_string(&fresh(source)).map_err(|e| LoadError(e.to_string()))?;
        sqlx::query("INSERT INTO encore_state VALUES (?)").bind(state).execute(&mut *loader.client).await?;
        sqlx::query("COMMIT").execute(&mut *loader.client).await?;
        sqlx::raw_sql(INDEXES).execute(&mut *loader.client).await?;
        Ok(())
    }
    .await;
    result.map_err(|e| store.failed(e.0))?;
    client.close().await.map_err(|e| store.failed(e))?;
    std::fs::File::open(path).and_then(|f| f.sync_all()).map_err(|e| store.failed(e))
}

/// What went wrong, in words; the caller knows the store.
struct LoadError(String);

impl<E: std::error::Error> From<E> for LoadError {
    fn from(error: E) -> LoadError {
        LoadError(error.to_string())
    }
}

struct Loader<'a> {
    client: &'a mut SqliteConnection,
    payload: Payload,
    done: u64,
    total: u64,
    progress: LoadProgress<'a>,
}

impl Loader<'_> {
    async fn fragment(&mut self, source: &Source, fragment: u32) -> Result<(), LoadError> {
        let folder = &source.folder;
        for rows in Table::Members.rows(folder, fragment)? {
            self.insert("INSERT INTO members ", &rows?, |p, row, [member]| {
                row.push_bind(member as i64).push_bind(p.attributes(member));
                row.push_bind(p.image(member)).push_bind(p.thumbnail(member));
            })
            .await?;
        }
        for rows in Table::Friendships.rows(folder, fragment)? {
            // Each friendship is known from both sides.
            let rows = rows?;
            let both: Vec<[u64; 2]> = rows.iter().flat_map(|[a, b]| [[*a, *b], [*b, *a]]).collect();
            self.insert("INSERT INTO friendships ", &both, |_, row, [member, friend]| {
                row.push_bind(member as i64).push_bind(friend as i64);
            })
            .await?;
        }
        for rows in Table::Invitations.rows(folder, fragment)? {
            self.insert("INSERT INTO invitations ", &rows?, |_, row, [inviter, invitee]| {
                row.push_bind(invitee as i64).push_bind(inviter as i64);
            })
            .await?;
        }
        for rows in Table::Resources.rows(folder, fragment)? {
            self.insert("INSERT INTO resources ", &rows?, |p, row, [resource, owner, wall]| {
                row.push_bind(resource as i64).push_bind(owner as i64);
                row.push_bind(wall as i64).push_bind(p.resource(resource));
            })
            .await?;
        }
        for rows in Table::Comments.rows(folder, fragment)? {
            self.insert("INSERT INTO comments ", &rows?, |p, row, [comment, resource, author]| {
                row.push_bind(comment as i64).push_bind(resource as i64);
                row.push_bind(author as i64).push_bind(p.comment(comment));
            })
            .await?;
        }
        Ok(())
    }

    async fn insert<const N: usize>(
        &mut self,
        into: &'static str,
        rows: &[[u64; N]],
        bind: impl Fn(&Payload, &mut sqlx::query_builder::Separated<'_, sqlx::Sqlite, &'static str>, [u64; N]),
    ) -> Result<(), LoadError> {
        for some in rows.chunks(ROWS_EACH) {
            let mut query = QueryBuilder::<sqlx::Sqlite>::new(into);
            query.push_values(some, |mut row, values| bind(&self.payload, &mut row, *values));
            query.build().execute(&mut *self.client).await?;
            self.done += some.len() as u64;
            (self.progress)(self.done.min(self.total), self.total);
        }
        Ok(())
    }
}

/// The digest of all rows; friendships by their row with the smaller member first.
pub async fn digest(client: &mut SqliteConnection) -> Result<StateDigest, sqlx::Error> {
    let mut digest = StateDigest::default();
    let id = |row: &sqlx::sqlite::SqliteRow, column: usize| row.try_get::<i64, _>(column).map(|id| id as u64);
    let mut rows = sqlx::query("SELECT member, attributes, image, thumbnail FROM members").fetch(&mut *client);
    while let Some(row) = rows.try_next().await? {
        digest.member(id(&row, 0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
    }
    drop(rows);
    let mut rows = sqlx::query("SELECT member, friend FROM friendships WHERE member < friend").fetch(&mut *client);
    while let Some(row) = rows.try_next().await? {
        digest.friendship(id(&row, 0)?, id(&row, 1)?);
    }
    drop(rows);
    let mut rows = sqlx::query("SELECT inviter, invitee FROM invitations").fetch(&mut *client);
    while let Some(row) = rows.try_next().await? {
        digest.invitation(id(&row, 0)?, id(&row, 1)?);
    }
    drop(rows);
    let mut rows = sqlx::query("SELECT resource, owner, wall, body FROM resources").fetch(&mut *client);
    while let Some(row) = rows.try_next().await? {
        digest.resource(id(&row, 0)?, id(&row, 1)?, id(&row, 2)?, row.try_get(3)?);
    }
    drop(rows);
    let mut rows = sqlx::query("SELECT comment, resource, author, body FROM comments").fetch(&mut *client);
    while let Some(row) = rows.try_next().await? {
        digest.comment(id(&row, 0)?, id(&row, 1)?, id(&row, 2)?, row.try_get(3)?);
    }
    drop(rows);
    Ok(digest)
}
