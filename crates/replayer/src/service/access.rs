//! Which clients may call a replayer: on loopback all of this machine, elsewhere those with a
//! certificate or the token.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tonic::Status;
use tonic::metadata::MetadataMap;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

/// An error in what a user asked for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Misuse(pub String);

/// Which certificates and token the user has set.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// A folder with `ca.pem`, `replayer.pem` and `replayer.key`.
    pub certificates: Option<PathBuf>,
    /// A secret that every call must carry.
    pub token: Option<Token>,
}

impl Access {
    /// Refuses an address that other machines could reach, unless there are certificates.
    pub fn check(&self, address: SocketAddr) -> Result<(), Misuse> {
        if address.ip().is_loopback() || self.certificates.is_some() {
            return Ok(());
        }
        let token = match &self.token {
            Some(_) => "without TLS the token would be sent in plain text",
            None => "any client could run experiments against any store",
        };
        Err(Misuse(format!(
            "--listen {address} is not a loopback address: {token}; run `encore certs DIR` and use --certs DIR, or \
             listen on 127.0.0.1"
        )))
    }

    /// TLS with the certificates of the folder. Every client needs a certificate of the same
    /// authority, unless a token identifies it.
    pub fn tls(&self) -> Result<Option<ServerTlsConfig>, Misuse> {
        let Some(folder) = &self.certificates else { return Ok(None) };
        let identity = Identity::from_pem(read(&folder.join("replayer.pem"))?, read(&folder.join("replayer.key"))?);
        let authority = Certificate::from_pem(read(&folder.join("ca.pem"))?);
        let tls = ServerTlsConfig::new().identity(identity).client_ca_root(authority);
        Ok(Some(tls.client_auth_optional(self.token.is_some())))
    }

    /// Refuses a call without the token.
    pub fn admit(&self, metadata: &MetadataMap) -> Result<(), Status> {
        let Some(token) = &self.token else { return Ok(()) };
        let given = metadata.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        match given {
            Some(given) if token.is(given) => Ok(()),
            Some(_) => Err(Status::unauthenticated("wrong token; pass this replayer's token with --token-file")),
            None => Err(Status::unauthenticated("this replayer requires a token; pass it with --token-file")),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Misuse> {
    std::fs::read(path).map_err(|e| Misuse(format!("--certs: {}: {e}; `encore certs` makes it", path.display())))
}

/// A secret text, kept as its hash. So it cannot be printed, and a comparison takes the same time
/// however close a guess is.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(blake3::Hash);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(***)")
    }
}

/// The fewest characters of a token.
const TOKEN_CHARS_MIN: usize = 16;

impl Token {
    /// A token of at least 16 characters.
    pub fn new(text: &str) -> Result<Token, Misuse> {
        let text = text.trim();
        let is_printable = text.chars().all(|c| c.is_ascii_graphic());
        if text.len() < TOKEN_CHARS_MIN || !is_printable {
            return Err(Misuse(format!(
                "the token must have at least {TOKEN_CHARS_MIN} printable characters and no spaces; create one with \
                 `openssl rand -hex 32`"
            )));
        }
        Ok(Token(blake3::hash(text.as_bytes())))
    }

    /// The token in a file.
    pub fn read(path: &Path) -> Result<Token, Misuse> {
        let wrong = |e: &dyn std::fmt::Display| Misuse(format!("--token-file {}: {e}", path.display()));
        Token::new(&std::fs::read_to_string(path).map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))
    }

    fn is(&self, given: &str) -> bool {
        self.0 == blake3::hash(given.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_asked_for_and_never_shown() {
        let access = Access { certificates: None, token: Some(Token::new("0123456789abcdef\n").unwrap()) };
        let with = |value: Option<&str>| {
            let mut metadata = MetadataMap::new();
            if let Some(value) = value {
                metadata.insert("authorization", value.parse().unwrap());
            }
            access.admit(&metadata).map_err(|status| status.message().to_string())
        };
        assert_eq!(with(Some("Bearer 0123456789abcdef")), Ok(()));
        assert!(with(Some("Bearer 0123456789abcdeF")).unwrap_err().contains("wrong token"));
        assert!(with(Some("0123456789abcdef")).is_err() && with(None).unwrap_err().contains("--token-file"));
        assert!(Access::default().admit(&MetadataMap::new()).is_ok());
        assert!(!format!("{access:?}").contains("0123"));
        assert!(Token::new("short").is_err() && Token::new("0123456789 abcdefgh").is_err());
    }

    #[test]
    fn strangers_need_more_than_an_address() {
        let check = |address: &str, access: &Access| access.check(address.parse().unwrap()).map_err(|e| e.to_string());
        let token = Access { certificates: None, token: Some(Token::new("0123456789abcdef").unwrap()) };
        let certificates = Access { certificates: Some("certs".into()), token: None };
        assert!(check("127.0.0.3:7070", &Access::default()).is_ok() && check("[::1]:0", &token).is_ok());
        assert!(check("10.0.0.5:7070", &certificates).is_ok());
        let error = check("10.0.0.5:7070", &Access::default()).unwrap_err();
        assert!(error.contains("10.0.0.5:7070") && error.contains("encore certs"), "{error}");
        assert!(check("0.0.0.0:7070", &token).unwrap_err().contains("plain text"));
    }
}
