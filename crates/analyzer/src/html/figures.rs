//! The pictures of a report. Each asks one statement, which stands below it, and draws
//! the answer.

use duckdb::types::Value;
use maud::{Markup, html};
use schemas::sla::short_time;
use schemas::social::Action;
use schemas::verdict::{Ruling, Verdict};

use super::{Told, page};
use crate::chart::{
    Across, ChartError, HeatCell, HeatMap, LineChart, LinePoint, LineSeries, Mark, Rule, Scale, Span, SpanChart,
    Stroke, heat, lines, spans,
};
use crate::error::AnalyzeError;
use crate::report::{Story, story, thousands as grouped, write_line};
use crate::sql::Database;
use crate::witness::Offender;

/// How many columns a heat map has.
const HEAT_COLUMNS: u64 = 60;

/// The percentiles that are drawn: the further out, the closer.
const PERCENTS: [&str; 15] =
    ["0", "10", "25", "50", "75", "90", "95", "99", "99.5", "99.9", "99.95", "99.99", "99.995", "99.999", "100"];

/// The slices that are over when the time is: what is in flight then ends in a last one
/// that is no measure of anything.
pub(super) const FULL: &str =
    "(slice = 0 OR to_s <= (SELECT counted_ns / 1e9 FROM experiments AS e WHERE e.experiment = timeline.experiment))";

/// The answer to a statement, by column.
struct Answer {
    rows: Vec<Vec<Value>>,
}

impl Answer {
    fn to(database: &Database, sql: &str) -> Result<Answer, AnalyzeError> {
        Ok(Answer { rows: database.query(sql)?.rows })
    }
}

/// A number of an answer; no answer is not a number.
fn number(value: &Value) -> f64 {
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

fn text(value: &Value) -> String {
    match value {
        Value::Text(text) | Value::Enum(text) => text.clone(),
        _ => String::new(),
    }
}

fn point(x: f64, y: f64) -> LinePoint {
    LinePoint { x, y, mark: Mark::Filled }
}

/// Throughput, share within β and share unpredictable by threads, every experiment marked
/// in the order it ran.
pub(super) fn by_threads(told: &Told<'_>) -> Result<Markup, AnalyzeError> {
    let Some(last) = told.verdicts.last() else { return Ok(html! {}) };
    let sla = last.sla;
    let alpha = Rule { y: sla.alpha_percent, label: format!("agreed: at least {}%", sla.alpha_percent) };
    let tau = Rule { y: sla.tau_percent, label: format!("agreed: at most {}%", sla.tau_percent) };
    let mut drawn = Vec::new();
    for (title, column, y_label, rules) in [
        ("Throughput", "throughput_per_s", "actions/s", Vec::new()),
        ("Within the response time", "within_beta_percent", "% of operations", vec![alpha]),
        ("Unpredictable", "unpredictable_percent", "% of reads", vec![tau]),
    ] {
        let sql = format!("SELECT experiment, threads, {column}, ruling\nFROM experiments ORDER BY experiment");
        let answer = Answer::to(told.database, &sql)?;
        let mut series: Vec<LineSeries> = [Ruling::Pass, Ruling::Fail, Ruling::Void].map(by_ruling).into();
        for row in &answer.rows {
            let ruling = text(&row[3]);
            let (experiment, threads, value) = (number(&row[0]), number(&row[1]), number(&row[2]));
            let Some(own) = series.iter_mut().find(|series| series.label == ruling) else { continue };
            own.points.push(LinePoint { x: threads, y: value, mark: Mark::Filled });
            own.names.push(format!("{experiment}"));
            own.told.push(format!("experiment {experiment}: T = {threads}, {} {y_label}, {ruling}", rounded(value)));
        }
        series.retain(|series| !series.points.is_empty());
        let points = series.iter().flat_map(|series| series.told.iter().cloned()).collect::<Vec<_>>();
        let threads: Vec<f64> = answer.rows.iter().map(|row| number(&row[1])).collect();
        let svg = lines(&LineChart {
            title: format!("{title} by threads"),
            description: points.join("; "),
            x_label: "threads".into(),
            y_label: y_label.into(),
            across: Across::Numbers(Scale::suited_to(threads)),
            y_scale: Scale::Linear,
            series,
            rules,
        })?;
        drawn.push(page::figure(title, &svg, "", &sql));
    }
    Ok(html! {
        p.soft { "A mark is an experiment, numbered in the order they ran where there is room; point at one to see what it showed." }
        @for figure in drawn { (figure) }
    })
}

fn by_ruling(ruling: Ruling) -> LineSeries {
    LineSeries { label: ruling.name().into(), stroke: Stroke::Scattered, ..LineSeries::default() }
}

/// Four digits, and no more.
fn rounded(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => grouped(value.round() as u64),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Response times at each percentile, by action.
pub(super) fn spectrum(told: &Told<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let experiment = verdict.experiment;
    let sql = format!(
        "SELECT s.action, w.percent, min(s.response_ns) FILTER (s.percent >= w.percent) AS response_ns\n\
         FROM spectrum AS s, (SELECT unnest([{}]::DOUBLE[]) AS percent) AS w\n\
         WHERE s.experiment = {experiment} GROUP BY ALL ORDER BY ALL",
        PERCENTS.join(", ")
    );
    let answer = Answer::to(told.database, &sql)?;
    let mut series: Vec<LineSeries> = Vec::new();
    for row in &answer.rows {
        let (action, percent, ns) = (text(&row[0]), number(&row[1]), number(&row[2]));
        let place = PERCENTS.iter().position(|wanted| wanted.parse() == Ok(percent)).unwrap_or(0);
        if series.last().is_none_or(|series| series.label != action) {
            series.push(LineSeries { label: action.clone(), ..LineSeries::default() });
        }
        if let Some(own) = series.last_mut() {
            own.points.push(point(place as f64, ns / 1e6));
            own.told.push(format!("{action}: {percent}% within {}", short_time(ns as u64)));
        }
    }
    if series.is_empty() {
        return Ok(html! {});
    }
    let told = series.iter().filter_map(|series| series.told.get(7)).cloned().collect::<Vec<_>>();
    let svg = lines(&LineChart {
        title: "Response times by percentile".into(),
        description: told.join("; "),
        x_label: "percent of the operations".into(),
        y_label: "response time (ms)".into(),
        across: Across::Points(PERCENTS.map(String::from).into()),
        y_scale: Scale::Log,
        series,
        rules: vec![beta(verdict)],
    })?;
    Ok(page::figure("Response times by percentile", &svg, "", &sql))
}

fn beta(verdict: &Verdict) -> Rule {
    let beta_ns = verdict.sla.beta_ns;
    Rule { y: beta_ns as f64 / 1e6, label: format!("agreed: {}", short_time(beta_ns)) }
}

/// How many operations had which response time when.
pub(super) fn heat_map(told: &Told<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let experiment = verdict.experiment;
    let width_ns = (verdict.figures.elapsed_ns / HEAT_COLUMNS).max(1);
    // Four steps to a doubling: finer ones could not be told apart.
    let sql = format!(
        "SELECT (end_ns - measured_from_ns) // {width_ns} AS slice, CAST(floor(log2(greatest(response_ns, 1)) * 4) AS INTEGER) AS step,\n\
         \u{20}      count(*) AS operations\n\
         FROM operations JOIN experiments USING (experiment)\n\
         WHERE experiment = {experiment} AND NOT warmup AND NOT drained AND outcome = 'ok' GROUP BY ALL ORDER BY ALL"
    );
    let answer = Answer::to(told.database, &sql)?;
    let cell = |row: &Vec<Value>| {
        let (slice, step, count) = (number(&row[0]).clamp(0.0, HEAT_COLUMNS as f64), number(&row[1]), number(&row[2]));
        let from_s = slice * width_ns as f64 / 1e9;
        let x = (from_s, from_s + width_ns as f64 / 1e9);
        let (from_ns, to_ns) = ((step / 4.0).exp2(), ((step + 1.0) / 4.0).exp2());
        let told = format!(
            "{} operations of {} to {}, at {:.2} s",
            grouped(count as u64),
            short_time(from_ns as u64),
            short_time(to_ns as u64),
            x.0
        );
        HeatCell { x, y: (from_ns / 1e6, to_ns / 1e6), count: count as u64, told }
    };
    let cells: Vec<HeatCell> = answer.rows.iter().map(cell).collect();
    if cells.is_empty() {
        return Ok(html! {});
    }
    let fullest = cells.iter().max_by_key(|cell| cell.count).map(|cell| cell.told.clone()).unwrap_or_default();
    let svg = heat(&HeatMap {
        title: "Response times in the course of the experiment".into(),
        description: format!("Most: {fullest}."),
        x_label: "seconds".into(),
        y_label: "response time (ms)".into(),
        cells,
    })?;
    Ok(page::figure(
        "Response times in the course of the experiment",
        &svg,
        "Darker is more, on a logarithmic scale.",
        &sql,
    ))
}

/// Throughput, errors and unpredictable reads in the course of the experiment.
pub(super) fn course(told: &Told<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let sql = format!(
        "SELECT from_s, ok / (to_s - from_s) AS ok_per_s, errors / (to_s - from_s) AS errors_per_s,\n\
         \u{20}      unpredictable / (to_s - from_s) AS unpredictable_per_s\n\
         FROM timeline WHERE experiment = {} AND {FULL} ORDER BY slice",
        verdict.experiment
    );
    let names = [("ok", true), ("errors", false), ("unpredictable", false)];
    over_time(
        told,
        &sql,
        "Throughput and errors",
        "operations/s",
        &names,
        Scale::Linear,
        Vec::new(),
        |value, name, s| format!("{} {name}/s at {s:.2} s", rounded(value)),
    )
}

/// Percentiles of response times in the course of the experiment.
pub(super) fn times_in_course(told: &Told<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let sql = format!(
        "SELECT from_s, p50_ns / 1e6 AS p50, p95_ns / 1e6 AS p95, p99_ns / 1e6 AS p99, max_ns / 1e6 AS max\n\
         FROM timeline WHERE experiment = {} AND ok > 0 AND {FULL} ORDER BY slice",
        verdict.experiment
    );
    let names = [("p50", true), ("p95", true), ("p99", true), ("max", true)];
    let rules = vec![beta(verdict)];
    over_time(told, &sql, "Percentiles of response times", "ms", &names, Scale::Log, rules, |value, name, s| {
        format!("{name} {} at {s:.2} s", short_time((value * 1e6) as u64))
    })
}

/// A line for each column after the first, which has the seconds. Those that are not
/// always wanted are left out where they are 0 throughout.
#[expect(clippy::too_many_arguments, reason = "two pictures that differ in all of them")]
fn over_time(
    told: &Told<'_>,
    sql: &str,
    title: &str,
    y_label: &str,
    names: &[(&str, bool)],
    y_scale: Scale,
    rules: Vec<Rule>,
    in_words: impl Fn(f64, &str, f64) -> String,
) -> Result<Markup, AnalyzeError> {
    let answer = Answer::to(told.database, sql)?;
    let mut series = Vec::new();
    for (column, (name, is_always_wanted)) in names.iter().enumerate() {
        let of = |row: &Vec<Value>| (number(&row[0]), number(&row[column + 1]));
        let values: Vec<(f64, f64)> = answer.rows.iter().map(of).collect();
        if *is_always_wanted || values.iter().any(|(_, value)| *value > 0.0) {
            series.push(LineSeries {
                label: (*name).to_string(),
                points: values.iter().map(|(x, y)| point(*x, *y)).collect(),
                told: values.iter().map(|(x, y)| in_words(*y, name, *x)).collect(),
                names: Vec::new(),
                stroke: Stroke::Plain,
            });
        }
    }
    if answer.rows.is_empty() {
        return Ok(html! {});
    }
    let highest = series.iter().filter_map(|series| {
        let highest = series.points.iter().enumerate().max_by(|a, b| a.1.y.total_cmp(&b.1.y))?;
        series.told.get(highest.0).cloned()
    });
    let svg = lines(&LineChart {
        title: title.into(),
        description: format!("Highest: {}.", highest.collect::<Vec<_>>().join("; ")),
        x_label: "seconds".into(),
        y_label: y_label.into(),
        across: Across::Numbers(Scale::Linear),
        y_scale,
        series,
        rules,
    })?;
    Ok(page::figure(title, &svg, "", sql))
}

/// How often reads showed all completed updates, by the time since the last of them.
pub(super) fn freshness(told: &Told<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let sql = format!(
        "SELECT to_us, fresh_percent, reads FROM freshness\nWHERE experiment = {} ORDER BY to_us",
        verdict.experiment
    );
    let answer = Answer::to(told.database, &sql)?;
    if answer.rows.is_empty() {
        return Ok(html! {});
    }
    let age = |row: &Vec<Value>| short_time((number(&row[0]) * 1e3) as u64);
    let in_words = |row: &Vec<Value>| {
        format!("{:.2}% of {} items, younger than {}", number(&row[1]), grouped(number(&row[2]) as u64), age(row))
    };
    let series = LineSeries {
        label: "items that showed all completed updates".into(),
        points: answer.rows.iter().map(|row| point(number(&row[0]) / 1e3, number(&row[1]))).collect(),
        told: answer.rows.iter().map(in_words).collect(),
        names: Vec::new(),
        stroke: Stroke::Marked,
    };
    let svg = lines(&LineChart {
        title: "Freshness".into(),
        description: series.told.join("; "),
        x_label: "time since the last completed update, less than (ms)".into(),
        y_label: "% of items read".into(),
        across: Across::Numbers(Scale::Log),
        y_scale: Scale::Linear,
        series: vec![series],
        rules: Vec::new(),
    })?;
    Ok(page::figure("Freshness", &svg, "", &sql))
}

/// The mix that was asked for, and the one that was run.
pub(super) fn mix(told: &Told<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let sql = format!(
        "SELECT kind, count(*) AS sessions, 100.0 * count(*) / sum(count(*)) OVER () AS percent\n\
         FROM sessions WHERE experiment = {} AND NOT warmup GROUP BY kind ORDER BY kind",
        verdict.experiment
    );
    let answer = Answer::to(told.database, &sql)?;
    if answer.rows.is_empty() {
        return Ok(html! {});
    }
    let mix = &told.document.spec.mix;
    let whole: f64 = mix.values().sum();
    let had = |kind: &str| answer.rows.iter().find(|row| text(&row[0]) == kind);
    Ok(html! {
        h3 { "Mix" }
        div.wide { table {
            thead { tr { th.word { "session" } th { "% asked for" } th { "% run" } th { "sessions" } } }
            tbody { @for (kind, share) in mix {
                tr {
                    td.word { (kind) } td { (format!("{:.3}", share / whole * 100.0)) }
                    @if let Some(row) = had(kind) {
                        td { (format!("{:.3}", number(&row[2]))) } td { (grouped(number(&row[1]) as u64)) }
                    } @else { td { "0" } td { "0" } }
                }
            } }
        } }
        p.soft { "A session that nobody could begin (an invitation when all are friends) is a no-operation, and in neither." }
        (page::statement(&sql))
    })
}

/// The share of the references that go to a fifth of the members.
pub(super) fn popularity(told: &Told<'_>, verdict: &Verdict) -> Result<Markup, AnalyzeError> {
    let members = told.document.spec.data.members;
    let sql = format!(
        "WITH popular AS (\n\
         \u{20}   SELECT target, count(*) AS n, row_number() OVER (ORDER BY count(*) DESC) AS place\n\
         \u{20}   FROM operations WHERE experiment = {} AND NOT warmup AND NOT drained AND \"action\" IN ('view_profile', 'list_friends')\n\
         \u{20}   GROUP BY target)\n\
         SELECT 100.0 * sum(n) FILTER (place <= {members} / 5) / sum(n) AS percent FROM popular",
        verdict.experiment
    );
    let answer = Answer::to(told.database, &sql)?;
    let Some(percent) = answer.rows.first().map(|row| number(&row[0])).filter(|percent| percent.is_finite()) else {
        return Ok(html! {});
    };
    Ok(html! {
        h3 { "Popularity" }
        p { (format!("{percent:.1}% of the profiles and lists of friends that were asked for are those of a fifth of the members.")) }
        (page::statement(&sql))
    })
}

/// Unpredictable reads by action, and the worst of them as stories with the writes that
/// convict them on an axis of time.
pub(super) fn stories(verdict: &Verdict, offenders: &[Offender]) -> Result<Markup, AnalyzeError> {
    let figures = &verdict.figures;
    let mut told = Vec::new();
    for (number, offender) in offenders.iter().enumerate() {
        let Story { heading, told: sentence, because } = story(offender);
        let svg = picture(number + 1, offender)?;
        told.push(html! {
            figure {
                h3 { (number + 1) ". " (heading) }
                p { (sentence) }
                p.soft { (because) }
                @if let Some(svg) = &svg { (page::picture(svg, &format!("story {}", number + 1))) }
            }
        });
    }
    let by_action = figures.by_action.iter().filter(|(_, own)| own.unpredictable > 0);
    let by_action = by_action.map(|(action, own)| format!("{}: {}", action.name(), grouped(own.unpredictable)));
    let by_action = by_action.collect::<Vec<_>>().join(", ");
    let reads = Action::ALL.into_iter().filter(|action| action.is_read());
    let reads: Vec<String> = reads.map(|action| format!("'{}'", action.name())).collect();
    let sql = format!(
        "SELECT \"action\", count(*) AS reads, count(*) FILTER (unpredictable) AS unpredictable\nFROM operations\n\
         WHERE experiment = {0} AND NOT warmup AND NOT drained AND outcome = 'ok'\n  AND \"action\" IN ({1})\nGROUP BY ALL ORDER BY ALL;\n\n\
         SELECT * FROM unpredictable WHERE experiment = {0} AND NOT warmup AND NOT drained\n\
         ORDER BY greatest(low - observed, observed - high) DESC, start_ns, fragment, session, step, item, element\n\
         LIMIT {2}",
        verdict.experiment,
        reads.join(", "),
        offenders.len().max(1)
    );
    Ok(html! {
        p {
            (grouped(figures.unpredictable_reads)) " of " (grouped(figures.reads)) " reads ("
            (format!("{:.3}", figures.unpredictable_percent)) "%) returned what no correct store could have returned."
            @if !by_action.is_empty() { " By action: " (by_action) "." }
        }
        @for story in told { (story) }
        (page::statement(&sql))
    })
}

/// The read and the writes around it; none where no write has to do with it.
fn picture(number: usize, offender: &Offender) -> Result<Option<String>, ChartError> {
    if offender.writes.is_empty() {
        return Ok(None);
    }
    let starts = offender.writes.iter().map(|write| write.start_ns).chain([offender.start_ns]);
    let zero = starts.min().unwrap_or(0);
    let ms = |ns: i64| (ns - zero) as f64 / 1e6;
    let mut all: Vec<Span> = offender
        .writes
        .iter()
        .map(|write| Span {
            label: write_line(write, offender),
            from: ms(write.start_ns),
            to: (write.outcome == schemas::oplog::Outcome::Ok).then(|| ms(write.end_ns)),
            is_subject: false,
        })
        .collect();
    all.reverse();
    all.push(Span {
        label: format!("the read: {}", short_time((offender.end_ns - offender.start_ns).max(0) as u64)),
        from: ms(offender.start_ns),
        to: Some(ms(offender.end_ns)),
        is_subject: true,
    });
    let chart = SpanChart {
        title: format!("Story {number}: what happened when"),
        description: all.iter().map(|span| span.label.clone()).collect::<Vec<_>>().join("; "),
        x_label: "milliseconds".into(),
        spans: all,
    };
    spans(&chart).map(Some)
}
