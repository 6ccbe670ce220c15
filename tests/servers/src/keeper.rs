//! The shell process that stops a server when the program that started it has ended.

use std::io::{BufRead, BufReader, Error, Result, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::machine::{self, Account};

/// What the shell runs.
const SCRIPT: &str = include_str!("keeper.sh");

/// A keeper, and through it a server. Dropping it ends both and removes the folder.
#[derive(Debug)]
pub struct Keeper {
    shell: Child,
    /// `None` only while it is dropped.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Keeper {
    /// Starts a keeper of `folder`. It runs as `account`, or as the user of this program, and stops
    /// its server with `signal`, given by name.
    pub fn start(folder: &Path, account: Option<Account>, signal: &str) -> Result<Keeper> {
        machine::write(&folder.join("keeper.sh"), SCRIPT, account)?;
        let mut command = Command::new("sh");
        command.arg("keeper.sh").arg(folder).arg(signal).current_dir(folder);
        // Callers search the output of servers for words, and sorting must not differ.
        command.env("LC_ALL", "C");
        if let Some(account) = account {
            command.uid(account.uid).gid(account.gid);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut shell = command.spawn()?;
        let orders = shell.stdin.take();
        let answers = BufReader::new(shell.stdout.take().ok_or_else(|| Error::other("the keeper has no output"))?);
        Ok(Keeper { shell, orders, answers })
    }

    /// Runs a command to its end, and returns its exit code.
    pub fn run(&mut self, command: &[String]) -> Result<u32> {
        self.order("run", command)
    }

    /// Starts the server, and returns its process id.
    pub fn launch(&mut self, command: &[String]) -> Result<u32> {
        self.order("start", command)
    }

    /// Waits for a server that has ended or is about to end.
    pub fn reap(&mut self) -> Result<u32> {
        self.order("reap", &[])
    }

    fn order(&mut self, function: &str, arguments: &[String]) -> Result<u32> {
        let mut line = function.to_string();
        for argument in arguments {
            line.push(' ');
            line.push_str(&quoted(argument));
        }
        line.push('\n');
        let orders = self.orders.as_mut().ok_or_else(|| Error::other("the keeper was let go"))?;
        orders.write_all(line.as_bytes())?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        answer.trim().parse().map_err(|_| Error::other("the keeper has ended"))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.orders.take());
        // If another process has ended the keeper, this returns at once.
        let _ = self.shell.wait();
    }
}

/// A word, quoted for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_reach_a_command_as_they_are() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut keeper = Keeper::start(folder.path(), None, "KILL").expect("sh is there");
        let words = ["printf", "%s.", "", "a b", "it's $HOME `id` \\ * \"q\"", "--x=;y"];
        let code = keeper.run(&words.map(String::from)).expect("an answer");
        let log = std::fs::read_to_string(folder.path().join("log")).expect("a log");
        assert_eq!((code, log.as_str()), (0, ".a b.it's $HOME `id` \\ * \"q\".--x=;y."));
        assert_eq!(keeper.run(&["false".to_string()]).expect("an answer"), 1);
        drop(keeper);
        assert!(!folder.path().exists());
    }
}
