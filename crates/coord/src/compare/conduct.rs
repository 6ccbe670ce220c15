//! Runs the cells one after the other, and writes all results after each.

use analyzer::chart::{Chart as _, Shape};
use schemas::comparison::{Cell, ComparisonDocument, Measurement, Outcome};
use schemas::files;
use schemas::run::{Host, RunFolder, RunState};
use schemas::verdict::{RatingDocument, Verdict};

use super::outcome::{cell_name, failures};
use super::planned::{Comparison, Job, PlannedCell};
use super::{chart, page, settings, show, transactions};
use crate::failure::Failure;
use crate::run::lock;
use crate::terminal;

/// The result of a cell's job, which also leaves a run folder.
#[derive(Debug, Clone)]
pub enum Finding {
    /// The result of a search.
    Rated(Box<RatingDocument>),
    /// The result of one experiment.
    Measured(Box<Verdict>),
}

impl Finding {
    /// The result in words, for the user.
    fn in_words(&self) -> String {
        match self {
            Finding::Rated(rated) => terminal::ratings(rated),
            Finding::Measured(verdict) => terminal::measured(verdict),
        }
    }

    fn outcome(self) -> Outcome {
        match self {
            Finding::Rated(rated) => {
                let RatingDocument { soar, socialites, rate, .. } = *rated;
                Outcome::Rated { soar, socialites, rate }
            }
            Finding::Measured(verdict) => Outcome::Measured(Measurement::from(verdict.as_ref())),
        }
    }
}

/// Runs a cell's job.
pub type Do<'a> = dyn FnMut(Job) -> Result<Finding, Failure> + 'a;

/// Rates or measures every cell that is not done yet. An error is one of the comparison: the
/// document contains the error of a single cell.
pub fn conduct(comparison: &Comparison, perform: &mut Do, say: &dyn Fn(&str)) -> Result<ComparisonDocument, Failure> {
    let mut document = begun(comparison)?;
    // A second coordinator would remove the cell that this one works on.
    let _lock = lock::claim(&RunFolder::new(comparison.folder.root()))?;
    write(comparison, &document)?;
    let count = comparison.cells.len();
    for (index, cell) in comparison.cells.iter().enumerate() {
        let folder = comparison.folder.root().join(&cell.run);
        let heading = format!("[{}/{count}] {}", index + 1, cell_name(&document.cells[index]));
        let (doing, done) = match cell.job {
            Job::Rate(_) => ("rating", "rated"),
            Job::Measure(_) => ("measuring", "measured"),
        };
        if matches!(document.cells[index].outcome, Outcome::Rated { .. } | Outcome::Measured(_)) {
            say(&format!("{heading}: already {done}"));
            continue;
        }
        say(&format!("{heading}: {doing}, in {}", folder.display()));
        clear(&RunFolder::new(&folder))?;
        match perform(cell.job.clone()) {
            Ok(finding) => {
                say(&indented(&finding.in_words()));
                take(cell, finding, &mut document.cells[index]);
                remove_own_store(cell)?;
            }
            Err(Failure::Interrupted { .. }) => {
                document.state = RunState::Interrupted;
                write(comparison, &document)?;
                say(&show::result(&document, &comparison.folder));
                return Err(Failure::Interrupted { run: Some(comparison.folder.root().to_path_buf()) });
            }
            Err(failure) => {
                say(&indented(&format!("failed: {failure}")));
                document.cells[index].outcome = Outcome::Failed(failure.to_string());
            }
        }
        document.differences = settings::differences(&document.plan.stores, &document.cells);
        write(comparison, &document)?;
    }
    let failed = failures(&document).len();
    document.state = match failed {
        0 => RunState::Complete,
        _ => RunState::Failed(format!("{failed} of {count} cells failed")),
    };
    write(comparison, &document)?;
    say(&show::result(&document, &comparison.folder));
    Ok(document)
}

/// The document of a comparison that is about to run, with the cells that an earlier call of the
/// same plan has done.
fn begun(comparison: &Comparison) -> Result<ComparisonDocument, Failure> {
    let plan = comparison.plan.redacted();
    let mut started_unix_s = comparison.started_unix_s;
    if comparison.resume && comparison.folder.root().exists() {
        let path = comparison.folder.document();
        let earlier: ComparisonDocument = files::read_json(&path)
            .map_err(|e| Failure::usage(format!("{e}; --resume requires a comparison started by `encore compare`")))?;
        if earlier.plan != plan {
            return Err(Failure::usage(format!(
                "{} was started with another plan, other flags (--set, --sla, --search-s, --max-threads, --max-rate) or \
                 other store URLs in the environment; use another --name",
                path.display()
            )));
        }
        started_unix_s = earlier.started_unix_s;
    }
    let mut cells = Vec::new();
    for planned in &comparison.cells {
        let mut cell = Cell {
            point: planned.point.clone(),
            store: planned.store.clone(),
            run: planned.run.clone(),
            workload_id: planned.job.setting().source.spec().workload_id(),
            outcome: Outcome::Missing,
            store_settings: Default::default(),
        };
        let run = RunFolder::new(comparison.folder.root().join(&planned.run));
        if let Some(finding) = found(&planned.job, &run)? {
            check_workload(&run, &cell.workload_id)?;
            take(planned, finding, &mut cell);
        }
        cells.push(cell);
    }
    Ok(ComparisonDocument {
        format_version: schemas::RUN_FORMAT_VERSION,
        encore_version: env!("CARGO_PKG_VERSION").to_string(),
        name: comparison.name.clone(),
        started_unix_s,
        state: RunState::Running,
        plan,
        host: Host::current(),
        command: comparison.command.clone(),
        differences: settings::differences(&comparison.plan.stores, &cells),
        cells,
    })
}

/// What an earlier call found for a cell, if the cell was finished.
fn found(job: &Job, run: &RunFolder) -> Result<Option<Finding>, Failure> {
    match job {
        Job::Rate(_) if run.rating().exists() => Ok(Some(Finding::Rated(Box::new(files::read_json(&run.rating())?)))),
        Job::Measure(_) if run.document().exists() => {
            if run.read_document().map_err(Failure::usage)?.state != RunState::Complete {
                return Ok(None);
            }
            // The last experiment counts: the trace ran out in those before it.
            let last = run.experiments()?.pop();
            Ok(match last {
                Some((_, experiment)) => Some(Finding::Measured(Box::new(files::read_json(&experiment.verdict())?))),
                None => None,
            })
        }
        Job::Rate(_) | Job::Measure(_) => Ok(None),
    }
}

/// Refuses a cell that was done before its specification changed.
fn check_workload(run: &RunFolder, expected: &str) -> Result<(), Failure> {
    let document = run.read_document().map_err(Failure::usage)?;
    if document.workload_id == expected {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{} ran another workload: its specification has changed; use another --name",
        run.root().display()
    )))
}

/// Records what was found for a cell, and what its run says about the store.
fn take(planned: &PlannedCell, finding: Finding, cell: &mut Cell) {
    let run = RunFolder::new(&planned.job.setting().folder);
    // The finding counts. Without its settings a store counts as one that does not name them.
    cell.store_settings = run.read_document().map(|document| document.store_settings).unwrap_or_default();
    cell.outcome = finding.outcome();
}

/// Removes what an interrupted or failed cell has left, so that it can run again. Refuses to
/// remove a folder that is no run folder.
fn clear(run: &RunFolder) -> Result<(), Failure> {
    let folder = run.root();
    if !folder.exists() {
        return Ok(());
    }
    if !run.document().exists() {
        return Err(Failure::usage(format!("{} exists and is not a run folder; move it away", folder.display())));
    }
    std::fs::remove_dir_all(folder).map_err(files::at(folder))?;
    Ok(())
}

/// Removes the file of a store that was made for one cell: large images in many cells would fill
/// any disk.
fn remove_own_store(cell: &PlannedCell) -> Result<(), Failure> {
    let Some(file) = &cell.own_file else { return Ok(()) };
    let (Some(folder), Some(name)) = (file.parent(), file.file_name().and_then(|name| name.to_str())) else {
        return Ok(());
    };
    for entry in std::fs::read_dir(folder).map_err(files::at(folder))? {
        let path = entry.map_err(files::at(folder))?.path();
        // The file itself, its log, and the loaded state that experiments start from.
        if path.is_file() && path.file_name().and_then(|n| n.to_str()).is_some_and(|n| n.starts_with(name)) {
            std::fs::remove_file(&path).map_err(files::at(&path))?;
        }
    }
    Ok(())
}

fn write(comparison: &Comparison, document: &ComparisonDocument) -> Result<(), Failure> {
    files::write_json(&comparison.folder.document(), document)?;
    files::write_atomically(&comparison.folder.table(), show::markdown(document).as_bytes())?;
    let picture = chart::of(document).svg(Shape::Wide).map_err(Failure::tool)?;
    files::write_atomically(&comparison.folder.chart(), picture.as_bytes())?;
    if let Some(shares) = transactions::chart_of_shares(document) {
        let picture = shares.svg(Shape::Wide).map_err(Failure::tool)?;
        files::write_atomically(&comparison.folder.chart_of_transactions(), picture.as_bytes())?;
    }
    let whole = page::page(document, comparison.folder.root()).map_err(Failure::tool)?;
    files::write_atomically(&comparison.folder.page(), whole.as_bytes())?;
    Ok(())
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().lines().map(|line| format!("      {line}")).collect();
    lines.join("\n")
}
