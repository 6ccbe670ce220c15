//! What a campaign keeps in the run folder about the run as a whole: the lock, `run.json`, and the
//! numbers of its experiments.

use std::fs::File;

use schemas::files;
use schemas::plan::redact;
use schemas::run::{self, Host, ReplayReport, RunDocument, RunFolder, RunState};

use crate::failure::Failure;
use crate::run::lock;
use crate::run::setting::Setting;
use crate::run::trace_set::TraceSet;

/// The record of a run.
pub(super) struct Record {
    folder: RunFolder,
    document: RunDocument,
    /// The number of the last experiment.
    numbered: u32,
    /// Whether it resumes a run that has experiments already.
    has_past: bool,
    /// The lock on the run folder, held as long as this lives.
    _lock: File,
}

impl Record {
    /// Locks the run folder, and writes `run.json`.
    pub(super) fn begin(setting: &Setting, trace: &TraceSet) -> Result<Record, Failure> {
        let folder = RunFolder::new(&setting.folder);
        let lock = lock::claim(&folder)?;
        let numbered = folder.experiments()?.last().map_or(0, |(number, _)| *number);
        let record =
            Record { folder, document: document(setting, trace), numbered, has_past: numbered > 0, _lock: lock };
        record.write()?;
        Ok(record)
    }

    /// The run's folder.
    pub(super) fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// The name of the run at its replayers.
    pub(super) fn fleet_name(&self) -> String {
        self.document.fleet_name()
    }

    /// Whether it resumes a run that has experiments already.
    pub(super) fn has_past(&self) -> bool {
        self.has_past
    }

    /// The number of the experiment that comes next.
    pub(super) fn next_number(&mut self) -> u32 {
        self.numbered += 1;
        self.numbered
    }

    /// Notes the settings of the store that replayers reported, for the next [`write`](Record::write).
    /// Returns what the store says a user must know, if it has not said that before.
    pub(super) fn set_store_settings(&mut self, report: &ReplayReport) -> Option<String> {
        let before = std::mem::replace(&mut self.document.store_settings, report.store_settings.clone());
        let said = run::note(&report.store_settings).filter(|said| run::note(&before) != Some(said));
        said.map(String::from)
    }

    /// Records that the run goes on with this trace set.
    pub(super) fn set_trace(&mut self, trace: &TraceSet) -> Result<(), Failure> {
        self.document.trace = trace.full_name();
        self.document.trace_id = trace.manifest.trace_id.clone();
        self.document.spec = trace.manifest.spec.clone();
        self.write()
    }

    /// Records how the run ended.
    pub(super) fn end(&mut self, state: RunState) -> Result<(), Failure> {
        self.document.state = state;
        self.write()
    }

    /// Writes `run.json`.
    pub(super) fn write(&self) -> Result<(), Failure> {
        files::write_json(&self.folder.document(), &self.document)?;
        Ok(())
    }
}

fn document(setting: &Setting, trace: &TraceSet) -> RunDocument {
    RunDocument {
        format_version: schemas::RUN_FORMAT_VERSION,
        encore_version: env!("CARGO_PKG_VERSION").to_string(),
        name: setting.name.clone(),
        started_unix_s: setting.started_unix_s,
        state: RunState::Running,
        sla: Some(setting.sla),
        trace: trace.full_name(),
        trace_id: trace.manifest.trace_id.clone(),
        workload_id: trace.manifest.workload_id.clone(),
        spec: trace.manifest.spec.clone(),
        store: redact(&setting.store),
        store_settings: Default::default(),
        host: Host::current(),
        command: setting.command.clone(),
    }
}
