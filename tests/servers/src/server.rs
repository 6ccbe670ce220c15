//! A server: one that this program starts, or one of the user's own.

use std::io::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::engines::{Durability, Engine, Site};
use crate::foreign::Foreign;
use crate::keeper::Keeper;
use crate::proxy::Proxy;
use crate::{Kind, StartError, machine, ports, processes, shared};

/// How long a server may take until it answers. Only a hopelessly busy machine needs more than
/// seconds. A server that has ended is noticed at once.
const PATIENCE: Duration = Duration::from_secs(600);
/// The time between two checks whether it answers.
const PAUSE: Duration = Duration::from_millis(20);
/// How many ports are tried when another program takes them first.
const PORTS_MAX: u32 = 5;
/// How much of a server's log an error shows.
const LOG_LINES: usize = 60;

/// How a separate server is started.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// More of the server's own command line, one word a string, after the existing words:
    /// `-c max_connections=12`, `--max-connections=12`, `-I 4m`.
    /// The last setting of a name counts, but MongoDB accepts each name once.
    pub arguments: &'a [&'a str],
    /// Whether a commit survives the end of the machine, as in production. If not, it only survives
    /// the end of the server, which is faster.
    pub durable: bool,
    /// The port; default: a free one.
    pub port: Option<u16>,
    /// The folder in which the server's own folder is created; default: the folder for temporary files.
    pub folder: Option<&'a Path>,
    /// The address of loopback at which it listens; default: 127.0.0.1. Only Cassandra has others.
    pub host: Option<Ipv4Addr>,
    /// The address of the server whose cluster it joins; default: it begins one. Only Cassandra joins any.
    pub seed: Option<Ipv4Addr>,
    /// The port of the server on loopback whose replica this one is; [`Replicated`](crate::Replicated) starts
    /// both.
    pub primary: Option<u16>,
}

/// A database server.
///
/// A server that this program started is stopped, and its data removed, when this value is dropped
/// or the process ends.
#[derive(Debug)]
pub struct Server {
    kind: Kind,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Own(Box<Own>),
    Foreign(Foreign),
}

/// A server that this program started.
#[derive(Debug)]
struct Own {
    running: Mutex<Running>,
    address: SocketAddr,
    command: Vec<String>,
    clean_up: Option<Vec<String>>,
    is_ready: IsReady,
    /// It is dropped last, after the server's end.
    folder: TempDir,
}

/// Whether the server at an address serves requests.
type IsReady = fn(SocketAddr) -> Result<bool, Error>;

#[derive(Debug)]
struct Running {
    keeper: Keeper,
    /// `None` while the server is down.
    process: Option<u32>,
}

impl Server {
    /// Starts a separate server.
    ///
    /// Returns `None`, with a line on standard error, if its programs are not on this machine. A
    /// server that does not start is a panic. With `ENCORE_TEST_SERVERS=required`, missing programs
    /// are a panic too.
    pub fn start(kind: Kind, options: Options) -> Option<Server> {
        shared::or_skip(kind, Server::try_start(kind, options)).unwrap_or_else(|message| panic!("{message}"))
    }

    /// Starts a separate server, or returns the reason why it could not.
    pub fn try_start(kind: Kind, options: Options) -> Result<Server, StartError> {
        let engine = kind.engine();
        let replication = match options.primary {
            Some(_) => Some(engine.replication.as_ref().ok_or(StartError::Unreplicated(kind))?),
            None => None,
        };
        let find = replication.map_or(engine.find, |replication| replication.find);
        let found = if cfg!(target_os = "linux") { find() } else { None };
        let missing = replication.map_or(engine.programs, |replication| replication.programs);
        let programs = found.ok_or(StartError::Missing(kind, missing))?;
        let host = options.host.unwrap_or(Ipv4Addr::LOCALHOST);
        if let Some(port) = options.port.filter(|&port| !ports::is_free(host, port)) {
            return Err(StartError::PortTaken { kind, port });
        }
        let parent = options.folder.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let folder = new_folder(&parent, engine.scheme).map_err(|cause| StartError::at(kind, &parent, cause))?;
        let account = machine::is_root().then(|| machine::account(engine.accounts)).flatten();
        let site = Site { programs, folder: folder.path().to_path_buf(), account, host, seed: options.seed };
        let running = prepare(engine, &site, options).map_err(|cause| StartError::at(kind, &site.folder, cause))?;
        start_on_a_port(kind, &site, options, running, folder)
    }

    /// The user's own server, if the environment names one.
    pub(crate) fn of_user(kind: Kind) -> Option<Server> {
        let url = std::env::var(kind.variable()).ok().filter(|url| !url.is_empty())?;
        Some(Server { kind, place: Place::Foreign(Foreign::parse(&url)) })
    }

    /// The server's kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The URL of a database, as a store expects it.
    ///
    /// Servers that this program starts have a database `encore`, and their user may create more.
    /// memcached has no databases, and those of Redis are numbers: any other text is number 0.
    pub fn url(&self, database: &str) -> String {
        let engine = self.kind.engine();
        self.address_parts().url(engine.scheme, self.path_of(database))
    }

    /// The URL of a database, reached through a proxy.
    pub fn url_through(&self, proxy: &Proxy, database: &str) -> String {
        let engine = self.kind.engine();
        self.address_parts().url_at(engine.scheme, &proxy.address(), self.path_of(database))
    }

    /// The address of a server that this program started.
    pub(crate) fn socket(&self) -> SocketAddr {
        self.own().address
    }

    /// `HOST:PORT`.
    pub fn address(&self) -> String {
        self.address_parts().address(self.kind.engine().default_port)
    }

    /// The ids of the server's processes, the root first; none while it is down.
    ///
    /// # Panics
    ///
    /// If it is the user's own server. All methods below panic then, too.
    pub fn processes(&self) -> Vec<u32> {
        self.own().running().process.map_or_else(Vec::new, processes::tree)
    }

    /// The folder with all files that the server writes.
    pub fn folder(&self) -> &Path {
        self.own().folder.path()
    }

    /// Kills all of the server's processes at once, as a crash would. Its data stays.
    pub fn kill(&self) {
        self.own().take_down(processes::kill);
    }

    /// Stops the server with an orderly shutdown. Its data stays.
    pub fn stop(&self) {
        self.own().take_down(|process| processes::end(process, self.kind.engine().stop_signal));
    }

    /// Starts the server again, on the same data and the same port. A running server is stopped first.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn restart(&self) {
        self.stop();
        let own = self.own();
        let mut running = own.running();
        launch(self.kind, own.address, &own.command, own.folder.path(), own.is_ready, &mut running)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// Suspends all of the server's processes. Connections stay open, and the operating system
    /// accepts new ones, but the server answers nothing.
    pub fn pause(&self) {
        self.own().running().process.into_iter().for_each(processes::pause);
    }

    /// Resumes a paused server.
    pub fn resume(&self) {
        self.own().running().process.into_iter().for_each(processes::resume);
    }

    fn own(&self) -> &Own {
        match &self.place {
            Place::Own(own) => own,
            Place::Foreign(_) => panic!("{} is not ours: {} names it", self.kind.name(), self.kind.variable()),
        }
    }

    fn address_parts(&self) -> Foreign {
        match &self.place {
            Place::Foreign(foreign) => foreign.clone(),
            Place::Own(own) => {
                let engine = self.kind.engine();
                let (scheme, credentials) = (engine.scheme, engine.credentials);
                Foreign::parse(&format!("{scheme}://{credentials}{}/?{}", own.address, engine.parameters))
            }
        }
    }

    fn path_of<'a>(&self, database: &'a str) -> &'a str {
        match self.kind {
            Kind::Memcached => "",
            Kind::Redis if database.parse::<u8>().is_err() => "0",
            _ => database,
        }
    }
}

impl Own {
    fn running(&self) -> MutexGuard<'_, Running> {
        // A panic of another thread leaves nothing that a drop could not clean up.
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_down(&self, how: impl FnOnce(u32)) {
        let mut running = self.running();
        if let Some(process) = running.process.take() {
            processes::resume(process);
            how(process);
            running.keeper.reap().expect("a keeper lives as long as its server");
        }
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let mut running = self.running();
        match (running.process, &self.clean_up) {
            // A paused process cannot end, and the keeper only knows the root, so all are resumed first.
            (Some(process), _) => processes::resume(process),
            // A failure does not matter any more at this point.
            (None, Some(command)) => drop(running.keeper.run(command)),
            (None, None) => {}
        }
    }
}

/// A new folder, by its absolute path: the server works in that folder, not in the current one.
fn new_folder(parent: &Path, name: &str) -> Result<TempDir, Error> {
    tempfile::Builder::new().prefix(&format!("encore-{name}-")).tempdir_in(parent.canonicalize()?)
}

/// Creates the server's data, and the keeper that will run it.
fn prepare(engine: &Engine, site: &Site, options: Options) -> Result<Running, Error> {
    machine::give(&site.folder, site.account)?;
    let mut keeper = Keeper::start(&site.folder, site.account, engine.discard_signal).map_err(|error| {
        let Some(account) = site.account else { return error };
        Error::new(error.kind(), format!("{error}; user {} must be able to enter it", account.uid))
    })?;
    let commands = match (options.primary, &engine.replication) {
        (Some(primary), Some(replication)) => (replication.prepare)(site, primary)?,
        _ => (engine.prepare)(site)?,
    };
    for command in commands {
        let code = keeper.run(&command)?;
        if code != 0 {
            let log = log_end(&site.folder);
            return Err(Error::other(format!("{} failed with exit code {code}:\n{log}", command[0])));
        }
    }
    Ok(Running { keeper, process: None })
}

fn start_on_a_port(
    kind: Kind,
    site: &Site,
    options: Options,
    mut running: Running,
    folder: TempDir,
) -> Result<Server, StartError> {
    let durability = if options.durable { Durability::Machine } else { Durability::Process };
    let (mut is_ready, mut of_replica) = (kind.engine().is_ready, Vec::new());
    if let (Some(primary), Some(replication)) = (options.primary, &kind.engine().replication) {
        (is_ready, of_replica) = (replication.is_ready, (replication.arguments)(primary));
    }
    let mut tries = 0;
    loop {
        tries += 1;
        let port = options.port.unwrap_or_else(|| ports::free_at(&[site.host]));
        let address = SocketAddr::from((site.host, port));
        let mut command = (kind.engine().command)(site, port, durability);
        command.extend(of_replica.iter().cloned());
        command.extend(options.arguments.iter().map(|argument| argument.to_string()));
        match launch(kind, address, &command, folder.path(), is_ready, &mut running) {
            Ok(()) => {
                let clean_up = (kind.engine().clean_up)(site);
                let own = Own { running: Mutex::new(running), address, command, clean_up, is_ready, folder };
                return Ok(Server { kind, place: Place::Own(Box::new(own)) });
            }
            Err(StartError::Failed { log, .. }) if log.contains("in use") && tries < PORTS_MAX => {
                if options.port.is_some() {
                    return Err(StartError::PortTaken { kind, port });
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Starts the server, and waits until it serves requests.
fn launch(
    kind: Kind,
    address: SocketAddr,
    command: &[String],
    folder: &Path,
    is_ready: IsReady,
    running: &mut Running,
) -> Result<(), StartError> {
    let own_error = |cause| StartError::at(kind, folder, cause);
    let process = running.keeper.launch(command).map_err(own_error)?;
    let start = Instant::now();
    let reason = loop {
        let answer = is_ready(address);
        // This is checked after the answer: an answer from another server on this port must not count.
        if !processes::is_alive(process) {
            break "ended at its start".to_string();
        }
        match answer {
            Ok(true) => {
                running.process = Some(process);
                return Ok(());
            }
            Ok(false) if start.elapsed() > PATIENCE => break format!("was not ready within {PATIENCE:?}"),
            Err(error) if start.elapsed() > PATIENCE => break format!("did not answer within {PATIENCE:?}: {error}"),
            _ => std::thread::sleep(PAUSE),
        }
    };
    let log = log_end(folder);
    processes::kill(process);
    running.keeper.reap().map_err(own_error)?;
    Err(StartError::Failed { kind, reason, log })
}

/// The last lines of a server's log.
fn log_end(folder: &Path) -> String {
    let log = std::fs::read(folder.join("log")).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("\n")
}
