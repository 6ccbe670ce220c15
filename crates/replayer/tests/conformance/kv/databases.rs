//! Databases that hold something else: another family's data set, or tables of another tool.

use replayer::any_store::{self, AnyStore};
use replayer::stores::Blame;
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, PgConnection, Row, SqliteConnection};

use super::BUSY;
use crate::place::{self, Place};
use crate::subjects::url_with;

fn open(url: &str) -> Box<dyn AnyStore> {
    any_store::open(url).unwrap_or_else(|error| panic!("{error}"))
}

fn load(store: &dyn AnyStore, place: &Place) {
    store.load(&place.source, &|_, _| {}).unwrap_or_else(|error| panic!("{error}"));
}

fn digest(store: &dyn AnyStore, place: &Place) -> String {
    store.digest(&place.source).unwrap_or_else(|error| panic!("{error}")).to_string()
}

fn run<X>(future: impl Future<Output = X>) -> X {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(future)
}

/// Databases of this name, or in files of it, that do not exist yet.
fn urls(name: &str, folder: &std::path::Path) -> Vec<String> {
    let name = format!("{name}_{}", std::process::id());
    let file = format!("sqlite:{}", folder.join(format!("{name}.db")).display());
    let servers = [servers::postgres().map(|one| one.url(&name)), servers::mysql().map(|one| one.url(&name))];
    servers.into_iter().flatten().chain([file]).collect()
}

/// One query on a database, through whichever driver; returns how many rows it has.
fn rows(url: &str, query: &str) -> Result<usize, sqlx::Error> {
    let query = || AssertSqlSafe(query.to_string());
    run(async {
        let url = url.split('?').next().unwrap_or(url);
        match url.split(':').next() {
            Some("sqlite") => Ok(SqliteConnection::connect(url).await?.fetch_all(query()).await?.len()),
            Some("mysql" | "mariadb") => Ok(MySqlConnection::connect(url).await?.fetch_all(query()).await?.len()),
            _ => Ok(PgConnection::connect(url).await?.fetch_all(query()).await?.len()),
        }
    })
}

/// Creates a database that is not Encore's.
fn create(url: &str) {
    let (server, name) = url.split('?').next().unwrap_or(url).rsplit_once('/').expect("a database");
    if let Some(path) = url.strip_prefix("sqlite:") {
        std::fs::write(path, "").expect("an empty file");
    } else if url.starts_with("mysql") || url.starts_with("mariadb") {
        rows(&format!("{server}/mysql"), &format!("CREATE DATABASE {name}")).expect("a database");
    } else {
        rows(&format!("{server}/postgres"), &format!("CREATE DATABASE {name}")).expect("a database");
    }
}

#[test]
fn a_table_of_another_tool_is_refused_and_unchanged() {
    let place = Place::with(BUSY, &["sessions=1"]);
    let social = Place::with(place::BUSY, &["sessions=1"]);
    for (url, is_loaded) in urls("ycsb", place.path()).into_iter().zip(std::iter::repeat(false)).chain(
        // Beside a data set of Encore's, too.
        urls("ycsb_beside", place.path()).into_iter().zip(std::iter::repeat(true)),
    ) {
        match is_loaded {
            true => load(&*open(&url), &social),
            false => create(&url),
        }
        rows(&url, "CREATE TABLE usertable (YCSB_KEY VARCHAR(255) PRIMARY KEY, FIELD0 TEXT)").expect(&url);
        rows(&url, "INSERT INTO usertable VALUES ('user1', 'precious')").expect(&url);
        let reload = url_with(&url, "reset=reload");
        for url in [&url, &reload].into_iter().filter(|url| !url.contains("sqlite:") || **url != reload) {
            let error = open(url).load(&place.source, &|_, _| {}).expect_err(url);
            assert_eq!(error.blame, Blame::Usage, "{error}");
            assert!(error.message.contains("choose another"), "{error}");
        }
        assert_eq!(rows(&url, "SELECT FIELD0 FROM usertable WHERE FIELD0 = 'precious'").expect(&url), 1, "{url}");
    }
}

/// A load of SQLite and PostgreSQL replaces the whole database: a table that another program has made after the
/// first load was lost.
#[test]
fn a_table_beside_encores_own_is_refused_and_unchanged() {
    let kv = Place::with(BUSY, &["sessions=1"]);
    let social = Place::with(place::BUSY, &["sessions=1"]);
    let creations = ["CREATE TABLE precious AS SELECT 42 AS answer", "CREATE VIEW precious AS SELECT 42 AS answer"];
    for (first, name) in [(&kv, "beside_kv"), (&social, "beside_social")] {
        for (creation, kind) in creations.iter().zip(["table", "view"]) {
            for url in urls(&format!("{name}_{kind}"), first.path()) {
                load(&*open(&url), first);
                rows(&url, creation).expect(&url);
                let reload = url_with(&url, "reset=reload");
                for url in [&url, &reload].into_iter().filter(|url| !url.contains("sqlite:") || **url != reload) {
                    for place in [&kv, &social] {
                        let error = open(url).load(&place.source, &|_, _| {}).expect_err(url);
                        assert_eq!(error.blame, Blame::Usage, "{error}");
                        let words = ["table precious", "Encore has not made", "choose another database"];
                        assert!(words.iter().all(|word| error.message.contains(word)), "{error}");
                    }
                }
                assert_eq!(rows(&url, "SELECT answer FROM precious WHERE answer = 42").expect(&url), 1, "{url}");
                rows(&url, "SELECT * FROM encore_state").expect(&url);
            }
        }
    }
}

/// A load replaces the data set of another family, and leaves none of its tables.
#[test]
fn families_replace_each_other() {
    let kv = Place::with(BUSY, &["sessions=1"]);
    let wider = Place::with(BUSY, &["sessions=1", "data.fields=7", "data.records=80"]);
    let social = Place::with(place::BUSY, &["sessions=1"]);
    for url in urls("families", kv.path()) {
        let reload = url_with(&url, "reset=reload");
        for url in [&url, &reload].into_iter().filter(|url| !url.contains("sqlite:") || **url != reload) {
            let store = open(url);
            for (place, other, foreign_table) in [
                (&social, &kv, "usertable"),
                (&kv, &social, "members"),
                (&wider, &kv, "members"),
                (&social, &wider, "usertable"),
            ] {
                load(&*store, place);
                assert_eq!(digest(&*store, place), place.digest(Some(0)), "{url}");
                store.check(&place.experiment(url, 1, &format!("run-{}", RUNS.fetch_add(1, ORDER)))).expect(url);
                let error = store.digest(&other.source).expect_err(url);
                assert_eq!(error.blame, Blame::State, "{error}");
                assert!(error.message.contains("contains workload"), "{error}");
                rows(url, &format!("SELECT * FROM {foreign_table}")).expect_err("no such table");
            }
        }
    }
}

static RUNS: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
const ORDER: std::sync::atomic::Ordering = std::sync::atomic::Ordering::Relaxed;

#[test]
fn missing_rows_are_noticed() {
    let place = Place::with(BUSY, &["sessions=1"]);
    for url in urls("missing", place.path()) {
        let store = open(&url);
        load(&*store, &place);
        let experiment = place.experiment(&url, 1, &format!("run-{}", RUNS.fetch_add(1, ORDER)));
        store.check(&experiment).expect(&url);
        rows(&url, "DELETE FROM usertable WHERE YCSB_KEY LIKE 'user1%'").expect(&url);
        let error = store.check(&experiment).expect_err(&url);
        assert_eq!(error.blame, Blame::State, "{error}");
        assert!(error.message.contains("table usertable: found") && error.message.contains("has 120"), "{error}");
    }
}

/// A scan must begin at its key in the index, whatever the collations of the database and the server.
#[test]
fn scans_use_the_index_of_the_keys() {
    let place = Place::with(BUSY, &["sessions=1", "data.records=20000", "data.fields=1"]);
    for url in urls("index", place.path()).into_iter().filter(|url| !url.starts_with("sqlite:")) {
        load(&*open(&url), &place);
        let shown = run(async {
            let scan = "SELECT YCSB_KEY, FIELD0 FROM usertable WHERE YCSB_KEY >= ? ORDER BY YCSB_KEY LIMIT 5";
            if url.starts_with("postgres") {
                let explain = AssertSqlSafe(format!("EXPLAIN {}", scan.replace('?', "$1")));
                let mut client = PgConnection::connect(&url).await.expect("a database");
                let rows = sqlx::query(explain).bind("user5").fetch_all(&mut client).await.expect("a plan");
                rows.iter().map(|row| row.get::<String, _>(0)).collect::<Vec<_>>().join("\n")
            } else {
                let explain = AssertSqlSafe(format!("EXPLAIN {scan}"));
                let mut client = MySqlConnection::connect(&url).await.expect("a database");
                let rows = sqlx::query(explain).bind("user5").fetch_all(&mut client).await.expect("a plan");
                let text = |row: &sqlx::mysql::MySqlRow, column| row.get_unchecked::<Option<String>, _>(column);
                rows.iter().map(|row| format!("{:?} {:?}", text(row, "type"), text(row, "key"))).collect()
            }
        });
        let is_indexed = ["Index Scan using usertable_pkey", "Some(\"range\") Some(\"PRIMARY\")"];
        assert!(is_indexed.iter().any(|words| shown.contains(words)) && !shown.contains("Sort"), "{url}: {shown}");
    }
}
