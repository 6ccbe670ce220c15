//! A copy of the run in object storage, for those who analyze it on other machines. The run's folder stays what counts.

use std::collections::BTreeMap;

use schemas::run::{ExperimentFolder, RunFolder};
use storage::{Remote, Snapshot, Url};

use crate::failure::Failure;
use crate::run::setting::Setting;

/// Files that are not published: the lock, the figures of the running experiment, and the run's own SQLite store.
const LEFT_OUT: [&str; 3] = ["lock", "live.jsonl", "store.db"];

/// The copy of a run.
pub(super) struct Published {
    remote: Remote,
    /// The files of the run's folder, as they were when they were published.
    seen: Snapshot,
    /// The sizes of objects that an earlier call has published, by name. Rows do not change.
    former: BTreeMap<String, u64>,
}

impl Published {
    /// Connects to the place of the copy. Refuses a place that cannot be written, or that another run has.
    pub(super) fn open(url: &Url, setting: &Setting) -> Result<Published, Failure> {
        let remote = Remote::open(url)?;
        let former: BTreeMap<String, u64> =
            remote.list("")?.into_iter().map(|object| (object.name, object.bytes)).collect();
        if setting.past.is_empty() && former.contains_key("run.json") {
            return Err(Failure::usage(format!(
                "--publish: there is a run at {url} already; choose another --name or another place"
            )));
        }
        remote.check_writable()?;
        Ok(Published { remote, seen: Snapshot::default(), former })
    }

    /// Where the copy is.
    pub(super) fn url(&self) -> &Url {
        self.remote.url()
    }

    /// Where an experiment of the run is in the copy.
    pub(super) fn place_of(&self, folder: &ExperimentFolder) -> Url {
        let name = folder.root().file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.url().join(&format!("experiments/{name}"))
    }

    /// Publishes what is new in the run's folder: rows, then documents, verdicts last. The verdict of an experiment whose
    /// rows stay with replayers is not among them: it is made again, with its tables, from the logs that they publish.
    pub(super) fn publish(&mut self, run: &RunFolder) -> Result<(), Failure> {
        let now = Snapshot::of(run.root())?;
        let left: Vec<String> =
            now.names().filter_map(|name| Some(experiment_with_summaries(name)?.to_string())).collect();
        let is_wanted = |name: &str| {
            let is_left_out = LEFT_OUT.iter().any(|one| name == *one || *one == "store.db" && name.starts_with(one));
            let of_left = left.iter().find_map(|experiment| name.strip_prefix(experiment.as_str()));
            let is_to_be_made = of_left.is_some_and(|file| file == "/verdict.json" || file.starts_with("/summaries/"));
            let is_there = !name.ends_with(".json") && self.former.get(name) == Some(&size_of(run, name));
            !is_left_out && !is_to_be_made && !is_there
        };
        let names: Vec<&str> = now.since(&self.seen).into_iter().filter(|name| is_wanted(name)).collect();
        let last: Vec<&str> = names.iter().copied().filter(|name| name.ends_with("/verdict.json")).collect();
        self.remote.publish(run.root(), &names, &last)?;
        self.seen = now;
        Ok(())
    }
}

/// The folder of the experiment that a summary of replayers is of: `experiments/0001-T8`.
fn experiment_with_summaries(name: &str) -> Option<&str> {
    let (experiment, file) = name.split_once("/summaries/")?;
    (experiment.starts_with("experiments/") && !file.is_empty()).then_some(experiment)
}

/// The size of a file; 0 if it is gone.
fn size_of(run: &RunFolder, name: &str) -> u64 {
    std::fs::metadata(run.root().join(name)).map_or(0, |file| file.len())
}
