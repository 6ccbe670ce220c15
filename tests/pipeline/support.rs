//! Shared by the tests: a folder to work in, the program, small workloads.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

/// A spec in which every action occurs and every relation is written often.
pub const BUSY_SPEC: &str = r#"
name = "busy"
seed = 7
sessions = 3000
fragments = 2
[data]
members = 120
friends_per_member = 6
pending_per_member = 4
resources_per_member = 2
comments_per_resource = 2
attribute_bytes = 40
image_bytes = 64
thumbnail_bytes = 16
[access]
own_profile_share = 0.3
dependency_window = 64
[mix]
view_profile = 25
list_friends = 10
view_friend_requests = 10
invite_friend = 12
accept_friend_request = 8
reject_friend_request = 4
thaw_friendship = 7
view_top_k_resources = 4
view_comments = 10
post_comment = 6
delete_comment = 4
"#;

/// Held while a test runs: exclusively by a test that needs the whole machine, shared by the
/// others. A replayer that competes with other tests for the processors measures them too, and its
/// experiment is void.
static MACHINE: RwLock<()> = RwLock::new(());

/// A test's lock on the machine.
#[expect(dead_code, reason = "it is only held")]
enum Right {
    Shared(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

/// A temporary folder with a spec in it, in which the program runs.
pub struct Workplace {
    folder: tempfile::TempDir,
    _right: Right,
}

impl Workplace {
    /// A folder that holds `busy.toml`.
    pub fn new() -> Workplace {
        Workplace::with(Right::Shared(MACHINE.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The same, but no other test runs at the same time: for tests whose experiments must pass.
    pub fn alone() -> Workplace {
        Workplace::with(Right::Alone(MACHINE.write().unwrap_or_else(PoisonError::into_inner)))
    }

    fn with(right: Right) -> Workplace {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("busy.toml"), BUSY_SPEC).expect("the spec is written");
        Workplace { folder, _right: right }
    }

    /// A folder that holds the busy trace set too.
    pub fn with_trace() -> Workplace {
        let place = Workplace::new();
        place.run(&["trace", "gen", "busy.toml", "-o", "busy.trace"]).succeeds();
        place
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder of an experiment, with any number of threads; `None` until it exists.
    pub fn experiment(&self, run: &str, experiment: u32) -> Option<PathBuf> {
        let number = format!("{experiment:04}-");
        let mut folders = std::fs::read_dir(self.path(run).join("experiments")).ok()?.flatten();
        let found = folders.find(|folder| folder.file_name().to_string_lossy().starts_with(&number));
        found.map(|folder| folder.path())
    }

    /// The length of the log of the experiment's first fragment so far.
    pub fn experiment_log_bytes(&self, run: &str, experiment: u32) -> u64 {
        let log = self.experiment(run, experiment).map(|folder| folder.join("log/fragment-0.arrows"));
        log.and_then(|log| std::fs::metadata(log).ok()).map_or(0, |metadata| metadata.len())
    }

    /// The program with arguments, ready to run in the folder.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_encore-e2e"));
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    /// Runs an experiment or a rating with this name; again if the machine was so busy that all of it
    /// is void, as the program advises.
    pub fn measures(&self, name: &str, arguments: &[&str]) -> Ran {
        let all = [arguments, &["--name", name]].concat();
        for _ in 0..5 {
            let ran = self.run(&all);
            if ran.output.status.code() != Some(3) {
                return ran;
            }
            std::fs::remove_dir_all(self.path(&format!("runs/{name}"))).expect("the void run is removed");
        }
        self.run(&all)
    }

    /// Runs the program.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output().expect("the program starts");
        Ran { said: arguments.join(" "), output }
    }

    /// Runs another program in the folder.
    pub fn run_program(&self, program: &str, arguments: &[&str]) -> Ran {
        let output = Command::new(program).args(arguments).current_dir(self.folder.path()).output();
        Ran { said: arguments.join(" "), output: output.expect("the program starts") }
    }

    /// Every file below the folder with its content, to check that nothing changed.
    pub fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        collect(self.folder.path(), &mut found);
        found.sort();
        found
    }
}

fn collect(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            collect(&path, found);
        } else {
            let content = std::fs::read(&path).expect("a readable file");
            found.push((path, content));
        }
    }
}

/// The result of a call of the program.
pub struct Ran {
    said: String,
    output: Output,
}

impl Ran {
    /// Runs a command to its end.
    pub fn of(said: &str, mut command: Command) -> Ran {
        Ran { said: said.to_string(), output: command.output().expect("the program starts") }
    }

    /// Standard output.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// Standard error.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Checks that the exit code is this one, and returns standard output.
    pub fn exits(&self, code: i32) -> String {
        let found = self.output.status.code();
        assert_eq!(found, Some(code), "{}\n{}\n{}", self.said, self.stdout(), self.stderr());
        self.stdout()
    }

    /// Checks that the exit code is 0, and returns standard output.
    pub fn succeeds(&self) -> String {
        self.exits(0)
    }

    /// Checks that the command did its work, whatever the verdict, and returns standard output. An
    /// experiment that is this short may be void on a busy machine.
    pub fn ends(&self) -> String {
        let is_void = self.stdout().contains("void");
        let code = self.output.status.code().filter(|code| *code == 1 || (*code == 3 && is_void));
        self.exits(code.unwrap_or(0))
    }

    /// Checks for one clear error with all these words, and for this exit code.
    pub fn fails(&self, code: i32, words: &[&str]) {
        self.exits(code);
        let error = self.stderr();
        assert!(error.starts_with("error: "), "{}: {error:?}", self.said);
        for word in words {
            assert!(error.contains(word), "{}: {error:?} lacks {word:?}", self.said);
        }
        assert!(!error.contains("panicked"), "{}: {error}", self.said);
    }
}

/// Waits for a condition that must become true; the ten minutes are for very slow machines.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(600);
    while !condition() {
        assert!(Instant::now() < patience, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
