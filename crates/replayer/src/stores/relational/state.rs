//! The marker in `encore_state`: what a database holds.

use sqlx::{AssertSqlSafe, Error, SqlSafeStr, SqlStr};

use super::contents::{MARKER, MARKING};
use super::engine::{Client, Engine, Fields, Parameter};
use super::{Dialect, Relational};
use crate::stores::{HeldState, StoreError};

/// Marks a text as safe SQL: the program has written it, and quoted the names in it.
pub(crate) fn sql(text: impl Into<String>) -> SqlStr {
    AssertSqlSafe(text.into()).into_sql_str()
}

/// The statement that creates the marker's table.
pub(crate) fn state_creation(dialect: &Dialect) -> SqlStr {
    creation(MARKER, dialect)
}

fn creation(table: &str, dialect: &Dialect) -> SqlStr {
    sql(format!("CREATE TABLE {table} (state {} NOT NULL)", dialect.text))
}

/// What the marker's table says; None if it is empty. An error if there is no such table.
pub(super) async fn marker<E: Engine>(client: &mut E::Client) -> Result<Option<HeldState>, Error> {
    let mut text = None;
    let mut take = |row: &<E::Client as Client>::Row| {
        text = Some(row.text(0)?.to_string());
        Ok(())
    };
    client.visit(sql(format!("SELECT state FROM {MARKER}")), &mut take).await?;
    let parsed = text.map(|text| serde_json::from_str(&text)).transpose();
    parsed.map_err(|e| Error::Decode(format!("{MARKER}: {e}").into()))
}

/// Writes the marker into its empty table.
pub(crate) async fn insert_state<E: Engine>(client: &mut E::Client, state: &HeldState) -> Result<(), Error> {
    insert_into::<E>(client, MARKER, state).await
}

async fn insert_into<E: Engine>(client: &mut E::Client, table: &str, state: &HeldState) -> Result<(), Error> {
    let parameter = (E::DIALECT.parameter)(1);
    let insertion = sql(format!("INSERT INTO {table} (state) VALUES ({parameter})"));
    client.change(insertion, &[Parameter::Text(&text_of(state)?)]).await?;
    Ok(())
}

async fn update_state<E: Engine>(client: &mut E::Client, state: &HeldState) -> Result<(), Error> {
    let parameter = (E::DIALECT.parameter)(1);
    let update = sql(format!("UPDATE {MARKER} SET state = {parameter}"));
    client.change(update, &[Parameter::Text(&text_of(state)?)]).await?;
    Ok(())
}

fn text_of(state: &HeldState) -> Result<String, Error> {
    serde_json::to_string(state).map_err(|e| Error::Encode(e.into()))
}

/// Marks a database with records of another tool. An empty table of the marker would say that Encore has begun
/// to load these records, and the next load would remove them. MariaDB and MySQL cannot create a table
/// and insert its row in one transaction. So the table has another name until its row is there.
pub(super) async fn mark<E: Engine>(client: &mut E::Client, state: &HeldState) -> Result<(), Error> {
    if client.run(sql(format!("SELECT 1 FROM {MARKER}"))).await.is_ok() {
        return update_state::<E>(client, state).await;
    }
    write_beside::<E>(client, state).await?;
    client.run(sql(format!("ALTER TABLE {MARKING} RENAME TO {MARKER}"))).await
}

/// Writes a marker that has not its name yet.
async fn write_beside<E: Engine>(client: &mut E::Client, state: &HeldState) -> Result<(), Error> {
    client.run(sql(format!("DROP TABLE IF EXISTS {MARKING}"))).await?;
    client.run(creation(MARKING, &E::DIALECT)).await?;
    insert_into::<E>(client, MARKING, state).await
}

impl<E: Engine> Relational<E> {
    pub(super) async fn write_state(&self, state: &HeldState) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        self.in_time(update_state::<E>(&mut client, state)).await?;
        self.in_time(client.disconnect()).await
    }

    /// The number that a query returns.
    pub(super) async fn count(&self, client: &mut E::Client, query: &str) -> Result<u64, StoreError> {
        let mut count = 0;
        let mut take = |row: &<E::Client as Client>::Row| {
            count = row.integer(0)?;
            Ok(())
        };
        client.visit(sql(query), &mut take).await.map_err(|e| self.driver_failed(e))?;
        Ok(count as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::block_on;
    use crate::stores::mysql::MySqlServer;
    use crate::stores::postgres::PostgresServer;
    use crate::stores::relational::database::{Found, find};
    use crate::stores::sqlite::SqliteFile;
    use crate::stores::url::StoreUrl;

    fn open<E: Engine>(url: &str) -> Relational<E> {
        Relational::open(StoreUrl::parse(url).expect(url)).expect(url)
    }

    /// Executes statements on the database of a URL.
    fn run<E: Engine>(url: &str, statements: &[&str]) {
        let store = open::<E>(url);
        let done = async {
            let mut client = store.engine().connect().await?;
            for statement in statements {
                client.run(sql(*statement)).await?;
            }
            client.disconnect().await
        };
        block_on(&store.url, store.in_time(done)).expect(url);
    }

    fn check_marking<E: Engine>(url: &str) {
        let held = |workload: &str| -> HeldState {
            let text = format!(r#"{{"workload_id":"{workload}","positions":[],"diverged":null,"adopted":true}}"#);
            serde_json::from_str(&text).expect("a marker")
        };
        let foreign = || Found::Foreign("usertable".to_string());
        let store = open::<E>(url);
        let done = async {
            let mut client = store.engine().connect().await?;
            client.run(sql("CREATE TABLE usertable (YCSB_KEY VARCHAR(255) PRIMARY KEY)")).await?;
            // Marking stops before the row, then before the name.
            client.run(creation(MARKING, &E::DIALECT)).await?;
            assert_eq!(find::<E>(&mut client).await?, foreign(), "{url}");
            write_beside::<E>(&mut client, &held("a")).await?;
            assert_eq!(find::<E>(&mut client).await?, foreign(), "{url}");
            for workload in ["a", "b"] {
                mark::<E>(&mut client, &held(workload)).await?;
                assert_eq!(find::<E>(&mut client).await?, Found::Held(held(workload)), "{url}");
            }
            // A marker without its name is no obstacle to a load.
            client.run(sql(format!("ALTER TABLE {MARKER} RENAME TO {MARKING}"))).await?;
            client.run(sql("DROP TABLE usertable")).await?;
            assert_eq!(find::<E>(&mut client).await?, Found::Empty, "{url}");
            client.disconnect().await
        };
        block_on(&store.url, store.in_time(done)).expect(url);
    }

    /// A crash left an empty marker beside kept records, and the next load removed the records.
    #[test]
    fn marking_that_stops_midway_leaves_records_of_another_tool() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("kept.db");
        std::fs::write(&file, "").expect("an empty file");
        check_marking::<SqliteFile>(&format!("sqlite:{}", file.display()));
        let database = format!("marking_{}", std::process::id());
        let [create, drop] = ["CREATE", "DROP"].map(|verb| format!("{verb} DATABASE {database}"));
        if let Some(server) = servers::postgres() {
            run::<PostgresServer>(&server.url("encore"), &[&create]);
            check_marking::<PostgresServer>(&server.url(&database));
            run::<PostgresServer>(&server.url("encore"), &[&drop]);
        }
        if let Some(server) = servers::mysql() {
            run::<MySqlServer>(&server.url("encore"), &[&create]);
            check_marking::<MySqlServer>(&server.url(&database));
            run::<MySqlServer>(&server.url("encore"), &[&drop]);
        }
    }
}
