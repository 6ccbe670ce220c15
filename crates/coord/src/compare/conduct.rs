//! Goes from cell to cell, and writes down after each what there is.

use schemas::comparison::{Cell, ComparisonDocument, Outcome};
use schemas::files;
use schemas::run::{Host, RunFolder, RunState};
use schemas::verdict::RatingDocument;

use super::resolve::{Comparison, PlannedCell};
use super::{settings, show};
use crate::failure::Failure;
use crate::render;
use crate::resolve::Rating;

/// Rates one cell and leaves a run folder.
pub type Rate<'a> = dyn FnMut(Rating) -> Result<RatingDocument, Failure> + 'a;

/// Rates every cell that is not rated yet. An error is one of the comparison:
/// what a single cell fails with is kept in the document.
pub fn conduct(comparison: &Comparison, rate: &mut Rate, say: &dyn Fn(&str)) -> Result<ComparisonDocument, Failure> {
    let mut document = begun(comparison)?;
    write(comparison, &document)?;
    let count = comparison.cells.len();
    for (place, cell) in comparison.cells.iter().enumerate() {
        let folder = comparison.folder.root().join(&cell.run);
        let heading = format!("[{}/{count}] {}", place + 1, show::cell_name(&document.cells[place]));
        if matches!(document.cells[place].outcome, Outcome::Rated { .. }) {
            say(&format!("{heading}: rated before"));
            continue;
        }
        say(&format!("{heading}: rating, in {}", folder.display()));
        clear(&RunFolder::new(&folder))?;
        match rate(cell.rating.clone()) {
            Ok(rated) => {
                say(&indented(&render::ratings(&rated)));
                take(cell, rated, &mut document.cells[place]);
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
        document.differences = settings::differences(&document.cells);
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
/// one of the same plan has rated.
fn begun(comparison: &Comparison) -> Result<ComparisonDocument, Failure> {
    let plan = comparison.plan.redacted();
    let mut started_unix_s = comparison.started_unix_s;
    if comparison.resume && comparison.folder.root().exists() {
        let path = comparison.folder.document();
        let earlier: ComparisonDocument = files::read_json(&path)
            .map_err(|e| Failure::usage(format!("{e}; --resume continues what `coord compare` has begun")))?;
        if earlier.plan != plan {
            return Err(Failure::usage(format!(
                "{}: was begun with another plan or other --set; choose another --name",
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
            workload_id: planned.rating.setting.source.spec().workload_id(),
            outcome: Outcome::Missing,
            store_settings: Default::default(),
        };
        let run = RunFolder::new(comparison.folder.root().join(&planned.run));
        if run.rating().exists() {
            check_workload(&run, &cell.workload_id)?;
            take(planned, files::read_json(&run.rating())?, &mut cell);
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
        differences: settings::differences(&cells),
        cells,
    })
}

/// A specification may have changed since a cell was rated.
fn check_workload(run: &RunFolder, expected: &str) -> Result<(), Failure> {
    let document = run.read_document().map_err(Failure::usage)?;
    if document.workload_id == expected {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{}: was rated with another workload, so its specification has changed since; choose another --name",
        run.root().display()
    )))
}

/// Takes in what a cell's rating shows, and what its run says of the store.
fn take(planned: &PlannedCell, rated: RatingDocument, cell: &mut Cell) {
    let run = RunFolder::new(&planned.rating.setting.folder);
    // The ratings are what counts: without its settings a store is one that says nothing of them.
    cell.store_settings = run.read_document().map(|document| document.store_settings).unwrap_or_default();
    cell.outcome = Outcome::Rated { soar: rated.soar, socialites: rated.socialites };
}

/// Removes what an interrupted or failed rating has left, so that the cell can
/// be rated anew; nothing that is no run folder.
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
    let chart = analyzer::chart::bars(&show::chart(document)).map_err(Failure::tool)?;
    files::write_atomically(&comparison.folder.chart(), chart.as_bytes())?;
    Ok(())
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().lines().map(|line| format!("      {line}")).collect();
    lines.join("\n")
}
