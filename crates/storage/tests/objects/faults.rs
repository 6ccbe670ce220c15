//! What a user may get wrong, and what may be down: one clear message each, within the time limit, without secrets.

use std::net::TcpListener;

use servers::Proxy;
use storage::{Remote, StorageError};

use crate::support::{bytes, prefix, refusal, url};

/// Checks that a message has all these words and no secret.
fn check(error: &StorageError, words: &[&str]) {
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "{message:?} lacks {word:?}");
    }
    assert!(!message.contains("hush") && !message.contains("wrong-secret"), "{message}");
}

#[test]
fn wrong_and_missing_credentials() {
    let Some(server) = servers::s3() else { return };
    let place = server.url("x");
    let error = refusal(server, &place, &[("AWS_SECRET_ACCESS_KEY", "wrong-secret")]);
    assert!(matches!(error, StorageError::Refused { .. }), "{error:?}");
    check(&error, &["s3://encore/x", "SignatureDoesNotMatch", "AWS_ACCESS_KEY_ID"]);
    let error = refusal(server, &place, &[("AWS_ACCESS_KEY_ID", "nobody")]);
    assert!(matches!(error, StorageError::Refused { .. }), "{error:?}");
    let none = [("AWS_ACCESS_KEY_ID", ""), ("AWS_SECRET_ACCESS_KEY", ""), ("AWS_EC2_METADATA_DISABLED", "true")];
    let error = refusal(server, &place, &none);
    assert!(matches!(error, StorageError::NoCredentials { .. }), "{error:?}");
    check(&error, &["s3://encore/x", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]);
    let error = refusal(server, &place, &[("AWS_SECRET_ACCESS_KEY", "")]);
    assert!(matches!(error, StorageError::NoCredentials { .. }), "{error:?}");
    let error = refusal(server, "gs://encore/x", &[("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere/key.json")]);
    check(&error, &["gs://encore/x", "GOOGLE_APPLICATION_CREDENTIALS"]);
}

#[test]
fn a_missing_bucket() {
    let Some(server) = servers::s3() else { return };
    for place in ["s3://elsewhere/runs", "s3://elsewhere"] {
        let error = refusal(server, place, &[]);
        assert!(matches!(error, StorageError::NoBucket { .. }), "{error:?}");
        check(&error, &[place, "bucket elsewhere", "create it"]);
    }
}

#[test]
fn a_store_that_is_not_there() {
    let Some(server) = servers::s3() else { return };
    // A port that nobody listens on: it was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let error = refusal(server, "s3://encore/x", &[("AWS_ENDPOINT_URL", &endpoint)]);
    assert!(matches!(error, StorageError::Unreachable { .. }), "{error:?}");
    check(&error, &["s3://encore/x", &endpoint, "AWS_ENDPOINT_URL"]);
    let error = refusal(server, "s3://encore/x", &[("AWS_ENDPOINT_URL", "http://store.example:9000")]);
    check(&error, &["http://store.example:9000", "AWS_ALLOW_HTTP=true"]);
}

/// A connection that breaks now and then delays the work, and changes nothing.
#[test]
fn broken_connections_are_tried_again() {
    let Some((server, direct)) = prefix("broken") else { return };
    let proxy = Proxy::start(&server.address());
    let through = server.variables_through(&proxy).into_iter().map(|(name, value)| (name.to_string(), value));
    let remote = Remote::open_with(&url(&server.url("broken")), through).expect("the server takes us");
    let folder = tempfile::tempdir().expect("a folder");
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let content = bytes(1 << 20);
    std::fs::write(&from, &content).expect("written");
    for name in ["a", "b", "c", "d"] {
        proxy.cut_next_reply();
        remote.put(&from, name).expect(name);
        proxy.cut_next_reply();
        remote.get(name, &to).expect(name);
        assert!(std::fs::read(&to).expect("read") == content, "{name}");
    }
    assert!(proxy.cuts() >= 4, "{}", proxy.cuts());
    assert_eq!(direct.list("").expect("a list").len(), 4);
}
