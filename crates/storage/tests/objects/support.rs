//! Shared by the tests: a prefix of the server for each, and bytes to store.

use servers::S3;
use storage::{Place, Remote, StorageError, Url};

/// A URL from its text.
pub fn url(text: &str) -> Url {
    match Place::parse(text).expect(text) {
        Place::Remote(url) => url,
        Place::Local(path) => panic!("{path:?} is local"),
    }
}

/// Variables as text, with some of them replaced.
pub fn variables(server: S3, replaced: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        server.variables().into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    for (name, value) in replaced {
        all.retain(|(known, _)| known != name);
        all.push((name.to_string(), value.to_string()));
    }
    all
}

/// The server, and an empty prefix that no other test uses; None without a server.
pub fn prefix(test: &str) -> Option<(S3, Remote)> {
    let server = servers::s3()?;
    let remote = Remote::open_with(&url(&server.url(test)), variables(server, &[])).expect("the server takes us");
    assert_eq!(remote.list("").expect("a list"), []);
    Some((server, remote))
}

/// Why the server cannot be used with some variables replaced.
pub fn refusal(server: S3, text: &str, replaced: &[(&str, &str)]) -> StorageError {
    Remote::open_with(&url(text), variables(server, replaced)).expect_err("a refusal")
}

/// So many bytes that no compression shortens and no shift repeats.
pub fn bytes(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    std::iter::repeat_with(next).take(count).collect()
}
