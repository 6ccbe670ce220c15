//! `encore certs`: creates a private certificate authority, and its certificates for the
//! replayers, the coordinator and the deck.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use schemas::files::{self, at};

use crate::failure::Failure;

/// How long certificates are valid.
const YEARS: i32 = 10;

/// Creates all files and returns their paths. Refuses a folder that has one of them.
pub fn make(folder: &Path, hosts: &[String]) -> Result<Vec<PathBuf>, Failure> {
    let names = ["ca", "replayer", "coordinator", "deck"];
    let paths: Vec<PathBuf> =
        names.iter().flat_map(|name| ["pem", "key"].map(|kind| folder.join(format!("{name}.{kind}")))).collect();
    if let Some(there) = paths.iter().find(|path| path.exists()) {
        return Err(Failure::usage(format!(
            "{} exists already; use another folder, or remove the old certificates",
            there.display()
        )));
    }
    if let Some(wrong) = hosts.iter().find(|host| !is_host(host)) {
        return Err(Failure::usage(format!("--host {wrong:?}: not a host name or address")));
    }
    let made = pems(hosts).map_err(|e| Failure::usage(format!("--host {}: {e}", hosts.join(", "))))?;
    std::fs::create_dir_all(folder).map_err(at(folder))?;
    for (path, text) in paths.iter().zip(&made) {
        match path.extension().is_some_and(|extension| extension == "key") {
            true => files::write_privately(path, text.as_bytes())?,
            false => files::write_atomically(path, text.as_bytes())?,
        }
    }
    Ok(paths)
}

/// Whether a text may be the name or the address of a host. A name is neither made of digits and
/// dots alone, like an address, nor like a flag.
fn is_host(text: &str) -> bool {
    let is_plain = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-._*".contains(c);
    let is_like_an_address = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_name = !text.starts_with('-') && !is_like_an_address && text.chars().all(is_plain);
    is_name || text.parse::<IpAddr>().is_ok()
}

/// The PEM texts of certificate and key, for the authority, the replayers, the coordinator and the deck.
fn pems(hosts: &[String]) -> Result<Vec<String>, rcgen::Error> {
    let mut authority = params(Vec::new(), "Encore fleet authority")?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let mut made = vec![authority.self_signed(&authority_key)?.pem(), authority_key.serialize_pem()];
    let issuer = Issuer::new(authority, authority_key);
    // A coordinator or a browser on the same machine may use any of these names.
    let here = ["localhost", "127.0.0.1", "::1"].map(String::from);
    let servers: Vec<String> = hosts.iter().chain(&here).cloned().collect();
    for (names, called, usage) in [
        (servers.clone(), "Encore replayer", ExtendedKeyUsagePurpose::ServerAuth),
        (Vec::new(), "Encore coordinator", ExtendedKeyUsagePurpose::ClientAuth),
        (servers, "Encore deck", ExtendedKeyUsagePurpose::ServerAuth),
    ] {
        let mut leaf = params(names, called)?;
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![usage];
        leaf.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        made.extend([leaf.signed_by(&key, &issuer)?.pem(), key.serialize_pem()]);
    }
    Ok(made)
}

/// The parameters of a certificate for these names and addresses that is valid now.
fn params(names: Vec<String>, called: &str) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, called);
    // Whole years are precise enough, and allow for clocks that differ.
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let year = 1970 + (since_1970.as_secs() / (1461 * 86_400 / 4)) as i32;
    (params.not_before, params.not_after) = (date_time_ymd(year - 1, 1, 1), date_time_ymd(year + YEARS, 12, 31));
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_for_their_owner_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let certs = folder.path().join("certs");
        let made = make(&certs, &["load1".into(), "10.0.0.5".into(), "fe80::1".into()]).unwrap();
        assert_eq!(made.len(), 8);
        for path in &made {
            let text = std::fs::read_to_string(path).unwrap();
            let is_key = path.extension().unwrap() == "key";
            assert!(
                text.starts_with(if is_key { "-----BEGIN PRIVATE KEY" } else { "-----BEGIN CERTIFICATE" }),
                "{text}"
            );
            use std::os::unix::fs::PermissionsExt;
            let mode = std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, if is_key { 0o600 } else { 0o644 }, "{}", path.display());
        }
        let before = std::fs::read(&made[0]).unwrap();
        let error = make(&certs, &[]).unwrap_err().to_string();
        assert!(error.contains("ca.pem exists already"), "{error}");
        assert_eq!(std::fs::read(&made[0]).unwrap(), before);
        let error = make(&folder.path().join("x"), &["grüße".into()]).unwrap_err().to_string();
        assert!(error.contains("--host grüße"), "{error}");
        for wrong in ["", "a b", "a/b", "-x", "10.0.0.999", "7", "::x"] {
            let error = make(&folder.path().join("x"), &[wrong.into()]).unwrap_err().to_string();
            assert!(error.contains("not a host name or address"), "{error}");
        }
        assert!(!folder.path().join("x").exists());
    }
}
