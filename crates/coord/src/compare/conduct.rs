//! Goes from cell to cell, and writes down after each what there is.

use schemas::comparison::{Cell, ComparisonDocument, Measurement, Outcome};
use schemas::files;
use schemas::run::{Host, RunFolder, RunState};
use schemas::verdict::{RatingDocument, Verdict};

use super::resolve::{Comparison, Job, PlannedCell};
use super::{chart, page, settings, show};
use crate::failure::Failure;
use crate::render;

/// What comes of a cell's job, which leaves a run folder.
#[derive(Debug, Clone)]
pub enum Finding {
    /// Of a search.
    Rated(RatingDocument),
    /// Of one experiment.
    Measured(Verdict),
}

impl Finding {
    /// For people who watch the comparison.
    fn in_words(&self) -> String {
        match self {
            Finding::Rated(rated) => render::ratings(rated),
            Finding::Measured(verdict) => render::measured(verdict),
        }
    }

    fn outcome(self) -> Outcome {
        match self {
            Finding::Rated(rated) => Outcome::Rated { soar: rated.soar, socialites: rated.socialites },
            Finding::Measured(verdict) => Outcome::Measured(Measurement::from(&verdict)),
        }
    }
}

/// Does a cell's job.
pub type Do<'a> = dyn FnMut(Job) -> Result<Finding, Failure> + 'a;

/// Rates or measures every cell that is not done yet. An error is one of the
/// comparison: what a single cell fails with is kept in the document.
pub fn conduct(comparison: &Comparison, perform: &mut Do, say: &dyn Fn(&str)) -> Result<ComparisonDocument, Failure> {
    let mut document = begun(comparison)?;
    write(comparison, &document)?;
    let count = comparison.cells.len();
    for (place, cell) in comparison.cells.iter().enumerate() {
        let folder = comparison.folder.root().join(&cell.run);
        let heading = format!("[{}/{count}] {}", place + 1, show::cell_name(&document.cells[place]));
        let (doing, done) = match cell.job {
            Job::Rate(_) => ("rating", "rated"),
            Job::Measure(_) => ("measuring", "measured"),
        };
        if matches!(document.cells[place].outcome, Outcome::Rated { .. } | Outcome::Measured(_)) {
            say(&format!("{heading}: {done} before"));
            continue;
        }
        say(&format!("{heading}: {doing}, in {}", folder.display()));
        clear(&RunFolder::new(&folder))?;
        match perform(cell.job.clone()) {
            Ok(finding) => {
                say(&indented(&finding.in_words()));
                take(cell, finding, &mut document.cells[place]);
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
                document.cells[place].outcome = Outcome::Failed(failure.to_string());
            }
        }
        document.differences = settings::differences(&document.plan.stores, &document.cells);
        write(comparison, &document)?;
    }
    let failed = super::failures(&document).len();
    document.state = match failed {
        0 => RunState::Complete,
        _ => RunState::Failed(format!("{failed} of {count} cells failed")),
    };
    write(comparison, &document)?;
    say(&show::result(&document, &comparison.folder));
    Ok(document)
}

/// The document of a comparison about to run, with the cells that an earlier
/// one of the same plan has done.
fn begun(comparison: &Comparison) -> Result<ComparisonDocument, Failure> {
    let plan = comparison.plan.redacted();
    let mut started_unix_s = comparison.started_unix_s;
    if comparison.resume && comparison.folder.root().exists() {
        let path = comparison.folder.document();
        let earlier: ComparisonDocument = files::read_json(&path)
            .map_err(|e| Failure::usage(format!("{e}; --resume continues what `coord compare` has begun")))?;
        if earlier.plan != plan {
            return Err(Failure::usage(format!(
                "{}: was begun with another plan, other --set or other stores in the environment; choose another --name",
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

/// What an earlier comparison has found for a cell, when it came to its end.
fn found(job: &Job, run: &RunFolder) -> Result<Option<Finding>, Failure> {
    match job {
        Job::Rate(_) if run.rating().exists() => Ok(Some(Finding::Rated(files::read_json(&run.rating())?))),
        Job::Measure(_) if run.document().exists() => {
            if run.read_document().map_err(Failure::usage)?.state != RunState::Complete {
                return Ok(None);
            }
            // The last one: those before it were too short for their trace.
            let last = run.experiments()?.pop();
            Ok(match last {
                Some((_, experiment)) => Some(Finding::Measured(files::read_json(&experiment.verdict())?)),
                None => None,
            })
        }
        Job::Rate(_) | Job::Measure(_) => Ok(None),
    }
}

/// A specification may have changed since a cell was done.
fn check_workload(run: &RunFolder, expected: &str) -> Result<(), Failure> {
    let document = run.read_document().map_err(Failure::usage)?;
    if document.workload_id == expected {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{}: was done with another workload, so its specification has changed since; choose another --name",
        run.root().display()
    )))
}

/// Takes in what was found of a cell, and what its run says of the store.
fn take(planned: &PlannedCell, finding: Finding, cell: &mut Cell) {
    let run = RunFolder::new(&planned.job.setting().folder);
    // The finding is what counts: without its settings a store is one that says nothing of them.
    cell.store_settings = run.read_document().map(|document| document.store_settings).unwrap_or_default();
    cell.outcome = finding.outcome();
}

/// Removes what an interrupted or failed cell has left, so that it can be done
/// anew; nothing that is no run folder.
fn clear(run: &RunFolder) -> Result<(), Failure> {
    let folder = run.root();
    if !folder.exists() {
        return Ok(());
    }
    if !run.document().exists() {
        return Err(Failure::usage(format!("{}: is in the way, and no run folder; move it", folder.display())));
    }
    std::fs::remove_dir_all(folder).map_err(files::at(folder))?;
    Ok(())
}

/// The file of a store that was made for one cell has served its purpose: large
/// images in many cells would fill any disk.
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
    let picture = chart::of(document).svg().map_err(Failure::tool)?;
    files::write_atomically(&comparison.folder.chart(), picture.as_bytes())?;
    let whole = page::page(document, comparison.folder.root()).map_err(Failure::tool)?;
    files::write_atomically(&comparison.folder.page(), whole.as_bytes())?;
    Ok(())
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().lines().map(|line| format!("      {line}")).collect();
    lines.join("\n")
}
