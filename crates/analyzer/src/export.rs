//! `encore analyze export`: rows, percentiles and figures in the formats of other tools.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

use hdrhistogram::Histogram;
use schemas::files;
use schemas::latency::ResponseTimes;
use schemas::run::RunFolder;
use schemas::table::TableError;
use schemas::verdict::{OperationFigures, Verdict};

use crate::error::AnalyzeError;
use crate::families;
use crate::sql::{Database, quoted};

/// A format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Rows as comma-separated values, with a header line.
    Csv,
    /// Rows as a JSON array with one object per row.
    Json,
    /// Rows as Apache Parquet; needs --output.
    Parquet,
    /// Times by percentile in milliseconds (see --times), in the text format of HdrHistogram's tools.
    Hgrm,
    /// Metrics of every experiment in the OpenMetrics format, for Prometheus and others.
    Openmetrics,
}

/// The times of percentiles. In a closed loop both are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Times {
    /// In an open loop from the due time of the session.
    Response,
    /// From the start of the operation.
    Service,
}

/// The rows to export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Rows {
    /// One row per operation.
    Operations,
    /// One row per session.
    Sessions,
    /// One row per experiment.
    Experiments,
    /// One row per slice of time.
    Timeline,
    /// One row per response time.
    Spectrum,
    /// Open loop: one row per service time.
    ServiceSpectrum,
    /// One row per range of time since the last update.
    Freshness,
    /// One row per wrong item of a read.
    Unpredictable,
    /// One row per item that was read after an experiment.
    ClosingReads,
}

impl Rows {
    /// The columns that identify a row; rows are written in this order.
    const fn keys(self) -> &'static str {
        match self {
            Rows::Operations => "experiment, fragment, session, step",
            Rows::Sessions => "experiment, fragment, session",
            Rows::Spectrum => "experiment, operation, response_ns",
            Rows::ServiceSpectrum => "experiment, operation, service_ns",
            Rows::Unpredictable => "experiment, fragment, session, step, item, owner, element",
            Rows::ClosingReads => "experiment, fragment, start_ns, end_ns, observed",
            Rows::Experiments | Rows::Timeline | Rows::Freshness => "ALL",
        }
    }

    const fn has_operations(self) -> bool {
        matches!(
            self,
            Rows::Operations | Rows::Spectrum | Rows::ServiceSpectrum | Rows::Unpredictable | Rows::ClosingReads
        )
    }

    const fn view(self) -> &'static str {
        match self {
            Rows::Operations => "operations",
            Rows::Sessions => "sessions",
            Rows::Experiments => "experiments",
            Rows::Timeline => "timeline",
            Rows::Spectrum => "spectrum",
            Rows::ServiceSpectrum => "service_spectrum",
            Rows::Freshness => "freshness",
            Rows::Unpredictable => "unpredictable",
            Rows::ClosingReads => "closing_reads",
        }
    }
}

/// What to export.
pub(crate) struct Wanted<'a> {
    pub(crate) kind: Kind,
    /// None in formats without rows, and for operations.
    pub(crate) rows: Option<Rows>,
    /// Only this experiment.
    pub(crate) experiment: Option<u32>,
    /// Only this operation.
    pub(crate) operation: Option<&'a str>,
    /// The times of the percentiles; response times by default.
    pub(crate) times: Option<Times>,
    /// None for standard output.
    pub(crate) output: Option<&'a Path>,
}

/// Exports. Returns the text for standard output, unless it was already written there.
pub(crate) fn export(run: &RunFolder, verdicts: &[Verdict], wanted: &Wanted<'_>) -> Result<String, AnalyzeError> {
    if let Some(operation) = wanted.operation {
        let kinds = families::of(&run.read_document()?.spec)?.kinds();
        if !kinds.iter().any(|kind| kind.name == operation) {
            let known = kinds.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ");
            return Err(AnalyzeError::Statement(format!(
                "--operation {operation}: unknown operation; use one of {known}"
            )));
        }
    }
    if let (Kind::Hgrm | Kind::Openmetrics, Some(rows)) = (wanted.kind, wanted.rows) {
        let rows = rows.view();
        return Err(AnalyzeError::Statement(format!("--rows {rows}: this format has no rows; remove --rows")));
    }
    if wanted.times.is_some() && wanted.kind != Kind::Hgrm {
        let message = "--times: only percentiles (--format hgrm) have them; the other formats have both times in an open \
                       loop; remove --times";
        return Err(AnalyzeError::Statement(message.to_string()));
    }
    let text = match wanted.kind {
        Kind::Csv => return rows(run, verdicts, wanted, "FORMAT csv, HEADER"),
        Kind::Json => return rows(run, verdicts, wanted, "FORMAT json, ARRAY true"),
        Kind::Parquet => return rows(run, verdicts, wanted, "FORMAT parquet, COMPRESSION zstd"),
        Kind::Hgrm => percentiles(&Database::open(run, verdicts, None)?, verdicts, wanted)?,
        Kind::Openmetrics => openmetrics(verdicts, wanted),
    };
    match wanted.output {
        None => Ok(text),
        Some(path) => {
            files::write_atomically(path, text.as_bytes())?;
            Ok(String::new())
        }
    }
}

/// Lets DuckDB write the rows, however many there are.
fn rows(run: &RunFolder, verdicts: &[Verdict], wanted: &Wanted<'_>, how: &str) -> Result<String, AnalyzeError> {
    let database = Database::unlocked(run, verdicts, None)?;
    let rows = wanted.rows.unwrap_or(Rows::Operations);
    let (view, keys) = (rows.view(), rows.keys());
    let mut only: Vec<String> =
        wanted.experiment.map(|experiment| format!("experiment = {experiment}")).into_iter().collect();
    match wanted.operation {
        Some(operation) if rows.has_operations() => only.push(format!("operation = '{operation}'")),
        Some(_) => {
            return Err(AnalyzeError::Statement(format!(
                "--operation: the rows of {view} have no operation; remove --operation"
            )));
        }
        None => {}
    }
    let only = if only.is_empty() { String::new() } else { format!(" WHERE {}", only.join(" AND ")) };
    let (target, place): (PathBuf, Option<&Path>) = match wanted.output {
        // The file gets its name only when it is complete.
        Some(path) => {
            // DuckDB would name the temporary file.
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                std::fs::metadata(folder).map_err(files::at(path))?;
            }
            let mut part = path.as_os_str().to_owned();
            part.push(".part");
            (part.into(), Some(path))
        }
        None if wanted.kind == Kind::Parquet => {
            return Err(AnalyzeError::Statement("--format parquet needs a file; give one with --output".to_string()));
        }
        // DuckDB would open standard output again and truncate what is already there.
        None => (database.spill().join("rows"), None),
    };
    let place_of = quoted(&target.display().to_string());
    let statement = format!("COPY (SELECT * FROM {view}{only} ORDER BY {keys}) TO {place_of} ({how})");
    let copied = database.run(&statement, &[]);
    if let Some(path) = place {
        match copied {
            Ok(_) => std::fs::rename(&target, path).map_err(files::at(path))?,
            Err(e) => {
                // A part of the file is of no use.
                let _ = std::fs::remove_file(&target);
                return Err(AnalyzeError::Write(TableError::new(path, e)));
            }
        }
    } else {
        copied?;
        let mut written = File::open(&target).map_err(files::at(&target))?;
        match std::io::copy(&mut written, &mut std::io::stdout().lock()) {
            // A closed pipe is not an error.
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                return Err(AnalyzeError::Write(TableError::new(Path::new("standard output"), e)));
            }
            _ => {}
        }
    }
    Ok(String::new())
}

/// The experiment whose percentiles are exported; the last one by default.
fn of_percentiles<'a>(verdicts: &'a [Verdict], wanted: &Wanted<'_>) -> Option<&'a Verdict> {
    match wanted.experiment {
        Some(experiment) => verdicts.iter().find(|verdict| verdict.experiment == experiment),
        None => verdicts.last(),
    }
}

/// Whether the export leaves out service times that differ from the response times, because the user
/// named neither of the two.
pub(crate) fn lacks_service_times(verdicts: &[Verdict], wanted: &Wanted<'_>) -> bool {
    let is_open_loop =
        of_percentiles(verdicts, wanted).is_some_and(|verdict| verdict.figures.overall.service.is_some());
    wanted.kind == Kind::Hgrm && wanted.times.is_none() && is_open_loop
}

/// The percentiles of one experiment.
fn percentiles(database: &Database, verdicts: &[Verdict], wanted: &Wanted<'_>) -> Result<String, AnalyzeError> {
    let verdict = of_percentiles(verdicts, wanted);
    let experiment = verdict.map_or(0, |verdict| verdict.experiment);
    let is_open_loop = verdict.is_some_and(|verdict| verdict.figures.overall.service.is_some());
    let (column, view) = match wanted.times {
        Some(Times::Service) if is_open_loop => ("service_ns", "service_spectrum"),
        _ => ("response_ns", "spectrum"),
    };
    let only = wanted.operation.map_or(String::new(), |operation| format!(" AND operation = '{operation}'"));
    let statement = format!(
        "SELECT {column}, CAST(sum(operations) AS BIGINT) FROM {view} WHERE experiment = {experiment}{only} GROUP BY ALL"
    );
    let mut times = ResponseTimes::default();
    database.each(&statement, |row| {
        let (ns, count): (i64, i64) = (row.get(0)?, row.get(1)?);
        times.record_n(ns, count.max(0) as u64);
        Ok(())
    })?;
    Ok(hgrm(times.histogram()))
}

/// The text that HdrHistogram's `outputPercentileDistribution` writes, in milliseconds.
fn hgrm(times: &Histogram<u64>) -> String {
    let ms = |ns: f64| ns / 1e6;
    let mut out = format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut count = 0;
    for step in times.iter_quantiles(5) {
        count += step.count_since_last_iteration();
        let (value, share) = (ms(step.value_iterated_to() as f64), step.quantile_iterated_to());
        let _ = match 1.0 - share {
            rest if rest > 0.0 => writeln!(out, "{value:12.3} {share:2.12} {count:10} {:14.2}", 1.0 / rest),
            _ => writeln!(out, "{value:12.3} {share:2.12} {count:10}"),
        };
    }
    let (mean, deviation, max) = (ms(times.mean()), ms(times.stdev()), ms(times.max() as f64));
    let _ = writeln!(out, "#[Mean    = {mean:12.3}, StdDeviation   = {deviation:12.3}]");
    let _ = writeln!(out, "#[Max     = {max:12.3}, Total count    = {:12}]", times.len());
    let _ = writeln!(out, "#[Buckets = {:12}, SubBuckets     = {:12}]", times.buckets(), 2048);
    out
}

/// Counters, response times and rates of every experiment.
fn openmetrics(verdicts: &[Verdict], wanted: &Wanted<'_>) -> String {
    let verdicts = || verdicts.iter().filter(|verdict| wanted.experiment.is_none_or(|own| own == verdict.experiment));
    let operations = |verdict: &Verdict| -> Vec<(String, OperationFigures)> {
        let of = verdict
            .figures
            .by_operation
            .iter()
            .filter(|(operation, _)| wanted.operation.is_none_or(|own| own == *operation));
        of.map(|(operation, figures)| (operation.clone(), *figures)).collect()
    };
    let labels = |verdict: &Verdict| format!("experiment=\"{}\",threads=\"{}\"", verdict.experiment, verdict.threads);
    let mut out = String::new();
    out += "# TYPE encore_operations counter\n# HELP encore_operations Operations of the measured part by outcome.\n";
    for verdict in verdicts() {
        for (operation, figures) in operations(verdict) {
            let OperationFigures { ok, failed, unknown, skipped, aborted, .. } = figures;
            let counts =
                [("ok", ok), ("failed", failed), ("unknown", unknown), ("skipped", skipped), ("aborted", aborted)];
            for (outcome, count) in counts {
                let own = labels(verdict);
                let _ = writeln!(
                    out,
                    "encore_operations_total{{{own},operation=\"{operation}\",outcome=\"{outcome}\"}} {count}"
                );
            }
        }
    }
    out += "# TYPE encore_response_time_seconds summary\n# UNIT encore_response_time_seconds seconds\n\
            # HELP encore_response_time_seconds Response times of operations that succeeded.\n";
    for verdict in verdicts() {
        for (operation, figures) in operations(verdict) {
            let own = format!("{},operation=\"{}\"", labels(verdict), operation);
            for (quantile, ns) in [("0.5", figures.p50_ns), ("0.95", figures.p95_ns), ("0.99", figures.p99_ns)] {
                let seconds = ns as f64 / 1e9;
                let _ = writeln!(out, "encore_response_time_seconds{{{own},quantile=\"{quantile}\"}} {seconds}");
            }
            let sum = figures.mean_ns * figures.ok as f64 / 1e9;
            let _ = writeln!(out, "encore_response_time_seconds_sum{{{own}}} {sum}");
            let _ = writeln!(out, "encore_response_time_seconds_count{{{own}}} {}", figures.ok);
        }
    }
    if verdicts().any(|verdict| verdict.figures.overall.service.is_some()) {
        out += "# TYPE encore_service_time_seconds summary\n# UNIT encore_service_time_seconds seconds\n\
                # HELP encore_service_time_seconds Open loop: times of operations that succeeded, from their start.\n";
    }
    for verdict in verdicts() {
        for (operation, figures) in operations(verdict) {
            let Some(service) = figures.service else { continue };
            let own = format!("{},operation=\"{}\"", labels(verdict), operation);
            for (quantile, ns) in [("0.5", service.p50_ns), ("0.95", service.p95_ns), ("0.99", service.p99_ns)] {
                let seconds = ns as f64 / 1e9;
                let _ = writeln!(out, "encore_service_time_seconds{{{own},quantile=\"{quantile}\"}} {seconds}");
            }
            let sum = service.mean_ns * figures.ok as f64 / 1e9;
            let _ = writeln!(out, "encore_service_time_seconds_sum{{{own}}} {sum}");
            let _ = writeln!(out, "encore_service_time_seconds_count{{{own}}} {}", figures.ok);
        }
    }
    type Gauge = (&'static str, &'static str, fn(&Verdict) -> f64);
    let gauges: [Gauge; 5] = [
        ("encore_throughput", "Successful operations per second.", |v| v.figures.throughput_per_s),
        ("encore_within_ratio", "Share of operations within the response time of the SLA.", |v| {
            v.figures.within_beta_percent / 100.0
        }),
        ("encore_met_ratio", "Share of operations that met both limits of the SLA.", |v| {
            v.figures.met_percent.map_or(f64::NAN, |percent| percent / 100.0)
        }),
        ("encore_unpredictable_ratio", "Share of reads that returned stale or wrong data.", |v| {
            v.figures.unpredictable_percent / 100.0
        }),
        ("encore_kept_agreement", "1 if the SLA was met.", |v| {
            f64::from(u8::from(v.ruling == schemas::verdict::Ruling::Pass))
        }),
    ];
    for (name, help, of) in gauges {
        let _ = writeln!(out, "# TYPE {name} gauge\n# HELP {name} {help}");
        for verdict in verdicts() {
            let _ = writeln!(out, "{name}{{{}}} {}", labels(verdict), of(verdict));
        }
    }
    out + "# EOF\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentile_files_are_those_of_hdrhistogram() {
        let mut times = ResponseTimes::default();
        (1..=1000).for_each(|n| times.record_n(n * 1_000_000, 1));
        let text = hgrm(times.histogram());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].trim_start().starts_with("Value") && lines[1].is_empty(), "{text}");
        let fields: Vec<f64> = lines[2].split_whitespace().map(|field| field.parse().unwrap()).collect();
        assert_eq!((fields.len(), fields[1], fields[2]), (4, 0.0, 1.0), "{text}");
        let last = lines.iter().rfind(|line| !line.starts_with('#')).unwrap();
        assert!(last.split_whitespace().count() == 3 && last.contains(" 1.000000000000 "), "{last}");
        assert!(text.contains("Total count    =         1000]") && text.contains("#[Mean    ="), "{text}");
        let max = text.split("#[Max     =").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
        let max: f64 = max.trim().parse().unwrap();
        assert!((999.0..=1001.0).contains(&max), "{text}");
    }
}
