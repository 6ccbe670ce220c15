//! The differences between the kinds of servers: one file for each kind.

pub mod cassandra;
mod memcached;
mod mongodb;
mod mysql;
mod op_msg;
mod postgres;
mod redis;
mod s3;

use std::io::{Read, Result, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use crate::machine::{self, Account};
pub use mongodb::{is_secondary, join as join_set, lock as lock_member};
pub use postgres::STANDBY;
pub use s3::BUCKET;

/// The user's name in servers that this program starts.
const USER: &str = "encore";
/// That user's password.
const PASSWORD: &str = "hush";

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// PostgreSQL.
    Postgres,
    /// MariaDB; a user's own server may be MySQL too.
    Mysql,
    /// MongoDB, as a replica set of one member.
    Mongodb,
    /// memcached.
    Memcached,
    /// Redis.
    Redis,
    /// Apache Cassandra, as a cluster of one node.
    Cassandra,
    /// S3Proxy, which serves object storage from a folder; [`s3`](crate::s3()) is for its clients.
    S3,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 7] =
        [Kind::Postgres, Kind::Mysql, Kind::Mongodb, Kind::Memcached, Kind::Redis, Kind::Cassandra, Kind::S3];

    /// The kind's usual name.
    pub fn name(self) -> &'static str {
        self.engine().name
    }

    /// The programs that a server of this kind needs, separated by commas.
    pub fn programs(self) -> &'static str {
        self.engine().programs
    }

    /// The environment variable with the URL of the user's own server.
    pub fn variable(self) -> &'static str {
        self.engine().variable
    }

    pub(crate) fn engine(self) -> &'static Engine {
        match self {
            Kind::Postgres => &postgres::ENGINE,
            Kind::Mysql => &mysql::ENGINE,
            Kind::Mongodb => &mongodb::ENGINE,
            Kind::Memcached => &memcached::ENGINE,
            Kind::Redis => &redis::ENGINE,
            Kind::Cassandra => &cassandra::ENGINE,
            Kind::S3 => &s3::ENGINE,
        }
    }
}

/// How servers of a kind are found, prepared, started, checked and stopped.
pub struct Engine {
    /// The kind's usual name.
    pub name: &'static str,
    /// Its programs, as text for users.
    pub programs: &'static str,
    /// The environment variable with the URL of the user's own server.
    pub variable: &'static str,
    /// The scheme of its URLs.
    pub scheme: &'static str,
    /// The text before the host in URLs of servers that this program starts.
    pub credentials: &'static str,
    /// The parameters of these URLs.
    pub parameters: &'static str,
    /// The port of a URL without a port.
    pub default_port: u16,
    /// The accounts that can run the server in place of root; the first one on the machine does.
    pub accounts: &'static [&'static str],
    /// The signal with which an operator would stop the server.
    pub stop_signal: i32,
    /// The signal, by name, that ends a server whose data is no longer needed.
    pub discard_signal: &'static str,
    /// Finds its programs on this machine.
    pub find: fn() -> Option<Vec<PathBuf>>,
    /// Creates the server's files in its folder, and returns the commands that do the rest.
    pub prepare: fn(&Site) -> Result<Vec<Vec<String>>>,
    /// The server's command line, for a port and a durability.
    pub command: fn(&Site, u16, Durability) -> Vec<String>,
    /// Whether the server at an address serves requests; an error says why it does not yet.
    pub is_ready: fn(SocketAddr) -> Result<bool>,
    /// The command that removes what a killed server leaves outside its folder.
    pub clean_up: fn(&Site) -> Option<Vec<String>>,
    /// How a server becomes a replica of another one; None if this program starts no replicas of the kind.
    pub replication: Option<Replication>,
}

/// How a server becomes a replica. The numbers are the port of its primary.
pub struct Replication {
    /// Its programs, as text for users, if it needs more than a primary.
    pub programs: &'static str,
    /// Finds the programs of a replica, those of a server first.
    pub find: fn() -> Option<Vec<PathBuf>>,
    /// Creates the replica's files in its folder, and returns the commands that do the rest.
    pub prepare: fn(&Site, u16) -> Result<Vec<Vec<String>>>,
    /// What the command line of a server has for a replica, too.
    pub arguments: fn(u16) -> Vec<String>,
    /// Whether the replica at an address answers.
    pub is_ready: fn(SocketAddr) -> Result<bool>,
}

/// What a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The end of the server's processes: for tests.
    Process,
    /// The end of the machine: a server's settings in production.
    Machine,
}

/// The place of a server that is being created.
pub struct Site {
    /// Its programs, in the order in which its engine finds them.
    pub programs: Vec<PathBuf>,
    /// Its folder.
    pub folder: PathBuf,
    /// The account that runs it, if not that of this program.
    pub account: Option<Account>,
    /// The address of loopback at which it listens.
    pub host: Ipv4Addr,
    /// The address of the server whose cluster it joins; None for the first one.
    pub seed: Option<Ipv4Addr>,
}

impl Site {
    /// A program, as a word of a command line.
    fn program(&self, index: usize) -> String {
        self.programs[index].to_string_lossy().into_owned()
    }

    /// Writes a file into the server's folder.
    fn write(&self, name: &str, text: &str) -> Result<()> {
        machine::write(&self.folder.join(name), text, self.account)
    }

    /// Creates a folder in the server's folder.
    fn create_folder(&self, name: &str) -> Result<()> {
        let folder = self.folder.join(name);
        std::fs::create_dir(&folder)?;
        machine::give(&folder, self.account)
    }

    /// A path in the server's folder, as a word of a command line.
    fn path(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }
}

/// A command line of these words.
fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(String::from).to_vec()
}

/// A connection on which reads and writes fail after a second.
fn connect(address: SocketAddr) -> Result<TcpStream> {
    let limit = Duration::from_secs(1);
    let stream = TcpStream::connect_timeout(&address, limit)?;
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    Ok(stream)
}

/// Sends a request, and reads the first piece of the answer.
fn ask(address: SocketAddr, request: &[u8]) -> Result<Vec<u8>> {
    let mut stream = connect(address)?;
    stream.write_all(request)?;
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer)?;
    answer.truncate(length);
    Ok(answer)
}

/// The folder for Encore's downloads.
fn cache_folder() -> Option<PathBuf> {
    let folder = |variable| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    folder("ENCORE_CACHE")
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("encore")))
        .or_else(|| Some(folder("HOME")?.join(".cache/encore")))
}
