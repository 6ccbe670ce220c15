//! The shared S3 server, as its clients see it.

use crate::engines::BUCKET;
use crate::shared::shared;
use crate::{Kind, Proxy, Server};

/// An S3 server with the bucket `encore`. Tests share the bucket, each below a prefix of its own.
#[derive(Debug, Clone, Copy)]
pub struct S3 {
    server: &'static Server,
}

/// The shared S3 server, or the user's; see [`Server::start`].
pub fn s3() -> Option<S3> {
    shared(Kind::S3).map(|server| S3 { server })
}

impl S3 {
    /// The URL of a prefix in the bucket.
    pub fn url(&self, prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}")
    }

    /// The variables of the environment with which a client finds the server.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        variables(&self.server.url(""))
    }

    /// The same through a proxy.
    pub fn variables_through(&self, proxy: &Proxy) -> Vec<(&'static str, String)> {
        variables(&self.server.url_through(proxy, ""))
    }

    /// `HOST:PORT`.
    pub fn address(&self) -> String {
        self.server.address()
    }
}

/// From `http://KEY:SECRET@HOST:PORT`.
fn variables(url: &str) -> Vec<(&'static str, String)> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let (credentials, host) = rest.rsplit_once('@').unwrap_or((":", rest));
    let (key, secret) = credentials.split_once(':').unwrap_or((credentials, ""));
    vec![
        ("AWS_ENDPOINT_URL", format!("{scheme}://{}", host.trim_end_matches('/'))),
        ("AWS_ACCESS_KEY_ID", key.to_string()),
        ("AWS_SECRET_ACCESS_KEY", secret.to_string()),
        ("AWS_REGION", "us-east-1".to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_becomes_variables() {
        let found = variables("http://me:a@b@127.0.0.1:9000/");
        let values: Vec<&str> = found.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["http://127.0.0.1:9000", "me", "a@b", "us-east-1"]);
    }
}
