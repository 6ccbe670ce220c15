//! Runs side by side as one page.

use std::path::Path;

use maud::{Markup, html};
use schemas::files;
use schemas::sla::short_time;
use schemas::verdict::{Ruling, Verdict};

use super::figures::FULL;
use super::page;
use crate::chart::{Across, LineChart, LinePoint, LineSeries, Mark, Scale, Stroke, lines};
use crate::compare::{Compared, full_slices, in_words, judged, unequal};
use crate::error::AnalyzeError;
use crate::report::thousands;

/// Writes the page.
pub(crate) fn write(runs: &[Compared], path: &Path) -> Result<(), AnalyzeError> {
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    let title = names.join(" and ");
    let body = html! {
        header { h1 { (title) } }
        @let differences = unequal(runs);
        @if !differences.is_empty() {
            p.fail { "Not alike before anything is compared:" }
            ul { @for sentence in &differences { li { (sentence) } } }
        }
        (page::section("Figures", &table(runs)))
        (page::section("Differences", &judgements(runs)))
        (by_threads(runs)?)
        (page::section("In the course of the experiments", &over_time(runs)?))
        (page::section("Response times by percentile", &percentiles(runs)?))
    };
    files::write_atomically(path, page::page(&title, &body).as_bytes())?;
    Ok(())
}

fn table(runs: &[Compared]) -> Markup {
    html! {
        div.wide { table {
            thead { tr {
                th.word { "run" } th { "experiment" } th { "T" } th { "actions/s" } th { "p50" } th { "p95" } th { "p99" }
                th { "% within" } th { "% unpredictable" } th { "SoAR" } th { "Socialites" } th.word { "ruling" }
            } }
            tbody { @for run in runs {
                @let (verdict, overall) = (&run.verdict, &run.verdict.figures.overall);
                @let ratings = run.rating.as_ref();
                tr {
                    td.word { (run.name) br; span.soft { (run.document.store) } }
                    td { (verdict.experiment) } td { (verdict.threads) }
                    td { (thousands(verdict.figures.throughput_per_s.round() as u64)) }
                    @for time in [overall.p50_ns, overall.p95_ns, overall.p99_ns] { td { (short_time(time)) } }
                    td { (format!("{:.2}", verdict.figures.within_beta_percent)) }
                    td { (format!("{:.3}", verdict.figures.unpredictable_percent)) }
                    td { @if let Some(soar) = ratings.and_then(|r| r.soar.as_ref()) { (thousands(soar.value.round() as u64)) } }
                    td { @if let Some(socialites) = ratings.and_then(|r| r.socialites.as_ref()) { (socialites.threads) } }
                    td.word { span class=(verdict.ruling.name()) { (verdict.ruling.name()) } }
                }
            } }
        } }
    }
}

fn judgements(runs: &[Compared]) -> Markup {
    let range = |low: f64, high: f64| format!("{low:.3} to {high:.3}");
    html! {
        div.wide { table {
            thead { tr {
                th.word { "figure" } th.word { "run" } th { "mean" } th { "95% of the mean" } th { "difference" }
                th { "95% of the difference" } th.word { "" }
            } }
            tbody { @for judged in judged(runs) {
                tr {
                    td.word { (judged.metric) " (" (judged.unit) ")" } td.word { (judged.run) }
                    td { @if let Some(mean) = judged.mean { (format!("{mean:.3}")) } @else { "too short" } }
                    td { @if let Some((low, high)) = judged.interval { (range(low, high)) } }
                    td { @if let Some((value, _, _)) = judged.difference { (format!("{value:+.3}")) } }
                    td { @if let Some((_, low, high)) = judged.difference { (range(low, high)) } }
                    td.word { (in_words(judged.differs)) }
                }
            } }
        } }
        p.soft {
            "Differences are from the first run. Slices of time resemble the one before, so that the variance of a mean is \
             taken with its autocorrelation (Newey and West), and two means are compared as Welch does. Intervals of short runs \
             are too narrow, and what varies between runs only more runs show."
        }
    }
}

/// The statement for each run, with the number of the experiment that stands for it.
fn of_each(runs: &[Compared], statement: &str) -> String {
    let of =
        |run: &Compared| format!("-- {}\n{};", run.name, statement.replace("{}", &run.verdict.experiment.to_string()));
    runs.iter().map(of).collect::<Vec<_>>().join("\n")
}

/// What every experiment showed, where a run has several.
fn by_threads(runs: &[Compared]) -> Result<Markup, AnalyzeError> {
    if runs.iter().all(|run| run.verdicts.len() < 2) {
        return Ok(html! {});
    }
    type Of = fn(&Verdict) -> f64;
    let throughput: Of = |verdict| verdict.figures.throughput_per_s;
    let p95: Of = |verdict| verdict.figures.overall.p95_ns as f64 / 1e6;
    let mut drawn = Vec::new();
    for (title, unit, column, of) in [
        ("Throughput by threads", "actions/s", "throughput_per_s", throughput),
        ("Response times by threads", "p95 (ms)", "p95_ns / 1e6 AS p95_ms", p95),
    ] {
        let series = runs.iter().map(|run| {
            // An experiment that answered nothing has no response times.
            let answered = || run.verdicts.iter().filter(|verdict| verdict.figures.overall.ok > 0);
            let at = |verdict: &Verdict| LinePoint {
                x: f64::from(verdict.threads),
                y: of(verdict),
                mark: if verdict.ruling == Ruling::Void { Mark::Hollow } else { Mark::Filled },
            };
            let in_words = |verdict: &Verdict| {
                let (experiment, threads, ruling) = (verdict.experiment, verdict.threads, verdict.ruling.name());
                format!("{}, experiment {experiment}: T = {threads}, {:.3} {unit}, {ruling}", run.name, of(verdict))
            };
            LineSeries {
                label: run.name.clone(),
                points: answered().map(at).collect(),
                told: answered().map(in_words).collect(),
                names: Vec::new(),
                stroke: Stroke::Scattered,
            }
        });
        let series: Vec<LineSeries> = series.collect();
        let points = || series.iter().flat_map(|series| &series.points);
        let svg = lines(&LineChart {
            title: title.into(),
            description: series.iter().flat_map(|series| series.told.clone()).collect::<Vec<_>>().join("; "),
            x_label: "threads (hollow: void)".into(),
            y_label: unit.into(),
            across: Across::Numbers(Scale::suited_to(points().map(|point| point.x))),
            y_scale: Scale::suited_to(points().map(|point| point.y)),
            series,
            rules: Vec::new(),
        })?;
        let sql = of_each(runs, &format!("SELECT experiment, threads, {column}, ruling FROM experiments WHERE ok > 0"));
        drawn.push(page::figure(title, &svg, "", &sql));
    }
    Ok(page::section("Every experiment", &html! { @for figure in drawn { (figure) } }))
}

fn over_time(runs: &[Compared]) -> Result<Markup, AnalyzeError> {
    let series = runs.iter().map(|run| {
        let timeline = &run.verdict.figures.timeline;
        let at = |(place, slice): (usize, &schemas::verdict::Slice)| LinePoint {
            x: place as f64 * timeline.slice_s,
            y: slice.ok as f64 / timeline.slice_s.max(1e-9),
            mark: Mark::Filled,
        };
        // As the statement below: the first slice is drawn even where it is not whole.
        let full = full_slices(&run.verdict).max(1);
        let points: Vec<LinePoint> = timeline.slices.iter().enumerate().take(full).map(at).collect();
        let told = points.iter().map(|p| format!("{}: {:.0} actions/s at {:.2} s", run.name, p.y, p.x)).collect();
        LineSeries { label: run.name.clone(), points, told, names: Vec::new(), stroke: Stroke::Plain }
    });
    let series: Vec<LineSeries> = series.collect();
    let svg = lines(&LineChart {
        title: "Throughput".into(),
        description: means(runs),
        x_label: "seconds".into(),
        y_label: "actions/s".into(),
        across: Across::Numbers(Scale::Linear),
        y_scale: Scale::Linear,
        series,
        rules: Vec::new(),
    })?;
    let sql = of_each(
        runs,
        &format!(
            "SELECT from_s, ok / (to_s - from_s) AS actions_per_s FROM timeline\nWHERE experiment = {{}} AND {FULL}\nORDER BY slice"
        ),
    );
    Ok(page::figure("Throughput in the course", &svg, "", &sql))
}

fn means(runs: &[Compared]) -> String {
    let told = runs.iter().map(|run| format!("{}: {:.1} actions/s", run.name, run.verdict.figures.throughput_per_s));
    told.collect::<Vec<_>>().join("; ")
}

fn percentiles(runs: &[Compared]) -> Result<Markup, AnalyzeError> {
    let names = ["50%", "95%", "99%", "100%"];
    let series = runs.iter().map(|run| {
        let overall = &run.verdict.figures.overall;
        let times = [overall.p50_ns, overall.p95_ns, overall.p99_ns, overall.max_ns];
        let at = |(place, ns): (usize, &u64)| LinePoint { x: place as f64, y: *ns as f64 / 1e6, mark: Mark::Filled };
        let points = times.iter().enumerate().map(at).collect();
        let in_words = |(name, ns): (&&str, &u64)| format!("{}: {name} within {}", run.name, short_time(*ns));
        let told = names.iter().zip(&times).map(in_words).collect();
        LineSeries { label: run.name.clone(), points, told, names: Vec::new(), stroke: Stroke::Marked }
    });
    let series: Vec<LineSeries> = series.collect();
    let description = series.iter().flat_map(|series| series.told.clone()).collect::<Vec<_>>().join("; ");
    let svg = lines(&LineChart {
        title: "Response times".into(),
        description,
        x_label: "of the operations".into(),
        y_label: "response time (ms)".into(),
        across: Across::Points(names.map(String::from).into()),
        y_scale: Scale::suited_to(series.iter().flat_map(|series| series.points.iter().map(|point| point.y))),
        series,
        rules: Vec::new(),
    })?;
    let sql = of_each(runs, "SELECT p50_ns, p95_ns, p99_ns, max_ns FROM experiments WHERE experiment = {}");
    Ok(page::figure("Response times", &svg, "", &sql))
}
