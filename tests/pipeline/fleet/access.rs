//! Access to a replayer, and where secrets are stored.

use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, Issuer, KeyPair};

use super::{Host, OWN, ends, exits, json, run};
use crate::support::Workplace;

/// A password in an environment variable appears in no process list and in no file.
#[test]
fn the_url_of_a_store_may_be_in_the_environment() {
    let place = Workplace::new();
    let arguments =
        ["run", "busy.toml", "--name", "a", "--store", "${ENCORE_OWN}", "--threads", "1", "--sessions", "200"];
    place.run(&arguments).fails(2, &["--store", "ENCORE_OWN is not set"]);
    let mut command = place.command(&arguments);
    command.args(["--sla", "95% < 10s, 0.1s"]).env("ENCORE_OWN", "memory:?seed=7");
    ends(&command.output().expect("the program starts"));
    assert_eq!(json(&place, "runs/a/run.json")["store"], "memory:?seed=7");
}

#[test]
fn certificates_tell_friend_from_stranger() {
    let place = Workplace::new();
    let made = place.run(&["certs", "certs", "--host", "127.0.0.2"]).succeeds();
    assert!(made.contains("certs/replayer.pem") && made.contains("next:"), "{made}");
    place.run(&["certs", "others", "--host", "127.0.0.2"]).succeeds();
    place.run(&["certs", "certs"]).fails(2, &["certs/ca.pem exists already"]);
    let host = Host::start(&place, 2, &["--certs", "certs"]);
    let short = ["--sessions", "500", "--threads", "2", "--sla", "95% < 10s, 0.1s"];
    let with = |name: &str, more: &[&str]| {
        let arguments = [&short[..], more].concat();
        run(&place, name, OWN, [host.address.as_str()], &arguments).output().expect("the program starts")
    };
    ends(&with("a", &["--certs", "certs"]));
    for (name, certs) in [("b", &["--certs", "others"][..]), ("c", &[])] {
        let said = exits(&with(name, certs), 2);
        assert!(said.contains(&host.address), "{said}");
        assert!(!place.path("runs").join(name).exists(), "a run was begun");
    }
    let missing = exits(&with("d", &["--certs", "nowhere"]), 2);
    assert!(missing.contains("nowhere/ca.pem") || missing.contains("nowhere/coordinator.pem"), "{missing}");
}

/// Certificates for 127.0.0.2 that expired long ago.
fn expired(folder: &Path) {
    let params = |names: &[&str]| {
        let mut params = CertificateParams::new(names.iter().map(|name| name.to_string()).collect::<Vec<_>>());
        let params = params.as_mut().expect("plain names");
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(2001, 1, 1), rcgen::date_time_ymd(2002, 1, 1));
        params.clone()
    };
    let mut authority = params(&[]);
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Constrained(0));
    let key = || KeyPair::generate().expect("a key");
    let authority_key = key();
    std::fs::create_dir(folder).expect("a folder");
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).expect("a file");
    write("ca.pem", authority.self_signed(&authority_key).expect("a certificate").pem());
    let issuer = Issuer::new(authority, authority_key);
    for (name, hosts) in [("replayer", &["127.0.0.2"][..]), ("coordinator", &[])] {
        let own = key();
        write(&format!("{name}.pem"), params(hosts).signed_by(&own, &issuer).expect("a certificate").pem());
        write(&format!("{name}.key"), own.serialize_pem());
    }
}

#[test]
fn a_certificate_whose_time_is_over_is_refused_and_named_so() {
    let place = Workplace::new();
    expired(&place.path("certs"));
    let host = Host::start(&place, 2, &["--certs", "certs"]);
    let arguments = ["--sessions", "500", "--threads", "2", "--certs", "certs"];
    let output = run(&place, "a", OWN, [host.address.as_str()], &arguments).output().expect("the program starts");
    let said = exits(&output, 2);
    assert!(said.contains(&host.address) && said.to_lowercase().contains("expired"), "{said}");
    drop(host);
    // Only the coordinator's certificate is expired: the replayer closes the connection without a
    // message.
    place.run(&["certs", "good", "--host", "127.0.0.2"]).succeeds();
    let host = Host::start(&place, 2, &["--certs", "good"]);
    for file in ["coordinator.pem", "coordinator.key"] {
        std::fs::copy(place.path("certs").join(file), place.path("good").join(file)).expect("a file");
    }
    let arguments = ["--sessions", "500", "--threads", "2", "--certs", "good"];
    let output = run(&place, "b", OWN, [host.address.as_str()], &arguments).output().expect("the program starts");
    let said = exits(&output, 2);
    assert!(
        said.contains(&host.address) && said.contains("good/coordinator.pem") && said.contains("expired"),
        "{said}"
    );
}

#[test]
fn a_token_from_a_file_is_enough_and_is_shown_nowhere() {
    let place = Workplace::new();
    std::fs::write(place.path("token"), "f00dfacef00dface\n").expect("a file");
    std::fs::write(place.path("wrong"), "deadbeefdeadbeef\n").expect("a file");
    place.run(&["replay", "serve", "--listen", "127.0.0.2:0", "--token-file", "none"]).fails(2, &["--token-file none"]);
    let host = Host::start(&place, 2, &["--token-file", "token"]);
    let arguments = ["--sessions", "500", "--threads", "2", "--sla", "95% < 10s, 0.1s", "--token-file"];
    let with = |name: &str, token: &str| {
        let arguments = [&arguments[..], &[token]].concat();
        run(&place, name, OWN, [host.address.as_str()], &arguments).output().expect("the program starts")
    };
    ends(&with("a", "token"));
    let said = exits(&with("b", "wrong"), 2);
    assert!(said.contains("wrong token") && !said.contains("deadbeef"), "{said}");
    let secrets = place.contents().into_iter().filter(|(path, content)| {
        !path.ends_with("token") && content.windows(16).any(|text| text == b"f00dfacef00dface")
    });
    assert_eq!(secrets.map(|(path, _)| path).collect::<Vec<_>>(), Vec::<PathBuf>::new());
}

#[test]
fn an_address_that_others_reach_needs_certificates() {
    let place = Workplace::new();
    place.run(&["replay", "serve", "--listen", "0.0.0.0:0"]).fails(2, &["--listen 0.0.0.0:0", "encore certs"]);
    std::fs::write(place.path("token"), "f00dfacef00dface\n").expect("a file");
    let token = ["replay", "serve", "--listen", "0.0.0.0:0", "--token-file", "token"];
    place.run(&token).fails(2, &["--listen 0.0.0.0:0", "plain text"]);
    place.run(&["run", "busy.toml", "--threads", "1", "--replayer", "127.0.0.1:9"]).fails(2, &["--store"]);
    let nobody = ["run", "busy.toml", "--threads", "1", "--store", "memory:", "--replayer", "127.0.0.1:9"];
    place.run(&nobody).fails(2, &["127.0.0.1:9", "encore replay serve"]);
}

/// The second replayer in a work folder says so when it starts, not at its first experiment.
#[test]
fn a_work_folder_that_is_in_use_is_refused_at_the_start() {
    let place = Workplace::new();
    let first = Host::start(&place, 9, &[]);
    let work = first.work.display().to_string();
    let ran = place.run(&["replay", "serve", "--listen", "127.0.0.9:0", "--work", &work]);
    ran.fails(2, &["--work", "in use by another replayer"]);
}
