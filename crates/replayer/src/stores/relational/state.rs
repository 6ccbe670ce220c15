//! What a store says of its state: the marker in `encore_state`, row counts,
//! and the digest.

use schemas::digest::StateDigest;
use sqlx::{AssertSqlSafe, Error, SqlSafeStr, SqlStr};

use super::audit;
use super::design::Images;
use super::engine::{Client, Engine, Fields};
use super::{Dialect, Relational};
use crate::source::Source;
use crate::stores::{HeldState, StoreError};

/// Text of this program's: nothing that anybody typed is in it.
pub(crate) fn sql(text: impl Into<String>) -> SqlStr {
    AssertSqlSafe(text.into()).into_sql_str()
}

/// The statement that creates the marker's table.
pub(crate) fn state_creation(dialect: &Dialect) -> SqlStr {
    sql(format!("CREATE TABLE encore_state (state {} NOT NULL)", dialect.text))
}

/// What a database is to Encore.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It has no tables.
    Empty,
    /// It has tables, and none of them is Encore's marker.
    Foreign,
    /// Encore has begun to load it and did not come to an end.
    Unfinished,
    /// It is loaded.
    Held(HeldState),
}

/// Reads the marker of the database that a client is connected to.
pub(crate) async fn find<E: Engine>(client: &mut E::Client) -> Result<Found, Error> {
    let mut counts = (0, 0);
    let count = |row: &<E::Client as Client>::Row| {
        counts = (row.integer(0)?, row.integer(1)?);
        Ok(())
    };
    client.visit(sql(E::DIALECT.tables), &mut { count }).await?;
    match counts {
        (0, _) => return Ok(Found::Empty),
        (_, 0) => return Ok(Found::Foreign),
        _ => {}
    }
    let mut text = None;
    let mut take = |row: &<E::Client as Client>::Row| {
        text = Some(row.text(0)?.to_string());
        Ok(())
    };
    client.visit(sql("SELECT state FROM encore_state"), &mut take).await?;
    match text {
        None => Ok(Found::Unfinished),
        Some(text) => {
            serde_json::from_str(&text).map(Found::Held).map_err(|e| Error::Decode(format!("encore_state: {e}").into()))
        }
    }
}

/// Writes the marker of a database that has none yet.
pub(crate) async fn insert_state<E: Engine>(client: &mut E::Client, state: &HeldState) -> Result<(), Error> {
    let text = serde_json::to_string(state).map_err(|e| Error::Encode(e.into()))?;
    let parameter = (E::DIALECT.parameter)(1);
    client.change_text(sql(format!("INSERT INTO encore_state (state) VALUES ({parameter})")), text).await?;
    Ok(())
}

impl<E: Engine> Relational<E> {
    /// What was found in the database, unless it is somebody else's.
    pub(crate) fn held_in(&self, found: Found) -> Result<Option<HeldState>, StoreError> {
        match found {
            Found::Held(held) => Ok(Some(held)),
            Found::Empty | Found::Unfinished => Ok(None),
            Found::Foreign => {
                Err(self.misused("is a database with tables that Encore has not made; name another database"))
            }
        }
    }

    pub(super) async fn write_state(&self, state: &HeldState) -> Result<(), StoreError> {
        let text = serde_json::to_string(state).map_err(|e| self.failed(e))?;
        let mut client = self.client().await?;
        let parameter = (E::DIALECT.parameter)(1);
        self.in_time(client.change_text(sql(format!("UPDATE encore_state SET state = {parameter}")), text)).await?;
        self.in_time(client.farewell()).await
    }

    async fn count(&self, client: &mut E::Client, query: &str) -> Result<u64, StoreError> {
        let mut count = 0;
        let mut take = |row: &<E::Client as Client>::Row| {
            count = row.integer(0)?;
            Ok(())
        };
        client.visit(sql(query), &mut take).await.map_err(|e| self.driver_failed(e))?;
        Ok(count as u64)
    }

    pub(super) async fn check_rows(&self, source: &Source) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        for tally in audit::tallies(&self.design) {
            let found = self.count(&mut client, &tally.sql).await?;
            let expected = tally.rows_each * source.rows(tally.of);
            if found != expected {
                let message = format!(
                    "{} has {found} rows, a freshly loaded one has {expected}; load it again with `replayer load`",
                    tally.what
                );
                return Err(StoreError::usage(&self.url, message));
            }
        }
        self.in_time(client.farewell()).await
    }

    pub(super) async fn state_digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        let mut client = self.client().await?;
        for agreement in audit::agreements(&self.design) {
            match self.count(&mut client, &agreement.sql).await? {
                0 => {}
                n => return Err(self.failed(format!("{n} {}; load it again with `replayer load`", agreement.broken))),
            }
        }
        self.facts(source, &mut client).await.map_err(|e| self.driver_failed(e))
    }

    async fn facts(&self, source: &Source, client: &mut E::Client) -> Result<StateDigest, Error> {
        let facts = audit::facts(&self.design);
        let payload = source.payload();
        let id = |row: &<E::Client as Client>::Row, column| row.integer(column).map(|id| id as u64);
        let mut digest = StateDigest::default();
        let images = self.design.images;
        client
            .visit(sql(facts.members), &mut |row| {
                let (member, attributes) = (id(row, 0)?, row.text(1)?);
                match images {
                    // They are where a file server would have them, which is what
                    // the payload function gives.
                    Images::None => {
                        digest.member(member, attributes, &payload.image(member), &payload.thumbnail(member))
                    }
                    Images::Inline | Images::Table => digest.member(member, attributes, row.bytes(3)?, row.bytes(2)?),
                }
                Ok(())
            })
            .await?;
        client
            .visit(sql(facts.friendships), &mut |row| {
                digest.friendship(id(row, 0)?, id(row, 1)?);
                Ok(())
            })
            .await?;
        client
            .visit(sql(facts.invitations), &mut |row| {
                digest.invitation(id(row, 0)?, id(row, 1)?);
                Ok(())
            })
            .await?;
        client
            .visit(sql(facts.resources), &mut |row| {
                digest.resource(id(row, 0)?, id(row, 1)?, id(row, 2)?, row.text(3)?);
                Ok(())
            })
            .await?;
        client
            .visit(sql(facts.comments), &mut |row| {
                digest.comment(id(row, 0)?, id(row, 1)?, id(row, 2)?, row.text(3)?);
                Ok(())
            })
            .await?;
        Ok(digest)
    }
}
