//! Where the deck listens, and what that needs: other machines get in over TLS only, under names that the user allows.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use replayer::service::Token;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::failure::Failure;

/// What the user has set.
#[derive(Debug, Clone)]
pub struct Entrance {
    /// The address to listen on.
    pub listen: SocketAddr,
    /// A folder with `deck.pem` and `deck.key`: use TLS.
    pub certs: Option<PathBuf>,
    /// Names and addresses by which browsers reach the deck, besides those of `listen` and of loopback.
    pub hosts: Vec<String>,
    /// A secret that opens the deck, in place of a new key in the URL.
    pub token: Option<Token>,
}

impl Entrance {
    /// The entrance for browsers on this machine.
    pub fn loopback(listen: SocketAddr) -> Entrance {
        Entrance { listen, certs: None, hosts: Vec::new(), token: None }
    }

    /// The scheme of its URLs.
    pub(super) fn scheme(&self) -> &'static str {
        if self.certs.is_some() { "https" } else { "http" }
    }

    /// The host in the URL that opens the deck.
    pub(super) fn host(&self) -> String {
        match self.hosts.first() {
            Some(host) if host.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()) => format!("[{host}]"),
            Some(host) => host.clone(),
            None if self.listen.is_ipv6() => format!("[{}]", self.listen.ip()),
            None => self.listen.ip().to_string(),
        }
    }

    /// Refuses an address that other machines could reach without TLS, and one without a name.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let Entrance { listen, certs, hosts, .. } = self;
        if !listen.ip().is_loopback() && certs.is_none() {
            let port = listen.port();
            return Err(Failure::usage(format!(
                "--listen {listen} is not a loopback address: whoever opens the deck can start programs as you, and \
                 without TLS its key would be sent in plain text; run `encore certs DIR --host NAME` and use --certs \
                 DIR, or listen on 127.0.0.1 and use `ssh -L {port}:127.0.0.1:{port} THIS_MACHINE` from elsewhere"
            )));
        }
        if listen.ip().is_unspecified() && hosts.is_empty() {
            return Err(Failure::usage(format!(
                "--listen {listen} stands for all addresses of this machine; add --host with the name or address by \
                 which browsers reach the deck"
            )));
        }
        Ok(())
    }

    /// Whether a Host header names this deck. An attacker can make a name of theirs resolve to this machine (DNS
    /// rebinding), so only names that the user allows count, and addresses. The port may differ, as behind an SSH tunnel.
    pub(super) fn has_host(&self, header: &str) -> bool {
        let name = match header.rsplit_once(':') {
            Some((name, port)) if !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit()) => name,
            _ => header,
        };
        let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let hosts = || self.hosts.iter();
        match bare.parse::<IpAddr>() {
            Ok(address) => {
                let is_one_of_hosts = hosts().any(|host| host.parse() == Ok(address));
                address.is_loopback() || address == self.listen.ip() || is_one_of_hosts
            }
            Err(_) => name == "localhost" || hosts().any(|host| host.eq_ignore_ascii_case(name)),
        }
    }

    /// TLS with the certificate of the folder.
    pub(super) fn tls(&self) -> Result<Option<Arc<ServerConfig>>, Failure> {
        let Some(folder) = &self.certs else { return Ok(None) };
        let wrong = |path: &Path, e: &dyn std::fmt::Display| {
            let path = path.display();
            Failure::usage(format!("--certs: {path}: {e}; `encore certs DIR --host NAME` makes it in a new folder"))
        };
        let (chain, key) = (folder.join("deck.pem"), folder.join("deck.key"));
        let read = |path: &Path| std::fs::read(path).map_err(|e| wrong(path, &e));
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(&chain)?).collect();
        let certificates = certificates.map_err(|e| wrong(&chain, &e))?;
        if certificates.is_empty() {
            return Err(wrong(&chain, &"has no certificate"));
        }
        let secret = PrivateKeyDer::from_pem_slice(&read(&key)?).map_err(|e| wrong(&key, &e))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(Failure::tool)?
            .with_no_client_auth()
            .with_single_cert(certificates, secret);
        let mut config = config.map_err(|e| wrong(&key, &e))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Some(Arc::new(config)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::certs;

    fn entrance(listen: &str, certs: Option<&Path>, hosts: &[&str]) -> Entrance {
        let hosts = hosts.iter().map(|host| host.to_string()).collect();
        Entrance { hosts, certs: certs.map(Path::to_path_buf), ..Entrance::loopback(listen.parse().unwrap()) }
    }

    #[test]
    fn only_own_names_are_hosts() {
        let local = entrance("127.0.0.1:0", None, &[]);
        for host in ["127.0.0.1:7000", "127.0.0.9", "localhost:1", "[::1]:80", "[::1]"] {
            assert!(local.has_host(host), "{host}");
        }
        for host in
            ["", "evil.example", "evil.example:7000", "127.0.0.1.evil.example", "10.0.0.5:1", "localhost.", "::1x"]
        {
            assert!(!local.has_host(host), "{host}");
        }
        let remote = entrance("0.0.0.0:0", Some(Path::new("x")), &["lab.example", "10.0.0.5", "fe80::1"]);
        for host in ["lab.example:9000", "LAB.example", "10.0.0.5:1", "[fe80::1]:80", "127.0.0.1:7"] {
            assert!(remote.has_host(host), "{host}");
        }
        for host in ["a.lab.example", "lab.example.evil.example", "10.0.0.6", "[fe80::2]:80", ""] {
            assert!(!remote.has_host(host), "{host}");
        }
        assert!(entrance("10.0.0.7:0", Some(Path::new("x")), &[]).has_host("10.0.0.7:4"));
    }

    #[test]
    fn other_machines_need_tls_and_a_name() {
        let refused = |listen: &str, certs: Option<&Path>, hosts: &[&str]| {
            entrance(listen, certs, hosts).check().err().map(|e| e.to_string()).unwrap_or_default()
        };
        let folder = Some(Path::new("certs"));
        let plain = refused("10.0.0.5:9000", None, &[]);
        assert!(plain.contains("--listen 10.0.0.5:9000") && plain.contains("encore certs"), "{plain}");
        assert!(plain.contains("ssh -L 9000:127.0.0.1:9000"), "{plain}");
        assert!(refused("0.0.0.0:9000", folder, &[]).contains("add --host"));
        for (listen, certs, hosts) in [
            ("127.0.0.1:0", None, &[][..]),
            ("[::1]:0", folder, &[][..]),
            ("10.0.0.5:9000", folder, &[][..]),
            ("0.0.0.0:9000", folder, &["lab"][..]),
        ] {
            assert_eq!(refused(listen, certs, hosts), "", "{listen}");
        }
        assert_eq!(entrance("[::1]:0", None, &[]).host(), "[::1]");
        assert_eq!(entrance("[::]:0", folder, &["fe80::1"]).host(), "[fe80::1]");
    }

    #[test]
    fn certificates_that_do_not_load_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let [right, other] = ["right", "other"].map(|name| folder.path().join(name));
        for path in [&right, &other] {
            certs::make(path, &["lab".into()]).unwrap();
        }
        let tls = |folder: &Path| entrance("10.0.0.5:0", Some(folder), &[]).tls();
        assert!(tls(&right).unwrap().is_some());
        let error = |folder: &Path| tls(folder).map(drop).unwrap_err().to_string();
        let nowhere = error(&folder.path().join("nowhere"));
        assert!(nowhere.contains("nowhere/deck.pem") && nowhere.contains("encore certs"), "{nowhere}");
        std::fs::copy(other.join("deck.key"), right.join("deck.key")).unwrap();
        let mixed = error(&right);
        assert!(mixed.contains("right/deck.key"), "{mixed}");
        std::fs::write(right.join("deck.key"), "nothing").unwrap();
        assert!(error(&right).contains("right/deck.key"));
        std::fs::write(other.join("deck.pem"), "nothing").unwrap();
        assert!(error(&other).contains("other/deck.pem: has no certificate"));
    }
}
