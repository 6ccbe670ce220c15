//! PostgreSQL.

use std::io::Result;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::{Durability, Engine, PASSWORD, Replication, Site, USER, ask, words};
use crate::machine;

/// The variable that names the folder of another version's programs.
const PROGRAMS: &str = "ENCORE_TEST_POSTGRES_BIN";

/// Debian's folder of all versions.
const VERSIONS: &str = "/usr/lib/postgresql";

pub static ENGINE: Engine = Engine {
    name: "PostgreSQL",
    programs: "postgres, initdb",
    variable: "ENCORE_TEST_POSTGRES_URL",
    scheme: "postgres",
    credentials: "encore:hush@",
    parameters: "",
    default_port: 5432,
    // It refuses to run as root.
    accounts: &["postgres", "nobody"],
    stop_signal: libc::SIGINT,
    // Unlike a kill, this signal lets the server release its shared memory.
    discard_signal: "QUIT",
    find,
    prepare,
    command,
    is_ready,
    clean_up: |site| Some(single(site)),
    replication: Some(Replication {
        programs: "postgres, initdb, pg_basebackup",
        find: || find_all(&["postgres", "initdb", "pg_basebackup"]),
        prepare: copy,
        arguments: |_| words(["-c", &format!("cluster_name={STANDBY}")]),
        is_ready,
    }),
};

/// The name under which a primary knows its replica.
pub const STANDBY: &str = "encore_replica";

fn find() -> Option<Vec<PathBuf>> {
    find_all(&["postgres", "initdb"])
}

/// Finds programs of one version: of the folder that a variable names, on PATH, or of Debian's newest.
fn find_all(programs: &[&str]) -> Option<Vec<PathBuf>> {
    let all = |folder: &Path| programs.iter().map(|program| machine::executable(&folder.join(program))).collect();
    if let Some(folder) = std::env::var_os(PROGRAMS) {
        return all(Path::new(&folder));
    }
    let on_path = machine::program("initdb").and_then(|initdb| all(initdb.parent()?));
    on_path.or_else(|| {
        let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir(VERSIONS)
            .ok()?
            .filter_map(|entry| Some((entry.as_ref().ok()?.file_name().to_str()?.parse().ok()?, entry.ok()?.path())))
            .collect();
        versions.sort();
        versions.iter().rev().find_map(|(_, folder)| all(&folder.join("bin")))
    })
}

/// Copies the data of a running primary, with the settings that make the copy follow it.
fn copy(site: &Site, primary: u16) -> Result<Vec<Vec<String>>> {
    let source = format!("host=127.0.0.1 port={primary} user={USER} password={PASSWORD}");
    let mut copy = vec![site.program(2), "-D".to_string(), site.path("data"), "-d".to_string(), source];
    copy.extend(words(["-X", "stream", "-c", "fast", "-R", "--no-sync"]));
    Ok(vec![copy])
}

fn prepare(site: &Site) -> Result<Vec<Vec<String>>> {
    site.write("password", PASSWORD)?;
    let mut initdb = vec![site.program(1), "-D".to_string(), site.path("data")];
    initdb.extend(words(["-U", USER, "-A", "scram-sha-256", "--no-sync", "-E", "UTF8", "--no-locale"]));
    initdb.push(format!("--pwfile={}", site.path("password")));
    let mut create = words(["sh", "-c", "echo 'create database encore' | \"$0\" \"$@\""]);
    create.extend(single(site));
    Ok(vec![initdb, create])
}

/// A server without connections, which runs the commands of its input and ends. It releases the
/// shared memory of a killed server.
fn single(site: &Site) -> Vec<String> {
    let mut command = vec![site.program(0), "--single".to_string(), "-D".to_string(), site.path("data")];
    command.extend(words(["-c", "fsync=off", "postgres"]));
    command
}

fn command(site: &Site, port: u16, durability: Durability) -> Vec<String> {
    let mut command = vec![site.program(0), "-D".to_string(), site.path("data"), "-p".to_string(), port.to_string()];
    command.extend(words(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]));
    command.extend(words(["-c", "max_connections=500"]));
    if durability == Durability::Process {
        command.extend(words(["-c", "fsync=off", "-c", "full_page_writes=off", "-c", "synchronous_commit=on"]));
    }
    command
}

/// Sends a startup packet. A server that asks for a password is ready. A server that reports an
/// error is ready too, unless the error says that it is starting up.
fn is_ready(address: SocketAddr) -> Result<bool> {
    let mut packet = vec![0, 0, 0, 0, 0, 3, 0, 0];
    packet.extend_from_slice(b"user\0encore\0database\0postgres\0\0");
    packet[3] = packet.len() as u8;
    let answer = ask(address, &packet)?;
    let is_starting = answer.windows(5).any(|code| code == b"57P03");
    Ok(matches!(answer.first(), Some(b'R' | b'E')) && !is_starting)
}
