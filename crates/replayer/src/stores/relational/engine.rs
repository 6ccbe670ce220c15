//! What a database adds to [`Relational`], and what is asked
//! of its driver.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use sqlx::mysql::{MySqlConnection, MySqlRow};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Error, Row, SqlStr};

use super::statements::{Argument, Read, Rows, Statement};
use super::{Dialect, Relational};
use crate::source::Source;
use crate::stores::url::StoreUrl;
use crate::stores::{Answer, Fate, HeldState, LoadProgress, StoreError};

/// A relational database: how it is reached, loaded and asked for its settings,
/// and what its errors mean.
pub trait Engine: Sized + Send + Sync + 'static {
    /// Its driver's connection.
    type Client: Client;

    /// Its words.
    const DIALECT: Dialect;

    /// The parameters of the URL that are its own, beside those of the design.
    const PARAMETERS: &'static [&'static str];

    /// Reads the URL; opens nothing yet.
    fn open(url: &StoreUrl) -> Result<Self, StoreError>;

    /// A connection to the database, ready for its first statement.
    fn connect(&self) -> impl Future<Output = Result<Self::Client, Error>> + Send;

    /// How long an operation may take; none where nothing can hold it up for ever.
    fn timeout(&self) -> Option<Duration>;

    /// What an error says of the statement or transaction that it ended.
    fn fate(error: &Error) -> Fate;

    /// What a user should do about an error, where there is something to say.
    fn advice(&self, error: &Error) -> Option<String>;

    /// What the database says that it holds; none when nothing of Encore's is there.
    fn held(store: &Relational<Self>) -> impl Future<Output = Result<Option<HeldState>, StoreError>> + Send;

    /// [`Store::load`](crate::stores::Store::load).
    fn load(
        store: &Relational<Self>,
        source: &Source,
        progress: LoadProgress<'_>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The settings in effect; those of the design are added by the caller.
    fn settings(client: &mut Self::Client) -> impl Future<Output = Result<BTreeMap<String, String>, Error>> + Send;
}

/// The columns of a row, in the types that the tables have.
pub trait Fields {
    /// An id or a count.
    fn integer(&self, column: usize) -> Result<i64, Error>;
    /// A text.
    fn text(&self, column: usize) -> Result<&str, Error>;
    /// An image.
    fn bytes(&self, column: usize) -> Result<&[u8], Error>;
}

/// What the parameters of an operation's statements stand for.
#[derive(Debug, Clone)]
pub struct Arguments {
    /// The socialite.
    pub me: i64,
    /// The operation's target.
    pub target: i64,
    /// The comment's id.
    pub comment: i64,
    /// The text of a comment that is posted, else empty.
    pub body: String,
    /// The K of View Top-K Resources.
    pub top_k: i64,
}

/// A visitor of rows.
pub type Visit<'a, R> = &'a mut (dyn FnMut(&R) -> Result<(), Error> + Send);

/// A driver's connection, as far as relational stores need one.
pub trait Client: Send + Sized + 'static {
    /// A row of an answer.
    type Row: Fields;

    /// Executes a prepared statement; gives the number of rows that it changed.
    fn change(
        &mut self,
        statement: &Statement,
        arguments: &mut Arguments,
    ) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Performs a prepared read; gives the number of its rows.
    fn read(
        &mut self,
        read: &Read,
        arguments: &mut Arguments,
        answer: &mut Answer,
    ) -> impl Future<Output = Result<usize, Error>> + Send;

    /// Executes statements that have neither parameters nor results.
    fn run(&mut self, sql: SqlStr) -> impl Future<Output = Result<(), Error>> + Send;

    /// Executes a statement with one text for its parameter.
    fn change_text(&mut self, sql: SqlStr, text: String) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Shows all rows of a query, one after the other, without keeping them.
    fn visit(&mut self, sql: SqlStr, visit: Visit<'_, Self::Row>) -> impl Future<Output = Result<(), Error>> + Send;

    /// Says good-bye.
    fn farewell(self) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Adds a row to what the operation saw.
fn take_in(row: &impl Fields, read: &Read, answer: &mut Answer) -> Result<(), Error> {
    // View Profile has the most: three counts.
    let mut values = [0; 3];
    let values = &mut values[..read.values];
    for (column, value) in values.iter_mut().enumerate() {
        *value = row.integer(column)?;
    }
    let image = read.image_column.map_or(Ok(&[][..]), |column| row.bytes(column))?;
    answer.take_in(values, row.text(read.values)?, image);
    Ok(())
}

/// A statement with its parameters bound.
macro_rules! bound {
    ($database:ty, $statement:expr, $arguments:expr) => {
        $statement.arguments().iter().fold(sqlx::query::<$database>($statement.sql()), |query, argument| {
            match argument {
                Argument::Me => query.bind($arguments.me),
                Argument::Target => query.bind($arguments.target),
                Argument::Comment => query.bind($arguments.comment),
                // One statement of an operation has it, and has it once.
                Argument::Body => query.bind(std::mem::take(&mut $arguments.body)),
                Argument::TopK => query.bind($arguments.top_k),
            }
        })
    };
}
/// sqlx's drivers have the same methods on different types. Their common trait
/// would need a dozen bounds at every function that uses it, since Rust does not
/// imply those of a trait's `where` clause; so the few calls are written once
/// and spelled out for each driver.
macro_rules! client {
    ($database:ty, $connection:ty, $row:ty) => {
        impl Fields for $row {
            fn integer(&self, column: usize) -> Result<i64, Error> {
                self.try_get(column)
            }

            fn text(&self, column: usize) -> Result<&str, Error> {
                self.try_get(column)
            }

            fn bytes(&self, column: usize) -> Result<&[u8], Error> {
                self.try_get(column)
            }
        }

        impl Client for $connection {
            type Row = $row;

            async fn change(&mut self, statement: &Statement, arguments: &mut Arguments) -> Result<u64, Error> {
                let query = bound!($database, statement, arguments);
                Ok(query.execute(self).await?.rows_affected())
            }

            async fn read(
                &mut self,
                read: &Read,
                arguments: &mut Arguments,
                answer: &mut Answer,
            ) -> Result<usize, Error> {
                let query = bound!($database, read.statement, arguments);
                if read.rows == Rows::One {
                    let row = query.fetch_optional(self).await?;
                    row.iter().try_for_each(|row| take_in(row, read, answer))?;
                    return Ok(row.iter().len());
                }
                // Row by row as they come: `fetch_all` keeps them all, and wraps this
                // stream in three others, each of which is polled for every row.
                let mut results = sqlx::Executor::fetch_many(self, query);
                let mut rows = 0;
                while let Some(result) = futures::TryStreamExt::try_next(&mut results).await? {
                    if let sqlx::Either::Right(row) = result {
                        take_in(&row, read, answer)?;
                        rows += 1;
                    }
                }
                Ok(rows)
            }

            async fn run(&mut self, sql: SqlStr) -> Result<(), Error> {
                sqlx::raw_sql(sql).execute(self).await.map(|_| ())
            }

            async fn change_text(&mut self, sql: SqlStr, text: String) -> Result<u64, Error> {
                Ok(sqlx::query::<$database>(sql).bind(text).execute(self).await?.rows_affected())
            }

            async fn visit(&mut self, sql: SqlStr, visit: Visit<'_, $row>) -> Result<(), Error> {
                let mut rows = sqlx::query::<$database>(sql).fetch(self);
                while let Some(row) = futures::TryStreamExt::try_next(&mut rows).await? {
                    visit(&row)?;
                }
                Ok(())
            }

            async fn farewell(self) -> Result<(), Error> {
                sqlx::Connection::close(self).await
            }
        }
    };
}

client!(sqlx::Sqlite, SqliteConnection, SqliteRow);
client!(sqlx::Postgres, PgConnection, PgRow);
client!(sqlx::MySql, MySqlConnection, MySqlRow);
