//! What a transaction sees, and what others see of it.

use replayer::any_store;
use replayer::stores::kv::KvData;
use replayer::stores::{Blame, OperationError};
use schemas::isolation::Isolation;
use schemas::vocabulary::kv::Verb;

use super::super::refused;
use super::subjects::{self, Subject};

/// Records that exist, and one that does not.
const KEPT: u64 = 3;
const CHANGED: u64 = 7;
const DELETED: u64 = 11;
const NEW: u64 = 5_000;

#[test]
fn a_transaction_sees_its_own_writes_and_others_see_them_after_the_commit() {
    let place = subjects::place();
    let data = KvData::of(&place.source);
    let number = |record| data.keys.number(record) as i64;
    for subject in subjects::all(place.path()) {
        let url = &subject.url;
        subject.run(&place, 2, async |mut clients| {
            let [one, other] = &mut clients[..] else { panic!("two clients") };
            let all: Vec<(i64, u16)> = other.scan(0, 1_000).await.expect(url).to_vec();
            assert!(all.len() <= 120 && !all.is_empty(), "{url}");
            for end in ["abort", "commit"] {
                one.begin().await.expect(url);
                one.update(CHANGED, 1).await.expect(url);
                one.write(Verb::Insert, NEW, 2).await.expect(url);
                one.write(Verb::Delete, DELETED, 3).await.expect(url);
                one.update(CHANGED, 4).await.expect(url);
                let seen =
                    [one.read(KEPT).await, one.read(CHANGED).await, one.read(NEW).await, one.read(DELETED).await];
                assert_eq!(seen, [Ok(Some(0)), Ok(Some(4)), Ok(Some(2)), Ok(None)], "{url}");
                for (key, seen) in [(CHANGED, Some(4)), (NEW, Some(2)), (KEPT, Some(0)), (DELETED, None)] {
                    let first = one.scan(key, 1).await.expect(url).first().copied();
                    match seen {
                        Some(writer) => assert_eq!(first, Some((number(key), writer)), "{url}"),
                        None => assert_ne!(first.map(|(key, _)| key), Some(number(key)), "{url}"),
                    }
                }
                // As many as there are in this transaction: one more, one less.
                let scanned = one.scan(0, 1_000).await.expect(url);
                let expected =
                    all.iter().map(|(key, writer)| (*key, if *key == number(CHANGED) { 4 } else { *writer }));
                let expected: Vec<(i64, u16)> = expected.filter(|(key, _)| *key != number(DELETED)).collect();
                let old: Vec<(i64, u16)> = scanned.iter().copied().filter(|(key, _)| *key != number(NEW)).collect();
                assert_eq!(old, expected, "{url}");
                match end {
                    "abort" => one.abort().await.expect(url),
                    _ => one.commit().await.expect(url),
                }
                let expected = match end {
                    "abort" => [Ok(Some(0)), Ok(Some(0)), Ok(None), Ok(Some(0))],
                    _ => [Ok(Some(0)), Ok(Some(4)), Ok(Some(2)), Ok(None)],
                };
                for client in [&mut *one, &mut *other] {
                    let seen = [
                        client.read(KEPT).await,
                        client.read(CHANGED).await,
                        client.read(NEW).await,
                        client.read(DELETED).await,
                    ];
                    assert_eq!(seen, expected, "{url}: after {end}");
                }
            }
        });
    }
}

/// After an operation that failed, a commit commits nothing, and the connection is good for another
/// transaction.
#[test]
fn a_transaction_of_which_an_operation_failed_is_not_committed() {
    let place = subjects::place();
    for subject in subjects::all(place.path()) {
        let url = &subject.url;
        // The reference store leaves that to the replayer.
        if url.starts_with("memory:") {
            continue;
        }
        subject.run(&place, 1, async |mut clients| {
            let client = &mut clients[0];
            for (verb, key) in [(Verb::Insert, KEPT), (Verb::Update, NEW), (Verb::Delete, NEW)] {
                for is_committed in [true, false] {
                    client.begin().await.expect(url);
                    client.update(CHANGED, 1).await.expect(url);
                    let failed = client.write(verb, key, 2).await;
                    assert!(matches!(failed, Err(OperationError::Failed(_))), "{url}: {failed:?}");
                    // Later operations may be performed or not, but not outside of the transaction.
                    let later = client.update(DELETED, 3).await;
                    assert!(matches!(later, Ok(()) | Err(OperationError::Failed(_))), "{url}: {later:?}");
                    match is_committed {
                        true => {
                            let done = client.commit().await;
                            assert!(matches!(done, Err(OperationError::Failed(_))), "{url}: {done:?}");
                        }
                        false => client.abort().await.expect(url),
                    }
                    let seen = [client.read(CHANGED).await, client.read(DELETED).await];
                    assert_eq!(seen, [Ok(Some(0)), Ok(Some(0))], "{url}");
                }
            }
            client.begin().await.expect(url);
            client.update(CHANGED, 4).await.expect(url);
            let nested = client.begin().await;
            assert!(matches!(nested, Err(OperationError::Failed(_))), "{url}: {nested:?}");
            client.commit().await.expect(url);
            assert_eq!(client.read(CHANGED).await, Ok(Some(4)), "{url}");
            let without = client.commit().await;
            assert!(matches!(without, Err(OperationError::Failed(_))), "{url}: {without:?}");
        });
    }
}

/// A thread waits until the transaction of another one has ended, if there is one connection for both.
#[test]
fn a_connection_of_a_pool_belongs_to_its_transaction() {
    let place = subjects::place();
    for subject in subjects::all(place.path()) {
        let url = &subject.url;
        subject.run_pooled(&place, 1, 3, async |mut clients| {
            let transact = async |client: &mut super::Client, number: u16| {
                for round in 0..5 {
                    client.begin().await.expect(url);
                    let before = client.read(CHANGED).await.expect(url);
                    client.update(CHANGED, number + round).await.expect(url);
                    tokio::task::yield_now().await;
                    assert_eq!(client.read(CHANGED).await, Ok(Some(number + round)), "{url}: after {before:?}");
                    match round % 2 {
                        0 => client.commit().await.expect(url),
                        _ => client.abort().await.expect(url),
                    }
                }
            };
            let [one, two, three] = &mut clients[..] else { panic!("three clients") };
            tokio::join!(transact(one, 10), transact(two, 20), transact(three, 30));
            let last = one.read(CHANGED).await.expect(url);
            assert!([Some(14), Some(24), Some(34)].contains(&last), "{url}: {last:?}");
        });
    }
}

#[test]
fn the_level_of_the_url_is_in_effect() {
    let place = subjects::place();
    for subject in subjects::all(place.path()) {
        let asked = subject.url.split("isolation=").nth(1).and_then(Isolation::from_name);
        assert_eq!(subject.level, asked.unwrap_or(Isolation::Serializable), "{}", subject.url);
        if ["memory:", "postgres:", "mysql:", "sqlite:"].iter().any(|scheme| subject.url.starts_with(scheme)) {
            subject.run(&place, 1, async |_| {});
            let said = subject.isolation();
            assert_eq!(said.split(':').next(), Some(subject.level.name()), "{}", subject.url);
        }
    }
    assert_eq!(Subject::of("memory:").level, Isolation::Serializable);
}

#[test]
fn levels_that_a_store_lacks_are_refused_with_those_that_it_has() {
    let refused = |url: &str, words: &[&str]| refused(any_store::open(url).map(drop), Blame::Usage, words);
    refused("sqlite:x.db?isolation=read-committed", &["\"read-committed\" is not one of serializable"]);
    refused("postgres://h/d?isolation=read-uncommitted", &["read-committed, repeatable-read, serializable"]);
    refused("mysql://h/d?isolation=snapshot", &["repeatable-read, read-committed, serializable, read-uncommitted"]);
    refused("mongodb://h/d?isolation=serializable", &["\"serializable\" is not one of snapshot"]);
    refused("memory:?isolation=chaos", &["serializable, snapshot, read-committed, read-uncommitted, none"]);
    refused("redis://h/0?isolation=serializable", &["unknown parameter isolation"]);
    refused("postgres://h/d?locking=all", &["\"all\" is not one of written, none, read"]);
    refused("casql+sqlite:x.db?memcached=h:1&locking=read", &["locking concerns transactions"]);
    refused("memory:?stale=0.1&isolation=snapshot", &["stale, lost, lag_ms and invert_ms do not go with transactions"]);
}
