//! Runs side by side as one page.

use std::path::Path;

use maud::{Markup, html};
use schemas::files;
use schemas::sla::short_time;

use super::page;
use crate::chart::{Across, LineChart, LinePoint, LineSeries, Mark, Scale, Stroke, lines};
use crate::compare::{Compared, in_words, judged, unequal};
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
             taken with its autocorrelation (Newey and West), and two means are compared as Welch does."
        }
    }
}

fn over_time(runs: &[Compared]) -> Result<Markup, AnalyzeError> {
    let series = runs.iter().map(|run| {
        let timeline = &run.verdict.figures.timeline;
        let at = |(place, slice): (usize, &schemas::verdict::Slice)| LinePoint {
            x: place as f64 * timeline.slice_s,
            y: slice.ok as f64 / timeline.slice_s.max(1e-9),
            mark: Mark::Filled,
        };
        // The last slice may be a part of one.
        let full = timeline.slices.len().saturating_sub(1).max(1);
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
    Ok(page::picture(&svg, "Throughput"))
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
    Ok(page::picture(&svg, "Response times"))
}
