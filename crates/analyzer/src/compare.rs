//! `analyzer compare`: runs side by side, with what their differences are worth.

use std::collections::BTreeSet;
use std::fmt::Write;

use schemas::run::RunDocument;
use schemas::sla::short_time;
use schemas::verdict::{RatingDocument, Slice, Verdict};
use serde::Serialize;

use crate::difference::{Difference, Mean};
use crate::report::{new_table, thousands};

/// A run that is compared.
pub(crate) struct Compared {
    /// Its folder, as it was named.
    pub(crate) name: String,
    pub(crate) document: RunDocument,
    pub(crate) rating: Option<RatingDocument>,
    /// Every experiment.
    pub(crate) verdicts: Vec<Verdict>,
    /// The one that stands for it.
    pub(crate) verdict: Verdict,
}

/// A figure that is compared, slice by slice.
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    /// None of a slice that says nothing of it.
    of: fn(&Slice, f64) -> Option<f64>,
}

pub(crate) const METRICS: [Metric; 5] = [
    Metric { name: "throughput", unit: "actions/s", of: |slice, seconds| Some(slice.ok as f64 / seconds) },
    // A slice without an answer has no response times: as 0 they would make a store that stands still look fast.
    Metric {
        name: "p95 of a slice",
        unit: "ms",
        of: |slice, _| answered(slice).map(|slice| slice.p95_ns as f64 / 1e6),
    },
    Metric {
        name: "p99 of a slice",
        unit: "ms",
        of: |slice, _| answered(slice).map(|slice| slice.p99_ns as f64 / 1e6),
    },
    Metric { name: "no answer", unit: "% of slices", of: |slice, _| Some(if slice.ok == 0 { 100.0 } else { 0.0 }) },
    Metric { name: "unpredictable", unit: "reads/s", of: |slice, seconds| Some(slice.unpredictable as f64 / seconds) },
];

fn answered(slice: &Slice) -> Option<&Slice> {
    (slice.ok > 0).then_some(slice)
}

/// A figure of one run, and how it differs from that of the first one.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Judged {
    pub(crate) metric: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) run: String,
    pub(crate) mean: Option<f64>,
    /// The 95% confidence interval of the mean.
    pub(crate) interval: Option<(f64, f64)>,
    /// By how much it is higher than the first run's, with the interval of that; none for
    /// the first, and where there are too few slices.
    pub(crate) difference: Option<(f64, f64, f64)>,
    /// Whether the difference is more than chance.
    pub(crate) differs: Option<bool>,
}

/// How many slices of the measured part are over when its time is.
pub(crate) fn full_slices(verdict: &Verdict) -> usize {
    let slice_ns = (verdict.figures.timeline.slice_s * 1e9).round() as u64;
    usize::try_from(verdict.figures.counted_ns / slice_ns.max(1)).unwrap_or(usize::MAX)
}

/// A figure in those slices.
fn series(verdict: &Verdict, metric: &Metric) -> Vec<f64> {
    let timeline = &verdict.figures.timeline;
    timeline.slices.iter().take(full_slices(verdict)).filter_map(|slice| (metric.of)(slice, timeline.slice_s)).collect()
}

/// Every figure of every run.
pub(crate) fn judged(runs: &[Compared]) -> Vec<Judged> {
    let mut all = Vec::new();
    for metric in &METRICS {
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

/// What makes the runs unequal before anything is compared, a sentence each.
pub(crate) fn unequal(runs: &[Compared]) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut check = |what: &str, of: &dyn Fn(&Compared) -> String| {
        let values: Vec<String> = runs.iter().map(of).collect();
        if values.iter().collect::<BTreeSet<_>>().len() > 1 {
            let told = runs.iter().zip(&values).map(|(run, value)| format!("{}: {value}", run.name));
            sentences.push(format!("{what} differs ({})", told.collect::<Vec<_>>().join("; ")));
        }
    };
    let promise = |setting: &'static str| {
        move |run: &Compared| {
            let value = run.document.store_settings.get(setting).map_or("not said", String::as_str);
            // What stands behind a ':' is a remark.
            value.split(':').next().unwrap_or_default().trim().to_string()
        }
    };
    check("durability", &promise("durability"));
    check("isolation", &promise("isolation"));
    check("workload", &|run| format!("{} {}", run.document.spec.name, run.document.workload_id));
    // A longer trace of the same workload begins like a shorter one.
    check("agreement", &|run| run.verdict.sla.to_string());
    check("T", &|run| run.verdict.threads.to_string());
    check("host", &|run| {
        let host = &run.document.host;
        format!("{}, {}, {} processors", host.name, host.system, host.cpus)
    });
    check("Encore", &|run| run.document.encore_version.clone());
    sentences
}

/// All of it as text.
pub(crate) fn text(runs: &[Compared]) -> String {
    let mut out = String::new();
    for sentence in unequal(runs) {
        let _ = writeln!(out, "unequal: {sentence}");
    }
    if !out.is_empty() {
        out.push('\n');
    }
    let mut table = new_table(
        &[
            "run",
            "experiment",
            "T",
            "throughput/s",
            "p50",
            "p95",
            "p99",
            "% within",
            "% unpredictable",
            "SoAR",
            "Socialites",
            "ruling",
        ],
        0,
    );
    for run in runs {
        let (verdict, overall) = (&run.verdict, &run.verdict.figures.overall);
        let rated = run.rating.as_ref();
        let soar = rated.and_then(|rating| rating.soar.as_ref()).map(|soar| thousands(soar.value.round() as u64));
        let socialites = rated.and_then(|rating| rating.socialites.as_ref()).map(|s| s.threads.to_string());
        table.add_row([
            run.name.clone(),
            verdict.experiment.to_string(),
            verdict.threads.to_string(),
            format!("{:.1}", verdict.figures.throughput_per_s),
            short_time(overall.p50_ns),
            short_time(overall.p95_ns),
            short_time(overall.p99_ns),
            format!("{:.2}", verdict.figures.within_beta_percent),
            format!("{:.3}", verdict.figures.unpredictable_percent),
            soar.unwrap_or_else(|| "-".into()),
            socialites.unwrap_or_else(|| "-".into()),
            verdict.ruling.name().to_string(),
        ]);
    }
    let _ = writeln!(out, "{}\n", table.trim_fmt());
    let mut table =
        new_table(&["figure", "run", "mean", "95% of the mean", "difference", "95% of the difference", ""], 0);
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
        "\nDifferences are from {base}. The 95% intervals are of what varies within these runs, and allow for slices of time \
         that resemble the one before; of short runs they are too narrow, and what varies between runs only more runs show."
    );
    out
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

    /// A store that stands still is not fast in the meantime.
    #[test]
    fn slices_without_an_answer_have_no_response_times() {
        let mut verdict = crate::void_verdict(1, 4, Sla::default(), Vec::new());
        let slice = |ok: u64| Slice {
            ok,
            errors: 0,
            unpredictable: 0,
            p50_ns: ok * 1_000_000,
            p95_ns: ok * 1_000_000,
            p99_ns: ok * 1_000_000,
            max_ns: ok * 1_000_000,
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
        assert_eq!(of("no answer").iter().sum::<f64>(), 400.0);
        assert_eq!(of("throughput").len(), 12);
    }
}
