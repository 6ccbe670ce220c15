//! What the marker in a file of SQLite's says, and which differences from it are detected.

use std::path::{Path, PathBuf};

use replayer::any_store::{self, AnyStore};
use replayer::experiment::Control;
use replayer::stores::sqlite::Sqlite;
use replayer::stores::{Blame, OperationError, StoreError};
use schemas::social::Action;
use schemas::workload::social::dataset::Table;
use sqlx::Connection;

use crate::place::{BUSY, Place, operation};
use crate::subjects::{ImagesSent, Subject};

const DEFAULT: &str = "friendship=two-row, images=inline, counts=computed, indexes=on";

/// A place with a short trace, and the path of a file in it.
fn place() -> (Place, PathBuf) {
    let place = Place::with(BUSY, &["sessions=50"]);
    let path = place.path().join("store.db");
    (place, path)
}

fn open(path: &Path, parameters: &str) -> (String, Box<dyn AnyStore>) {
    let url = format!("sqlite:{}?synchronous=off{parameters}", path.display());
    let store = any_store::open(&url).unwrap_or_else(|error| panic!("{error}"));
    (url, store)
}

/// Changes the file without Encore.
fn tamper(path: &Path, sql: &'static str) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let changed = runtime.block_on(async {
        let mut client = sqlx::SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.expect("a file");
        let changed = sqlx::query(sql).execute(&mut client).await.expect(sql).rows_affected();
        client.close().await.expect("closed");
        changed
    });
    assert!(changed > 0, "{sql} changed nothing");
}

fn refused<X>(result: Result<X, StoreError>, blame: Blame, words: &[&str]) {
    let error = result.err().expect("a refusal");
    assert_eq!(error.blame, blame, "{error}");
    for word in words {
        assert!(error.message.contains(word), "{error} lacks {word:?}");
    }
}

#[test]
fn a_file_with_rows_missing_is_refused() {
    let (place, path) = place();
    for (parameters, sql, words) in [
        ("", "DELETE FROM invitations WHERE invitee < 5", "table invitations: found"),
        ("", "DELETE FROM friendships WHERE member = 1", "table friendships: found"),
        ("&friendship=one-row", "DELETE FROM friendships WHERE status = 1 AND invitee < 5", "(pending): found"),
        ("&friendship=one-row", "UPDATE friendships SET status = 2 WHERE invitee = 1", "(confirmed): found"),
        ("&images=table", "DELETE FROM images WHERE member = 1", "table images: found"),
        ("", "DELETE FROM members WHERE member = 1", "table members: found"),
        ("", "DELETE FROM comments WHERE comment = 1", "table comments: found"),
        ("", "DELETE FROM resources WHERE resource = 1", "table resources: found"),
    ] {
        let (url, store) = open(&path, parameters);
        store.load(&place.source, &|_, _| {}).expect("a load");
        let experiment = place.experiment(&url, 1, "run");
        store.check(&experiment).expect("a freshly loaded file is as it should be");
        tamper(&path, sql);
        refused(store.check(&experiment), Blame::State, &[words, "encore replay load"]);
    }
}

#[test]
fn what_is_kept_twice_and_differs_is_an_error() {
    let (place, path) = place();
    for (parameters, sql, words) in [
        ("", "DELETE FROM friendships WHERE member = 1", "8 friendships are stored for only one"),
        (
            "&counts=stored",
            "UPDATE members SET friend_count = 0 WHERE member < 2",
            "2 members have a wrong friend_count",
        ),
        (
            "&counts=stored&friendship=one-row&indexes=off",
            "UPDATE members SET friend_count = friend_count + 1 WHERE member = 3",
            "1 members have a wrong friend_count",
        ),
        (
            "&counts=stored",
            "UPDATE members SET pending_count = 9 WHERE member = 3",
            "1 members have a wrong pending_count",
        ),
        (
            "&counts=stored&friendship=one-row",
            "DELETE FROM friendships WHERE status = 1 AND invitee = 7",
            "1 members have a wrong pending_count",
        ),
        (
            "&counts=stored",
            "UPDATE members SET resource_count = -1 WHERE member = 3",
            "1 members have a wrong resource_count",
        ),
        (
            "&friendship=one-row",
            "INSERT INTO friendships SELECT invitee, inviter, status FROM friendships WHERE status = 2 LIMIT 1",
            "2 rows of friendships have a duplicate",
        ),
    ] {
        let (_, store) = open(&path, parameters);
        store.load(&place.source, &|_, _| {}).expect("a load");
        assert_eq!(store.digest(&place.source).expect("a digest").to_string(), place.digest(Some(0)));
        tamper(&path, sql);
        refused(store.digest(&place.source), Blame::Store, &[words]);
    }
}

/// Half of a friendship is missing: one statement cannot be rolled back, a transaction can.
#[test]
fn a_write_that_is_done_by_half_is_not_called_failed() {
    let (place, path) = place();
    let [a, b] = place.rows::<2>(Table::Friendships).into_iter().find(|[a, _]| *a == 1).expect("a friend of 1");
    for (parameters, taken_back) in [("", false), ("&counts=stored", true)] {
        let url = format!("sqlite:{}?synchronous=off{parameters}", path.display());
        let subject: Subject = Subject::new(&url, Sqlite::open, ImagesSent::Yes).loaded(&place.source);
        tamper(&path, "DELETE FROM friendships WHERE member = 1");
        let result = subject.connect(&place.source).execute(&operation(Action::ThawFriendship, a, b));
        match result {
            Err(OperationError::Failed(_)) => assert!(taken_back, "{url}"),
            Err(OperationError::Unknown(_)) => assert!(!taken_back, "{url}"),
            Ok(_) | Err(OperationError::Aborted(_)) => panic!("{url}: it was no friendship"),
        }
    }
}

#[test]
fn a_file_of_another_design_is_refused_until_it_is_loaded_again() {
    let (place, path) = place();
    let source = &place.source;
    open(&path, "").1.load(source, &|_, _| {}).expect("a load");
    for (parameters, wanted) in [
        ("&friendship=one-row", "friendship=one-row, images=inline, counts=computed, indexes=on"),
        ("&images=table", "friendship=two-row, images=table, counts=computed, indexes=on"),
        ("&counts=stored", "friendship=two-row, images=inline, counts=stored, indexes=on"),
        ("&indexes=off", "friendship=two-row, images=inline, counts=computed, indexes=off"),
    ] {
        let (url, store) = open(&path, parameters);
        let experiment = place.experiment(&url, 1, "run");
        let words = [format!("was loaded with {DEFAULT}, the URL says {wanted}"), "encore replay load".into()];
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        refused(store.check(&experiment), Blame::Usage, &words);
        refused(store.digest(source), Blame::Usage, &words);
        store.load(source, &|_, _| {}).expect("a load");
        store.check(&experiment).expect("it is loaded with this design now");
        assert_eq!(store.digest(source).expect("a digest").to_string(), place.digest(Some(0)));
        open(&path, "").1.load(source, &|_, _| {}).expect("a load");
    }
}

/// Only copying makes a reset between experiments fast.
#[test]
fn a_second_load_of_the_same_design_only_copies() {
    use std::os::unix::fs::MetadataExt;
    let (place, path) = place();
    let loaded = place.path().join("store.db.loaded");
    let number_of_loaded = || std::fs::metadata(&loaded).expect("store.db.loaded").ino();
    let load = |parameters| open(&path, parameters).1.load(&place.source, &|_, _| {}).expect("a load");
    load("");
    // A second link keeps the inode's number from being used again.
    std::fs::hard_link(&loaded, place.path().join("kept")).expect("a link");
    let first = number_of_loaded();
    tamper(&path, "DELETE FROM comments");
    load("&journal=delete");
    assert_eq!(number_of_loaded(), first, "built again");
    assert_eq!(open(&path, "").1.digest(&place.source).expect("a digest").to_string(), place.digest(Some(0)));
    load("&counts=stored");
    assert_ne!(number_of_loaded(), first, "not built again");
}

#[test]
fn a_file_of_another_version_is_refused() {
    let (place, path) = place();
    let (url, store) = open(&path, "");
    store.load(&place.source, &|_, _| {}).expect("a load");
    // As the first version wrote it, which had only one design.
    tamper(&path, "UPDATE encore_state SET state = json_remove(json_set(state, '$.layout', 1), '$.design')");
    let experiment = place.experiment(&url, 1, "run");
    refused(store.check(&experiment), Blame::Usage, &["tables of version 1", "encore replay load"]);
}

#[test]
fn a_run_records_its_design() {
    let (place, path) = place();
    let (url, store) = open(&path, "&friendship=one-row&images=none&counts=stored&indexes=off");
    store.load(&place.source, &|_, _| {}).expect("a load");
    let report = store.run(&place.experiment(&url, 2, "run"), &Control::default(), &mut |_| {}).expect("a replay");
    for (name, value) in [("friendship", "one-row"), ("images", "none"), ("counts", "stored"), ("indexes", "off")] {
        assert_eq!(report.store_settings.get(name).map(String::as_str), Some(value));
    }
}

/// The data set does not say who has invited whom, so the load decides.
#[test]
fn the_lower_id_has_invited_when_loaded() {
    let (place, path) = place();
    let (_, store) = open(&path, "&friendship=one-row");
    store.load(&place.source, &|_, _| {}).expect("a load");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let rows: Vec<(i64, i64)> = runtime.block_on(async {
        let mut client = sqlx::SqliteConnection::connect(&format!("sqlite:{}", path.display())).await.expect("a file");
        sqlx::query_as("SELECT inviter, invitee FROM friendships WHERE status = 2 ORDER BY 1, 2")
            .fetch_all(&mut client)
            .await
            .expect("rows")
    });
    let expected: Vec<[u64; 2]> = place.rows(Table::Friendships);
    assert!(rows.iter().all(|(lower, higher)| lower < higher));
    assert_eq!(rows, Vec::from_iter(expected.iter().map(|[a, b]| (*a as i64, *b as i64))));
}
