//! Object storage for one test: a prefix of the server, and the program with what it needs to get there.

use std::path::Path;
use std::process::Command;

use servers::S3;
use storage::{Place, Remote};

use crate::support::{Ran, Workplace};

/// A folder to work in, and a prefix of the server that no other test uses.
pub struct Bucket {
    pub server: S3,
    pub place: Workplace,
    pub remote: Remote,
}

impl Bucket {
    /// None without a server.
    pub fn new(prefix: &str) -> Option<Bucket> {
        let server = servers::s3()?;
        let Ok(Place::Remote(url)) = Place::parse(&server.url(prefix)) else { panic!("a URL") };
        let variables = server.variables().into_iter().map(|(name, value)| (name.to_string(), value));
        let remote = Remote::open_with(&url, variables).expect("the server takes us");
        Some(Bucket { server, place: Workplace::new(), remote })
    }

    /// The URL of something below the prefix.
    pub fn url(&self, name: &str) -> String {
        self.remote.url().join(name).to_string()
    }

    /// The program with these arguments and the server's variables. What it keeps for a while goes to a folder of the
    /// test.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let scratch = self.place.path("scratch");
        std::fs::create_dir_all(&scratch).expect("a folder");
        let mut command = self.place.command(arguments);
        command.envs(self.server.variables()).env("TMPDIR", scratch);
        command
    }

    /// Runs the program, which leaves nothing behind on this machine.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, &[])
    }

    /// The same with other variables.
    pub fn run_with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        let ran = Ran::of(&arguments.join(" "), command);
        let left = std::fs::read_dir(self.place.path("scratch")).expect("a folder").count();
        assert_eq!(left, 0, "{arguments:?} left files in the folder for temporary files");
        ran
    }

    /// The names of all objects below a name, or below the prefix.
    pub fn names(&self, below: &str) -> Vec<String> {
        self.remote.list(below).expect("a list").into_iter().map(|object| object.name).collect()
    }

    /// Copies a folder below the prefix, as a tool of the store would.
    pub fn upload(&self, name: &str) {
        let folder = self.place.path(name);
        for file in storage::Snapshot::of(&folder).expect("a folder").names() {
            self.remote.put(&folder.join(file), &format!("{name}/{file}")).expect(file);
        }
    }

    /// Checks that objects below a name and the files of a folder are the same, hidden files aside.
    pub fn check_same(&self, name: &str, folder: &Path) {
        let here = storage::Snapshot::of(folder).expect("a folder");
        let all = self.remote.list(name).expect("a list").into_iter().map(|object| object.name);
        // The summaries from which a merge makes a verdict.
        let there: Vec<String> = all.filter(|name| !name.contains("/fragments/")).collect();
        let expected: Vec<String> = here.names().map(|file| format!("{name}/{file}")).collect();
        assert_eq!(there, expected);
        for file in here.names() {
            let content = self.remote.get_bytes(&format!("{name}/{file}")).expect(file);
            assert!(content == std::fs::read(folder.join(file)).expect(file), "{file} differs");
        }
    }
}
