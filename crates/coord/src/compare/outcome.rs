//! What came of the cells: the exit code, the failures, the ratings.

use schemas::comparison::{Cell, ComparisonDocument, Outcome, Question};

/// The name of a cell in messages.
pub fn cell_name(cell: &Cell) -> String {
    if cell.point.is_empty() { cell.store.clone() } else { format!("{}, {}", cell.point, cell.store) }
}

/// The exit code of a comparison that has finished: 3 if a cell failed or nothing of it could be
/// measured, 1 if stores were rated and one kept the SLA at no point, else 0.
pub fn exit_code(document: &ComparisonDocument) -> u8 {
    let is_failed = |outcome: &Outcome| match outcome {
        Outcome::Failed(_) => true,
        Outcome::Rated { .. } => ratings(outcome).iter().any(|rating| rating.unmeasured),
        Outcome::Missing | Outcome::Measured(_) => false,
    };
    if document.cells.iter().any(|cell| is_failed(&cell.outcome)) {
        return 3;
    }
    if matches!(document.plan.question(), Question::Measure(_)) {
        return 0;
    }
    let kept_somewhere = |store: &str| {
        let of_store = document.cells.iter().filter(|cell| cell.store == store);
        of_store.flat_map(|cell| ratings(&cell.outcome)).any(|rating| rating.value > 0.0)
    };
    if document.plan.stores.iter().all(|store| kept_somewhere(&store.label)) { 0 } else { 1 }
}

/// The cells that failed, one sentence each.
pub fn failures(document: &ComparisonDocument) -> Vec<String> {
    let failed = document.cells.iter().filter_map(|cell| match &cell.outcome {
        Outcome::Failed(message) => Some(format!("{}: {message}", cell_name(cell))),
        Outcome::Missing | Outcome::Rated { .. } | Outcome::Measured(_) => None,
    });
    failed.collect()
}

/// The ratings of a cell.
pub(super) fn ratings(outcome: &Outcome) -> Vec<&schemas::verdict::Rating> {
    match outcome {
        Outcome::Rated { soar, socialites, rate } => [soar, socialites, rate].into_iter().flatten().collect(),
        Outcome::Missing | Outcome::Measured(_) | Outcome::Failed(_) => Vec::new(),
    }
}
