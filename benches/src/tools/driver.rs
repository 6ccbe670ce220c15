//! Bare loops over two drivers of PostgreSQL: sqlx, which Encore uses, and tokio-postgres. They
//! execute one prepared statement of Encore's, look at every column of every row, and log nothing.
//! Each task has one connection, and all tasks run on one thread.
//!
//! They run in a separate process (this program again), so that its CPU time and memory can be
//! measured alone.

use std::error::Error;
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use futures::{TryStreamExt, pin_mut};
use schemas::latency::ResponseTimes;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Either, Executor, Postgres, Row};
use tokio::runtime::{Builder, LocalOptions};
use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, NoTls, Statement};

use super::bare::Said;
use crate::measure;
use crate::sample::Figures;

/// What the report says of both loops.
pub const SETTINGS: &str = "one prepared statement, members drawn uniformly, every column read, nothing logged";

/// A driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Driver {
    /// The crate sqlx
    Sqlx,
    /// The crate tokio-postgres
    TokioPostgres,
}

impl Driver {
    /// Its name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Driver::Sqlx => "bare sqlx",
            Driver::TokioPostgres => "bare tokio-postgres",
        }
    }
}

/// What a loop does.
#[derive(Debug, Clone, Args)]
pub struct Task {
    /// The database
    #[arg(long)]
    pub url: String,
    /// The statement; each of its parameters is a member
    #[arg(long)]
    pub statement: String,
    /// The number of members
    #[arg(long)]
    pub members: u32,
    /// The number of connections
    #[arg(long)]
    pub threads: u32,
    /// The duration in seconds
    #[arg(long)]
    pub seconds: u32,
}

/// Starts a loop in a separate process.
pub fn run(driver: Driver, task: &Task) -> anyhow::Result<Figures> {
    let mut command = Command::new(std::env::current_exe()?);
    let name = driver.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default();
    command.args(["driver", &name, "--url", &task.url, "--statement", &task.statement]);
    command.args(["--members", &task.members.to_string(), "--threads", &task.threads.to_string()]);
    command.args(["--seconds", &task.seconds.to_string()]);
    Said::read(&measure::run(&mut command)?)
}

/// The separate process: prints its figures as one JSON object.
pub fn main(driver: Driver, task: &Task) -> anyhow::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    let said = runtime.block_on(async {
        match driver {
            Driver::Sqlx => all::<BareSqlx>(task).await,
            Driver::TokioPostgres => all::<BareTokioPostgres>(task).await,
        }
    })?;
    println!("{}", serde_json::to_string(&said)?);
    Ok(())
}

/// A connection with a prepared statement.
trait Bare: Sized + 'static {
    async fn connect(task: &Task) -> anyhow::Result<Self>;

    /// Executes the statement; returns the number of bytes in the columns of its rows.
    async fn execute(&mut self, parameters: &[i64]) -> anyhow::Result<usize>;
}

async fn all<B: Bare>(task: &Task) -> anyhow::Result<Said> {
    let task = Rc::new(task.clone());
    let mut connections = Vec::new();
    for _ in 0..task.threads {
        connections.push(B::connect(&task).await?);
    }
    let began = Instant::now();
    let clients = connections.into_iter().enumerate().map(|(number, mut connection)| {
        let task = task.clone();
        tokio::task::spawn_local(async move {
            let until = began + Duration::from_secs(task.seconds.into());
            let mut parameters = vec![0; parameters_of(&task.statement)];
            let mut times = ResponseTimes::default();
            // Each connection starts at another member. The step has no common divisor with the number
            // of members, so all of them are asked for.
            let mut member = number as u64 * 7_919;
            let mut now = Instant::now();
            while now < until {
                member = (member + 104_729) % u64::from(task.members);
                parameters.fill(member as i64);
                anyhow::ensure!(connection.execute(&parameters).await? > 0, "member {member} has no rows");
                let end = Instant::now();
                times.record((end - now).as_nanos() as i64);
                now = end;
            }
            anyhow::Ok(times)
        })
    });
    let mut times = ResponseTimes::default();
    for client in clients.collect::<Vec<_>>() {
        times.merge(&client.await??);
    }
    Ok(Said::of(&times, began.elapsed()))
}

/// How many parameters a statement has: `$1`, `$2` and so on.
fn parameters_of(statement: &str) -> usize {
    (1..).take_while(|number| statement.contains(&format!("${number}"))).count()
}

struct BareSqlx {
    connection: PgConnection,
    statement: Rc<str>,
}

impl Bare for BareSqlx {
    async fn connect(task: &Task) -> anyhow::Result<BareSqlx> {
        let connection = PgConnection::connect(&task.url).await?;
        Ok(BareSqlx { connection, statement: task.statement.as_str().into() })
    }

    async fn execute(&mut self, parameters: &[i64]) -> anyhow::Result<usize> {
        let query = sqlx::query::<Postgres>(AssertSqlSafe(self.statement.to_string()));
        let query = parameters.iter().fold(query, |query, parameter| query.bind(*parameter));
        let mut results = self.connection.fetch_many(query);
        let mut bytes = 0;
        while let Some(result) = results.try_next().await? {
            if let Either::Right(row) = result {
                for column in 0..row.len() {
                    let value = row.try_get_raw(column)?;
                    bytes += value.as_bytes().map_or(0, <[u8]>::len);
                }
            }
        }
        Ok(bytes)
    }
}

struct BareTokioPostgres {
    client: Client,
    statement: Statement,
}

impl Bare for BareTokioPostgres {
    async fn connect(task: &Task) -> anyhow::Result<BareTokioPostgres> {
        let (client, connection) = tokio_postgres::connect(&task.url, NoTls).await?;
        // It reads and writes for the client, and ends with it.
        tokio::task::spawn_local(connection);
        let types = vec![Type::INT8; parameters_of(&task.statement)];
        let statement = client.prepare_typed(&task.statement, &types).await?;
        Ok(BareTokioPostgres { client, statement })
    }

    async fn execute(&mut self, parameters: &[i64]) -> anyhow::Result<usize> {
        let rows = self.client.query_raw(&self.statement, parameters.iter().copied()).await?;
        pin_mut!(rows);
        let mut bytes = 0;
        while let Some(row) = rows.try_next().await? {
            for column in 0..row.len() {
                bytes += row.try_get::<_, Option<Octets<'_>>>(column)?.map_or(0, |value| value.0.len());
            }
        }
        Ok(bytes)
    }
}

/// The bytes of a column of any type.
struct Octets<'a>(&'a [u8]);

impl<'a> FromSql<'a> for Octets<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Octets<'a>, Box<dyn Error + Sync + Send>> {
        Ok(Octets(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::parameters_of;

    #[test]
    fn parameters_are_counted() {
        assert_eq!(parameters_of("SELECT 1"), 0);
        assert_eq!(parameters_of("SELECT a FROM t WHERE b = $1 AND c = $2 OR d = $2"), 2);
    }
}
