//! A simulation as a table and as JSON.

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use super::{Case, Driven, Simulation};
use crate::search::Interval;
use crate::terminal::thousands;

/// The simulation as text: one table per rating, and what the columns mean.
pub fn table(simulation: &Simulation) -> String {
    let mut parts = vec![format!("SoAR (operations/s)\n{}", soar(simulation))];
    if simulation.cases.iter().any(|case| case.socialites.is_some()) {
        parts.push(format!("Socialites (threads)\n{}", socialites(simulation)));
    }
    let mut notes = String::from(
        "unique: experiments with different T; visited: with repeats; +: the search ended at --max-threads",
    );
    if simulation.cases.iter().any(|case| case.doubling.is_some()) {
        notes.push_str("\ndoubling: doubling and hill climbing of bg-2013 section G, without repeats");
    }
    parts.push(notes);
    parts.join("\n\n")
}

fn soar(simulation: &Simulation) -> String {
    let mut table = Table::new();
    let compares = simulation.cases.iter().any(|case| case.doubling.is_some());
    let mut header = vec!["peak", "found", "error", "95% interval", "T found", "T true", "unique", "visited"];
    if compares {
        header.extend(["doubling: unique", "error"]);
    }
    table.set_header(header);
    for case in &simulation.cases {
        let (peak, best_threads) = truth(case, simulation);
        let found = &case.soar.found;
        let mut cells = vec![
            operations(peak),
            format!("{}{}", operations(found.throughput_per_s), if found.at_least { "+" } else { "" }),
            error(found.throughput_per_s, peak),
            interval(&found.interval, operations),
            thousands(found.load.into()),
            thousands(best_threads.into()),
            case.soar.unique.to_string(),
            case.soar.visited.to_string(),
        ];
        if let Some(doubling) = &case.doubling {
            cells.extend([doubling.unique.to_string(), error(doubling.found.throughput_per_s, peak)]);
        }
        table.add_row(cells);
    }
    lines(table)
}

fn socialites(simulation: &Simulation) -> String {
    let mut table = Table::new();
    table.set_header(["peak", "found", "error", "interval", "true", "unique", "visited"]);
    for case in &simulation.cases {
        let Some(outcome) = &case.socialites else { continue };
        let (peak, _) = truth(case, simulation);
        let last = case.store.last_threads(&simulation.limits);
        let found = &outcome.found;
        table.add_row([
            operations(peak),
            format!("{}{}", thousands(found.load.into()), if found.at_least { "+" } else { "" }),
            error(found.load.into(), last.into()),
            interval(&found.interval, |threads| thousands(threads as u64)),
            thousands(last.into()),
            outcome.unique.to_string(),
            outcome.visited.to_string(),
        ]);
    }
    lines(table)
}

/// The true SoAR, and its T.
fn truth(case: &Case, simulation: &Simulation) -> (f64, u32) {
    let threads = case.store.best_threads(&simulation.limits);
    (case.store.throughput_per_s(threads), threads)
}

pub(super) fn lines(mut table: Table) -> String {
    table.load_style(presets::NOTHING);
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().map(|line| line.trim_end().to_string()).collect::<Vec<_>>().join("\n")
}

pub(super) fn operations(value: f64) -> String {
    thousands(value.round() as u64)
}

pub(super) fn interval(interval: &Interval, text: impl Fn(f64) -> String) -> String {
    format!("{} .. {}", text(interval.low), text(interval.high))
}

/// How far off a value is, as a share of the truth; None if the truth is 0.
pub(super) fn share(value: f64, truth: f64) -> Option<f64> {
    (truth > 0.0).then(|| value / truth - 1.0)
}

pub(super) fn error(value: f64, truth: f64) -> String {
    let Some(share) = share(value, truth) else { return "-".to_string() };
    let percent = format!("{:+.2}%", 100.0 * share);
    if percent == "-0.00%" { "+0.00%".to_string() } else { percent }
}

/// The simulation as JSON: `limits`, and in `cases` each store with what each search did.
/// Throughputs are in operations per second, shares are fractions of 1.
pub fn document(simulation: &Simulation) -> Value {
    let limits = &simulation.limits;
    json!({
        "limits": {
            "first_threads": limits.first_load,
            "max_threads": limits.max_load,
            "resolution_share": limits.resolution,
            "prior_noise_share": limits.noise,
        },
        "cases": simulation.cases.iter().map(|case| of_case(case, simulation)).collect::<Vec<_>>(),
    })
}

fn of_case(case: &Case, simulation: &Simulation) -> Value {
    let (peak, threads) = truth(case, simulation);
    let last = f64::from(case.store.last_threads(&simulation.limits));
    json!({
        "curve": case.store.form.name(),
        "sla_until_threads": case.store.sla_until,
        "noise_share": case.store.noise,
        "seed": case.store.seed,
        "true_soar_per_s": peak,
        "true_soar_threads": threads,
        "true_socialites_threads": last as u64,
        "soar": of_search(&case.soar, case.soar.found.throughput_per_s, peak),
        "socialites": case.socialites.as_ref().map(|outcome| of_search(outcome, outcome.found.load.into(), last)),
        "doubling": case.doubling.as_ref().map(|outcome| of_search(outcome, outcome.found.throughput_per_s, peak)),
    })
}

fn of_search(outcome: &Driven, value: f64, truth: f64) -> Value {
    let found = &outcome.found;
    json!({
        "value": value,
        "error_share": share(value, truth),
        "low": found.interval.low,
        "high": found.interval.high,
        "threads": found.load,
        "throughput_per_s": found.throughput_per_s,
        "at_least": found.at_least,
        "unique_experiments": outcome.unique,
        "visited_experiments": outcome.visited,
    })
}
