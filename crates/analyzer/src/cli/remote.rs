//! Runs and trace sets in object storage: what a command needs is fetched into a scratch folder, the command works
//! there, and what it has made is published, documents last. No command knows URLs.

use std::path::{Path, PathBuf};

use storage::{Object, Place, Remote, Scratch, Snapshot, Url};

use super::args::Command;
use crate::error::AnalyzeError;

/// The file of a run that says what it is; a comparison has the second one.
const DOCUMENTS: [&str; 2] = ["run.json", "comparison.json"];

/// A run in object storage, and the folder on this machine that stands for it.
struct Stand {
    remote: Remote,
    folder: PathBuf,
    objects: Vec<Object>,
    fetched: Snapshot,
}

/// Runs a command. In its arguments, folders on this machine stand for places in object storage; in its output and
/// error it is the other way round.
pub(super) fn with_folders(
    mut command: Command,
    scratch: Option<&Path>,
    run: impl FnOnce(Command) -> Result<(String, u8), AnalyzeError>,
) -> Result<(String, u8), AnalyzeError> {
    let mut stands =
        Stands { scratch: None, parent: scratch.map(Path::to_path_buf), runs: Vec::new(), names: Vec::new() };
    let prepared = stands.prepare(&mut command);
    let done = prepared.and_then(|()| run(command)).and_then(|done| stands.publish().map(|()| done));
    match done {
        Ok((output, code)) => Ok((stands.renamed(&output), code)),
        Err(error) if stands.names.is_empty() => Err(error),
        Err(error) => {
            Err(AnalyzeError::Elsewhere { code: error.exit_code(), message: stands.renamed(&error.to_string()) })
        }
    }
}

struct Stands {
    scratch: Option<Scratch>,
    parent: Option<PathBuf>,
    runs: Vec<Stand>,
    /// Folders, and the URLs that they stand for.
    names: Vec<(PathBuf, Url)>,
}

impl Stands {
    fn prepare(&mut self, command: &mut Command) -> Result<(), AnalyzeError> {
        for run in command.runs() {
            if let Place::Remote(url) = Place::of(run)? {
                let stand = self.open(&url)?;
                stand.fetch(|name| wanted_of_run(&stand.objects, name))?;
                *run = stand.folder.clone();
                self.runs.push(Stand { fetched: Snapshot::of(&stand.folder)?, ..stand });
            }
        }
        Ok(())
    }

    /// Connects to a place, and gives it a folder.
    fn open(&mut self, url: &Url) -> Result<Stand, AnalyzeError> {
        let remote = Remote::open(url)?;
        if self.scratch.is_none() {
            self.scratch = Some(Scratch::new(self.parent.as_deref())?);
        }
        let number = self.names.len();
        let name = format!("{number}/{}", url.name());
        let folder = self.scratch.as_ref().map_or_else(|| PathBuf::from(&name), |scratch| scratch.folder(&name));
        std::fs::create_dir_all(&folder).map_err(schemas::files::at(&folder))?;
        self.names.push((folder.clone(), url.clone()));
        let objects = remote.list("")?;
        Ok(Stand { remote, folder, objects, fetched: Snapshot::default() })
    }

    /// Publishes what the command has made or changed.
    fn publish(&self) -> Result<(), AnalyzeError> {
        for stand in &self.runs {
            let now = Snapshot::of(&stand.folder)?;
            let made = now.since(&stand.fetched);
            // A verdict speaks of tables and summaries.
            let last: Vec<&str> = made.iter().copied().filter(|name| name.ends_with("/verdict.json")).collect();
            stand.remote.publish(&stand.folder, &made, &last)?;
        }
        Ok(())
    }

    /// A text with URLs in place of the folders that stand for them.
    fn renamed(&self, text: &str) -> String {
        let renamed = |text: String, (folder, url): &(PathBuf, Url)| {
            text.replace(&folder.display().to_string(), &url.to_string())
        };
        self.names.iter().fold(text.to_string(), renamed)
    }
}

impl Stand {
    fn fetch(&self, wanted: impl Fn(&str) -> bool) -> Result<(), AnalyzeError> {
        let names = self.objects.iter().map(|object| object.name.as_str());
        Ok(self.remote.get_all(names.filter(|name| wanted(name) && !self.folder.join(name).exists()), &self.folder)?)
    }
}

/// Whether a command on a whole run needs a file of it: everything but the logs of experiments whose sealed tables and
/// verdict are there. Of a comparison, only its document.
fn wanted_of_run(objects: &[Object], name: &str) -> bool {
    let has = |name: &str| objects.binary_search_by(|object| object.name.as_str().cmp(name)).is_ok();
    if !has(DOCUMENTS[0]) && has(DOCUMENTS[1]) {
        return name == DOCUMENTS[1];
    }
    if ["live.jsonl", "lock"].contains(&name) {
        return false;
    }
    let Some((experiment, file)) = name.strip_prefix("experiments/").and_then(|rest| rest.split_once('/')) else {
        return true;
    };
    let is_log = file.starts_with("log/") || file.starts_with("audit/fragment-");
    !is_log || !is_analyzed(objects, experiment)
}

/// Whether an experiment has its verdict, and sealed tables of every log. Summaries of logs that stayed with their
/// replayers say which logs there are, so the logs are needed then.
fn is_analyzed(objects: &[Object], experiment: &str) -> bool {
    let Some(number) = experiment.split_once("-T").and_then(|(number, _)| number.parse::<u32>().ok()) else {
        return false;
    };
    let has = |name: &str| objects.binary_search_by(|object| object.name.as_str().cmp(name)).is_ok();
    let below = |folder: &str| {
        let start = format!("experiments/{experiment}/{folder}/");
        let first = objects.partition_point(|object| object.name.as_str() < start.as_str());
        objects[first..].iter().map_while(move |object| object.name.strip_prefix(&start).map(String::from))
    };
    let is_sealed = |log: String| {
        let Some(fragment) = log.strip_prefix("fragment-").and_then(|rest| rest.strip_suffix(".arrows")) else {
            return true;
        };
        ["operations", "unpredictable"]
            .iter()
            .all(|table| has(&format!("{table}/experiment={number}/fragment={fragment}/part-0.parquet")))
    };
    has(&format!("experiments/{experiment}/verdict.json"))
        && below("summaries").next().is_none()
        && below("log").all(is_sealed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_analyzed_experiments_stay_where_they_are() {
        let check = |names: &[&str], expect: &[&str]| {
            let mut objects: Vec<Object> =
                names.iter().map(|name| Object { name: name.to_string(), bytes: 1 }).collect();
            objects.sort_by(|a, b| a.name.cmp(&b.name));
            let left: Vec<&str> = objects
                .iter()
                .map(|object| object.name.as_str())
                .filter(|name| !wanted_of_run(&objects, name))
                .collect();
            assert_eq!(left, expect, "{names:?}");
        };
        let log = "experiments/0001-T8/log/fragment-0.arrows";
        let (plan, verdict) = ("experiments/0001-T8/plan.json", "experiments/0001-T8/verdict.json");
        let tables = [
            "operations/experiment=1/fragment=0/part-0.parquet",
            "unpredictable/experiment=1/fragment=0/part-0.parquet",
        ];
        check(&["run.json", "lock", "live.jsonl", plan, log], &["live.jsonl", "lock"]);
        check(&["run.json", plan, verdict, log], &[]);
        check(&["run.json", plan, verdict, log, tables[0]], &[]);
        check(&["run.json", plan, verdict, log, tables[0], tables[1]], &[log]);
        let summary = "experiments/0001-T8/summaries/a_1.json";
        check(&["run.json", plan, verdict, log, tables[0], tables[1], summary], &[]);
        let other = "experiments/0001-T8/log/fragment-1.arrows";
        check(&["run.json", plan, verdict, log, other, tables[0], tables[1]], &[]);
        check(&["comparison.json", "a/run.json"], &["a/run.json"]);
    }
}
