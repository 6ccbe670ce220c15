//! `run.json`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::sla::Sla;
use crate::spec::Spec;

/// `run.json`: what was rated, with which trace set and store, on which machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunDocument {
    /// [`crate::RUN_FORMAT_VERSION`] of the writer.
    pub format_version: u32,
    /// The version of Encore.
    pub encore_version: String,
    /// The run's name.
    pub name: String,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    /// Whether it is running, complete, interrupted or failed.
    pub state: RunState,
    /// The SLA; null if none was given.
    pub sla: Option<Sla>,
    /// The trace set's folder.
    pub trace: PathBuf,
    /// Its id.
    pub trace_id: String,
    /// The id of its workload.
    pub workload_id: String,
    /// Its specification.
    pub spec: Spec,
    /// The store's URL without secrets.
    pub store: String,
    /// The settings in effect, as the store itself reports them: version, durability, isolation.
    pub store_settings: BTreeMap<String, String>,
    /// The machine of the replayer.
    pub host: Host,
    /// The command line, without secrets.
    pub command: Vec<String>,
}

/// The name of the setting by which a store says, in a sentence without a period, what a user must
/// know to judge its reads.
pub const NOTE: &str = "note";

/// Adds settings to others. A note comes after the one that is there.
pub fn add_settings(all: &mut BTreeMap<String, String>, more: BTreeMap<String, String>) {
    for (name, value) in more {
        let value = match all.get(&name) {
            Some(first) if name == NOTE => format!("{first}; {value}"),
            _ => value,
        };
        all.insert(name, value);
    }
}

/// The note in the settings that a store has reported; None if there is none.
pub fn note(store_settings: &BTreeMap<String, String>) -> Option<&str> {
    store_settings.get(NOTE).map(String::as_str)
}

impl RunDocument {
    /// What a user must know to judge the reads: what is not checked, and what the store says of
    /// itself. Sentences without a period.
    pub fn notes(&self) -> Vec<String> {
        self.spec.unchecked().into_iter().chain(note(&self.store_settings).map(String::from)).collect()
    }

    /// The SLA that its experiments are measured against: the one given, else that of the
    /// specification, else the default.
    pub fn sla(&self) -> Sla {
        self.sla.or(self.spec.sla).unwrap_or_default()
    }

    /// The name of the run in the work folders of replayers on other machines.
    pub fn fleet_name(&self) -> String {
        format!("{}-{}", self.name, self.started_unix_s)
    }
}

/// Whether a run is running, complete, interrupted or failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It is running, or its process was killed and could not change the state.
    Running,
    /// It ended as planned.
    Complete,
    /// It was interrupted (Ctrl-C). The folder has the results up to then.
    Interrupted,
    /// It ended with this error.
    Failed(String),
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Operating system and architecture.
    pub system: String,
    /// Processors that the process may use.
    pub cpus: u32,
}

impl Host {
    /// This machine.
    pub fn current() -> Host {
        let name = std::fs::read_to_string("/etc/hostname").map(|n| n.trim().to_string()).unwrap_or_default();
        Host {
            name,
            system: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        }
    }
}
