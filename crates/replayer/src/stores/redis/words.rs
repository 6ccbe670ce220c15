//! Errors of the driver in words, and what a user should do about them.

use redis::{ErrorKind, RedisError};

/// An error in one line.
pub fn words(error: &RedisError) -> String {
    if error.is_connection_refusal() {
        return "cannot connect: connection refused".to_string();
    }
    let text = error.to_string();
    match error.kind() {
        ErrorKind::ClusterConnectionNotFound => match error.detail() {
            Some(node) => format!("cannot connect to the cluster's node {node}"),
            None => "cannot connect to any node of the cluster".to_string(),
        },
        _ if text.starts_with("Failed to create initial connections") => format!("cannot connect: {text}"),
        ErrorKind::Server(_) | ErrorKind::Extension => match (error.code(), error.detail()) {
            (Some("ERR"), Some(detail)) => detail.to_string(),
            (Some(code), Some(detail)) => format!("{code} {detail}"),
            (code, detail) => code.or(detail).unwrap_or("an error without a text").to_string(),
        },
        _ => text,
    }
}

/// What a user should do about an error.
pub fn advice(error: &RedisError) -> Option<&'static str> {
    let text = error.to_string();
    match () {
        _ if error.is_connection_refusal() => Some("is the server running, and is the address right?"),
        _ if text.contains("invalid peer certificate") => {
            Some("for a certificate of your own CA, name the CA's file in the environment: SSL_CERT_FILE=FILE")
        }
        _ if text.contains("NOAUTH") => {
            Some("give user and password in the URL: redis://USER:PASSWORD@HOST:PORT/NUMBER")
        }
        _ if error.kind() == ErrorKind::AuthenticationFailed || text.contains("WRONGPASS") => {
            Some("check user and password")
        }
        _ if text.contains("index is out of range") || text.contains("switch database") => {
            Some("use a smaller number in the URL, or raise the server's setting `databases`")
        }
        _ if error.redirect_node().is_some() => Some("wait until the cluster has moved its slots, and try again"),
        _ if text.contains("OOM") => Some("raise the server's setting `maxmemory`, or use a smaller data set"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_certificate_is_met_with_the_name_of_the_variable() {
        let error = RedisError::from(std::io::Error::other("invalid peer certificate: UnknownIssuer"));
        assert!(advice(&error).is_some_and(|advice| advice.contains("SSL_CERT_FILE=FILE")));
    }
}
