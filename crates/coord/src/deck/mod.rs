//! The deck: pages in a browser to configure, start, watch, stop and compare runs (`encore deck`).
//!
//! ```text
//!  browser ──▶ listener ──▶ guard ──▶ server ──▶ pages ──▶ folder (run folders, as everybody else reads them)
//!                                        │
//!                                        ├──▶ jobs: this program again, with the command that the page shows
//!                                        └──▶ watch: live.jsonl of a run, once for all of its viewers
//! ```
//!
//! It has no state of its own: a deck that is started again shows the same. What it runs are commands of this
//! program in processes of their own, so a run outlives the deck that started it, and no viewer can disturb a run.

mod command;
mod entrance;
mod fields;
mod folder;
mod form;
mod guard;
mod jobs;
mod listener;
mod pages;
mod plan;
mod server;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use entrance::Entrance;
pub use server::{Running, serve, start};

/// A run of the process that the deck is in (`--deck`). It is watched before its folder is there.
#[derive(Debug, Clone)]
pub struct Beside {
    /// Its name.
    pub run: String,
    /// Whether the process works on it.
    is_under_way: Arc<AtomicBool>,
}

impl Beside {
    /// A run that is about to begin.
    pub fn of(run: &str) -> Beside {
        Beside { run: run.to_string(), is_under_way: Arc::new(AtomicBool::new(true)) }
    }

    fn end(&self) {
        self.is_under_way.store(false, Ordering::Relaxed);
    }
}

/// What the deck is asked to do, and what it needs of the command line.
pub struct Setup {
    /// The folder of all runs.
    pub folder: PathBuf,
    /// Where to listen, and what that needs.
    pub entrance: Entrance,
    /// The run of the process that the deck is in.
    pub beside: Option<Beside>,
    /// The definition of the command line, from which the forms are made.
    pub commands: clap::Command,
    /// The built-in specification.
    pub quickstart: &'static str,
    /// Checks a command as the command line does, without running it. The first word is the program's name. The
    /// error is what the command line would print.
    pub check: fn(&[String]) -> Result<(), String>,
}

impl Setup {
    /// Whether this process works on the run of this name now.
    fn works_on(&self, name: &folder::Name) -> bool {
        let is_own = |beside: &&Beside| beside.run == name.to_string();
        self.beside.as_ref().filter(is_own).is_some_and(|beside| beside.is_under_way.load(Ordering::Relaxed))
    }
}
