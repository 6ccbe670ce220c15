//! `encore analyze compare`: compares runs, and tests whether their differences are more than
//! chance.

use std::collections::BTreeSet;
use std::fmt::Write;

use comfy_table::Table;
use schemas::run::RunDocument;
use schemas::sla::short_time;
use schemas::verdict::{RatingDocument, Slice, Verdict};
use serde::Serialize;

use crate::checks::Check;
use crate::difference::{Difference, Mean};
use crate::ratings::ratings;
use crate::report::{plural, thousands};
use crate::tables::new_table;

/// A run to compare.
pub(crate) struct Compared {
    /// Its folder, as the user named it.
    pub(crate) name: String,
    pub(crate) document: RunDocument,
    pub(crate) rating: Option<RatingDocument>,
    /// Every experiment.
    pub(crate) verdicts: Vec<Verdict>,
    /// The experiment that represents the run.
    pub(crate) verdict: Verdict,
}

/// A metric to compare, slice by slice.
struct Metric {
    name: &'static str,
    unit: &'static str,
    /// The value in a slice; None if the slice says nothing about it.
    of: fn(&Slice, f64) -> Option<f64>,
    /// Whether it is about service times, which in a closed loop are the response times.
    is_of_service: bool,
}

const METRICS: [Metric; 7] = [
    Metric {
        name: "throughput",
        unit: "operations/s",
        of: |slice, seconds| Some(slice.ok as f64 / seconds),
        is_of_service: false,
    },
    // A slice without an answer has no response times: as 0 they would make a stalled store look
    // fast.
    Metric {
        name: "p95 of a slice",
        unit: "ms",
        of: |slice, _| answered(slice).map(|slice| slice.p95_ns as f64 / 1e6),
        is_of_service: false,
    },
    Metric {
        name: "p99 of a slice",
        unit: "ms",
        of: |slice, _| answered(slice).map(|slice| slice.p99_ns as f64 / 1e6),
        is_of_service: false,
    },
    Metric {
        name: "service p95 of a slice",
        unit: "ms",
        of: |slice, _| answered(slice).map(|slice| slice.service_times().p95_ns as f64 / 1e6),
        is_of_service: true,
    },
    Metric {
        name: "service p99 of a slice",
        unit: "ms",
        of: |slice, _| answered(slice).map(|slice| slice.service_times().p99_ns as f64 / 1e6),
        is_of_service: true,
    },
    Metric {
        name: "no answer",
        unit: "% of slices",
        of: |slice, _| Some(if slice.ok == 0 { 100.0 } else { 0.0 }),
        is_of_service: false,
    },
    Metric {
        name: "unpredictable",
        unit: "reads/s",
        of: |slice, seconds| Some(slice.unpredictable as f64 / seconds),
        is_of_service: false,
    },
];

fn answered(slice: &Slice) -> Option<&Slice> {
    (slice.ok > 0).then_some(slice)
}

/// A metric of one run, and its difference from the first run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Judged {
    pub(crate) metric: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) run: String,
    pub(crate) mean: Option<f64>,
    /// The 95% confidence interval of the mean.
    pub(crate) interval: Option<(f64, f64)>,
    /// How much higher it is than in the first run, with the 95% interval (low, high). None for
    /// the first run, and if there are too few slices.
    pub(crate) difference: Option<(f64, f64, f64)>,
    /// Whether the difference is more than chance.
    pub(crate) differs: Option<bool>,
}

/// The number of whole slices in the time that counts.
pub(crate) fn full_slices(verdict: &Verdict) -> usize {
    let slice_ns = (verdict.figures.timeline.slice_s * 1e9).round() as u64;
    usize::try_from(verdict.figures.counted_ns / slice_ns.max(1)).unwrap_or(usize::MAX)
}

/// A metric in these slices.
fn series(verdict: &Verdict, metric: &Metric) -> Vec<f64> {
    let timeline = &verdict.figures.timeline;
    timeline.slices.iter().take(full_slices(verdict)).filter_map(|slice| (metric.of)(slice, timeline.slice_s)).collect()
}

/// Every metric of every run. Those of service times are omitted if all runs are closed loops.
pub(crate) fn judged(runs: &[Compared]) -> Vec<Judged> {
    let mut all = Vec::new();
    let has_service_times = has_service_times(runs);
    for metric in METRICS.iter().filter(|metric| has_service_times || !metric.is_of_service) {
        let means: Vec<Option<Mean>> = runs.iter().map(|run| Mean::of(&series(&run.verdict, metric))).collect();
        for (place, (run, mean)) in runs.iter().zip(&means).enumerate() {
            let base = means.first().copied().flatten().filter(|_| place > 0);
            let difference = base.zip(*mean).map(|(base, own)| Difference::of(&base, &own));
            all.push(Judged {
                metric: metric.name,
                unit: metric.unit,
                run: run.name.clone(),
                mean: mean.map(|mean| mean.value),
                interval: mean.map(|mean| mean.interval()),
                difference: difference.map(|d| (d.value, d.low, d.high)),
                differs: difference.map(|d| d.is_shown()),
            });
        }
    }
    all
}

/// Checks that each run is as fast as the first one, within a margin. A difference counts if its
/// whole 95% interval lies beyond the margin. For ratings, it counts if the value itself does.
pub(crate) fn not_slower(runs: &[Compared], margin_percent: f64) -> Vec<Check> {
    let mut checks = Vec::new();
    let Some((base, others)) = runs.split_first() else { return checks };
    let judged = judged(runs);
    let base_mean =
        |metric: &str| judged.iter().find(|own| own.metric == metric && own.run == base.name).and_then(|own| own.mean);
    let slower = [("throughput", -1.0), ("p95 of a slice", 1.0)];
    for own in judged.iter().filter(|own| own.difference.is_some()) {
        let Some((_, sign)) = slower.iter().find(|(metric, _)| *metric == own.metric) else { continue };
        let (Some(mean), Some((value, low, high))) = (base_mean(own.metric), own.difference) else { continue };
        let margin = mean.abs() * margin_percent / 100.0;
        // The least by which the run is worse, anywhere in the interval.
        let at_least = if *sign > 0.0 { low } else { -high };
        let name = format!("{}: {} within {margin_percent}% of {}", own.run, own.metric, base.name);
        let failure = (at_least > margin).then(|| {
            let percent = value / mean * 100.0;
            format!("it differs by {percent:+.1}% ({value:+.3} {}, 95% interval {low:.3} to {high:.3})", own.unit)
        });
        checks.push(Check { name, failure });
    }
    let rated = |run: &Compared| {
        let rating = run.rating.as_ref()?;
        let soar = || Some(("SoAR", rating.soar.as_ref()?.value));
        rating.rate.as_ref().map(|rate| ("arrival rate", rate.value)).or_else(soar)
    };
    let whole = |value: f64| thousands(value.round() as u64);
    for run in others {
        let (Some((what, before)), Some((of_run, after))) = (rated(base), rated(run)) else { continue };
        // Operations a second and sessions a second have no common scale.
        if what != of_run {
            continue;
        }
        let name = format!("{}: {what} within {margin_percent}% of {}", run.name, base.name);
        let failure = (after < before * (1.0 - margin_percent / 100.0))
            .then(|| format!("it is {}, {} has {}", whole(after), base.name, whole(before)));
        checks.push(Check { name, failure });
    }
    checks
}

/// The setup differences between the runs, one sentence each.
pub(crate) fn unequal(runs: &[Compared]) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut check = |what: &str, of: &dyn Fn(&Compared) -> String| {
        let values: Vec<String> = runs.iter().map(of).collect();
        if values.iter().collect::<BTreeSet<_>>().len() > 1 {
            let values = runs.iter().zip(&values).map(|(run, value)| format!("{}: {value}", run.name));
            sentences.push(format!("{what} differs ({})", values.collect::<Vec<_>>().join("; ")));
        }
    };
    let promise = |setting: &'static str| {
        move |run: &Compared| {
            let value = run.document.store_settings.get(setting).map_or("not reported", String::as_str);
            // The text after a ':' is a remark.
            value.split(':').next().unwrap_or_default().trim().to_string()
        }
    };
    check("durability", &promise("durability"));
    check("isolation", &promise("isolation"));
    // Not the trace: a longer trace of the same workload begins like a shorter one.
    check("workload", &|run| format!("{} {}", run.document.spec.name, run.document.workload_id));
    check("SLA", &|run| run.verdict.sla.to_string());
    check("T", &|run| run.verdict.threads.to_string());
    check("host", &|run| {
        let host = &run.document.host;
        format!("{}, {}, {}", host.name, host.system, plural(host.cpus.into(), "processor"))
    });
    check("Encore", &|run| run.document.encore_version.clone());
    sentences
}

/// The whole comparison as text.
pub(crate) fn text(runs: &[Compared]) -> String {
    let mut out = String::new();
    for sentence in unequal(runs) {
        let _ = writeln!(out, "setup difference: {sentence}");
    }
    if !out.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "{}\n", figures(runs).trim_fmt());
    for (run, rating) in runs.iter().filter_map(|run| Some((run, run.rating.as_ref()?))) {
        let _ = writeln!(out, "{}\n{}", run.name, indented(&ratings(rating)));
    }
    let mut table =
        new_table(&["metric", "run", "mean", "95% of the mean", "difference", "95% of the difference", ""], 0);
    for judged in judged(runs) {
        let range = |(low, high): (f64, f64)| format!("{low:.3} to {high:.3}");
        table.add_row([
            format!("{} ({})", judged.metric, judged.unit),
            judged.run.clone(),
            judged.mean.map_or("-".into(), |mean| format!("{mean:.3}")),
            judged.interval.map_or("-".into(), range),
            judged.difference.map_or(String::new(), |(value, _, _)| format!("{value:+.3}")),
            judged.difference.map_or(String::new(), |(_, low, high)| range((low, high))),
            in_words(judged.differs).to_string(),
        ]);
    }
    let _ = writeln!(out, "{}", table.trim_fmt());
    let base = runs.first().map_or("", |run| run.name.as_str());
    let _ = writeln!(
        out,
        "\nDifferences are relative to {base}. The 95% intervals cover the variation within these runs; they take into \
         account that neighbouring slices are similar. Short runs understate the uncertainty; repeat runs to see the \
         variation between runs."
    );
    out
}

/// The figures of each run.
fn figures(runs: &[Compared]) -> Table {
    let is_open_loop = has_service_times(runs);
    let mut columns = vec!["run", "#", "T", "ops/s", "p95", "p99", "% within", "% unpred.", "verdict"];
    if is_open_loop {
        columns.splice(6..6, ["service\np95", "service\np99"]);
    }
    let mut table = new_table(&columns, 0);
    for run in runs {
        let (verdict, overall) = (&run.verdict, &run.verdict.figures.overall);
        let mut row = vec![
            run.name.clone(),
            verdict.experiment.to_string(),
            verdict.threads.to_string(),
            thousands(verdict.figures.throughput_per_s.round() as u64),
            short_time(overall.p95_ns),
            short_time(overall.p99_ns),
        ];
        if is_open_loop {
            let times = overall.service.map(|service| [service.p95_ns, service.p99_ns].map(short_time));
            row.extend(times.unwrap_or_else(|| ["-", "-"].map(String::from)));
        }
        row.extend([
            format!("{:.2}", verdict.figures.within_beta_percent),
            format!("{:.3}", verdict.figures.unpredictable_percent),
            verdict.ruling.name().to_string(),
        ]);
        table.add_row(row);
    }
    table
}

/// Whether a run is an open loop, whose service times differ from its response times.
pub(crate) fn has_service_times(runs: &[Compared]) -> bool {
    runs.iter().any(|run| run.verdict.figures.overall.service.is_some())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

pub(crate) fn in_words(differs: Option<bool>) -> &'static str {
    match differs {
        Some(true) => "differs",
        Some(false) => "no difference shown",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use schemas::sla::Sla;

    use super::*;

    /// A stalled store is not fast in the meantime.
    #[test]
    fn slices_without_an_answer_have_no_response_times() {
        let mut verdict = crate::void_verdict(1, 4, Sla::default(), Vec::new());
        let slice = |ok: u64| Slice {
            ok,
            p50_ns: ok * 1_000_000,
            p95_ns: ok * 1_000_000,
            p99_ns: ok * 1_000_000,
            max_ns: ok * 1_000_000,
            ..Slice::default()
        };
        verdict.figures.counted_ns = 600_000_000;
        verdict.figures.timeline.slice_s = 0.05;
        verdict.figures.timeline.slices = (0..14).map(|n| slice(if n % 3 == 0 { 0 } else { 8 })).collect();
        assert_eq!(full_slices(&verdict), 12);
        let of = |name: &str| {
            let metric = METRICS.iter().find(|metric| metric.name == name).unwrap();
            series(&verdict, metric)
        };
        assert_eq!(of("p95 of a slice"), [8.0; 8]);
        assert_eq!(of("service p95 of a slice"), [8.0; 8]);
        assert_eq!(of("no answer").iter().sum::<f64>(), 400.0);
        assert_eq!(of("throughput").len(), 12);
    }
}
