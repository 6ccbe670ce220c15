//! Runs and trace sets in object storage: what a command needs is fetched into a scratch folder, the command works
//! there, and what it has made is published, documents last. No command knows URLs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use schemas::manifest::{self, FileEntry, Manifest};
use schemas::run::RunFolder;
use storage::{Object, Place, Remote, Scratch, Snapshot, Url};

use super::args::{Command, Fragment, Merge};
use crate::error::AnalyzeError;
use crate::experiment::find;
use crate::fragments::{began_from, read_plan};

/// The file of a run that says what it is; a comparison has the second one.
const DOCUMENTS: [&str; 2] = ["run.json", "comparison.json"];

/// The folders of sealed tables.
const SEALED: [&str; 3] = ["operations/", "unpredictable/", "closing_reads/"];

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
        if let Command::Compare(arguments) = command {
            arguments.names = arguments.runs.iter().map(|run| run.display().to_string()).collect();
        }
        match command {
            Command::Fragment(arguments) => self.prepare_fragment(arguments),
            Command::Merge(arguments) => self.prepare_merge(arguments),
            Command::Tasks(arguments) => self.prepare_documents(&mut arguments.run, |_| true).map(drop),
            Command::Sql(arguments) if arguments.definitions || arguments.only_documents => {
                // Without its verdicts, a run has to be analyzed first.
                let has_all = self.prepare_documents(&mut arguments.run, has_documents)?;
                arguments.only_documents &= has_all;
                Ok(())
            }
            other => other.runs().into_iter().try_for_each(|run| self.prepare_whole(run)),
        }
    }

    /// Fetches what a command on a whole run needs.
    fn prepare_whole(&mut self, run: &mut PathBuf) -> Result<(), AnalyzeError> {
        let Some(url) = remote(run)? else { return Ok(()) };
        let stand = self.open(&url)?;
        stand.fetch(|name| wanted_of_run(&stand.objects, name))?;
        *run = self.keep(stand)?;
        Ok(())
    }

    /// Fetches the documents of a run, if those that are there suffice, else what a command on a whole run needs. Returns
    /// whether they suffice. Empty files stand for sealed tables then, to tell which there are.
    fn prepare_documents(
        &mut self,
        run: &mut PathBuf,
        suffices: impl Fn(&[Object]) -> bool,
    ) -> Result<bool, AnalyzeError> {
        let Some(url) = remote(run)? else { return Ok(true) };
        let stand = self.open(&url)?;
        let is_enough = suffices(&stand.objects);
        stand.fetch(|name| if is_enough { is_document(name) } else { wanted_of_run(&stand.objects, name) })?;
        let is_sealed = |name: &str| SEALED.iter().any(|table| name.starts_with(table));
        for object in stand.objects.iter().filter(|object| is_enough && is_sealed(&object.name)) {
            schemas::files::write_atomically(&stand.folder.join(&object.name), b"")?;
        }
        *run = self.keep(stand)?;
        Ok(is_enough)
    }

    /// Fetches what the analysis of one fragment needs: documents, its log, its closing reads, its part of the trace
    /// set.
    fn prepare_fragment(&mut self, arguments: &mut Fragment) -> Result<(), AnalyzeError> {
        let Fragment { run, experiment, fragment, trace, .. } = arguments;
        if let Some(url) = remote(run)? {
            let stand = self.open(&url)?;
            stand.fetch(|name| wanted_of_fragment(&stand.objects, name, *experiment, *fragment))?;
            // If there is no such experiment, the command says so.
            let folder = RunFolder::new(&stand.folder);
            let own = find(&folder, *experiment).ok();
            if let Some(before) = own.map(|own| began_from(&folder, *experiment, &own)).transpose()?.flatten() {
                stand.fetch(|name| stand.folder.join(name) == before.audit(*fragment))?;
            }
            *run = self.keep(stand)?;
        }
        let planned = planned_trace(run, Some(*experiment))?;
        self.prepare_trace(trace, planned, |file| file.is_for(*fragment))
    }

    /// Fetches what a merge needs: the documents of fragments. Of sealed tables it needs the sizes.
    fn prepare_merge(&mut self, arguments: &mut Merge) -> Result<(), AnalyzeError> {
        let Merge { run, experiment, trace, elsewhere, .. } = arguments;
        if let Some(url) = remote(run)? {
            let stand = self.open(&url)?;
            stand.fetch(|name| wanted_of_merge(&stand.objects, name, *experiment))?;
            elsewhere.extend(stand.objects.iter().map(|object| (stand.folder.join(&object.name), object.bytes)));
            *run = self.keep(stand)?;
        }
        let planned = planned_trace(run, *experiment)?;
        self.prepare_trace(trace, planned, |_| false)
    }

    /// Fetches the manifest of a trace set, and those of its files that are wanted. The place is the user's, or that of
    /// the plan.
    fn prepare_trace(
        &mut self,
        trace: &mut Option<PathBuf>,
        planned: Option<PathBuf>,
        wanted: impl Fn(&FileEntry) -> bool,
    ) -> Result<(), AnalyzeError> {
        let Some(mut place) = trace.clone().or(planned) else { return Ok(()) };
        let Some(url) = remote(&mut place)? else {
            *trace = trace.take().map(|_| place);
            return Ok(());
        };
        let stand = self.open(&url)?;
        stand.fetch(|name| name == manifest::FILE_NAME)?;
        let manifest = Manifest::read_alone(&stand.folder)?;
        let names: BTreeSet<&str> =
            manifest.files.iter().filter(|file| wanted(file)).map(|file| file.path.as_str()).collect();
        stand.fetch(|name| names.contains(name))?;
        *trace = Some(stand.folder);
        Ok(())
    }

    /// Keeps a run until its end, and returns its folder.
    fn keep(&mut self, stand: Stand) -> Result<PathBuf, AnalyzeError> {
        let folder = stand.folder.clone();
        self.runs.push(Stand { fetched: Snapshot::of(&folder)?, ..stand });
        Ok(folder)
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

/// The URL of a place in object storage. A place on this machine becomes the path of its folder, also if it is a URL.
fn remote(place: &mut PathBuf) -> Result<Option<Url>, AnalyzeError> {
    match Place::of(place)? {
        Place::Remote(url) => Ok(Some(url)),
        Place::Local(folder) => {
            *place = folder;
            Ok(None)
        }
    }
}

/// The trace set of the plan of an experiment, else of the first one; None if there is none, which the command reports.
fn planned_trace(run: &Path, experiment: Option<u32>) -> Result<Option<PathBuf>, AnalyzeError> {
    let folder = RunFolder::new(run);
    let numbers = || folder.experiments().ok()?.first().map(|(number, _)| *number);
    let Some(number) = experiment.or_else(numbers) else { return Ok(None) };
    Ok(find(&folder, number).and_then(|folder| read_plan(&folder)).ok().map(|plan| plan.trace))
}

/// Whether a command on a whole run needs a file of it: everything but the logs of experiments whose sealed tables and
/// verdict are there, and the documents that only a merge needs. Of a comparison, only its document.
fn wanted_of_run(objects: &[Object], name: &str) -> bool {
    if !has(objects, DOCUMENTS[0]) && has(objects, DOCUMENTS[1]) {
        return name == DOCUMENTS[1];
    }
    let Some((experiment, file)) = of_experiment(name) else { return !["live.jsonl", "lock"].contains(&name) };
    let is_log = file.starts_with("log/") || file.starts_with("audit/fragment-");
    let is_left = file.starts_with("fragments/") || is_log && is_analyzed(objects, experiment);
    !is_left
}

/// Whether a file of a run is a document of it, or of an experiment as a whole, or says which conditions were checked.
fn is_document(name: &str) -> bool {
    match of_experiment(name) {
        None => !name.contains('/') && name.ends_with(".json"),
        Some((_, file)) => file == "audit/checks.parquet" || !file.contains('/') && file.ends_with(".json"),
    }
}

/// Whether documents tell all that SQL needs besides rows: each experiment that ran has its verdict, the tables of its
/// logs, and the report of its replayers. A comparison has one document.
fn has_documents(objects: &[Object]) -> bool {
    let plans = objects.iter().filter_map(|object| {
        of_experiment(&object.name).and_then(|(experiment, file)| (file == "plan.json").then_some(experiment))
    });
    let has = |experiment: &str, file: &str| has(objects, &format!("experiments/{experiment}/{file}"));
    plans.into_iter().all(|experiment| has(experiment, "replay.json") && is_analyzed(objects, experiment))
}

/// Whether the analysis of one fragment needs a file of the run. Without a report, all logs tell how long the experiment
/// was.
fn wanted_of_fragment(objects: &[Object], name: &str, number: u32, fragment: u32) -> bool {
    let Some((experiment, file)) = of_experiment(name) else { return name == DOCUMENTS[0] };
    let is_own = number_of(experiment) == Some(number);
    let files = ["replay.json", "audit/checks.parquet"];
    let own = [format!("log/fragment-{fragment}.arrows"), format!("audit/fragment-{fragment}.arrows")];
    let has_report = || has(objects, &format!("experiments/{experiment}/replay.json"));
    file == "plan.json"
        || is_own && (files.contains(&file) || own.iter().any(|own| own == file))
        || is_own && file.starts_with("log/") && !has_report()
}

/// Whether a merge needs a file of the run. The verdict of an experiment without logs is that it could not be run.
fn wanted_of_merge(objects: &[Object], name: &str, number: Option<u32>) -> bool {
    let Some((experiment, file)) = of_experiment(name) else { return name == DOCUMENTS[0] };
    let is_own = number.is_none_or(|number| number_of(experiment) == Some(number));
    let has_logs = || below(objects, experiment, "log").next().is_some();
    file == "plan.json"
        || is_own && (file == "replay.json" || file.starts_with("fragments/"))
        || is_own && file == "verdict.json" && !has_logs()
}

/// The folder of an experiment, and a file in it.
fn of_experiment(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("experiments/")?.split_once('/')
}

/// The number of an experiment, from the name of its folder.
fn number_of(experiment: &str) -> Option<u32> {
    experiment.split_once("-T").and_then(|(number, _)| number.parse().ok())
}

/// Whether there is an object of this name. The objects are sorted by name.
fn has(objects: &[Object], name: &str) -> bool {
    objects.binary_search_by(|object| object.name.as_str().cmp(name)).is_ok()
}

/// The names of the objects in a folder of an experiment.
fn below<'a>(objects: &'a [Object], experiment: &str, folder: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let start = format!("experiments/{experiment}/{folder}/");
    let first = objects.partition_point(|object| object.name.as_str() < start.as_str());
    objects[first..].iter().map_while(move |object| object.name.strip_prefix(&start))
}

/// Whether an experiment has its verdict, and sealed tables of every log. Summaries of logs that stayed with their
/// replayers say which logs there are, so the logs are needed then.
fn is_analyzed(objects: &[Object], experiment: &str) -> bool {
    let Some(number) = number_of(experiment) else { return false };
    let is_sealed = |log: &str| {
        let fragment = log.strip_prefix("fragment-").and_then(|rest| rest.strip_suffix(".arrows"));
        let is_there = |fragment: &str| {
            let table = |table: &str| format!("{table}/experiment={number}/fragment={fragment}/part-0.parquet");
            has(objects, &table("operations")) && has(objects, &table("unpredictable"))
        };
        fragment.is_none_or(is_there)
    };
    has(objects, &format!("experiments/{experiment}/verdict.json"))
        && below(objects, experiment, "summaries").next().is_none()
        && below(objects, experiment, "log").all(is_sealed)
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
