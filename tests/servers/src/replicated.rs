//! A primary with its replicas on loopback.

use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::engines::{STANDBY, is_secondary, join_set, lock_member};
use crate::{Kind, Options, Server, StartError, shared};

/// How many members a replica set of MongoDB's has. The others have one replica.
const MEMBERS: usize = 3;
/// How long the replicas may take to have the primary's data. Only a hopelessly busy machine needs more than
/// seconds.
const PATIENCE: Duration = Duration::from_secs(600);
/// The time between two checks whether they have.
const PAUSE: Duration = Duration::from_millis(20);

/// How a primary and its replicas are started.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReplicaOptions<'a> {
    /// How late PostgreSQL's replica applies each commit (`recovery_min_apply_delay`).
    pub apply_delay: Duration,
    /// [`Options::durable`].
    pub durable: bool,
    /// The port of the primary; the replicas get the next ones. Default: free ones.
    pub port: Option<u16>,
    /// [`Options::folder`].
    pub folder: Option<&'a Path>,
}

/// Servers of which one is the primary of the others. Each of them can be killed, restarted or paused.
#[derive(Debug)]
pub struct Replicated {
    // Replicas end before their primary.
    replicas: Vec<Server>,
    primary: Server,
}

impl Replicated {
    /// How many servers there are of this kind.
    pub fn count(kind: Kind) -> u16 {
        if kind == Kind::Mongodb { MEMBERS as u16 } else { 2 }
    }

    /// Starts separate servers of PostgreSQL, MongoDB or Redis; see [`Server::start`].
    ///
    /// PostgreSQL's and Redis's primary has one replica. MongoDB's set has three members, and none but the first
    /// can become the primary.
    pub fn start(kind: Kind, options: ReplicaOptions) -> Option<Replicated> {
        shared::or_skip(kind, Replicated::try_start(kind, options)).unwrap_or_else(|message| panic!("{message}"))
    }

    /// Starts them, or returns the reason why it could not.
    pub fn try_start(kind: Kind, options: ReplicaOptions) -> Result<Replicated, StartError> {
        let port = |index: u16| options.port.map(|first| first + index);
        let plain = Options { durable: options.durable, folder: options.folder, ..Options::default() };
        let standbys = format!("synchronous_standby_names={STANDBY}");
        let arguments: &[&str] = match kind {
            // A commit waits for the replica only if its session asks for that.
            Kind::Postgres => &["-c", &standbys, "-c", "synchronous_commit=local"],
            // Its default is to wait some seconds for more replicas.
            Kind::Redis => &["--repl-diskless-sync-delay", "0"],
            _ => &[],
        };
        let primary = Server::try_start(kind, Options { arguments, port: port(0), ..plain })?;
        let delay = format!("recovery_min_apply_delay={}ms", options.apply_delay.as_millis());
        let arguments: &[&str] = if kind == Kind::Postgres { &["-c", &delay] } else { &[] };
        let mut replicas = Vec::new();
        for index in 1..Replicated::count(kind) {
            let options = Options { arguments, port: port(index), primary: Some(primary.socket().port()), ..plain };
            replicas.push(Server::try_start(kind, options)?);
        }
        let servers = Replicated { replicas, primary };
        servers.follow().map_err(|cause| StartError::at(kind, servers.primary.folder(), cause))?;
        Ok(servers)
    }

    /// The server that takes writes.
    pub fn primary(&self) -> &Server {
        &self.primary
    }

    /// The others.
    pub fn replicas(&self) -> &[Server] {
        &self.replicas
    }

    /// The URL of a database, as a store expects it. It names all members of MongoDB's set. For the others it names
    /// the replica too (`replica=HOST:PORT`).
    pub fn url(&self, database: &str) -> String {
        let url = self.primary.url(database);
        let Some(replica) = self.replicas.first() else { return url };
        match self.primary.kind() {
            Kind::Mongodb => {
                let all = std::iter::once(&self.primary).chain(&self.replicas).map(Server::address);
                url.replacen(&self.primary.address(), &all.collect::<Vec<_>>().join(","), 1)
            }
            _ => format!("{url}{}replica={}", if url.contains('?') { '&' } else { '?' }, replica.address()),
        }
    }

    /// While `hold` is true, MongoDB's secondaries stay as they are: they answer reads, and apply nothing.
    ///
    /// # Panics
    ///
    /// If one of them refuses.
    pub fn hold(&self, hold: bool) {
        for replica in &self.replicas {
            lock_member(replica.socket(), hold).unwrap_or_else(|error| panic!("{}: {error}", replica.address()));
        }
    }

    /// Waits until the replicas follow. A replica of PostgreSQL's or Redis's does so as soon as it is ready.
    fn follow(&self) -> Result<(), Error> {
        if self.primary.kind() != Kind::Mongodb {
            return Ok(());
        }
        let members: Vec<SocketAddr> =
            std::iter::once(&self.primary).chain(&self.replicas).map(Server::socket).collect();
        join_set(&members)?;
        let start = Instant::now();
        for member in &members[1..] {
            while !is_secondary(*member)? {
                if start.elapsed() > PATIENCE {
                    return Err(Error::new(ErrorKind::TimedOut, "a member of the replica set has no data"));
                }
                std::thread::sleep(PAUSE);
            }
        }
        Ok(())
    }
}
