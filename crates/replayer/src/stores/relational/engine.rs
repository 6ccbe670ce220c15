//! What a database adds to [`Relational`], and what a store needs of its driver.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use schemas::isolation::Isolation;
use schemas::vocabulary::sql::{Rows, Type, Value, values};
use sqlx::mysql::{MySqlConnection, MySqlRow};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Column, Error, Row, SqlStr};

use super::contents::Contents;
use super::{Dialect, Relational};
use crate::stores::url::StoreUrl;
use crate::stores::{Fate, HeldState, LoadProgress, StoreError};

/// A relational database: how it is reached, loaded and asked for its settings,
/// and what its errors mean.
pub trait Engine: Sized + Send + Sync + 'static {
    /// Its driver's connection.
    type Client: Client;

    /// Its name, for messages.
    const NAME: &'static str;

    /// Its dialect of SQL.
    const DIALECT: Dialect;

    /// The URL's parameters for this database, besides those of the design.
    const PARAMETERS: &'static [&'static str];

    /// Reads the URL; opens nothing yet.
    fn open(url: &StoreUrl) -> Result<Self, StoreError>;

    /// [`Store::file`](crate::stores::Store::file).
    fn file(&self) -> Option<&Path> {
        None
    }

    /// A connection to the database, ready for its first statement.
    fn connect(&self) -> impl Future<Output = Result<Self::Client, Error>> + Send;

    /// The isolation level of transactions, as the URL asks for it.
    fn isolation(&self) -> Isolation;

    /// Another server that has the same data, perhaps later, for reads outside of transactions.
    fn replica(&self) -> Option<&Arc<Self>> {
        None
    }

    /// Waits until the replica has all that was committed before the call. An error if it does not answer, or
    /// follows another server. Called before an experiment.
    fn await_replica(_store: &Relational<Self>) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Adds what the replica promises to the settings in effect.
    fn add_replica_settings(
        _store: &Relational<Self>,
        _settings: &mut BTreeMap<String, String>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }

    /// The time limit of an operation; none if nothing can hold an operation up for ever.
    fn timeout(&self) -> Option<Duration>;

    /// What became of the statement or transaction that an error ended.
    fn fate(error: &Error) -> Fate;

    /// What a user should do about an error, if there is any advice.
    fn advice(&self, error: &Error) -> Option<String>;

    /// What the database's marker says; none if nothing of Encore's is there.
    fn held(store: &Relational<Self>) -> impl Future<Output = Result<Option<HeldState>, StoreError>> + Send;

    /// Loads what a family keeps ([`Serves::load`](crate::stores::Serves::load)).
    fn load(
        store: &Relational<Self>,
        contents: &dyn Contents,
        progress: LoadProgress<'_>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The types that parameters of a statement need a cast to: those whose type the trace set does not say, and whole
    /// numbers that the statement wants smaller. None for a database that converts what it is given.
    fn casts(
        _client: &mut Self::Client,
        _statement: SqlStr,
        _types: &[Type],
    ) -> impl Future<Output = Result<Vec<Option<String>>, Error>> + Send {
        std::future::ready(Ok(Vec::new()))
    }

    /// The settings in effect, without those of a physical design.
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
    /// The bytes of a text.
    fn octets(&self, column: usize) -> Result<&[u8], Error> {
        let missing = || Error::Decode(format!("column {column} of a row is NULL").into());
        self.octets_or_null(column)?.ok_or_else(missing)
    }
    /// The bytes of a text; None for NULL.
    fn octets_or_null(&self, column: usize) -> Result<Option<&[u8]>, Error>;
    /// The names of the columns.
    fn names(&self) -> Vec<String>;
}

/// A row whose values have canonical texts, the same in all databases.
pub trait Canonical {
    /// Adds the values of the row, without its end.
    fn add_to(&self, rows: &mut Rows) -> Result<(), Error>;
}

/// What is bound to a parameter of a statement.
#[derive(Debug, Clone, Copy)]
pub enum Parameter<'a> {
    /// An id or a count.
    Integer(i64),
    /// A text.
    Text(&'a str),
}

/// The most statements that a connection keeps prepared. There is a statement for each field of a
/// record that is read, updated or scanned alone, and the driver's own limit of 100 is too low for that.
pub const STATEMENTS_MAX: usize = 256;

/// A visitor of rows.
pub type Visit<'a, R> = &'a mut (dyn FnMut(&R) -> Result<(), Error> + Send);

/// A driver's connection, as far as relational stores need one.
pub trait Client: Send + Sized + 'static {
    /// A row of an answer.
    type Row: Fields + Canonical;

    /// Executes a prepared statement; returns the number of rows that it changed.
    fn change(&mut self, sql: SqlStr, parameters: &[Parameter<'_>]) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Shows the row of a prepared query that has at most one; returns whether there was one.
    fn read_one(
        &mut self,
        sql: SqlStr,
        parameters: &[Parameter<'_>],
        visit: impl FnOnce(&Self::Row) -> Result<(), Error> + Send,
    ) -> impl Future<Output = Result<bool, Error>> + Send;

    /// Shows all rows of a prepared query, one after the other, without keeping them.
    fn read(
        &mut self,
        sql: SqlStr,
        parameters: &[Parameter<'_>],
        visit: impl FnMut(&Self::Row) -> Result<(), Error> + Send,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Executes a prepared statement, whatever it does, with encoded parameters, and shows its rows. Returns the number of rows that it
    /// changed.
    fn statement(
        &mut self,
        sql: SqlStr,
        types: &[Type],
        parameters: &[u8],
        visit: Visit<'_, Self::Row>,
    ) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Prepares a statement with parameters of these types, as [`Client::statement`] sends them.
    fn prepare(&mut self, sql: SqlStr, types: &[Type]) -> impl Future<Output = Result<(), Error>> + Send;

    /// Executes statements that have neither parameters nor results.
    fn run(&mut self, sql: SqlStr) -> impl Future<Output = Result<(), Error>> + Send;

    /// Shows all rows of a query, one after the other, without keeping them.
    fn visit(&mut self, sql: SqlStr, visit: Visit<'_, Self::Row>) -> impl Future<Output = Result<(), Error>> + Send;

    /// Closes the connection, and tells the server so.
    fn disconnect(self) -> impl Future<Output = Result<(), Error>> + Send;
}

/// A statement with its parameters bound.
macro_rules! bound {
    ($database:ty, $sql:expr, $parameters:expr) => {
        $parameters.iter().fold(sqlx::query::<$database>($sql), |query, parameter| match parameter {
            Parameter::Integer(number) => query.bind(*number),
            Parameter::Text(text) => query.bind(*text),
        })
    };
}

/// sqlx's drivers have the same methods on different types. Their common trait would need a dozen
/// bounds at every function that uses it, since Rust does not imply those of a trait's `where`
/// clause. So the few calls are written once here, and expanded for each driver.
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

            fn octets_or_null(&self, column: usize) -> Result<Option<&[u8]>, Error> {
                // Without the check of the column's type, which is a text.
                self.try_get_unchecked(column)
            }

            fn names(&self) -> Vec<String> {
                self.columns().iter().map(|column| column.name().to_string()).collect()
            }
        }

        impl Client for $connection {
            type Row = $row;

            async fn change(&mut self, sql: SqlStr, parameters: &[Parameter<'_>]) -> Result<u64, Error> {
                Ok(bound!($database, sql, parameters).execute(self).await?.rows_affected())
            }

            async fn read_one(
                &mut self,
                sql: SqlStr,
                parameters: &[Parameter<'_>],
                visit: impl FnOnce(&$row) -> Result<(), Error> + Send,
            ) -> Result<bool, Error> {
                let row = bound!($database, sql, parameters).fetch_optional(self).await?;
                row.as_ref().map_or(Ok(false), |row| visit(row).map(|()| true))
            }

            async fn read(
                &mut self,
                sql: SqlStr,
                parameters: &[Parameter<'_>],
                mut visit: impl FnMut(&$row) -> Result<(), Error> + Send,
            ) -> Result<(), Error> {
                // Reads row by row as they come. `fetch_all` keeps them all, and wraps this
                // stream in three others, each of which is polled for every row.
                let mut results = sqlx::Executor::fetch_many(self, bound!($database, sql, parameters));
                while let Some(result) = futures::TryStreamExt::try_next(&mut results).await? {
                    if let sqlx::Either::Right(row) = result {
                        visit(&row)?;
                    }
                }
                Ok(())
            }

            async fn statement(
                &mut self,
                sql: SqlStr,
                types: &[Type],
                parameters: &[u8],
                visit: Visit<'_, $row>,
            ) -> Result<u64, Error> {
                let mut query = sqlx::query::<$database>(sql);
                for (value, kind) in values(parameters).zip(types) {
                    query = match (value, kind) {
                        (Value::Integer(number), _) => query.bind(number),
                        (Value::Float(number), _) => query.bind(number),
                        (Value::Bytes(bytes), _) => query.bind(bytes),
                        (
                            Value::Text(text)
                            | Value::Decimal(text)
                            | Value::Timestamp(text)
                            | Value::Date(text)
                            | Value::Unknown(text),
                            _,
                        ) => query.bind(text),
                        (Value::Null, Type::Integer) => query.bind(None::<i64>),
                        (Value::Null, Type::Float) => query.bind(None::<f64>),
                        (Value::Null, Type::Bytes) => query.bind(None::<&[u8]>),
                        (Value::Null, Type::Text | Type::Decimal | Type::Timestamp | Type::Date | Type::Unknown) => {
                            query.bind(None::<&str>)
                        }
                    };
                }
                let mut changed = 0;
                let mut results = sqlx::Executor::fetch_many(self, query);
                while let Some(result) = futures::TryStreamExt::try_next(&mut results).await? {
                    match result {
                        sqlx::Either::Left(done) => changed += done.rows_affected(),
                        sqlx::Either::Right(row) => visit(&row)?,
                    }
                }
                Ok(changed)
            }

            async fn prepare(&mut self, sql: SqlStr, types: &[Type]) -> Result<(), Error> {
                let sent = types.iter().map(|kind| match kind {
                    Type::Integer => <i64 as sqlx::Type<$database>>::type_info(),
                    Type::Float => <f64 as sqlx::Type<$database>>::type_info(),
                    Type::Bytes => <[u8] as sqlx::Type<$database>>::type_info(),
                    Type::Text | Type::Decimal | Type::Timestamp | Type::Date | Type::Unknown => {
                        <str as sqlx::Type<$database>>::type_info()
                    }
                });
                let sent: Vec<_> = sent.collect();
                sqlx::Executor::prepare_with(self, sql, &sent).await.map(|_| ())
            }

            async fn run(&mut self, sql: SqlStr) -> Result<(), Error> {
                sqlx::raw_sql(sql).execute(self).await.map(|_| ())
            }

            async fn visit(&mut self, sql: SqlStr, visit: Visit<'_, $row>) -> Result<(), Error> {
                let mut rows = sqlx::query::<$database>(sql).fetch(self);
                while let Some(row) = futures::TryStreamExt::try_next(&mut rows).await? {
                    visit(&row)?;
                }
                Ok(())
            }

            async fn disconnect(self) -> Result<(), Error> {
                sqlx::Connection::close(self).await
            }
        }
    };
}

client!(sqlx::Sqlite, SqliteConnection, SqliteRow);
client!(sqlx::Postgres, PgConnection, PgRow);
client!(sqlx::MySql, MySqlConnection, MySqlRow);
