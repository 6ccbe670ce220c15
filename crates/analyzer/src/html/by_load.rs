//! The charts of all experiments of a run: throughput and the SLA, by threads or arrival rate.

use std::collections::BTreeMap;

use maud::{Markup, html};
use schemas::verdict::{RatedExperiment, Rating, Ruling};

use super::RunData;
use super::figures::{Answer, number, rounded, text};
use super::layout::figure;
use crate::chart::{Across, LineChart, LinePoint, LineSeries, Mark, Rule, Scale, Stroke};
use crate::error::AnalyzeError;
use crate::report::thousands as grouped;

/// The colour of the line of means: ink.
const MEAN_LOOK: usize = 6;
/// The colour of SoAR, which is also that of its band.
const SOAR_LOOK: usize = 2;

/// An experiment as a point of a chart.
struct Point {
    experiment: u32,
    load: f64,
    value: f64,
    ruling: String,
}

/// A number of every experiment.
struct Number {
    title: &'static str,
    column: &'static str,
    unit: &'static str,
    scale: Scale,
    rules: Vec<Rule>,
    note: &'static str,
}

/// The load of the experiments: the axis across.
pub(super) struct Axis {
    /// What the load is.
    pub(super) noun: &'static str,
    /// Its column in the view `experiments`.
    column: &'static str,
    label: &'static str,
    /// What precedes and follows a load in a text.
    around: (&'static str, &'static str),
}

impl Axis {
    /// The arrival rate if all experiments were open loops, else threads.
    pub(super) fn of(data: &RunData<'_>) -> Axis {
        match data.verdicts.iter().all(|verdict| verdict.rate_per_s.is_some()) {
            true => Axis {
                noun: "arrival rate",
                column: "rate_per_s",
                label: "arrival rate (sessions/s)",
                around: ("", " sessions/s due"),
            },
            false => Axis { noun: "threads", column: "threads", label: "threads", around: ("T = ", "") },
        }
    }

    fn named(&self, load: f64) -> String {
        format!("{}{load}{}", self.around.0, self.around.1)
    }
}

/// Throughput, share within β and share unpredictable by load. The marks of the experiments are
/// numbered in their order.
pub(super) fn by_load(data: &RunData<'_>) -> Result<Markup, AnalyzeError> {
    let Some(last) = data.verdicts.last() else { return Ok(html! {}) };
    let sla = last.sla;
    let soar = data.rating.and_then(|rating| rating.soar.as_ref()).filter(|soar| soar.value > 0.0);
    let numbers = [
        Number {
            title: "Throughput",
            column: "throughput_per_s",
            unit: "operations/s",
            scale: Scale::Linear,
            rules: soar.map(soar_rule).into_iter().collect(),
            note: "",
        },
        Number {
            title: "Within the response time",
            column: "within_beta_percent",
            unit: "% of operations",
            scale: Scale::Near,
            rules: vec![Rule::at(sla.alpha_percent, format!("SLA: at least {}%", sla.alpha_percent))],
            note: "The vertical axis can start above 0.",
        },
        Number {
            title: "Unpredictable",
            column: "unpredictable_percent",
            unit: "% of reads",
            scale: Scale::Linear,
            rules: vec![Rule::at(sla.tau_percent, format!("SLA: at most {}%", sla.tau_percent))],
            note: "",
        },
    ];
    let mut drawn = Vec::new();
    for number in numbers {
        let soar = soar.filter(|_| number.column == "throughput_per_s");
        drawn.push(chart(data, number, soar)?);
    }
    Ok(html! {
        p.soft {
            "Each mark is one experiment, with its number where there is room; hover for details."
            @if data.rating.is_some() {
                " Hollow marks are experiments of the search, filled marks are final experiments. The ratings, their \
                 intervals and the final experiments are in rating.json."
            }
        }
        @for figure in drawn { (figure) }
    })
}

fn chart(data: &RunData<'_>, number: Number, soar: Option<&Rating>) -> Result<Markup, AnalyzeError> {
    let Number { title, column, unit, scale, rules, note } = number;
    let axis = Axis::of(data);
    let sql = format!("SELECT experiment, {}, {column}, ruling\nFROM experiments ORDER BY experiment", axis.column);
    let points = points(data, &sql)?;
    let mut series = marks(data, &points, &axis, unit);
    let mut in_words: Vec<String> = rules.iter().map(|rule| rule.label.clone()).collect();
    in_words.extend(series.iter().flat_map(|series| series.tooltips.iter().cloned()));
    if column == "throughput_per_s" {
        // The lines are below the marks.
        series.splice(0..0, means(data.rating.map(|rating| rating.experiments.as_slice()), &points));
    }
    series.extend(soar.map(soar_ring));
    series.retain(|series| !series.points.is_empty());
    let chart = LineChart {
        title: format!("{title} by {}", axis.noun),
        description: in_words.join("; "),
        x_label: axis.label.into(),
        y_label: unit.into(),
        across: Across::Numbers(Scale::suited_to(points.iter().map(|point| point.load))),
        y_scale: scale,
        series,
        rules,
    };
    Ok(figure(&chart, title, note, &sql)?)
}

fn points(data: &RunData<'_>, sql: &str) -> Result<Vec<Point>, AnalyzeError> {
    let answer = Answer::to(data.database, sql)?;
    let point = |row: &Vec<_>| Point {
        experiment: number(&row[0]) as u32,
        load: number(&row[1]),
        value: number(&row[2]),
        ruling: text(&row[3]),
    };
    Ok(answer.rows.iter().map(point).collect())
}

/// The marks of the experiments, by their ruling and, in a rating, by whether they are final.
fn marks(data: &RunData<'_>, points: &[Point], axis: &Axis, unit: &str) -> Vec<LineSeries> {
    let (search, finals): (Vec<&Point>, Vec<&Point>) = points.iter().partition(|own| !data.is_final(own.experiment));
    // Final experiments are drawn above the others.
    match data.rating {
        None => marks_of(&search, axis, Mark::Filled, "", unit),
        Some(_) => {
            let mut all = marks_of(&search, axis, Mark::Hollow, ", search", unit);
            all.extend(marks_of(&finals, axis, Mark::Filled, ", final", unit));
            all
        }
    }
}

fn marks_of(points: &[&Point], axis: &Axis, mark: Mark, phase: &str, unit: &str) -> Vec<LineSeries> {
    let of = |(look, ruling): (usize, Ruling)| {
        let own = || points.iter().filter(|point| point.ruling == ruling.name());
        let in_words = |point: &&Point| {
            let Point { experiment, load, value, ruling } = point;
            let (load, value) = (axis.named(*load), rounded(*value));
            format!("experiment {experiment}{phase}: {load}, {value} {unit}, {ruling}")
        };
        LineSeries {
            label: format!("{}{phase}", ruling.name()),
            points: own().map(|point| LinePoint { x: point.load, y: point.value, mark }).collect(),
            tooltips: own().map(in_words).collect(),
            names: own().map(|point| point.experiment.to_string()).collect(),
            stroke: Stroke::Scattered,
            links: own().map(|point| format!("#experiment-{}", point.experiment)).collect(),
            on_right: None,
            is_off: false,
            // The colour of SoAR is no ruling's.
            look: Some(if look < SOAR_LOOK { look } else { look + 1 }),
        }
    };
    [Ruling::Pass, Ruling::Fail, Ruling::Void].into_iter().enumerate().map(of).collect()
}

/// A line for each search, through the means of its experiments with the same load. Experiments of another length
/// belong to another search, and final experiments to none.
fn means(trials: Option<&[RatedExperiment]>, points: &[Point]) -> Vec<LineSeries> {
    let Some(trials) = trials else { return vec![mean_line(points.iter(), "mean, without void".into())] };
    let search = || trials.iter().filter(|own| !own.is_final);
    let mut lengths: Vec<f64> = search().map(|own| own.duration_s).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.dedup();
    let line = |length_s: &f64| {
        let is_own =
            |point: &&Point| search().any(|own| own.duration_s == *length_s && own.experiment == point.experiment);
        let of = if lengths.len() > 1 { format!(" of {length_s} s") } else { String::new() };
        mean_line(points.iter().filter(is_own), format!("mean of the search{of}, without void"))
    };
    lengths.iter().map(line).collect()
}

/// A line through the means of the experiments with the same load, to the nearest whole one.
fn mean_line<'a>(points: impl Iterator<Item = &'a Point>, label: String) -> LineSeries {
    let mut by_load: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for point in points.filter(|point| point.ruling != Ruling::Void.name()) {
        by_load.entry(point.load.round() as u64).or_default().push(point.value);
    }
    let mean = |(load, values): (u64, Vec<f64>)| LinePoint {
        x: load as f64,
        y: values.iter().sum::<f64>() / values.len() as f64,
        mark: Mark::Filled,
    };
    let points: Vec<LinePoint> = by_load.into_iter().map(mean).collect();
    // One point is no line.
    let points = if points.len() > 1 { points } else { Vec::new() };
    LineSeries { label, points, stroke: Stroke::Plain, look: Some(MEAN_LOOK), ..LineSeries::default() }
}

/// SoAR as a line across the chart, with a band for its interval.
fn soar_rule(soar: &Rating) -> Rule {
    let least = if soar.at_least { "at least " } else { "" };
    Rule {
        y: soar.value,
        label: format!("SoAR: {least}{}", whole(soar.value)),
        band: soar.interval.as_ref().map(|interval| (interval.low, interval.high)),
    }
}

/// A ring around the mark that SoAR is. The legend has the ends of the interval.
fn soar_ring(soar: &Rating) -> LineSeries {
    let interval = soar.interval.as_ref();
    let band = interval.map_or(String::new(), |i| format!(", band: {} to {}", whole(i.low), whole(i.high)));
    LineSeries {
        label: format!("SoAR{band}"),
        points: vec![LinePoint { x: f64::from(soar.threads), y: soar.value, mark: Mark::Ring }],
        stroke: Stroke::Scattered,
        look: Some(SOAR_LOOK),
        ..LineSeries::default()
    }
}

fn whole(value: f64) -> String {
    grouped(value.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before, one line led through experiments of all lengths, and through final ones.
    #[test]
    fn a_line_connects_experiments_of_one_search() {
        let trial = |(experiment, threads, duration_s, is_final): (u32, u32, f64, bool)| {
            serde_json::json!({
                "experiment": experiment, "started_unix_s": 0, "threads": threads, "duration_s": duration_s,
                "is_final": is_final, "ruling": "pass", "reasons": [], "throughput_per_s": 1.0, "sessions_per_s": 1.0,
                "within_beta_percent": 100.0, "unpredictable_percent": 0.0,
            })
        };
        let trials = [
            (1, 1, 3.0, false),
            (2, 2, 3.0, false),
            (3, 2, 3.0, false),
            (4, 1, 10.0, false),
            (5, 4, 10.0, false),
            (6, 2, 60.0, true),
        ];
        let experiments: Vec<RatedExperiment> =
            serde_json::from_value(trials.map(trial).to_vec().into()).expect("experiments");
        let point = |(experiment, threads, ..): (u32, u32, f64, bool)| Point {
            experiment,
            load: f64::from(threads),
            value: f64::from(experiment),
            ruling: Ruling::Pass.name().into(),
        };
        let lines = means(Some(&experiments), &trials.map(point));
        let of = |line: &LineSeries| line.points.iter().map(|point| (point.x, point.y)).collect::<Vec<_>>();
        assert_eq!(lines.iter().map(of).collect::<Vec<_>>(), [[(1.0, 1.0), (2.0, 2.5)], [(1.0, 4.0), (4.0, 5.0)]]);
        assert_eq!(lines[1].label, "mean of the search of 10 s, without void");
    }
}
