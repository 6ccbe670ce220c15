//! Connections that are cut in a transaction, and at its commit.

use replayer::stores::OperationError;
use servers::Proxy;

use super::super::subjects::database;
use super::subjects::{self, Subject};
use crate::subjects::url_with;

const A: u64 = 7;
const B: u64 = 11;

/// The shared servers that have transactions.
fn all() -> impl Iterator<Item = &'static servers::Server> {
    [servers::postgres(), servers::mysql(), servers::mongodb(), servers::redis()].into_iter().flatten()
}

/// A name of a database; Redis has numbers.
fn name(server: &servers::Server) -> String {
    match server.kind() {
        servers::Kind::Redis => super::super::subjects::number().to_string(),
        _ => database(),
    }
}

#[test]
fn a_connection_that_is_cut_takes_its_transaction_with_it() {
    let place = subjects::place_without_scans();
    for server in all() {
        let (name, proxy) = (name(server), Proxy::start(&server.address()));
        let subject = Subject::of(&url_with(&server.url_through(&proxy, &name), "timeout_ms=20000"));
        let url = &subject.url;
        subject.run(&place, 1, async |mut clients| {
            let client = &mut clients[0];
            client.begin().await.expect(url);
            client.update(A, 1).await.expect(url);
            proxy.cut();
            for number in [2, 3] {
                let lost = client.update(B, number).await;
                assert!(matches!(lost, Err(OperationError::Failed(_))), "{url}: {lost:?}");
            }
            client.abort().await.expect(url);
            // Nothing of it has happened, also not what followed the cut. The driver of MongoDB and that of
            // Redis notice some cuts only with the next operation.
            let mut seen = client.read(A).await;
            if seen.is_err() {
                seen = client.read(A).await;
            }
            assert_eq!((seen, client.read(B).await), (Ok(Some(0)), Ok(Some(0))), "{url}");
            client.begin().await.expect(url);
            client.update(A, 4).await.expect(url);
            client.commit().await.expect(url);
            assert_eq!(client.read(A).await, Ok(Some(4)), "{url}");
        });
    }
}

#[test]
fn a_commit_without_an_answer_has_an_unknown_fate() {
    let place = subjects::place_without_scans();
    for server in all() {
        let (name, proxy) = (name(server), Proxy::start(&server.address()));
        let subject = Subject::of(&url_with(&server.url_through(&proxy, &name), "timeout_ms=20000"));
        let url = &subject.url;
        subject.run(&place, 1, async |mut clients| {
            let client = &mut clients[0];
            client.begin().await.expect(url);
            client.update(A, 1).await.expect(url);
            proxy.cut_next_reply();
            let done = client.commit().await;
            match done {
                Err(OperationError::Unknown(_)) => {}
                // The driver itself asks once more what became of a commit. A monitor's question may have
                // been cut instead.
                Ok(()) if server.kind() == servers::Kind::Mongodb => {}
                _ => panic!("{url}: {done:?}"),
            }
            let mut seen = client.read(A).await;
            if seen.is_err() {
                seen = client.read(A).await;
            }
            assert_eq!(seen, Ok(Some(1)), "{url}");
            client.begin().await.expect(url);
            client.update(A, 2).await.expect(url);
            client.commit().await.expect(url);
        });
    }
}

/// A server that stops answering: the operation fails after its time, the commit is unknown.
#[test]
fn transactions_end_in_time() {
    let place = subjects::place_without_scans();
    for server in all() {
        let (name, proxy) = (name(server), Proxy::start(&server.address()));
        let subject = Subject::of(&url_with(&server.url_through(&proxy, &name), "timeout_ms=1000"));
        let url = &subject.url;
        subject.run(&place, 1, async |mut clients| {
            let client = &mut clients[0];
            for at_commit in [false, true] {
                client.begin().await.expect(url);
                client.update(A, 1).await.expect(url);
                proxy.hold(true);
                let late = match at_commit {
                    false => client.update(B, 2).await,
                    true => client.commit().await,
                };
                match at_commit {
                    false => assert!(matches!(late, Err(OperationError::Failed(_))), "{url}: {late:?}"),
                    true => assert!(matches!(late, Err(OperationError::Unknown(_))), "{url}: {late:?}"),
                }
                proxy.cut();
                proxy.hold(false);
                if !at_commit {
                    client.abort().await.expect(url);
                }
                // The server learns of the cut on its own time; until then it may hold what was locked.
                let mut seen = client.read(B).await;
                for _ in 0..20 {
                    if seen.is_ok() {
                        break;
                    }
                    seen = client.read(B).await;
                }
                assert_eq!(seen, Ok(Some(0)), "{url}");
            }
        });
    }
}
