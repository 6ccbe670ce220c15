//! The page that compares runs.

use std::path::Path;

use maud::{Markup, html};
use schemas::files;
use schemas::sla::short_time;
use schemas::verdict::{OperationFigures, Rating, Ruling, ServiceTimes, Verdict};

use super::figures::{FULL, rounded};
use super::layout::{Column, Section, figure, page, section};
use crate::chart::{Across, LineChart, LinePoint, LineSeries, Mark, Scale, Stroke};
use crate::compare::{Compared, Judged, full_slices, has_service_times, in_words, judged, unequal};
use crate::error::AnalyzeError;
use crate::report::thousands;

/// Writes the page.
pub(crate) fn write(runs: &[Compared], path: &Path) -> Result<(), AnalyzeError> {
    let title = format!("Comparison of {}", listed(&runs.iter().map(label_in(runs)).collect::<Vec<_>>()));
    let judged = judged(runs);
    let head = html! {
        h1 { (title) }
        @for sentence in conclusions(runs, &judged) { p.conclusion { (super::spaced(&html! { (sentence) })) } }
        @let differences = unequal(runs);
        @if !differences.is_empty() {
            p.fail { "Setup differences:" }
            ul { @for sentence in &differences { li { (sentence) } } }
        }
    };
    let sections = [
        section("Metrics", table(runs)),
        section("Differences", judgements(runs, &judged)),
        by_threads(runs)?,
        section("Over time", over_time(runs)?),
        section(
            if has_service_times(runs) {
                "Response and service times by percentile"
            } else {
                "Response times by percentile"
            },
            percentiles(runs)?,
        ),
    ];
    files::write_atomically(path, page(&title, &head, &sections).as_bytes())?;
    Ok(())
}

/// The short name of a run: that of its folder, unless another run has the same.
fn label_in(runs: &[Compared]) -> impl Fn(&Compared) -> String {
    |run| {
        let is_alone = runs.iter().filter(|other| other.document.name == run.document.name).count() == 1;
        if is_alone { run.document.name.clone() } else { run.name.clone() }
    }
}

/// Words with commas, and an "and" before the last one.
fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// One sentence for each run after the first: in what it differs from the first, and in what it
/// does not.
fn conclusions(runs: &[Compared], judged: &[Judged]) -> Vec<String> {
    let label = label_in(runs);
    let Some((base, others)) = runs.split_first() else { return Vec::new() };
    let of = |(place, run): (usize, &Compared)| {
        // Each metric has a line for each run, in the order of the runs.
        let own: Vec<&Judged> = judged.iter().skip(place + 1).step_by(runs.len()).collect();
        let differing = own.iter().filter(|judged| judged.differs == Some(true));
        let differing: Vec<String> = differing.map(|judged| difference(judged)).collect();
        let (name, base) = (label(run), label(base));
        match (differing.is_empty(), own.iter().any(|judged| judged.differs.is_some())) {
            (false, _) => format!("{name} differs from {base} in {}.", listed(&differing)),
            (true, true) => format!("No difference between {name} and {base} is shown."),
            (true, false) => format!("The runs are too short to compare {name} with {base}."),
        }
    };
    others.iter().enumerate().map(of).collect()
}

/// A metric with its difference, such as `throughput (-250 operations/s)`.
fn difference(judged: &Judged) -> String {
    let value = judged.difference.map_or(0.0, |(value, _, _)| value);
    format!("{} ({} {})", judged.metric, signed(value), judged.unit)
}

fn signed(value: f64) -> String {
    if value > 0.0 { format!("+{}", rounded(value)) } else { rounded(value) }
}

fn table(runs: &[Compared]) -> Markup {
    let service = has_service_times(runs).then_some(["service p50", "service p95", "service p99"]);
    let is_by_rate = runs.iter().any(|run| run.rating.as_ref().is_some_and(|rating| rating.rate.is_some()));
    let by_rate = is_by_rate.then_some("arrival rate");
    let columns: Vec<Column> = std::iter::once(Column::Words("run"))
        .chain(["experiment", "T", "operations/s", "p50", "p95", "p99"].map(Column::Number))
        .chain(service.into_iter().flatten().map(Column::Number))
        .chain(["% within", "% unpredictable", "SoAR", "Socialites"].map(Column::Number))
        .chain(by_rate.map(Column::Number))
        .chain([Column::Words("verdict")])
        .collect();
    let label = label_in(runs);
    let row = |run: &Compared| {
        let (verdict, overall) = (&run.verdict, &run.verdict.figures.overall);
        let rated = |rating: Option<&Rating>| rating.map_or(String::new(), rating_text);
        let ratings = run.rating.as_ref();
        let mut row = vec![html! { (label(run)) br; span.soft { (run.document.store) } }];
        let load = [
            verdict.experiment.to_string(),
            verdict.threads.to_string(),
            thousands(verdict.figures.throughput_per_s.round() as u64),
        ];
        let times = [overall.p50_ns, overall.p95_ns, overall.p99_ns].map(short_time);
        let of_service = overall.service.map(|own| [own.p50_ns, own.p95_ns, own.p99_ns].map(short_time));
        let of_service = service.map(|_| of_service.unwrap_or_else(|| ["-"; 3].map(String::from)));
        let shares = [
            format!("{:.2}", verdict.figures.within_beta_percent),
            format!("{:.3}", verdict.figures.unpredictable_percent),
            rated(ratings.and_then(|ratings| ratings.soar.as_ref())),
            rated(ratings.and_then(|ratings| ratings.socialites.as_ref())),
        ];
        let rate = by_rate.map(|_| rated(ratings.and_then(|ratings| ratings.rate.as_ref())));
        let numbers = load.into_iter().chain(times).chain(of_service.into_iter().flatten()).chain(shares).chain(rate);
        row.extend(numbers.map(|number| html! { (number) }));
        row.push(html! { span class=(verdict.ruling.name()) { (verdict.ruling.name()) } });
        row
    };
    super::table(&columns, &runs.iter().map(row).collect::<Vec<_>>())
}

/// The value of a rating. That of a search that ended at its limit is a lower bound.
fn rating_text(rating: &Rating) -> String {
    let least = if rating.at_least { "≥\u{a0}" } else { "" };
    match rating.unmeasured {
        true => "not measured".to_string(),
        false => format!("{least}{}", thousands(rating.value.round() as u64)),
    }
}

fn judgements(runs: &[Compared], judged: &[Judged]) -> Markup {
    let range = |(low, high): (f64, f64)| format!("{} to {}", rounded(low), rounded(high));
    let columns = [
        Column::Words("metric"),
        Column::Words("run"),
        Column::Number("mean"),
        Column::Number("95% of the mean"),
        Column::Number("difference"),
        Column::Number("95% of the difference"),
        Column::Words("result"),
    ];
    let labels: Vec<String> = runs.iter().map(label_in(runs)).collect();
    let row = |(judged, label): (&Judged, &String)| {
        let difference = judged.difference;
        let texts = [
            format!("{} ({})", judged.metric, judged.unit),
            label.clone(),
            judged.mean.map_or("too few slices".to_string(), rounded),
            judged.interval.map_or(String::new(), range),
            difference.map_or(String::new(), |(value, _, _)| signed(value)),
            difference.map_or(String::new(), |(_, low, high)| range((low, high))),
            in_words(judged.differs).to_string(),
        ];
        texts.map(|text| html! { (text) }).into()
    };
    let rows: Vec<Vec<Markup>> = judged.iter().zip(labels.iter().cycle()).map(row).collect();
    html! {
        (super::table(&columns, &rows))
        p.soft {
            "Differences are relative to the first run. The variance of a mean includes the autocorrelation of its \
             slices (Newey and West); means are compared with Welch's test. Short runs understate the uncertainty; \
             repeat runs to see the variation between runs."
        }
    }
}

/// The statement for each run, with the number of the experiment that represents it.
fn of_each(runs: &[Compared], statement: &str) -> String {
    let of =
        |run: &Compared| format!("-- {}\n{};", run.name, statement.replace("{}", &run.verdict.experiment.to_string()));
    runs.iter().map(of).collect::<Vec<_>>().join("\n")
}

/// The figures of every experiment, if a run has several.
fn by_threads(runs: &[Compared]) -> Result<Section, AnalyzeError> {
    let title = "Every experiment";
    let label = label_in(runs);
    if runs.iter().all(|run| run.verdicts.len() < 2) {
        return Ok(section(title, html! {}));
    }
    type Of = fn(&Verdict) -> f64;
    let throughput: Of = |verdict| verdict.figures.throughput_per_s;
    let p95: Of = |verdict| verdict.figures.overall.p95_ns as f64 / 1e6;
    let service_p95: Of = |verdict| service_times(verdict).p95_ns as f64 / 1e6;
    let mut drawn = Vec::new();
    let mut charts = vec![
        ("Throughput by threads", "operations/s", "throughput_per_s", throughput),
        ("Response times by threads", "p95 (ms)", "p95_ns / 1e6 AS p95_ms", p95),
    ];
    if has_service_times(runs) {
        let column = "coalesce(service_p95_ns, p95_ns) / 1e6 AS service_p95_ms";
        charts.push(("Service times by threads", "p95 (ms)", column, service_p95));
    }
    for (name, unit, column, of) in charts {
        let series = runs.iter().enumerate().map(|(place, run)| {
            // An experiment without an answer has no response times.
            let answered = || run.verdicts.iter().filter(|verdict| verdict.figures.overall.ok > 0);
            let at = |verdict: &Verdict| LinePoint {
                x: f64::from(verdict.threads),
                y: of(verdict),
                mark: if verdict.ruling == Ruling::Void { Mark::Hollow } else { Mark::Filled },
            };
            let in_words = |verdict: &Verdict| {
                let (experiment, threads, ruling) = (verdict.experiment, verdict.threads, verdict.ruling.name());
                let value = rounded(of(verdict));
                format!("{}, experiment {experiment}: T = {threads}, {value} {unit}, {ruling}", label(run))
            };
            LineSeries {
                label: label(run),
                points: answered().map(at).collect(),
                tooltips: answered().map(in_words).collect(),
                links: answered().map(|verdict| format!("#{}", id_of(place, verdict))).collect(),
                stroke: Stroke::Scattered,
                ..LineSeries::default()
            }
        });
        let series: Vec<LineSeries> = series.collect();
        let points = || series.iter().flat_map(|series| &series.points);
        let chart = LineChart {
            title: name.into(),
            description: series.iter().flat_map(|series| series.tooltips.clone()).collect::<Vec<_>>().join("; "),
            x_label: "threads (hollow: void)".into(),
            y_label: unit.into(),
            across: Across::Numbers(Scale::suited_to(points().map(|point| point.x))),
            y_scale: Scale::suited_to(points().map(|point| point.y)),
            series,
            rules: Vec::new(),
        };
        let sql = of_each(runs, &format!("SELECT experiment, threads, {column}, ruling FROM experiments WHERE ok > 0"));
        drawn.push(figure(&chart, name, "", &sql)?);
    }
    Ok(section(title, html! { @for figure in drawn { (figure) } (experiments(runs)) }))
}

/// Where the page has an experiment of a run.
fn id_of(run: usize, verdict: &Verdict) -> String {
    format!("run-{}-experiment-{}", run + 1, verdict.experiment)
}

/// A row for each experiment of each run: what the points of the charts link to.
fn experiments(runs: &[Compared]) -> Markup {
    let label = label_in(runs);
    let columns: Vec<Column> = std::iter::once(Column::Words("run"))
        .chain(["experiment", "T", "operations/s", "p95", "% within", "% unpredictable"].map(Column::Number))
        .chain([Column::Words("verdict")])
        .collect();
    let row = |(place, run): (usize, &Compared), verdict: &Verdict| {
        let (figures, ruling) = (&verdict.figures, verdict.ruling.name());
        let numbers = [
            verdict.threads.to_string(),
            thousands(figures.throughput_per_s.round() as u64),
            short_time(figures.overall.p95_ns),
            format!("{:.2}", figures.within_beta_percent),
            format!("{:.3}", figures.unpredictable_percent),
        ];
        let first = [html! { (label(run)) }, html! { span id=(id_of(place, verdict)) { (verdict.experiment) } }];
        let numbers = numbers.into_iter().map(|number| html! { (number) });
        let verdict = html! { span class=(ruling) { (ruling) } @for reason in &verdict.reasons { br; (reason) } };
        first.into_iter().chain(numbers).chain([verdict]).collect::<Vec<Markup>>()
    };
    let all = runs.iter().enumerate().flat_map(|run| run.1.verdicts.iter().map(move |verdict| row(run, verdict)));
    super::table(&columns, &all.collect::<Vec<_>>())
}

fn over_time(runs: &[Compared]) -> Result<Markup, AnalyzeError> {
    let label = label_in(runs);
    let series = runs.iter().map(|run| {
        let timeline = &run.verdict.figures.timeline;
        let at = |(place, slice): (usize, &schemas::verdict::Slice)| LinePoint {
            x: place as f64 * timeline.slice_s,
            y: slice.ok as f64 / timeline.slice_s.max(1e-9),
            mark: Mark::Filled,
        };
        // Like the statement below: the first slice is drawn even if it is not whole.
        let full = full_slices(&run.verdict).max(1);
        let points: Vec<LinePoint> = timeline.slices.iter().enumerate().take(full).map(at).collect();
        let tooltips =
            points.iter().map(|p| format!("{}: {:.0} operations/s at {:.2} s", label(run), p.y, p.x)).collect();
        LineSeries { label: label(run), points, tooltips, stroke: Stroke::Plain, ..LineSeries::default() }
    });
    let series: Vec<LineSeries> = series.collect();
    let chart = LineChart {
        title: "Throughput over time".into(),
        description: means(runs),
        x_label: "seconds".into(),
        y_label: "operations/s".into(),
        across: Across::Numbers(Scale::Linear),
        y_scale: Scale::Linear,
        series,
        rules: Vec::new(),
    };
    let sql = of_each(
        runs,
        &format!(
            "SELECT from_s, ok / (to_s - from_s) AS operations_per_s FROM timeline\nWHERE experiment = {{}} AND {FULL}\nORDER BY slice"
        ),
    );
    Ok(figure(&chart, "Throughput over time", "", &sql)?)
}

fn means(runs: &[Compared]) -> String {
    let label = label_in(runs);
    let sentences = runs
        .iter()
        .map(|run| format!("{}: {} operations/s", label(run), rounded(run.verdict.figures.throughput_per_s)));
    sentences.collect::<Vec<_>>().join("; ")
}

/// The service times of an experiment. In a closed loop these are its response times.
fn service_times(verdict: &Verdict) -> ServiceTimes {
    let OperationFigures { mean_ns, p50_ns, p95_ns, p99_ns, max_ns, service, .. } = verdict.figures.overall;
    service.unwrap_or(ServiceTimes { mean_ns, p50_ns, p95_ns, p99_ns, max_ns })
}

fn percentiles(runs: &[Compared]) -> Result<Markup, AnalyzeError> {
    let response = |run: &Compared| {
        let overall = &run.verdict.figures.overall;
        [overall.p50_ns, overall.p95_ns, overall.p99_ns, overall.max_ns]
    };
    let columns = "p50_ns, p95_ns, p99_ns, max_ns";
    let response = chart_of_percentiles(runs, "Response times", "response time (ms)", columns, &response)?;
    if !has_service_times(runs) {
        return Ok(response);
    }
    let service = |run: &Compared| {
        let service = service_times(&run.verdict);
        [service.p50_ns, service.p95_ns, service.p99_ns, service.max_ns]
    };
    let columns =
        ["p50_ns", "p95_ns", "p99_ns", "max_ns"].map(|name| format!("coalesce(service_{name}, {name}) AS {name}"));
    let service = chart_of_percentiles(runs, "Service times", "service time (ms)", &columns.join(", "), &service)?;
    Ok(html! { (response) (service) })
}

/// The percentiles of each run. `columns` are those of the view `experiments`.
fn chart_of_percentiles(
    runs: &[Compared],
    title: &str,
    y_label: &str,
    columns: &str,
    times: &dyn Fn(&Compared) -> [u64; 4],
) -> Result<Markup, AnalyzeError> {
    let names = ["50%", "95%", "99%", "100%"];
    let label = label_in(runs);
    let series = runs.iter().map(|run| {
        let times = times(run);
        let at = |(place, ns): (usize, &u64)| LinePoint { x: place as f64, y: *ns as f64 / 1e6, mark: Mark::Filled };
        let points = times.iter().enumerate().map(at).collect();
        let in_words = |(name, ns): (&&str, &u64)| format!("{}: {name} within {}", label(run), short_time(*ns));
        let tooltips = names.iter().zip(&times).map(in_words).collect();
        LineSeries { label: label(run), points, tooltips, ..LineSeries::default() }
    });
    let series: Vec<LineSeries> = series.collect();
    let description = series.iter().flat_map(|series| series.tooltips.clone()).collect::<Vec<_>>().join("; ");
    let chart = LineChart {
        title: title.into(),
        description,
        x_label: "of the operations".into(),
        y_label: y_label.into(),
        across: Across::Points(names.map(String::from).into()),
        y_scale: Scale::suited_to(series.iter().flat_map(|series| series.points.iter().map(|point| point.y))),
        series,
        rules: Vec::new(),
    };
    let sql = of_each(runs, &format!("SELECT {columns} FROM experiments WHERE experiment = {{}}"));
    Ok(figure(&chart, title, "", &sql)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conclusion_lists_its_differences() {
        let words = |words: &[&str]| listed(&words.iter().map(|word| word.to_string()).collect::<Vec<_>>());
        assert_eq!(words(&["a"]), "a");
        assert_eq!(words(&["a", "b", "c"]), "a, b and c");
        let judged = |value: f64| Judged {
            metric: "throughput",
            unit: "operations/s",
            run: "b".into(),
            mean: None,
            interval: None,
            difference: Some((value, value - 1.0, value + 1.0)),
            differs: Some(true),
        };
        assert_eq!(difference(&judged(-10_980.4)), "throughput (-10,980 operations/s)");
        assert_eq!(difference(&judged(0.25)), "throughput (+0.250 operations/s)");
    }
}
