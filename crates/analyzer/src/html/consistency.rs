//! Consistency of the registers: Γ over time and over the registers, how soon writes were seen, and the session
//! guarantees. Availability of any workload.

use maud::{Markup, html};
use schemas::sla::short_time;
use schemas::verdict::{Checked, ConsistencyFigures, Verdict};

use super::RunData;
use super::figures::{Answer, number, over_time, point, rounded};
use super::layout::{Column, Section, figure, section, statement, table};
use super::load::rates;
use crate::chart::{Across, LineChart, LineSeries, Rule, Scale};
use crate::consistency_words::{availability_in_words, sentence};
use crate::error::AnalyzeError;
use crate::report::thousands as grouped;
use crate::shares::percent;

/// None if no register was written.
pub(super) fn consistency(data: &RunData<'_>, verdict: &Verdict) -> Result<Option<Section>, AnalyzeError> {
    let Some(found) = &verdict.figures.consistency else { return Ok(None) };
    let content = html! {
        p { "Experiment " (verdict.experiment) ": " (sentence(found)) "." }
        @if let (Some(limit), Some(within)) = (verdict.sla.gamma, found.within_gamma_percent()) {
            p {
                (rounded(within)) "% of the values have a Γ of at most " (short_time(limit.limit_ns))
                "; the SLA asks for " (limit.percent) "%."
            }
        }
        (over_seconds(data, verdict)?)
        @if verdict.rate_per_s.is_some() { (rates(data, verdict)?) }
        (spectrum(data, verdict)?)
        (fresh_reads(data, verdict)?)
        (guarantees(verdict, found))
    };
    Ok(Some(section("Consistency", content)))
}

fn over_seconds(data: &RunData<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let sql = format!(
        "SELECT from_s, p95_ns / 1e6 AS p95, max_ns / 1e6 AS max\nFROM gamma_over_time WHERE experiment = {} ORDER BY slice",
        verdict.experiment
    );
    let limit = verdict.sla.gamma.map(|limit| limit.limit_ns);
    let rules =
        limit.map(|limit| Rule::at(limit as f64 / 1e6, format!("SLA: {}", short_time(limit)))).into_iter().collect();
    let in_words = |value: f64, name: &str, s: f64| format!("{name} {} at {s:.2} s", short_time((value * 1e6) as u64));
    over_time(data, &sql, "Γ over time", "ms", &[("p95", true), ("max", true)], Scale::Linear, rules, in_words)
}

/// Γ of the registers and of their values, by percentile.
fn spectrum(data: &RunData<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let sql = format!(
        "SELECT percent, registers_ns / 1e6 AS registers, values_ns / 1e6 AS written_values\n\
         FROM gamma_spectrum WHERE experiment = {} ORDER BY percent",
        verdict.experiment
    );
    let answer = Answer::to(data.database, &sql)?;
    let line = |column: usize, label: &str| {
        let values: Vec<f64> = answer.rows.iter().map(|row| number(&row[column])).collect();
        LineSeries {
            label: label.into(),
            points: (0..).zip(&values).map(|(place, value)| point(f64::from(place), *value)).collect(),
            tooltips: answer
                .rows
                .iter()
                .zip(&values)
                .map(|(row, ms)| format!("{}% of the {label}: {}", number(&row[0]), short_time((ms * 1e6) as u64)))
                .collect(),
            ..LineSeries::default()
        }
    };
    let percents: Vec<String> = answer.rows.iter().map(|row| number(&row[0]).to_string()).collect();
    if percents.is_empty() {
        return Ok(html! {});
    }
    let series = vec![line(1, "registers"), line(2, "values")];
    let title = "Γ by percentile";
    let chart = LineChart {
        title: title.into(),
        description: series.iter().filter_map(|line| line.tooltips.last()).cloned().collect::<Vec<_>>().join("; "),
        x_label: "percent of the registers, of the values".into(),
        y_label: "ms".into(),
        across: Across::Points(percents),
        y_scale: Scale::Linear,
        series,
        rules: Vec::new(),
    };
    let note = "Γ is by how much a history is not linearizable: its operations would have to be this much longer.";
    Ok(figure(&chart, title, note, &sql)?)
}

/// The probability of a fresh read by the time since the last write.
fn fresh_reads(data: &RunData<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let sql = format!(
        "SELECT 1::BIGINT << bucket AS to_us, 100.0 * count(*) FILTER (k_staleness = 0) / count(*) AS fresh_percent,\n\
         \u{20}      count(*) AS reads\n\
         FROM (\n  SELECT k_staleness, CASE WHEN age_ns < 1000 THEN 0\n\
         \u{20}         ELSE CAST(floor(log2(age_ns // 1000)) AS INTEGER) + 1 END AS bucket\n\
         \u{20} FROM read_staleness WHERE experiment = {} AND NOT warmup AND NOT drained AND age_ns IS NOT NULL\n)\n\
         GROUP BY bucket ORDER BY bucket",
        verdict.experiment
    );
    let answer = Answer::to(data.database, &sql)?;
    if answer.rows.is_empty() {
        return Ok(html! {});
    }
    let age = |row: &Vec<duckdb::types::Value>| short_time((number(&row[0]) * 1e3) as u64);
    let in_words = |row: &Vec<duckdb::types::Value>| {
        format!("{:.2}% of {} reads, less than {} after", number(&row[1]), grouped(number(&row[2]) as u64), age(row))
    };
    let series = LineSeries {
        label: "fresh reads".into(),
        points: answer.rows.iter().map(|row| point(number(&row[0]) / 1e3, number(&row[1]))).collect(),
        tooltips: answer.rows.iter().map(in_words).collect(),
        ..LineSeries::default()
    };
    let title = "Fresh reads by the time since the last write";
    let chart = LineChart {
        title: title.into(),
        description: series.tooltips.join("; "),
        x_label: "time since the last write of the register (upper bound, ms)".into(),
        y_label: "% of reads".into(),
        across: Across::Numbers(Scale::Log),
        y_scale: Scale::Near,
        series: vec![series],
        rules: Vec::new(),
    };
    let note = "A read is fresh if no newer write had ended before it. The vertical axis can start above 0.";
    Ok(figure(&chart, title, note, &sql)?)
}

fn guarantees(verdict: &Verdict, found: &ConsistencyFigures) -> Markup {
    let columns: Vec<Column> = std::iter::once(Column::Words("session guarantee"))
        .chain(["reads by thread", "violated", "%", "reads by actor", "violated", "%"].map(Column::Number))
        .collect();
    let cells = |checked: Checked| {
        let share = percent(checked.violations, checked.reads);
        [grouped(checked.reads), grouped(checked.violations), format!("{share:.3}")]
    };
    let rows = found.by_thread.named().into_iter().zip(found.by_actor.named());
    let rows: Vec<Vec<Markup>> = rows
        .map(|((name, by_thread), (_, by_actor))| {
            let texts = cells(by_thread).into_iter().chain(cells(by_actor));
            std::iter::once(name.to_string()).chain(texts).map(|text| html! { (text) }).collect()
        })
        .collect();
    html! {
        (table(&columns, &rows))
        (statement(&format!("SELECT * FROM session_guarantees WHERE experiment = {}", verdict.experiment)))
    }
}

/// How available the store was.
pub(super) fn availability(verdict: &Verdict) -> Markup {
    html! {
        p { "Availability: " (availability_in_words(verdict)) "." }
        (statement(&format!("SELECT * FROM availability WHERE experiment = {}", verdict.experiment)))
    }
}
