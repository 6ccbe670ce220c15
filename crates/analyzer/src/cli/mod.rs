//! The command line of the analyzer.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use schemas::comparison::ComparisonFolder;
use schemas::program;
use schemas::run::{ReplayReport, RunFolder};
use schemas::sla::Sla;
use schemas::terminal::complain;
use schemas::verdict::{Figures, RatingDocument, Ruling, Verdict};

use crate::error::AnalyzeError;
use crate::sql::{Database, Format, definitions, definitions_of_comparison, print, within_memory};
use crate::verify::verify;
use crate::{
    Keep, analyze_with, checks, compare, export, families, html, ratings, report, stored_verdict, summarize, witness,
};

const SUCCESS: u8 = 0;
/// The SLA was missed or a violation was found.
const VIOLATION: u8 = 1;
const TOOL_FAILED: u8 = 3;

/// Compute metrics, verdicts and unpredictable reads from operation logs.
#[derive(Debug, Parser)]
#[command(
    name = "analyzer",
    version,
    after_help = "\
Examples:
  encore analyze summary runs/NAME
  encore analyze validate runs/NAME --experiment 7
  encore analyze sql runs/NAME \"SELECT operation, count(*) FROM operations GROUP BY ALL\"

Exit codes: 0 success, 1 SLA missed or unpredictable reads found,
2 wrong usage or input, 3 the tool itself failed."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Summary(Summary),
    Validate(Validate),
    Sql(Sql),
    Report(Report),
    Export(Export),
    Compare(Compare),
    Summarize(Summarize),
}

/// Print the metrics and verdicts of a run; analyze experiments that are not analyzed yet.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze summary runs/NAME
  encore analyze summary runs/NAME --sla \"99% < 10ms, 0.1% unpredictable\"
  encore analyze summary runs/NAME --experiment 7 --json")]
struct Summary {
    /// The run folder.
    run: PathBuf,
    /// Use this SLA for the verdicts. Verdicts that the run already has stay unchanged. [default:
    /// the run's SLA]
    #[arg(long)]
    sla: Option<Sla>,
    /// Show the operations of this experiment. [default: the one that the ratings rest on, else the
    /// last]
    #[arg(long)]
    experiment: Option<u32>,
    /// Print one JSON object: run, selected (the experiment shown) and verdicts (one per
    /// experiment).
    #[arg(long)]
    json: bool,
}

/// Print the unpredictable reads of an experiment and the writes that prove them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze validate runs/NAME
  encore analyze validate runs/NAME --experiment 7 --worst 20")]
struct Validate {
    /// The run folder.
    run: PathBuf,
    /// The experiment. [default: the last one]
    #[arg(long)]
    experiment: Option<u32>,
    /// How many of the worst unpredictable reads to show.
    #[arg(long, default_value_t = 5)]
    worst: usize,
    /// Print one JSON object: experiment, reads, unpredictable_reads, warmup_unpredictable_reads,
    /// missing, closing (what the closing read found) and worst (the worst reads with their writes).
    #[arg(long)]
    json: bool,
}

/// Run a SELECT over a run, without changing the run.
///
/// Views: operations (one row per operation), sessions, experiments, timeline (one row per slice
/// of time), spectrum (one row per response time), item_updates and item_reads (one row per item
/// that an operation changed or observed), freshness (by time since the last update),
/// closing_reads (one row per item that was read after an experiment), unpredictable (one row per
/// wrong item of a read). Experiments that are not analyzed yet are
/// analyzed first. For a comparison: cells (one row per store and point).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze sql runs/NAME \"SELECT * FROM experiments\"
  encore analyze sql runs/NAME \"FROM timeline\" --format csv
  encore analyze sql runs/NAME \"SELECT max(response_ns) FROM operations\"
  encore analyze sql runs/NAME \"DESCRIBE operations\"
  encore analyze sql runs/figure-6 \"SELECT point, store, soar FROM cells\"
  encore analyze sql runs/NAME --definitions         the views, for a DuckDB of your own")]
struct Sql {
    /// The folder of a run or of a comparison.
    run: PathBuf,
    /// One SQL statement that only reads.
    #[arg(allow_hyphen_values = true, required_unless_present = "definitions")]
    statement: Option<String>,
    /// Print the statements that define the tables and views, and run none. The tables
    /// `experiments` and `cells` are defined without their rows.
    #[arg(long, conflicts_with_all = ["statement", "format"])]
    definitions: bool,
    /// The output format.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// The memory limit of DuckDB, such as 4GiB. DuckDB writes data above it to the folder for
    /// temporary files. [default: 80% of the machine's memory]
    #[arg(long, value_name = "SIZE")]
    memory_limit: Option<String>,
}

/// Write a run as one HTML page with charts; the page loads nothing from elsewhere.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze report runs/NAME          writes runs/NAME/report.html

The page shows the SQL statement below each chart.")]
struct Report {
    /// The run folder.
    run: PathBuf,
}

/// Write rows, percentiles or metrics in a format of other tools.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze export runs/NAME --format parquet -o operations.parquet
  encore analyze export runs/NAME --format csv --rows timeline --experiment 7
  encore analyze export runs/NAME --format hgrm --operation view_profile > view_profile.hgrm
  encore analyze export runs/NAME --format openmetrics -o encore.prom")]
struct Export {
    /// The run folder.
    run: PathBuf,
    /// The output format.
    #[arg(long, value_enum)]
    format: export::Kind,
    /// The rows to write, in formats with rows. [default: operations]
    #[arg(long, value_enum)]
    rows: Option<export::Rows>,
    /// Only this experiment. [default: all; for percentiles the last one]
    #[arg(long)]
    experiment: Option<u32>,
    /// Only this operation. [default: all]
    #[arg(long)]
    operation: Option<String>,
    /// Write to this file. [default: standard output]
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Compare runs: their metrics, and whether the differences are more than chance.
///
/// For each run it takes the experiment that the run's ratings rest on, else the last one. Setup
/// differences (durability, isolation, workload, SLA, T, host) are printed first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze compare runs/before runs/after
  encore analyze compare runs/postgres runs/mysql runs/mongodb --html stores.html
  encore analyze compare runs/before runs/after --fail-if-slower 5% --junit compare.xml
  encore analyze compare runs/before runs/after --json

Exit code 1 if --fail-if-slower finds a slower run.")]
struct Compare {
    /// The run folders; differences are relative to the first one.
    #[arg(required = true, num_args = 2..)]
    runs: Vec<PathBuf>,
    /// Also write the comparison to this file, as an HTML page with charts.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Exit with code 1 if a run is slower than the first one by more than this percentage,
    /// beyond chance: lower throughput or SoAR, or a higher p95.
    #[arg(long, value_name = "PERCENT", value_parser = schemas::sla::percent)]
    fail_if_slower: Option<f64>,
    /// Write the results of --fail-if-slower to this file, as JUnit XML.
    #[arg(long, value_name = "FILE", requires = "fail_if_slower")]
    junit: Option<PathBuf>,
    /// Print one JSON object: unequal (sentences), figures (one per metric and run), and ratings
    /// (by run).
    #[arg(long)]
    json: bool,
}

/// Summarize the logs of one experiment on the machine that has them.
///
/// Writes summary.json into the experiment's folder. With `encore rate --leave-logs`, each
/// replayer runs this command and the coordinator fetches the result.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  encore analyze summarize replayer-work/runs/bg-1-1790000000/experiments/0007-T64
  encore analyze summarize runs/NAME/experiments/0007-T64 --sla \"99% < 10ms\"")]
struct Summarize {
    /// The experiment's folder, with plan.json and log/.
    experiment: PathBuf,
    /// The SLA; its response time limit decides which operations count as in time. [default: 95%
    /// < 100ms, 0.1% unpredictable, 10s]
    #[arg(long)]
    sla: Option<Sla>,
    /// The replay.json of all replayers, which gives the measured part. [default: the
    /// experiment's own]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// The command line of this tool, as a part of the whole program's.
pub fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command()
}

/// Runs the analyzer with the arguments of a command line, the program's name first.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli: Cli = match program::parse("encore analyze", arguments) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    match run(cli.command) {
        Ok((output, code)) => match schemas::terminal::print(&output) {
            Err(e) => {
                complain("error", &e);
                ExitCode::from(TOOL_FAILED)
            }
            Ok(()) => ExitCode::from(code),
        },
        Err(e) => {
            complain("error", &e);
            ExitCode::from(e.exit_code())
        }
    }
}

/// The text for standard output, and the exit code.
fn run(command: Command) -> Result<(String, u8), AnalyzeError> {
    match command {
        Command::Summary(arguments) => summary(&arguments),
        Command::Validate(arguments) => validate(&arguments),
        Command::Sql(arguments) => sql(&arguments),
        Command::Report(arguments) => page(&arguments),
        Command::Export(arguments) => exported(&arguments),
        Command::Compare(arguments) => compared(&arguments),
        Command::Summarize(arguments) => summarized(&arguments),
    }
}

fn summary(arguments: &Summary) -> Result<(String, u8), AnalyzeError> {
    let run = RunFolder::new(&arguments.run);
    let document = run.read_document()?;
    let mut verdicts = Vec::new();
    for (experiment, _) in run.experiments()? {
        verdicts.push(verdict(&run, experiment, arguments.sla.as_ref())?);
    }
    verify(&run, &verdicts)?;
    let rating = html::rating(&run)?;
    let selected = select(&run, arguments.experiment, rating.as_ref(), &verdicts)?;
    let output = if arguments.json {
        let number = selected.map(|verdict| verdict.experiment);
        let object = serde_json::json!({ "run": document, "selected": number, "verdicts": verdicts });
        format!("{object}\n")
    } else {
        let shown = match selected {
            None => "this run has no experiment yet\n".to_string(),
            Some(verdict) => {
                let counted = report::counted(&counters(&run, verdict.experiment)?);
                // The experiments of a search are meant to be short.
                let notes = if rating.is_none() { report::short_ones(&verdicts) } else { String::new() };
                format!("{}{notes}\n{}{counted}", report::experiments(&verdicts), report::experiment(verdict))
            }
        };
        let ratings = rating.as_ref().map_or(String::new(), |rating| format!("{}\n", ratings(rating)));
        format!("{}\n{ratings}{shown}", report::header(&document))
    };
    let is_bad = |verdict: &Verdict| verdict.ruling == Ruling::Fail || has_unpredictable_reads(&verdict.figures);
    let code = match &rating {
        // For a rating, the exit code is that of `encore rate`: experiments of its search are
        // expected to fail.
        Some(rating) if arguments.experiment.is_none() => rating.exit_code(),
        _ if selected.is_some_and(is_bad) => VIOLATION,
        _ if selected.is_some_and(|verdict| verdict.ruling == Ruling::Void) => TOOL_FAILED,
        _ => SUCCESS,
    };
    Ok((output, code))
}

/// The store's own counters for an experiment; empty if the experiment did not reach its end.
fn counters(run: &RunFolder, experiment: u32) -> Result<BTreeMap<String, u64>, AnalyzeError> {
    let folder = run.experiments()?.into_iter().find(|(number, _)| *number == experiment);
    let path = folder.map(|(_, folder)| folder.report()).filter(|path| path.exists());
    let report = path.map(|path| schemas::files::read_json::<ReplayReport>(&path)).transpose()?;
    Ok(report.map(|report| report.store_counters).unwrap_or_default())
}

fn validate(arguments: &Validate) -> Result<(String, u8), AnalyzeError> {
    let run = RunFolder::new(&arguments.run);
    let document = run.read_document()?;
    let verdicts = match arguments.experiment {
        Some(experiment) => vec![verdict(&run, experiment, None)?],
        None => match run.experiments()?.last() {
            Some((last, _)) => vec![verdict(&run, *last, None)?],
            None => Vec::new(),
        },
    };
    note_left_behind(&run)?;
    let Some(verdict) = verdicts.first() else {
        return Ok((if arguments.json { "null\n" } else { "this run has no experiment yet\n" }.to_string(), SUCCESS));
    };
    let database = Database::open(&run, &verdicts, None)?;
    let family = families::of(&document.spec)?;
    let worst = witness::worst_offenders(&database, family, verdict.experiment, arguments.worst)?;
    let figures = &verdict.figures;
    let in_warmup = witness::unpredictable_in_warmup(&database, verdict.experiment)?;
    let output = if arguments.json {
        let object = serde_json::json!({
            "experiment": verdict.experiment,
            "reads": figures.reads,
            "unpredictable_reads": figures.unpredictable_reads,
            "warmup_unpredictable_reads": in_warmup,
            "missing": figures.missing,
            "closing": figures.closing,
            "worst": worst,
        });
        format!("{object}\n")
    } else {
        let notes: String = document.notes().iter().map(|note| format!("note: {note}\n")).collect();
        notes + &report::validation(family, verdict, in_warmup, &worst)
    };
    Ok((output, if has_unpredictable_reads(figures) { VIOLATION } else { SUCCESS }))
}

/// Whether a read of the measured part, or the closing read, returned what no correct store could have.
fn has_unpredictable_reads(figures: &Figures) -> bool {
    figures.unpredictable_reads > 0 || figures.closing.as_ref().is_some_and(|closing| closing.unpredictable > 0)
}

fn sql(arguments: &Sql) -> Result<(String, u8), AnalyzeError> {
    let limit = arguments.memory_limit.as_deref();
    let printed = queried(arguments, limit).map_err(|error| within_memory(error, limit))?;
    Ok((printed, SUCCESS))
}

/// The printed answer to a statement.
fn queried(arguments: &Sql, limit: Option<&str>) -> Result<String, AnalyzeError> {
    let comparison = ComparisonFolder::new(&arguments.run);
    let is_comparison = comparison.document().exists();
    let Some(statement) = &arguments.statement else {
        if is_comparison {
            return Ok(definitions_of_comparison().to_string());
        }
        let (run, verdicts) = whole(&arguments.run)?;
        return definitions(&run, &verdicts);
    };
    let database = if is_comparison {
        Database::of_comparison(&comparison, limit)?
    } else {
        let (run, verdicts) = whole(&arguments.run)?;
        Database::open(&run, &verdicts, limit)?
    };
    let answer = database.query(statement)?;
    print(&database, &answer, arguments.format)
}

/// A run and the verdicts of all its experiments; analyzes experiments that are not analyzed yet.
fn whole(run: &Path) -> Result<(RunFolder, Vec<Verdict>), AnalyzeError> {
    let run = RunFolder::new(run);
    run.read_document()?;
    let mut verdicts = Vec::new();
    for (experiment, _) in run.experiments()? {
        verdicts.push(verdict(&run, experiment, None)?);
    }
    note_left_behind(&run)?;
    Ok((run, verdicts))
}

fn compared(arguments: &Compare) -> Result<(String, u8), AnalyzeError> {
    let mut runs = Vec::new();
    for path in &arguments.runs {
        let (run, verdicts) = whole(path)?;
        let rating = html::rating(&run)?;
        let Some(verdict) = html::representative(rating.as_ref(), &verdicts).cloned() else {
            return Err(AnalyzeError::NothingToCompare { run: path.clone() });
        };
        let name = path.display().to_string();
        runs.push(compare::Compared { name, document: run.read_document()?, rating, verdicts, verdict });
    }
    if let Some(path) = &arguments.html {
        html::comparison::write(&runs, path)?;
    }
    let output = if arguments.json {
        let ratings: BTreeMap<&str, Option<&RatingDocument>> =
            runs.iter().map(|run| (run.name.as_str(), run.rating.as_ref())).collect();
        let (unequal, figures) = (compare::unequal(&runs), compare::judged(&runs));
        let object = serde_json::json!({ "unequal": unequal, "figures": figures, "ratings": ratings });
        format!("{object}\n")
    } else {
        compare::text(&runs)
    };
    let Some(percent) = arguments.fail_if_slower else { return Ok((output, SUCCESS)) };
    let checks = compare::not_slower(&runs, percent);
    if let Some(path) = &arguments.junit {
        checks::write_junit(path, "encore analyze compare", &checks)?;
    }
    let failures = checks::failures(&checks, checks::in_github_actions());
    let code = if failures.is_empty() { SUCCESS } else { VIOLATION };
    failures.iter().for_each(|failure| eprintln!("{failure}"));
    Ok((output, code))
}

fn exported(arguments: &Export) -> Result<(String, u8), AnalyzeError> {
    let (run, verdicts) = whole(&arguments.run)?;
    if let Some(experiment) = arguments.experiment {
        select(&run, Some(experiment), None, &verdicts)?;
    }
    let Export { format, rows, experiment, .. } = *arguments;
    let operation = arguments.operation.as_deref();
    let wanted = export::Wanted { kind: format, rows, experiment, operation, output: arguments.output.as_deref() };
    Ok((export::export(&run, &verdicts, &wanted)?, SUCCESS))
}

fn page(arguments: &Report) -> Result<(String, u8), AnalyzeError> {
    let (run, verdicts) = whole(&arguments.run)?;
    let path = html::write_report(&run, &verdicts)?;
    Ok((format!("{}\n", path.display()), SUCCESS))
}

fn summarized(arguments: &Summarize) -> Result<(String, u8), AnalyzeError> {
    let sla = arguments.sla.unwrap_or_default();
    let (_, path) = crate::summarize(&arguments.experiment, arguments.report.as_deref(), &sla)?;
    Ok((format!("{}\n", path.display()), SUCCESS))
}

/// Prints a note that names the experiments whose rows are not here, and says how to fetch them.
fn note_left_behind(run: &RunFolder) -> Result<(), AnalyzeError> {
    let mut numbers = Vec::new();
    for (number, folder) in run.experiments()? {
        if !summarize::left_behind(&folder)?.is_empty() {
            numbers.push(number.to_string());
        }
    }
    if !numbers.is_empty() {
        let noun = if numbers.len() == 1 { "experiment" } else { "experiments" };
        let (numbers, run) = (numbers.join(", "), run.root().display());
        complain(
            "note",
            format_args!(
                "the logs of {noun} {numbers} are on their replayers' machines, so their rows are missing here; fetch \
                 them with `encore collect {run}`"
            ),
        );
    }
    Ok(())
}

/// The verdict of an experiment: the stored one, or a new one. A verdict against another SLA than
/// the run's own is not stored.
fn verdict(run: &RunFolder, experiment: u32, sla: Option<&Sla>) -> Result<Verdict, AnalyzeError> {
    let stored = stored_verdict(run, experiment)?;
    let is_its_own = match sla {
        Some(sla) => *sla == run.read_document()?.sla(),
        None => true,
    };
    let keep = if stored.is_none() && is_its_own { Keep::All } else { Keep::Nothing };
    match stored {
        Some(stored) if sla.is_none_or(|sla| *sla == stored.sla) => Ok(stored),
        _ => analyze_with_progress(run, experiment, sla, keep),
    }
}

fn analyze_with_progress(
    run: &RunFolder,
    experiment: u32,
    sla: Option<&Sla>,
    keep: Keep,
) -> Result<Verdict, AnalyzeError> {
    // Progress goes to standard error, and only if that is a terminal.
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
        bar.set_style(style);
    }
    let rows = AtomicU64::new(0);
    let verdict = analyze_with(run, experiment, sla, keep, &|more| {
        let rows = rows.fetch_add(more, Ordering::Relaxed) + more;
        bar.set_message(format!("analyzing experiment {experiment}: {rows} operations"));
        bar.tick();
    });
    bar.finish_and_clear();
    verdict
}

/// The requested experiment, else the one that represents the run.
fn select<'a>(
    run: &RunFolder,
    experiment: Option<u32>,
    rating: Option<&RatingDocument>,
    verdicts: &'a [Verdict],
) -> Result<Option<&'a Verdict>, AnalyzeError> {
    let Some(experiment) = experiment else { return Ok(html::representative(rating, verdicts)) };
    let found = verdicts.iter().find(|verdict| verdict.experiment == experiment);
    found.map(Some).ok_or_else(|| {
        let numbers: Vec<String> = verdicts.iter().map(|verdict| verdict.experiment.to_string()).collect();
        let known = if numbers.is_empty() { "it has none".into() } else { format!("it has {}", numbers.join(", ")) };
        AnalyzeError::NoExperiment { run: run.root().to_path_buf(), experiment, known }
    })
}
