//! The charts of a report. Each one draws the answer to a SQL statement, which is shown below it.

use duckdb::types::Value;
use maud::{Markup, html};
use schemas::manifest::Manifest;
use schemas::sla::short_time;
use schemas::verdict::Verdict;
use schemas::vocabulary::OperationKind;

use super::RunData;
use super::layout::{Column, figure, statement, table};
use crate::chart::{Across, HeatCell, HeatMap, LineChart, LinePoint, LineSeries, Mark, Rule, Scale, Stroke};
use crate::error::AnalyzeError;
use crate::families;
use crate::report::thousands as grouped;
use crate::sql::Database;

/// How many columns a heat map has.
const HEAT_COLUMNS: u64 = 60;

/// The percentiles that are drawn; they are closer together toward 100%.
const PERCENTS: [&str; 9] = ["0", "50", "90", "95", "99", "99.9", "99.99", "99.999", "100"];

/// Selects the slices in the time that counts. Operations in flight at its end finish in a last
/// slice, which measures nothing.
pub(super) const FULL: &str =
    "(slice = 0 OR to_s <= (SELECT counted_ns / 1e9 FROM experiments AS e WHERE e.experiment = timeline.experiment))";

/// The answer to a statement, by column.
pub(super) struct Answer {
    pub(super) rows: Vec<Vec<Value>>,
}

impl Answer {
    pub(super) fn to(database: &Database, sql: &str) -> Result<Answer, AnalyzeError> {
        Ok(Answer { rows: database.query(sql)?.rows })
    }
}

/// A number of an answer; NaN if it is not a number.
pub(super) fn number(value: &Value) -> f64 {
    match value {
        Value::Double(n) => *n,
        Value::Float(n) => f64::from(*n),
        Value::TinyInt(n) => f64::from(*n),
        Value::SmallInt(n) => f64::from(*n),
        Value::Int(n) => f64::from(*n),
        Value::BigInt(n) => *n as f64,
        Value::UBigInt(n) => *n as f64,
        Value::HugeInt(n) => *n as f64,
        _ => f64::NAN,
    }
}

pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Enum(text) => text.clone(),
        _ => String::new(),
    }
}

pub(super) fn point(x: f64, y: f64) -> LinePoint {
    LinePoint { x, y, mark: Mark::Filled }
}

/// Rounds to about four digits.
pub(super) fn rounded(value: f64) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    match value.abs() {
        v if v >= 1000.0 => format!("{sign}{}", grouped(v.round() as u64)),
        v if v >= 10.0 => format!("{value:.1}"),
        0.0 => "0".to_string(),
        _ => format!("{value:.3}"),
    }
}

/// Which times of the operations a chart shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    /// In an open loop from the due time of the session.
    Response,
    /// From the start of the operation.
    Service,
}

impl Times {
    /// The times of an experiment. In a closed loop both are equal, and are shown once.
    pub(super) fn of(verdict: &Verdict) -> &'static [Times] {
        match verdict.figures.overall.service {
            Some(_) => &[Times::Response, Times::Service],
            None => &[Times::Response],
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Times::Response => "Response times",
            Times::Service => "Service times",
        }
    }

    fn axis(self) -> &'static str {
        match self {
            Times::Response => "response time (ms)",
            Times::Service => "service time (ms)",
        }
    }

    /// Their column in the view `operations`, and their spectrum.
    fn column_and_spectrum(self) -> (&'static str, &'static str) {
        match self {
            Times::Response => ("response_ns", "spectrum"),
            Times::Service => ("service_ns", "service_spectrum"),
        }
    }

    /// What precedes the names of their columns in the view `timeline`.
    fn prefix(self) -> &'static str {
        match self {
            Times::Response => "",
            Times::Service => "service_",
        }
    }

    /// The limit of the SLA, which is about response times.
    fn rules(self, verdict: &Verdict) -> Vec<Rule> {
        match self {
            Times::Response => vec![beta(verdict)],
            Times::Service => Vec::new(),
        }
    }
}

/// Times at each percentile, by operation. Reads and writes have a chart each, so that every operation
/// has a colour of its own.
pub(super) fn spectra(data: &RunData<'_>, verdict: &Verdict, times: Times) -> Result<Markup, AnalyzeError> {
    let reads = spectrum(data, verdict, times, "reads", |kind| kind.reads)?;
    let writes = spectrum(data, verdict, times, "writes", |kind| kind.writes && !kind.reads)?;
    Ok(html! { (reads) (writes) })
}

fn spectrum(
    data: &RunData<'_>,
    verdict: &Verdict,
    times: Times,
    kind: &str,
    is_wanted: fn(&OperationKind) -> bool,
) -> Result<Markup, AnalyzeError> {
    let experiment = verdict.experiment;
    let (column, view) = times.column_and_spectrum();
    let sql = format!(
        "SELECT s.operation, w.percent, min(s.{column}) FILTER (s.percent >= w.percent) AS {column}\n\
         FROM {view} AS s, (SELECT unnest([{}]::DOUBLE[]) AS percent) AS w\n\
         WHERE s.experiment = {experiment} AND s.operation IN ({})\nGROUP BY ALL ORDER BY ALL",
        PERCENTS.join(", "),
        names(data, is_wanted)
    );
    let answer = Answer::to(data.database, &sql)?;
    let mut series: Vec<LineSeries> = Vec::new();
    for row in &answer.rows {
        let (operation, percent, ns) = (text(&row[0]), number(&row[1]), number(&row[2]));
        let place = PERCENTS.iter().position(|wanted| wanted.parse() == Ok(percent)).unwrap_or(0);
        if series.last().is_none_or(|series| series.label != operation) {
            series.push(LineSeries { label: operation.clone(), ..LineSeries::default() });
        }
        if let Some(own) = series.last_mut() {
            own.points.push(point(place as f64, ns / 1e6));
            own.tooltips.push(format!("{operation}: {percent}% within {}", short_time(ns as u64)));
        }
    }
    if series.is_empty() {
        return Ok(html! {});
    }
    let note = deciding_first(&mut series, verdict);
    let p95 = PERCENTS.iter().position(|percent| *percent == "95").unwrap_or(0);
    let p95s = series.iter().filter_map(|series| series.tooltips.get(p95)).cloned().collect::<Vec<_>>();
    let title = format!("{} by percentile: {kind}", times.plural());
    let chart = LineChart {
        title: title.clone(),
        description: p95s.join("; "),
        x_label: "percent of the operations".into(),
        y_label: times.axis().into(),
        across: Across::Points(PERCENTS.map(String::from).into()),
        y_scale: Scale::Log,
        series,
        rules: times.rules(verdict),
    };
    Ok(figure(&chart, &title, &note, &sql)?)
}

/// How many lines by percentile a reader can tell apart.
const LINES_MAX: usize = 6;

/// Puts the operations first that decide whether the SLA is met: the slowest at its percentile. Of many, only they are
/// drawn at first. Returns what a reader has to know about that.
fn deciding_first(series: &mut [LineSeries], verdict: &Verdict) -> String {
    let alpha = verdict.sla.alpha_percent;
    let place = PERCENTS.iter().position(|percent| percent.parse().is_ok_and(|own: f64| own >= alpha)).unwrap_or(0);
    let time = |series: &LineSeries| series.points.get(place).map_or(f64::NEG_INFINITY, |point| point.y);
    series.sort_by(|a, b| time(b).total_cmp(&time(a)));
    if series.len() <= LINES_MAX {
        return String::new();
    }
    series.iter_mut().skip(LINES_MAX).for_each(|series| series.is_off = true);
    format!(
        "Drawn are the {LINES_MAX} operations that decide the SLA, the slowest at {}%. The legend has all {}, and so has \
         the table of operations.",
        PERCENTS[place],
        series.len()
    )
}

/// The names of operations, as SQL strings.
pub(super) fn names(data: &RunData<'_>, is_wanted: fn(&OperationKind) -> bool) -> String {
    let wanted = data.family.kinds().iter().filter(|kind| is_wanted(kind));
    wanted.map(|kind| format!("'{}'", kind.name)).collect::<Vec<_>>().join(", ")
}

fn beta(verdict: &Verdict) -> Rule {
    let beta_ns = verdict.sla.beta_ns;
    Rule::at(beta_ns as f64 / 1e6, format!("SLA: {}", short_time(beta_ns)))
}

/// The number of operations by when they ended and how long they took.
pub(super) fn heat_map(data: &RunData<'_>, verdict: &Verdict, times: Times) -> Result<Markup, AnalyzeError> {
    let (experiment, (column, _)) = (verdict.experiment, times.column_and_spectrum());
    let width_ns = (verdict.figures.elapsed_ns / HEAT_COLUMNS).max(1);
    // Four steps to a doubling: finer ones could not be distinguished.
    let sql = format!(
        "SELECT (end_ns - measured_from_ns) // {width_ns} AS slice, CAST(floor(log2(greatest({column}, 1)) * 4) AS INTEGER) AS step,\n\
         \u{20}      count(*) AS operations\n\
         FROM operations JOIN experiments USING (experiment)\n\
         WHERE experiment = {experiment} AND NOT warmup AND NOT drained AND counts_as = 'ok' GROUP BY ALL ORDER BY ALL"
    );
    let answer = Answer::to(data.database, &sql)?;
    let cell = |row: &Vec<Value>| {
        let (slice, step, count) = (number(&row[0]).clamp(0.0, HEAT_COLUMNS as f64), number(&row[1]), number(&row[2]));
        let from_s = slice * width_ns as f64 / 1e9;
        let x = (from_s, from_s + width_ns as f64 / 1e9);
        let (from_ns, to_ns) = ((step / 4.0).exp2(), ((step + 1.0) / 4.0).exp2());
        HeatCell { x, y: (from_ns / 1e6, to_ns / 1e6), count: count as u64 }
    };
    let cells: Vec<HeatCell> = answer.rows.iter().map(cell).collect();
    if cells.is_empty() {
        return Ok(html! {});
    }
    let in_words = |cell: &HeatCell| {
        let time = |ms: f64| short_time((ms * 1e6) as u64);
        let (from, to) = (time(cell.y.0), time(cell.y.1));
        format!("{} operations of {from} to {to}, at {:.2} s", grouped(cell.count), cell.x.0)
    };
    let fullest = cells.iter().max_by_key(|cell| cell.count).map(in_words).unwrap_or_default();
    let title = format!("{} over time", times.plural());
    let chart = HeatMap {
        title: title.clone(),
        description: format!("Most: {fullest}."),
        x_label: "seconds".into(),
        y_label: times.axis().into(),
        cells,
    };
    let note = match times {
        Times::Response => "A colour is the number of operations that ended in that time with that response time.",
        Times::Service => "A colour is the number of operations that ended in that time with that service time.",
    };
    Ok(figure(&chart, &title, note, &sql)?)
}

/// Throughput, errors and unpredictable reads over time.
pub(super) fn course(data: &RunData<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let sql = format!(
        "SELECT from_s, ok / (to_s - from_s) AS ok_per_s, errors / (to_s - from_s) AS errors_per_s,\n\
         \u{20}      unpredictable / (to_s - from_s) AS unpredictable_per_s\n\
         FROM timeline WHERE experiment = {} AND {FULL} ORDER BY slice",
        verdict.experiment
    );
    let names = [("ok", true), ("errors", false), ("unpredictable", false)];
    over_time(
        data,
        &sql,
        "Throughput and errors",
        "operations/s",
        &names,
        Scale::Linear,
        Vec::new(),
        |value, name, s| format!("{} {name}/s at {s:.2} s", rounded(value)),
    )
}

/// Percentiles of times over time.
pub(super) fn times_in_course(data: &RunData<'_>, verdict: &Verdict, times: Times) -> Result<Markup, AnalyzeError> {
    let column = |name: &str| format!("{}{name}_ns / 1e6 AS {name}", times.prefix());
    let sql = format!(
        "SELECT from_s, {}\n\
         FROM timeline WHERE experiment = {} AND ok > 0 AND {FULL} ORDER BY slice",
        ["p50", "p95", "p99", "max"].map(column).join(", "),
        verdict.experiment
    );
    let names = [("p50", true), ("p95", true), ("p99", true), ("max", true)];
    let title = format!("Percentiles of {}", times.plural().to_lowercase());
    over_time(data, &sql, &title, "ms", &names, Scale::Log, times.rules(verdict), |value, name, s| {
        format!("{name} {} at {s:.2} s", short_time((value * 1e6) as u64))
    })
}

/// One line for each column after the first, which has the seconds. A column that is not always
/// wanted is omitted if it is 0 throughout.
#[expect(clippy::too_many_arguments, reason = "two pictures that differ in all of them")]
pub(super) fn over_time(
    data: &RunData<'_>,
    sql: &str,
    title: &str,
    y_label: &str,
    names: &[(&str, bool)],
    y_scale: Scale,
    rules: Vec<Rule>,
    in_words: impl Fn(f64, &str, f64) -> String,
) -> Result<Markup, AnalyzeError> {
    let answer = Answer::to(data.database, sql)?;
    if answer.rows.is_empty() {
        return Ok(html! {});
    }
    let chart = time_chart(title, y_label, y_scale, rules, series_over_time(&answer, names, in_words));
    Ok(figure(&chart, title, "", sql)?)
}

/// A line for each column of an answer, as [`over_time`] draws it.
pub(super) fn series_over_time(
    answer: &Answer,
    names: &[(&str, bool)],
    in_words: impl Fn(f64, &str, f64) -> String,
) -> Vec<LineSeries> {
    let mut series = Vec::new();
    for (column, (name, is_always_wanted)) in names.iter().enumerate() {
        let of = |row: &Vec<Value>| (number(&row[0]), number(&row[column + 1]));
        let values: Vec<(f64, f64)> = answer.rows.iter().map(of).collect();
        if *is_always_wanted || values.iter().any(|(_, value)| *value > 0.0) {
            series.push(LineSeries {
                label: (*name).to_string(),
                points: values.iter().map(|(x, y)| point(*x, *y)).collect(),
                tooltips: values.iter().map(|(x, y)| in_words(*y, name, *x)).collect(),
                stroke: Stroke::Plain,
                ..LineSeries::default()
            });
        }
    }
    series
}

/// A chart over seconds.
pub(super) fn time_chart(
    title: &str,
    y_label: &str,
    y_scale: Scale,
    rules: Vec<Rule>,
    series: Vec<LineSeries>,
) -> LineChart {
    let highest = series.iter().filter_map(|series| {
        let highest = series
            .points
            .iter()
            .enumerate()
            .filter(|(_, point)| point.y.is_finite())
            .max_by(|a, b| a.1.y.total_cmp(&b.1.y))?;
        series.tooltips.get(highest.0).cloned()
    });
    LineChart {
        title: title.into(),
        description: format!("Highest: {}.", highest.collect::<Vec<_>>().join("; ")),
        x_label: "seconds".into(),
        y_label: y_label.into(),
        across: Across::Numbers(Scale::Linear),
        y_scale,
        series,
        rules,
    }
}

/// How often reads showed all completed updates, by the time since the last of them.
pub(super) fn freshness(data: &RunData<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let sql = format!(
        "SELECT to_us, fresh_percent, reads FROM freshness\nWHERE experiment = {} ORDER BY to_us",
        verdict.experiment
    );
    let answer = Answer::to(data.database, &sql)?;
    if answer.rows.is_empty() {
        return Ok(html! {});
    }
    let age = |row: &Vec<Value>| short_time((number(&row[0]) * 1e3) as u64);
    let in_words = |row: &Vec<Value>| {
        format!("{:.2}% of {} items, younger than {}", number(&row[1]), grouped(number(&row[2]) as u64), age(row))
    };
    let series = LineSeries {
        label: "fresh items".into(),
        points: answer.rows.iter().map(|row| point(number(&row[0]) / 1e3, number(&row[1]))).collect(),
        tooltips: answer.rows.iter().map(in_words).collect(),
        ..LineSeries::default()
    };
    let chart = LineChart {
        title: "Freshness".into(),
        description: series.tooltips.join("; "),
        x_label: "time since the last completed update (upper bound, ms)".into(),
        y_label: "% of items read".into(),
        across: Across::Numbers(Scale::Log),
        y_scale: Scale::Near,
        series: vec![series],
        rules: Vec::new(),
    };
    let note = "An item is fresh if the read showed all completed updates of it. The vertical axis can start above 0.";
    Ok(figure(&chart, "Freshness", note, &sql)?)
}

/// The requested mix, and the mix that was run.
pub(super) fn mix(data: &RunData<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let sql = format!(
        "SELECT kind, count(*) AS sessions, 100.0 * count(*) / sum(count(*)) OVER () AS percent\n\
         FROM sessions WHERE experiment = {} AND NOT warmup GROUP BY kind ORDER BY kind",
        verdict.experiment
    );
    let answer = Answer::to(data.database, &sql)?;
    if answer.rows.is_empty() {
        return Ok(html! {});
    }
    let mix = &data.document.spec.mix;
    let whole: f64 = mix.values().sum();
    let had = |kind: &str| answer.rows.iter().find(|row| text(&row[0]) == kind);
    let columns =
        [Column::Words("session"), Column::Number("% requested"), Column::Number("% run"), Column::Number("sessions")];
    let row = |(kind, share): (&String, &f64)| {
        let (percent, sessions) = had(kind).map_or((0.0, 0), |row| (number(&row[2]), number(&row[1]) as u64));
        let texts = [kind.clone(), format!("{:.3}", share / whole * 100.0), format!("{percent:.3}"), grouped(sessions)];
        texts.map(|text| html! { (text) }).into()
    };
    let mut by_share: Vec<(&String, &f64)> = mix.iter().collect();
    by_share.sort_by(|a, b| b.1.total_cmp(a.1));
    let rows: Vec<Vec<Markup>> = by_share.into_iter().map(row).collect();
    Ok(html! {
        (table(&columns, &rows))
        p.soft {
            "A session that could not start, because what it needs did not exist, is a no-operation and is not counted."
        }
        (statement(&sql))
    })
}

/// The share of the draws that goes to the most popular items, from the trace set. An experiment
/// uses only a beginning of the trace set, which is too short to show popularity.
pub(super) fn popularity(data: &RunData<'_>) -> Markup {
    let manifest = Manifest::read(&data.document.trace).ok();
    let Some(manifest) = manifest.filter(|manifest| manifest.workload_id == data.document.workload_id) else {
        return html! {};
    };
    match families::of(&manifest.spec).ok().and_then(|family| family.popularity(&manifest)) {
        Some(popularity) => html! { p { "Popularity: " (popularity) } },
        None => html! {},
    }
}

#[cfg(test)]
mod tests {
    use schemas::sla::Sla;

    use super::*;

    /// Before, the lines of eleven actions hid each other, whichever of them missed the SLA.
    #[test]
    fn operations_that_decide_the_sla_come_first() {
        let verdict = crate::void_verdict(1, 1, Sla::default(), Vec::new());
        // At 95% the later ones are slower; at 100% it is the other way round.
        let line = |number: u32| LineSeries {
            label: number.to_string(),
            points: PERCENTS
                .iter()
                .enumerate()
                .map(|(place, percent)| {
                    point(place as f64, if *percent == "100" { 1000.0 - f64::from(number) } else { f64::from(number) })
                })
                .collect(),
            ..LineSeries::default()
        };
        let mut many: Vec<LineSeries> = (1..=8).map(line).collect();
        let note = deciding_first(&mut many, &verdict);
        let labels = |series: &[LineSeries]| series.iter().map(|own| own.label.as_str()).collect::<String>();
        assert_eq!(labels(&many), "87654321");
        assert!(many.iter().map(|own| own.is_off).eq([false, false, false, false, false, false, true, true]));
        assert!(note.contains("the slowest at 95%") && note.contains("has all 8"), "{note}");
        let mut few: Vec<LineSeries> = (1..=6).map(line).collect();
        assert_eq!(deciding_first(&mut few, &verdict), "");
        assert!(few.iter().all(|own| !own.is_off));
    }
}
