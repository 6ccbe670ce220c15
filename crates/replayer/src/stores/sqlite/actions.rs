//! The eleven actions in SQL.
//!
//! Every read is one statement, so that it sees one state. A write of several
//! statements takes the write lock first (`BEGIN IMMEDIATE`) and so never
//! deadlocks. A statement that finds the store locked past its patience was not
//! executed and is tried again.

use schemas::social::{Action, Operation};
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Error, Row, Sqlite, query::Query};

use crate::source::{Payload, Source};
use crate::stores::{Answer, Connection, OperationError};

const VIEW_PROFILE: &str = "SELECT attributes, image, \
     (SELECT count(*) FROM friendships WHERE member = ?1), \
     (SELECT count(*) FROM resources WHERE wall = ?1) \
     FROM members WHERE member = ?1";
const VIEW_OWN_PROFILE: &str = "SELECT attributes, image, \
     (SELECT count(*) FROM friendships WHERE member = ?1), \
     (SELECT count(*) FROM resources WHERE wall = ?1), \
     (SELECT count(*) FROM invitations WHERE invitee = ?1) \
     FROM members WHERE member = ?1";
const LIST_FRIENDS: &str = "SELECT m.member, m.attributes, m.thumbnail \
     FROM friendships f JOIN members m ON m.member = f.friend WHERE f.member = ?1";
const VIEW_FRIEND_REQUESTS: &str = "SELECT m.member, m.attributes, m.thumbnail \
     FROM invitations i JOIN members m ON m.member = i.inviter WHERE i.invitee = ?1";
const VIEW_TOP_K_RESOURCES: &str =
    "SELECT resource, body FROM resources WHERE wall = ?1 ORDER BY resource DESC LIMIT ?2";
const VIEW_COMMENTS: &str = "SELECT comment, body, author FROM comments WHERE resource = ?1";
const INVITE: &str = "INSERT INTO invitations (invitee, inviter) VALUES (?1, ?2)";
const UNINVITE: &str = "DELETE FROM invitations WHERE invitee = ?1 AND inviter = ?2";
const BEFRIEND: &str = "INSERT INTO friendships (member, friend) VALUES (?1, ?2), (?2, ?1)";
const THAW: &str = "DELETE FROM friendships \
     WHERE (member = ?1 AND friend = ?2) OR (member = ?2 AND friend = ?1)";
const POST_COMMENT: &str = "INSERT INTO comments (comment, resource, author, body) VALUES (?1, ?2, ?3, ?4)";
const DELETE_COMMENT: &str = "DELETE FROM comments WHERE comment = ?1 AND resource = ?2";

/// How often a locked store is tried again. Each time SQLite itself has waited
/// for `busy_ms`.
const ATTEMPTS_MAX: u16 = 10;

/// A thread's connection.
pub struct SqliteActions {
    client: SqliteConnection,
    payload: Payload,
    top_k: i64,
}

impl SqliteActions {
    /// Actions on the data set of `source`.
    pub fn new(client: SqliteConnection, source: &Source) -> SqliteActions {
        SqliteActions { client, payload: source.payload(), top_k: source.data().top_k as i64 }
    }

    async fn attempt(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), Refusal> {
        let (me, target) = (operation.socialite as i64, operation.target as i64);
        match operation.action {
            Action::ViewProfile => self.view_profile(me, target, answer).await,
            Action::ListFriends => self.list(sqlx::query(LIST_FRIENDS).bind(target), answer).await,
            Action::ViewFriendRequests => self.list(sqlx::query(VIEW_FRIEND_REQUESTS).bind(me), answer).await,
            Action::ViewTopKResources => {
                self.list(sqlx::query(VIEW_TOP_K_RESOURCES).bind(target).bind(self.top_k), answer).await
            }
            Action::ViewComments => self.list(sqlx::query(VIEW_COMMENTS).bind(target), answer).await,
            Action::InviteFriend => self.write(sqlx::query(INVITE).bind(target).bind(me), 1).await,
            Action::RejectFriendRequest => self.write(sqlx::query(UNINVITE).bind(me).bind(target), 1).await,
            Action::ThawFriendship => self.write(sqlx::query(THAW).bind(me).bind(target), 2).await,
            Action::AcceptFriendRequest => self.accept(me, target).await,
            Action::PostComment => {
                let comment = operation.comment.unwrap_or_default();
                let body = self.payload.comment(comment);
                self.write(sqlx::query(POST_COMMENT).bind(comment as i64).bind(target).bind(me).bind(body), 1).await
            }
            Action::DeleteComment => {
                let comment = operation.comment.unwrap_or_default() as i64;
                self.write(sqlx::query(DELETE_COMMENT).bind(comment).bind(target), 1).await
            }
        }
    }

    async fn view_profile(&mut self, me: i64, target: i64, answer: &mut Answer) -> Result<(), Refusal> {
        let own = me == target;
        let sql = if own { VIEW_OWN_PROFILE } else { VIEW_PROFILE };
        let row = sqlx::query(sql).bind(target).fetch_optional(&mut self.client).await?;
        let row = row.ok_or_else(|| Refusal::Missing(format!("member {target} is not there")))?;
        answer.payload_bytes += row.try_get::<&str, _>(0)?.len() as u64 + row.try_get::<&[u8], _>(1)?.len() as u64;
        for column in 2..if own { 5 } else { 4 } {
            answer.values.push(row.try_get(column)?);
        }
        Ok(())
    }

    /// Rows of (id, text, ...): the ids are what the read saw.
    async fn list(
        &mut self,
        query: Query<'static, Sqlite, SqliteArguments>,
        answer: &mut Answer,
    ) -> Result<(), Refusal> {
        let rows: Vec<SqliteRow> = query.fetch_all(&mut self.client).await?;
        for row in &rows {
            answer.values.push(row.try_get(0)?);
            answer.payload_bytes += row.try_get::<&str, _>(1)?.len() as u64;
            // The friends' thumbnails; other lists have a number or nothing there.
            if let Ok(thumbnail) = row.try_get::<&[u8], _>(2) {
                answer.payload_bytes += thumbnail.len() as u64;
            }
        }
        Ok(())
    }

    async fn write(&mut self, query: Query<'static, Sqlite, SqliteArguments>, rows: u64) -> Result<(), Refusal> {
        let changed = query.execute(&mut self.client).await?.rows_affected();
        if changed == rows {
            return Ok(());
        }
        Err(Refusal::Missing(format!(
            "{changed} rows changed instead of {rows}: the relation is not as the trace left it"
        )))
    }

    /// The invitation goes and the friendship comes in one transaction.
    async fn accept(&mut self, me: i64, inviter: i64) -> Result<(), Refusal> {
        sqlx::query("BEGIN IMMEDIATE").execute(&mut self.client).await?;
        let changed = async {
            self.write(sqlx::query(UNINVITE).bind(me).bind(inviter), 1).await?;
            self.write(sqlx::query(BEFRIEND).bind(me).bind(inviter), 2).await
        }
        .await;
        let refusal = match changed {
            Ok(()) => match sqlx::query("COMMIT").execute(&mut self.client).await {
                Ok(_) => return Ok(()),
                Err(error) if is_busy(&error) => Refusal::Store(error),
                // Whether the commit record reached the disk, nobody knows.
                Err(error) => Refusal::Lost(error),
            },
            Err(refusal) => refusal,
        };
        // After some errors SQLite has rolled back already and refuses to do it
        // again. No other transaction may begin inside this one, though.
        match sqlx::query("ROLLBACK").execute(&mut self.client).await {
            Ok(_) => Err(refusal),
            Err(Error::Database(error)) if error.message().contains("no transaction is active") => Err(refusal),
            Err(error) => Err(Refusal::Lost(error)),
        }
    }
}

/// Why an attempt did not succeed.
enum Refusal {
    /// The data is not what the operation needs.
    Missing(String),
    /// SQLite refused; nothing happened.
    Store(Error),
    /// The write may have happened.
    Lost(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        match &error {
            // SQLite takes a statement back that ends in an error, unless the disk
            // itself is the trouble: then the commit may have reached it.
            Error::Database(_) if !is_of(&error, &[IO_ERROR, CORRUPT]) => Refusal::Store(error),
            // Anything else is trouble on the way to or from it.
            _ => Refusal::Lost(error),
        }
    }
}

const BUSY: i64 = 5;
const LOCKED: i64 = 6;
const IO_ERROR: i64 = 10;
const CORRUPT: i64 = 11;

fn is_busy(error: &Error) -> bool {
    is_of(error, &[BUSY, LOCKED])
}

/// Whether SQLite's result code is one of these primary ones.
fn is_of(error: &Error, codes: &[i64]) -> bool {
    let code = error.as_database_error().and_then(|e| e.code()).and_then(|code| code.parse::<i64>().ok());
    // The low byte is the primary code.
    code.is_some_and(|code| codes.contains(&(code & 0xff)))
}

impl Connection for SqliteActions {
    async fn execute(&mut self, operation: &Operation, answer: &mut Answer) -> Result<(), OperationError> {
        loop {
            let refusal = match self.attempt(operation, answer).await {
                Ok(()) => return Ok(()),
                Err(refusal) => refusal,
            };
            match refusal {
                Refusal::Store(error) if is_busy(&error) && answer.attempts < ATTEMPTS_MAX => {
                    answer.attempts += 1;
                    answer.values.clear();
                    answer.payload_bytes = 0;
                }
                Refusal::Store(error) => return Err(OperationError::Failed(error.to_string())),
                Refusal::Missing(message) => return Err(OperationError::Failed(message)),
                Refusal::Lost(error) if operation.action.is_write() => {
                    return Err(OperationError::Unknown(error.to_string()));
                }
                Refusal::Lost(error) => return Err(OperationError::Failed(error.to_string())),
            }
        }
    }
}
