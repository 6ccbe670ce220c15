//! The digest of a file's state, and whether what it keeps twice agrees.

use futures::TryStreamExt;
use schemas::digest::StateDigest;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row};

use super::Sqlite;
use crate::source::Source;
use crate::stores::StoreError;
use crate::stores::relational::audit;
use crate::stores::relational::design::Images;

/// See the module.
pub async fn digest(store: &Sqlite, source: &Source, client: &mut SqliteConnection) -> Result<StateDigest, StoreError> {
    for agreement in audit::agreements(&store.design) {
        match store.count(client, agreement.sql).await? {
            0 => {}
            n => return Err(store.failed(format!("{n} {}; load it again with `replayer load`", agreement.broken))),
        }
    }
    facts(store, source, client).await.map_err(|e| store.failed(e))
}

fn id(row: &SqliteRow, column: usize) -> Result<u64, sqlx::Error> {
    row.try_get::<i64, _>(column).map(|id| id as u64)
}

async fn facts(store: &Sqlite, source: &Source, client: &mut SqliteConnection) -> Result<StateDigest, sqlx::Error> {
    let facts = audit::facts(&store.design);
    let payload = source.payload();
    let mut digest = StateDigest::default();
    let mut rows = sqlx::query(AssertSqlSafe(facts.members)).fetch(&mut *client);
    while let Some(row) = rows.try_next().await? {
        let (member, attributes) = (id(&row, 0)?, row.try_get(1)?);
        match store.design.images {
            // They are where a file server would have them, which is what the
            // payload function gives.
            Images::None => digest.member(member, attributes, &payload.image(member), &payload.thumbnail(member)),
            Images::Inline | Images::Table => digest.member(member, attributes, row.try_get(3)?, row.try_get(2)?),
        }
    }
    drop(rows);
    let mut rows = sqlx::query(AssertSqlSafe(facts.friendships)).fetch(&mut *client);
    while let Some(row) = rows.try_next().await? {
        digest.friendship(id(&row, 0)?, id(&row, 1)?);
    }
    drop(rows);
    let mut rows = sqlx::query(AssertSqlSafe(facts.invitations)).fetch(&mut *client);
    while let Some(row) = rows.try_next().await? {
        digest.invitation(id(&row, 0)?, id(&row, 1)?);
    }
    drop(rows);
    let mut rows = sqlx::query(facts.resources).fetch(&mut *client);
    while let Some(row) = rows.try_next().await? {
        digest.resource(id(&row, 0)?, id(&row, 1)?, id(&row, 2)?, row.try_get(3)?);
    }
    drop(rows);
    let mut rows = sqlx::query(facts.comments).fetch(&mut *client);
    while let Some(row) = rows.try_next().await? {
        digest.comment(id(&row, 0)?, id(&row, 1)?, id(&row, 2)?, row.try_get(3)?);
    }
    drop(rows);
    Ok(digest)
}
