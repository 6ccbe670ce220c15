//! Each kind of server starts, answers, and survives the faults that tests inject.

use crate::support::{self, Client};
use servers::{Kind, Options, Server, StartError};

fn with_each(test: impl Fn(&Server, &Client) + Sync) {
    std::thread::scope(|scope| {
        // Cassandra takes longer than all others together, so one server of it goes through one test. The tests of
        // object storage have the client of S3.
        for kind in Kind::ALL.into_iter().filter(|kind| !matches!(kind, Kind::Cassandra | Kind::S3)) {
            let test = &test;
            scope.spawn(move || {
                let Some(server) = Server::start(kind, Options::default()) else { return };
                test(&server, &Client::of(&server));
            });
        }
    });
}

/// Redis keeps data only if it is asked to.
fn keeps_data(server: &Server) -> bool {
    !matches!(server.kind(), Kind::Memcached | Kind::Redis)
}

#[test]
fn the_shared_server_is_one_and_answers() {
    for find in [servers::postgres, servers::mysql, servers::mongodb, servers::memcached, servers::redis] {
        let Some(server) = find() else { continue };
        assert_eq!(server.address(), find().expect("the same again").address());
        Client::of(server).write("shared");
        assert_eq!(Client::of(server).read(), "shared");
    }
}

#[test]
fn a_killed_server_is_gone_and_comes_back_with_its_data() {
    with_each(|server, client| {
        client.write("before");
        let (address, processes) = (server.address(), server.processes());
        assert!(!processes.is_empty());
        server.kill();
        assert!(server.processes().is_empty());
        assert!(!processes.iter().any(|&id| support::is_alive(id)), "{:?}", server.kind());
        assert!(!client.answers(), "{:?}", server.kind());
        server.restart();
        assert_eq!(server.address(), address);
        let expected = if keeps_data(server) { "before" } else { "" };
        assert_eq!(client.read(), expected, "{:?}", server.kind());
        client.write("after");
        assert_eq!(client.read(), "after");
    });
}

#[test]
fn a_stopped_server_comes_back_with_its_data() {
    with_each(|server, client| {
        client.write("before");
        server.stop();
        assert!(!client.answers(), "{:?}", server.kind());
        server.restart();
        let expected = if keeps_data(server) { "before" } else { "" };
        assert_eq!(client.read(), expected, "{:?}", server.kind());
    });
}

#[test]
fn a_paused_server_is_silent_and_goes_on() {
    with_each(|server, client| {
        support::until("it answers", || client.answers());
        server.pause();
        assert!(!client.answers(), "{:?}", server.kind());
        assert!(!server.processes().is_empty());
        server.resume();
        support::until("it answers again", || client.answers());
        // A server that is dropped while it is paused must end too.
        server.pause();
    });
}

#[test]
fn a_dropped_server_leaves_nothing() {
    with_each(|server, _| {
        let Some(second) = Server::start(server.kind(), Options::default()) else { return };
        let (processes, folder) = (second.processes(), second.folder().to_path_buf());
        drop(second);
        assert!(!processes.iter().any(|&id| support::is_alive(id)), "{:?}", server.kind());
        assert!(!folder.exists());
        assert!(server.processes().iter().all(|&id| support::is_alive(id)));
    });
}

#[test]
fn cassandra_survives_the_same() {
    let size = ["-Dcassandra.available_processors=1"];
    // With its commit log synchronized periodically, Cassandra loses the last writes when it is killed.
    let options = Options { arguments: &size, durable: true, ..Options::default() };
    let Some(server) = Server::start(Kind::Cassandra, options) else { return };
    let client = Client::of(&server);
    client.write("before");
    let (address, processes, folder) = (server.address(), server.processes(), server.folder().to_path_buf());
    let words = std::fs::read_to_string(format!("/proc/{}/cmdline", processes[0])).expect("the server's command line");
    assert!(words.contains(size[0]) && words.contains("batch.yaml"), "{words}");
    server.kill();
    assert!(!processes.iter().any(|&id| support::is_alive(id)) && !client.answers());
    server.restart();
    assert_eq!((server.address(), client.read()), (address, "before".to_string()));
    server.pause();
    assert!(!client.answers() && !server.processes().is_empty());
    server.resume();
    support::until("it answers again", || client.answers());
    server.pause();
    let processes = server.processes();
    drop(server);
    assert!(!processes.iter().any(|&id| support::is_alive(id)) && !folder.exists());
}

#[test]
fn options_reach_the_server() {
    let start =
        |kind, arguments: &[&str]| Server::start(kind, Options { arguments, durable: true, ..Options::default() });
    if let Some(server) = start(Kind::Postgres, &["-c", "max_connections=12"]) {
        let asked = "select current_setting('max_connections') || current_setting('fsync')";
        assert_eq!(support::psql(&server, asked), "12on");
    }
    if let Some(server) = start(Kind::Mysql, &["--max-connections=12"]) {
        let asked = "select concat(@@max_connections, @@innodb_flush_log_at_trx_commit)";
        assert_eq!(support::mariadb(&server, asked), "121");
    }
    if let Some(server) = start(Kind::Memcached, &["-I", "4m", "-m", "256"]) {
        let settings = support::memcached(&server, "stats settings\r\n", "END\r\n");
        assert!(settings.contains("STAT item_size_max 4194304\r\n"), "{settings}");
        assert!(settings.contains("STAT maxbytes 268435456\r\n"), "{settings}");
    }
    if let Some(server) = start(Kind::Redis, &["--maxmemory", "12mb"]) {
        let settings = support::memcached(&server, "CONFIG GET maxmemory\r\nCONFIG GET appendfsync\r\n", "always\r\n");
        assert!(settings.contains("\r\n12582912\r\n"), "{settings}");
    }
    if let Some(server) = start(Kind::Mongodb, &["--slowms", "12"]) {
        let id = server.processes()[0];
        let words = std::fs::read_to_string(format!("/proc/{id}/cmdline")).expect("the server's command line");
        assert!(words.contains("--slowms\x0012\0") && !words.contains("oplogSize"), "{words}");
    }
}

#[test]
fn a_taken_port_is_an_error() {
    let Some(server) = Server::start(Kind::Memcached, Options::default()) else { return };
    let port = server.address().rsplit(':').next().and_then(|port| port.parse().ok());
    let error = Server::try_start(Kind::Memcached, Options { port, ..Options::default() }).expect_err("taken");
    assert!(matches!(error, StartError::PortTaken { .. }), "{error}");
}

#[test]
fn a_server_that_does_not_start_shows_its_log() {
    for (kind, arguments) in [
        (Kind::Postgres, ["-c", "no_such=1"]),
        (Kind::Mysql, ["--no-such", "--nor-this"]),
        (Kind::Mongodb, ["--no-such", "1"]),
        (Kind::Memcached, ["--no-such", "1"]),
        (Kind::Redis, ["--no-such", "1"]),
        (Kind::Cassandra, ["--no-such", "1"]),
    ] {
        let options = Options { arguments: &arguments, ..Options::default() };
        match Server::try_start(kind, options) {
            Err(error @ StartError::Failed { .. }) => {
                let error = error.to_string();
                assert!(error.contains("no_such") || error.contains("no-such"), "{error}");
            }
            Err(StartError::Missing(..)) => {}
            other => panic!("{other:?}"),
        }
    }
}
