//! The consistency of an experiment as text.

use std::fmt::Write;

use duckdb::types::Value;
use schemas::sla::{exact_time, short_time};
use schemas::verdict::{Broken, Checked, ConsistencyFigures, Step, Verdict};
use schemas::words::{plural, short_percent, thousands};

use crate::consistency::availability::Availability;
use crate::consistency_words::outages;
use crate::error::AnalyzeError;
use crate::families::AnyFamily;
use crate::over_time;
use crate::shares::percent;
use crate::sql::Database;
use crate::tables::new_table;

/// The one metric whose unit is not a time, but writes.
const K_STALENESS: &str = "k-staleness";

/// The figures of an experiment.
pub(crate) fn text(
    database: &Database,
    family: &dyn AnyFamily,
    verdict: &Verdict,
    figures: Option<&ConsistencyFigures>,
    availability: &Availability,
    most: usize,
) -> Result<String, AnalyzeError> {
    let mut out = format!(
        "experiment {}, T={}, {}\n",
        verdict.experiment,
        verdict.threads,
        short_time(verdict.figures.elapsed_ns)
    );
    for missing in &verdict.figures.missing {
        let _ = writeln!(out, "missing: {missing}");
    }
    match figures {
        None => out += "no register was written, so there is nothing to judge but the availability\n",
        Some(figures) => {
            out += &registers(figures, verdict);
            let fresh = over_time::freshness(&figures.freshness);
            if !fresh.is_empty() {
                let _ = write!(out, "\n{fresh}");
            }
            let _ = write!(out, "\n{}", guarantees(figures));
        }
    }
    let _ = write!(out, "\n{}", available(verdict, availability));
    for broken in figures.iter().flat_map(|figures| &figures.worst).take(most) {
        let _ = write!(out, "\n{}", witness(database, family, verdict.experiment, broken)?);
    }
    Ok(out)
}

fn registers(figures: &ConsistencyFigures, verdict: &Verdict) -> String {
    let share = |part, of| format!("{}%", short_percent(percent(part, of)));
    let [one, two, more] = figures.k;
    let mut out = format!(
        "{} of {} that were written are linearizable ({}); k: {} 1, {} 2, {} > 2\n{}, {} of unknown fate; {}, {} stale \
         ({})\n",
        thousands(figures.linearizable),
        plural(figures.registers, "register"),
        share(figures.linearizable, figures.registers),
        thousands(one),
        thousands(two),
        thousands(more),
        plural(figures.writes, "write"),
        thousands(figures.unknown_writes),
        plural(figures.reads, "read"),
        thousands(figures.stale_reads),
        share(figures.stale_reads, figures.reads),
    );
    if figures.unattributed_reads > 0 {
        let reads = plural(figures.unattributed_reads, "read");
        let _ = writeln!(out, "left out: {reads} of values that no write of the register is known to have written");
    }
    if figures.forgotten_reads > 0 {
        let reads = plural(figures.forgotten_reads, "read");
        let _ = writeln!(
            out,
            "left out: {reads} of values that the analysis had forgotten, so staleness is longer than this"
        );
    }
    if let (Some(limit), Some(within)) = (verdict.sla.gamma, figures.within_gamma_percent()) {
        let within = (within * 100.0).floor() / 100.0;
        let _ = writeln!(
            out,
            "{within}% of the values have a Γ of at most {}; the SLA asks for {}%",
            short_time(limit.limit_ns),
            limit.percent
        );
    }
    if figures.from_the_future > 0 {
        let registers = plural(figures.from_the_future, "register");
        let _ = writeln!(out, "{registers} had a read that ended before the write of its value started: no Δ");
    }
    let mut table = new_table(&["", "of", "count", "above 0", "p50", "p95", "max"], 0);
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Left);
    }
    let rows = [
        ("Γ", "registers", figures.gamma_ns),
        ("Γ", "values", figures.value_gamma_ns),
        ("Δ", "registers", figures.delta_ns),
        ("t-staleness", "reads", figures.t_staleness_ns),
        (K_STALENESS, "reads", figures.k_staleness),
        ("t-visibility", "writes", figures.t_visibility_ns),
    ];
    for (metric, of, spread) in rows {
        let show = |number| if metric == K_STALENESS { thousands(number) } else { short_time(number) };
        let [p50, p95, max] = [spread.p50, spread.p95, spread.max].map(show);
        let (all, above) = (thousands(spread.count), thousands(spread.above_zero));
        table.add_row([metric.to_string(), of.to_string(), all, above, p50, p95, max]);
    }
    let _ = writeln!(out, "\n{}", table.trim_fmt());
    out
}

fn guarantees(figures: &ConsistencyFigures) -> String {
    let columns = ["session guarantee", "by thread", "violated", "%", "by actor", "violated", "%"];
    let mut table = new_table(&columns, 0);
    let cells = |checked: Checked| {
        // Rounded up: 0 means never.
        let share = (percent(checked.violations, checked.reads) * 100.0).ceil() / 100.0;
        [thousands(checked.reads), thousands(checked.violations), format!("{share:.2}")]
    };
    for ((name, by_thread), (_, by_actor)) in figures.by_thread.named().into_iter().zip(figures.by_actor.named()) {
        let [threads, actors] = [by_thread, by_actor].map(cells);
        table.add_row([&[name.to_string()][..], &threads, &actors].concat());
    }
    format!("{}\n", table.trim_fmt())
}

fn available(verdict: &Verdict, availability: &Availability) -> String {
    let mut table = new_table(&["availability", "operations", "% ok"], 0);
    let figures = &verdict.figures;
    let all = std::iter::once(("all", &figures.overall));
    for (name, of) in all.chain(figures.by_operation.iter().map(|(name, of)| (name.as_str(), of))) {
        let asked = of.ok + of.failed + of.unknown + of.skipped;
        if asked > 0 {
            // Rounded down: 100 means always.
            let share = (percent(of.ok, asked) * 100.0).floor() / 100.0;
            table.add_row([name.to_string(), thousands(asked), format!("{share:.2}")]);
        }
    }
    format!("{}\n{}\n", table.trim_fmt(), outages(availability))
}

/// A register that is not linearizable, and the operations that prove it.
fn witness(
    database: &Database,
    family: &dyn AnyFamily,
    experiment: u32,
    broken: &Broken,
) -> Result<String, AnalyzeError> {
    let register = &broken.register;
    let mut out = format!(
        "{}, fragment {}: Γ {}, Δ {}, k {}; {}, {}, {} stale\n",
        family.item_in_history(register.owner, register.element),
        register.fragment,
        short_time(broken.gamma_ns.unsigned_abs()),
        broken.delta_ns.map_or("undefined".into(), |delta| short_time(delta.unsigned_abs())),
        broken.k.name(),
        plural(broken.writes, "write"),
        plural(broken.reads, "read"),
        broken.stale_reads,
    );
    out += "no order of these operations explains them:\n";
    for step in &broken.proof {
        let end = step.end_ns.map_or("unknown".into(), |end| exact_time(end.unsigned_abs()));
        let (start, thread) = (exact_time(step.start_ns.unsigned_abs()), step.thread);
        let what = match (step.is_write, family.writer(step.value)) {
            (true, _) => "writes".to_string(),
            (false, None) => "sees the initial value".to_string(),
            (false, Some(writer)) => format!("sees session {} step {}", writer.session, writer.step),
        };
        let place = place(database, experiment, register.fragment, step)?;
        let _ = writeln!(out, "  {place} {what}: {start} to {end}, thread {thread}");
    }
    Ok(out)
}

/// The session and step of an operation.
fn place(database: &Database, experiment: u32, fragment: i64, step: &Step) -> Result<String, AnalyzeError> {
    let statement = "SELECT session, step FROM sealed_operations \
                     WHERE experiment = ? AND fragment = ? AND start_ns = ? AND thread = ? LIMIT 1";
    let values = [i64::from(experiment), fragment, step.start_ns, i64::from(step.thread)].map(Value::BigInt);
    let answer = database.run(statement, &values)?;
    Ok(match answer.rows.first().map(Vec::as_slice) {
        Some([Value::BigInt(session), Value::SmallInt(step)]) => format!("session {session} step {step}"),
        _ => "an operation".to_string(),
    })
}
