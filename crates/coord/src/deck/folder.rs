//! The folder of all runs: which runs and comparisons are in it, and how they stand.

use std::path::{Component, Path, PathBuf};

use schemas::comparison::{ComparisonDocument, ComparisonFolder};
use schemas::files;
use schemas::manifest;
use schemas::run::{RunDocument, RunFolder, RunState};
use schemas::verdict::{Rating, RatingDocument, Verdict};

use super::form::encoded;
use crate::run::lock;
use crate::terminal::thousands;

/// The hidden folder, in that of all runs, for what the deck's jobs print and for specifications that were edited.
pub(super) const OWN: &str = ".deck";

/// The folder, in that of all runs, of trace sets. No run has this name.
pub(super) const TRACES: &str = "traces";

/// The name of a run: its folder, or the folder of a comparison and that of a cell in it. Trace sets have names too,
/// in their own folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Name(Vec<String>);

impl Name {
    /// The run of this name. None if a part is not the plain name of a folder that a user can see.
    pub(super) fn new<'a>(parts: impl IntoIterator<Item = &'a str>) -> Option<Name> {
        let is_plain = |part: &str| {
            let mut parts = Path::new(part).components();
            let is_one = matches!(parts.next(), Some(Component::Normal(own)) if own == part) && parts.next().is_none();
            is_one && !part.starts_with('.') && !part.contains(['/', '\\', '\0'])
        };
        let parts: Vec<String> = parts.into_iter().map(String::from).collect();
        (!parts.is_empty() && parts.len() <= 2 && parts.iter().all(|part| is_plain(part))).then_some(Name(parts))
    }

    /// The run of a name as `NAME` or `NAME/CELL`.
    pub(super) fn of(text: &str) -> Option<Name> {
        Name::new(text.split('/'))
    }

    /// A cell of this comparison.
    pub(super) fn cell(&self, cell: &str) -> Option<Name> {
        Name::new(self.0.iter().map(String::as_str).chain([cell]))
    }

    /// The trace set that is called so, without the end of its folder's name.
    pub(super) fn of_trace_set(name: &str) -> Option<Name> {
        Name::new([TRACES, &format!("{name}.trace")]).filter(|_| files::is_plain_name(name))
    }

    /// Whether it is that of a trace set.
    pub(super) fn is_trace_set(&self) -> bool {
        self.0.len() == 2 && self.0[0] == TRACES
    }

    /// Its folder.
    pub(super) fn folder(&self, runs: &Path) -> PathBuf {
        self.0.iter().fold(runs.to_path_buf(), |folder, part| folder.join(part))
    }

    /// Its page.
    pub(super) fn url(&self) -> String {
        let parts: Vec<String> = self.0.iter().map(|part| encoded(part)).collect();
        format!("/runs/{}", parts.join("/"))
    }

    /// One of its other pages.
    pub(super) fn url_of(&self, page: &str) -> String {
        format!("{}?show={page}", self.url())
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("/"))
    }
}

/// How a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// A process works on it.
    Running,
    /// It ended as planned.
    Complete,
    /// It was interrupted.
    Interrupted,
    /// Its process was killed.
    Killed,
    /// It ended with this error.
    Failed(String),
}

impl State {
    /// In a word.
    pub(super) fn word(&self) -> &'static str {
        match self {
            State::Running => "running",
            State::Complete => "complete",
            State::Interrupted => "interrupted",
            State::Killed => "killed",
            State::Failed(_) => "failed",
        }
    }

    fn new(state: &RunState, is_held: impl FnOnce() -> bool) -> State {
        match state {
            // A coordinator that has ended its run still writes the report.
            _ if is_held() => State::Running,
            RunState::Running => State::Killed,
            RunState::Complete => State::Complete,
            RunState::Interrupted => State::Interrupted,
            RunState::Failed(why) => State::Failed(why.clone()),
        }
    }
}

/// A run or a comparison in the list.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: Name,
    pub(super) is_comparison: bool,
    pub(super) started_unix_s: u64,
    pub(super) state: State,
    pub(super) workload: String,
    pub(super) store: String,
    pub(super) sla: String,
    /// What was found, in a few words; empty if nothing was.
    pub(super) result: String,
}

impl Entry {
    /// Whether a word of a filter occurs in it.
    pub(super) fn has(&self, word: &str) -> bool {
        let kind = if self.is_comparison { "comparison" } else { "" };
        let texts = [&self.name.to_string(), &self.workload, &self.store, &self.sla, self.state.word(), kind];
        texts.into_iter().any(|text| text.to_lowercase().contains(word))
    }
}

/// All runs and comparisons, the latest first. What cannot be read is left out.
pub(super) fn list(runs: &Path) -> Vec<Entry> {
    let entries = std::fs::read_dir(runs).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| Name::new([entry.file_name().to_str()?]));
    let mut found: Vec<Entry> = names.filter_map(|name| entry(runs, name)).collect();
    found.sort_by(|a, b| (b.started_unix_s, &b.name).cmp(&(a.started_unix_s, &a.name)));
    found
}

/// All trace sets in their folder, by name.
pub(super) fn trace_sets(runs: &Path) -> Vec<Name> {
    let entries = std::fs::read_dir(runs.join(TRACES)).into_iter().flatten().flatten();
    let found = entries.filter_map(|entry| Name::new([TRACES, entry.file_name().to_str()?]));
    let mut names: Vec<Name> = found.filter(|name| name.folder(runs).join(manifest::FILE_NAME).exists()).collect();
    names.sort();
    names
}

/// How many bytes of trace sets are written that are not there yet. Their folders are hidden until then.
pub(super) fn trace_bytes_under_way(runs: &Path) -> u64 {
    let entries = std::fs::read_dir(runs.join(TRACES)).into_iter().flatten().flatten();
    let hidden = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    hidden.map(|entry| bytes_below(&entry.path(), 4)).sum()
}

fn bytes_below(folder: &Path, levels: u32) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() && levels > 0 => bytes_below(&entry.path(), levels - 1),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |metadata| metadata.len()),
        _ => 0,
    };
    entries.map(of).sum()
}

fn entry(runs: &Path, name: Name) -> Option<Entry> {
    let folder = name.folder(runs);
    if let Some(document) = comparison(&folder) {
        let ComparisonDocument { started_unix_s, plan, cells, .. } = &document;
        let stores: Vec<&str> = plan.stores.iter().map(|store| store.label.as_str()).collect();
        let state = comparison_state(&folder, &document);
        let (workload, store, sla) = (plan.title.clone(), stores.join(", "), plan.sla().to_string());
        let (started_unix_s, result) = (*started_unix_s, schemas::words::plural(cells.len() as u64, "cell"));
        return Some(Entry { name, is_comparison: true, started_unix_s, state, workload, store, sla, result });
    }
    let run = RunFolder::new(&folder);
    let document = run.read_document().ok()?;
    let sla = document.sla().to_string();
    let words = |rating: RatingDocument| in_words([&rating.soar, &rating.socialites, &rating.rate]);
    let result = rating(&run).map_or_else(|| single(&run), words);
    let state = run_state(&run, &document);
    let RunDocument { started_unix_s, spec, store, .. } = document;
    Some(Entry { name, is_comparison: false, started_unix_s, state, workload: spec.name, store, sla, result })
}

/// The comparison in a folder.
pub(super) fn comparison(folder: &Path) -> Option<ComparisonDocument> {
    let path = ComparisonFolder::new(folder).document();
    if path.exists() { files::read_json(&path).ok() } else { None }
}

/// How a run stands.
pub(super) fn run_state(run: &RunFolder, document: &RunDocument) -> State {
    State::new(&document.state, || lock::holder(run).is_some())
}

/// How a comparison stands.
pub(super) fn comparison_state(folder: &Path, document: &ComparisonDocument) -> State {
    State::new(&document.state, || lock::holder(&RunFolder::new(folder)).is_some())
}

/// The cell of a comparison that runs now.
pub(super) fn running_cell(folder: &Path, document: &ComparisonDocument) -> Option<String> {
    let mut runs = document.cells.iter().map(|cell| &cell.run);
    runs.find(|run| lock::holder(&RunFolder::new(folder.join(run))).is_some()).cloned()
}

/// The ratings of a run.
pub(super) fn rating(run: &RunFolder) -> Option<RatingDocument> {
    let path = run.rating();
    if path.exists() { files::read_json(&path).ok() } else { None }
}

/// The verdicts of the experiments that have one, in their order.
pub(super) fn verdicts(run: &RunFolder) -> Vec<Verdict> {
    let experiments = run.experiments().unwrap_or_default();
    experiments.iter().filter_map(|(number, _)| analyzer::stored_verdict(run, *number).ok().flatten()).collect()
}

/// What a run of one experiment has shown.
fn single(run: &RunFolder) -> String {
    let experiments = run.experiments().unwrap_or_default();
    match experiments.as_slice() {
        [(number, _)] => analyzer::stored_verdict(run, *number).ok().flatten().map_or(String::new(), |verdict| {
            let per_s = thousands(verdict.figures.throughput_per_s.round() as u64);
            format!("{}: {per_s} operations/s", verdict.ruling.name())
        }),
        _ => String::new(),
    }
}

/// The ratings of a run in a few words: SoAR, Socialites, arrival rate.
pub(super) fn in_words([soar, socialites, rate]: [&Option<Rating>; 3]) -> String {
    let word = |rating: &Option<Rating>, before: &str, after: &str, by_threads: bool| {
        let rating = rating.as_ref()?;
        if rating.unmeasured {
            return Some(format!("{before}not measured"));
        }
        let value = if by_threads { u64::from(rating.threads) } else { rating.value.round() as u64 };
        let unsure = if rating.confirmed_by.is_none() { " (not confirmed)" } else { "" };
        Some(format!("{before}{}{after}{unsure}", thousands(value)))
    };
    let words = [
        word(soar, "SoAR ", "/s", false),
        word(socialites, "Socialites ", "", true),
        word(rate, "", " sessions/s", false),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_below_the_folder_of_runs() {
        for name in ["bg-1", "a b", "größe", "<script>", "figure-4/none-a"] {
            let name = Name::of(name).unwrap();
            assert!(name.folder(Path::new("runs")).starts_with("runs"), "{name}");
        }
        for name in ["", "..", "../x", "a/..", "/etc", "a/b/c", ".deck", "a\0", "a\\b", "a//b", "./a"] {
            assert_eq!(Name::of(name), None, "{name:?}");
        }
        assert!(Name::of("traces/a.trace").unwrap().is_trace_set() && !Name::of("traces").unwrap().is_trace_set());
        assert_eq!(Name::of_trace_set("../a"), None);
        assert_eq!(Name::of("a b/<i>").unwrap().url(), "/runs/a%20b/%3Ci%3E");
    }
}
