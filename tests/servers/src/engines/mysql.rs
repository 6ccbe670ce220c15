//! MariaDB, which speaks MySQL's protocol.

use std::io::{Read, Result};
use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Durability, Engine, PASSWORD, Site, USER, connect, words};
use crate::machine;

pub static ENGINE: Engine = Engine {
    name: "MariaDB",
    programs: "mariadbd, mariadb-install-db",
    variable: "ENCORE_TEST_MYSQL_URL",
    scheme: "mysql",
    credentials: "encore:hush@",
    parameters: "",
    default_port: 3306,
    // It refuses to run as root.
    accounts: &["mysql", "nobody"],
    stop_signal: libc::SIGTERM,
    discard_signal: "KILL",
    find,
    prepare,
    command,
    is_ready,
    clean_up: |_| None,
    replication: None,
};

fn find() -> Option<Vec<PathBuf>> {
    Some(vec![machine::program("mariadbd")?, machine::program("mariadb-install-db")?])
}

fn prepare(site: &Site) -> Result<Vec<Vec<String>>> {
    // The server runs this file at every start, before it accepts the first connection.
    let setup = format!(
        "CREATE DATABASE IF NOT EXISTS encore;\n\
         CREATE USER IF NOT EXISTS '{USER}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n\
         GRANT ALL ON *.* TO '{USER}'@'127.0.0.1' WITH GRANT OPTION;\n"
    );
    site.write("setup.sql", &setup)?;
    // At its start, a server removes temporary tables, also those of other servers in the same folder.
    site.create_folder("tmp")?;
    let mut install = vec![site.program(1), "--no-defaults".to_string(), format!("--datadir={}", site.path("data"))];
    install.extend(words(["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]));
    install.push(format!("--tmpdir={}", site.path("tmp")));
    // Syncing hundreds of small tables would take most of the time.
    install.extend(words(["--loose-debug-no-sync", "--innodb-flush-method=nosync"]));
    Ok(vec![install])
}

fn command(site: &Site, port: u16, durability: Durability) -> Vec<String> {
    let mut command = vec![
        site.program(0),
        "--no-defaults".to_string(),
        format!("--datadir={}", site.path("data")),
        format!("--init-file={}", site.path("setup.sql")),
        format!("--tmpdir={}", site.path("tmp")),
        format!("--port={port}"),
    ];
    // The socket is relative to the data folder: a socket's path must be short.
    command.extend(words(["--bind-address=127.0.0.1", "--socket=socket", "--skip-name-resolve"]));
    command.extend(words(["--pid-file=pid", "--max-connections=500"]));
    command.extend(words(["--character-set-server=utf8mb4", "--skip-log-bin"]));
    match durability {
        Durability::Machine => command.extend(words(["--innodb-flush-log-at-trx-commit=1"])),
        Durability::Process => command.extend(words([
            "--innodb-flush-log-at-trx-commit=2",
            "--innodb-buffer-pool-size=256M",
            "--skip-innodb-doublewrite",
            "--loose-debug-no-sync",
        ])),
    }
    command
}

/// Reads the server's greeting: version 10 of the protocol, or an error.
fn is_ready(address: SocketAddr) -> Result<bool> {
    let mut greeting = [0; 5];
    connect(address)?.read_exact(&mut greeting)?;
    Ok(matches!(greeting[4], 10 | 0xff))
}
