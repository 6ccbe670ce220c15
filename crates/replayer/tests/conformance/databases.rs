//! What a load may do to databases on servers, and what it must leave alone.

use replayer::any_store;
use replayer::stores::Blame;
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, PgConnection, Row};

use crate::place::{BUSY, Place};
use crate::subjects::url_with;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("a runtime")
}

fn refused(place: &Place, url: &str) {
    let store = any_store::open(url).unwrap_or_else(|error| panic!("{error}"));
    for parameters in ["", "reset=reload"] {
        let store =
            if parameters.is_empty() { &store } else { &any_store::open(&url_with(url, parameters)).expect(url) };
        let error = store.load(&place.source, &|_, _| {}).expect_err(url);
        assert_eq!(error.blame, Blame::Usage, "{error}");
        assert!(error.message.contains("Encore has not made"), "{error}");
    }
}

#[test]
fn a_foreign_database_is_refused_and_unchanged() {
    let place = Place::with(BUSY, &["sessions=1"]);
    let name = format!("somebody_else_{}", std::process::id());
    let creation = || AssertSqlSafe(format!("CREATE DATABASE {name}"));
    if let Some(server) = servers::postgres() {
        let url = server.url(&name);
        let rows = runtime().block_on(async {
            let mut client = PgConnection::connect(&server.url("postgres")).await.expect("a server");
            client.execute(creation()).await.expect("a database");
            let mut client = PgConnection::connect(&url).await.expect("a database");
            client.execute("CREATE TABLE precious AS SELECT 42 AS answer").await.expect("a table");
            refused_async(&place, &url).await;
            client.fetch_all("SELECT answer FROM precious").await.expect("it is still there").len()
        });
        assert_eq!(rows, 1);
        // Also in a schema that is not searched by default, and even beside Encore's own tables.
        for is_loaded in [false, true] {
            let name = format!("{name}_elsewhere_{is_loaded}");
            let url = server.url(&name);
            if is_loaded {
                let store = any_store::open(&url).unwrap_or_else(|error| panic!("{error}"));
                store.load(&place.source, &|_, _| {}).expect("a load");
            }
            runtime().block_on(async {
                let mut client = PgConnection::connect(&server.url("postgres")).await.expect("a server");
                if !is_loaded {
                    client.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.expect("a database");
                }
                let mut client = PgConnection::connect(&url).await.expect("a database");
                client.execute("CREATE SCHEMA app").await.expect("a schema");
                client.execute("CREATE TABLE app.members AS SELECT 42 AS answer").await.expect("a table");
                refused_async(&place, &url).await;
                client.fetch_all("SELECT answer FROM app.members").await.expect("it is still there");
            });
        }
    }
    if let Some(server) = servers::mysql() {
        let url = server.url(&name);
        let rows = runtime().block_on(async {
            let mut client = MySqlConnection::connect(&server.url("mysql")).await.expect("a server");
            client.execute(creation()).await.expect("a database");
            let mut client = MySqlConnection::connect(&url).await.expect("a database");
            client.execute("CREATE TABLE precious AS SELECT 42 AS answer").await.expect("a table");
            refused_async(&place, &url).await;
            client.fetch_all("SELECT answer FROM precious").await.expect("it is still there").len()
        });
        assert_eq!(rows, 1);
    }
}

/// The store blocks its thread, so it gets one of its own.
async fn refused_async(place: &Place, url: &str) {
    tokio::task::block_in_place(|| std::thread::scope(|scope| scope.spawn(|| refused(place, url)).join()))
        .expect("it is refused");
}

/// A reset creates a new database with the old one's name. The settings of the old one must not
/// be lost, least of all durability.
#[test]
fn what_is_set_for_a_database_survives_its_reset() {
    let Some(server) = servers::postgres() else { return };
    let place = Place::with(BUSY, &["sessions=1"]);
    let name = format!("with_settings_{}", std::process::id());
    let url = server.url(&name);
    let store = any_store::open(&url).unwrap_or_else(|error| panic!("{error}"));
    store.load(&place.source, &|_, _| {}).expect("a load");
    let set = |setting: &str| AssertSqlSafe(format!("ALTER DATABASE {name} SET {setting}"));
    let shown = |name: &'static str| {
        runtime().block_on(async {
            let mut client = PgConnection::connect(&url).await.expect("a database");
            client.fetch_one(AssertSqlSafe(format!("SHOW {name}"))).await.expect(name).get::<String, _>(0)
        })
    };
    runtime().block_on(async {
        let mut client = PgConnection::connect(&server.url("postgres")).await.expect("a server");
        for setting in ["synchronous_commit TO off", "search_path TO public, \"$user\"", "work_mem TO '5MB'"] {
            client.execute(set(setting)).await.expect(setting);
        }
    });
    store.load(&place.source, &|_, _| {}).expect("a second load");
    assert_eq!(shown("synchronous_commit"), "off");
    assert_eq!(shown("search_path"), "public, \"$user\"");
    assert_eq!(shown("work_mem"), "5MB");
}
