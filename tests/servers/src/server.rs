//! A server: one that is started here, or one of the user's own.

use std::io::Error;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::engines::{Durability, Engine, Site};
use crate::foreign::Foreign;
use crate::keeper::Keeper;
use crate::proxy::Proxy;
use crate::{Kind, StartError, machine, ports, processes, shared};

/// How long a server may take until it answers. Only a machine that is hopelessly busy needs
/// more than seconds: one that has ended is noticed at once.
const PATIENCE: Duration = Duration::from_secs(600);
/// Between two questions whether it answers.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a port of ours is given up because somebody else was faster.
const PORTS_MAX: u32 = 5;
/// How much of a server's log an error shows.
const LOG_LINES: usize = 60;

/// How a server of one's own is started.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// More of the server's own command line, after what is there already:
    /// `-c max_connections=12`, `--max-connections=12`, `-I 4m`, word by word.
    /// The last setting of a name counts, but MongoDB takes each once.
    pub arguments: &'a [&'a str],
    /// Whether a commit survives the end of the machine, as in production. If
    /// not, it only survives the end of the server, which is faster.
    pub durable: bool,
    /// The port; a free one if not given.
    pub port: Option<u16>,
    /// The folder in which the server's own folder is made; that for temporary
    /// files if not given.
    pub folder: Option<&'a Path>,
}

/// A database server.
///
/// One that was started here is ended when this is dropped, or when the process
/// ends, and its data with it.
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

/// What is known of a server that was started here.
#[derive(Debug)]
struct Own {
    running: Mutex<Running>,
    port: u16,
    command: Vec<String>,
    clean_up: Option<Vec<String>>,
    /// Dropped last, after the server's end.
    folder: TempDir,
}

#[derive(Debug)]
struct Running {
    keeper: Keeper,
    /// `None` while the server is down.
    process: Option<u32>,
}

impl Server {
    /// Starts a server of one's own.
    ///
    /// `None` where its programs are not on this machine, which is said on standard
    /// error. A server that does not start is a panic, and with
    /// `ENCORE_TEST_SERVERS=required` missing programs are one too.
    pub fn start(kind: Kind, options: Options) -> Option<Server> {
        shared::or_skip(kind, Server::try_start(kind, options)).unwrap_or_else(|message| panic!("{message}"))
    }

    /// Starts a server of one's own, or says why it could not.
    pub fn try_start(kind: Kind, options: Options) -> Result<Server, StartError> {
        let engine = kind.engine();
        let found = if cfg!(target_os = "linux") { (engine.find)() } else { None };
        let programs = found.ok_or(StartError::Missing(kind))?;
        if let Some(port) = options.port.filter(|&port| !ports::is_free(port)) {
            return Err(StartError::PortTaken { kind, port });
        }
        let parent = options.folder.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let folder = new_folder(&parent, engine.scheme).map_err(|cause| StartError::at(kind, &parent, cause))?;
        let account = machine::is_root().then(|| machine::account(engine.accounts)).flatten();
        let site = Site { programs, folder: folder.path().to_path_buf(), account };
        let running = prepare(engine, &site).map_err(|cause| StartError::at(kind, &site.folder, cause))?;
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

    /// The URL of a database, as a store takes it.
    ///
    /// Servers that are started here have a database `encore`, and their user may
    /// make more. memcached has no databases.
    pub fn url(&self, database: &str) -> String {
        let engine = self.kind.engine();
        self.address_parts().url(engine.scheme, self.path_of(database))
    }

    /// The URL of a database, reached through a proxy.
    pub fn url_through(&self, proxy: &Proxy, database: &str) -> String {
        let engine = self.kind.engine();
        self.address_parts().url_at(engine.scheme, &proxy.address(), self.path_of(database))
    }

    /// `HOST:PORT`.
    pub fn address(&self) -> String {
        self.address_parts().address(self.kind.engine().default_port)
    }

    /// The ids of the server's processes, its own first; none while it is down.
    ///
    /// # Panics
    ///
    /// As all that follow: if it is the user's own.
    pub fn processes(&self) -> Vec<u32> {
        self.own().running().process.map_or_else(Vec::new, processes::tree)
    }

    /// The folder with all that the server writes.
    pub fn folder(&self) -> &Path {
        self.own().folder.path()
    }

    /// Kills all of the server's processes at once, as a crash would; its data stay.
    pub fn kill(&self) {
        self.own().take_down(processes::kill);
    }

    /// Ends the server in good order; its data stay.
    pub fn stop(&self) {
        self.own().take_down(|process| processes::end(process, self.kind.engine().stop_signal));
    }

    /// Starts the server again, on the same data and the same port; one that still
    /// runs is stopped first.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn restart(&self) {
        self.stop();
        let own = self.own();
        let mut running = own.running();
        launch(self.kind, own.port, &own.command, own.folder.path(), &mut running)
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// Stops all of the server's processes where they are: connections stay open,
    /// and new ones are taken by the operating system, but nothing is answered.
    pub fn pause(&self) {
        self.own().running().process.into_iter().for_each(processes::pause);
    }

    /// Lets a paused server go on.
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
                Foreign::parse(&format!("{scheme}://{credentials}127.0.0.1:{}/?{}", own.port, engine.parameters))
            }
        }
    }

    fn path_of<'a>(&self, database: &'a str) -> &'a str {
        if self.kind == Kind::Memcached { "" } else { database }
    }
}

impl Own {
    fn running(&self) -> MutexGuard<'_, Running> {
        // A panic in between leaves nothing half done that a drop could not end.
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
            // The keeper only knows the first process, which cannot end paused ones.
            (Some(process), _) => processes::resume(process),
            // If it fails, there is nobody left whom that concerns.
            (None, Some(command)) => drop(running.keeper.run(command)),
            (None, None) => {}
        }
    }
}

/// A new folder, by its whole path: a server works in it, not here.
fn new_folder(parent: &Path, name: &str) -> Result<TempDir, Error> {
    tempfile::Builder::new().prefix(&format!("encore-{name}-")).tempdir_in(parent.canonicalize()?)
}

/// Makes the server's data, with the keeper that will run it.
fn prepare(engine: &Engine, site: &Site) -> Result<Running, Error> {
    machine::give(&site.folder, site.account)?;
    let mut keeper = Keeper::start(&site.folder, site.account, engine.discard_signal).map_err(|error| {
        let Some(account) = site.account else { return error };
        Error::new(error.kind(), format!("{error}; user {} must be able to enter it", account.uid))
    })?;
    for command in (engine.prepare)(site)? {
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
    let mut tries = 0;
    loop {
        tries += 1;
        let port = options.port.unwrap_or_else(ports::free);
        let mut command = (kind.engine().command)(site, port, durability);
        command.extend(options.arguments.iter().map(|argument| argument.to_string()));
        match launch(kind, port, &command, folder.path(), &mut running) {
            Ok(()) => {
                let clean_up = (kind.engine().clean_up)(site);
                let own = Own { running: Mutex::new(running), port, command, clean_up, folder };
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

/// Starts the server, and waits until it does its work.
fn launch(kind: Kind, port: u16, command: &[String], folder: &Path, running: &mut Running) -> Result<(), StartError> {
    let own_error = |cause| StartError::at(kind, folder, cause);
    let process = running.keeper.launch(command).map_err(own_error)?;
    let start = Instant::now();
    let reason = loop {
        let answer = (kind.engine().is_ready)(port);
        // Asked after the answer: another's answer on this port does not count.
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
