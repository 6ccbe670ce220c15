//! The command line of the analyzer.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Args, Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use schemas::comparison::ComparisonFolder;
use schemas::run::{ReplayReport, RunFolder};
use schemas::sla::Sla;
use schemas::social::Action;
use schemas::terminal::complain;
use schemas::verdict::{Ruling, Verdict};

use crate::error::AnalyzeError;
use crate::sql::{Database, Format, print};
use crate::{Keep, analyze_with, compare, export, html, report, stored_verdict, summarize, witness};

const SUCCESS: u8 = 0;
/// The SLA was missed or a violation was found.
const VIOLATION: u8 = 1;
const WRONG_USAGE: u8 = 2;
const TOOL_FAILED: u8 = 3;

/// Turns operation logs into figures, rulings and unpredictable reads.
#[derive(Debug, Parser)]
#[command(
    name = "analyzer",
    version,
    after_help = "\
Examples:
  analyzer summary runs/quickstart
  analyzer validate runs/quickstart --experiment 7
  analyzer sql runs/quickstart \"SELECT action, count(*) FROM operations GROUP BY ALL\"

Exit codes: 0 success, 1 the SLA was missed or a violation was found,
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

/// Print the figures and rulings of a run, analyzing what is not analyzed yet.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  analyzer summary runs/quickstart
  analyzer summary runs/quickstart --sla \"99% < 10ms, 0.1% unpredictable\"
  analyzer summary runs/quickstart --experiment 7 --json")]
struct Summary {
    /// The run folder.
    run: PathBuf,
    /// Rule against this SLA instead; verdicts that the run has already stay as they are.
    #[arg(long)]
    sla: Option<Sla>,
    /// The experiment whose actions are shown; the last one by default.
    #[arg(long)]
    experiment: Option<u32>,
    /// Print one JSON object: run, selected (the experiment shown) and verdicts (one for each experiment).
    #[arg(long)]
    json: bool,
}

/// Print the unpredictable reads of an experiment and the writes that prove them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  analyzer validate runs/quickstart
  analyzer validate runs/quickstart --experiment 7 --worst 20")]
struct Validate {
    /// The run folder.
    run: PathBuf,
    /// The experiment; the last one by default.
    #[arg(long)]
    experiment: Option<u32>,
    /// How many of the worst offenders to show.
    #[arg(long, default_value_t = 5)]
    worst: usize,
    /// Print one JSON object: experiment, reads, unpredictable_reads, warmup_unpredictable_reads, missing and worst (the offenders with their writes).
    #[arg(long)]
    json: bool,
}

/// Run a SELECT over a run; the run is never changed by it.
///
/// Views: operations (one row an operation), sessions, experiments, timeline (one
/// row a slice of time), spectrum (one row a response time), freshness (by age of
/// what was read), unpredictable (one row a wrong item of a read). A run that is not
/// analyzed yet is analyzed first. Of a comparison: cells (a store at a point).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  analyzer sql runs/quickstart \"SELECT * FROM experiments\"
  analyzer sql runs/quickstart \"SELECT action, max(response_ns) FROM operations GROUP BY ALL\" --format csv
  analyzer sql runs/quickstart \"SELECT action, min(response_ns) FROM spectrum WHERE percent >= 99.9 GROUP BY ALL\"
  analyzer sql runs/quickstart \"DESCRIBE operations\"
  analyzer sql runs/figure-6 \"SELECT point, store, soar FROM cells\"")]
struct Sql {
    /// The folder of a run or of a comparison.
    run: PathBuf,
    /// One statement that reads.
    #[arg(allow_hyphen_values = true)]
    statement: String,
    /// How to print the answer.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// The most memory of DuckDB, such as 4GiB; what does not fit goes to the folder for temporary files. [default: 80% of the machine's]
    #[arg(long, value_name = "SIZE")]
    memory_limit: Option<String>,
}

/// Write a run as one HTML page, with charts, that opens anywhere and loads nothing.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  analyzer report runs/quickstart          writes runs/quickstart/report.html

Below each chart stands the SQL whose answer it draws.")]
struct Report {
    /// The run folder.
    run: PathBuf,
}

/// Write rows, percentiles or figures in a format of other tools.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  analyzer export runs/quickstart --format parquet -o operations.parquet
  analyzer export runs/quickstart --format csv --rows timeline --experiment 7
  analyzer export runs/quickstart --format hgrm --action view_profile > view_profile.hgrm
  analyzer export runs/quickstart --format openmetrics -o encore.prom")]
struct Export {
    /// The run folder.
    run: PathBuf,
    /// The format.
    #[arg(long, value_enum)]
    format: export::Kind,
    /// Which rows, where rows are written. [default: operations]
    #[arg(long, value_enum)]
    rows: Option<export::Rows>,
    /// Of this experiment alone. [default: all; of percentiles the last one]
    #[arg(long)]
    experiment: Option<u32>,
    /// Of this action alone.
    #[arg(long, value_parser = action)]
    action: Option<Action>,
    /// The file; standard output without.
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
}

fn action(name: &str) -> Result<Action, String> {
    let known = || Action::ALL.map(Action::name).join(", ");
    Action::from_name(name).ok_or_else(|| format!("no action of this name; there are {}", known()))
}

/// Hold runs side by side: their figures, and whether the differences are more than chance.
///
/// Of each run the experiment is taken that its ratings rest on, else the last one. What
/// makes the runs unequal (durability, workload, agreement, T, host) is said first.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  analyzer compare runs/before runs/after
  analyzer compare runs/postgres runs/mysql runs/mongodb --html stores.html
  analyzer compare runs/before runs/after --json")]
struct Compare {
    /// The run folders; differences are from the first.
    #[arg(required = true, num_args = 2..)]
    runs: Vec<PathBuf>,
    /// Write it as a page with charts too.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print one JSON object: unequal (sentences) and figures (one for each figure and run).
    #[arg(long)]
    json: bool,
}

/// Summarize the logs of one experiment where they lie, for a fleet that leaves them there.
///
/// Writes summary.json into the experiment's folder. A replayer of `coord rate
/// --leave-logs` calls this by itself, and the coordinator fetches what it wrote.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  analyzer summarize replayer-work/runs/bg-1-1790000000/experiments/0007-T64
  analyzer summarize runs/quickstart/experiments/0007-T64 --sla \"99% < 10ms\"")]
struct Summarize {
    /// The experiment's folder, with plan.json and log/.
    experiment: PathBuf,
    /// The SLA whose response time decides what was in time. [default: 95% < 100ms, 0.1% unpredictable, 10s]
    #[arg(long)]
    sla: Option<Sla>,
    /// The replay.json of all replayers, which says when the measured part was. [default: the experiment's own]
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Runs the analyzer with the arguments of a command line, the program's name first.
pub fn main<I, A>(arguments: I) -> ExitCode
where
    I: IntoIterator<Item = A>,
    A: Into<OsString> + Clone,
{
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(e) => {
            let code = if e.use_stderr() { WRONG_USAGE } else { SUCCESS };
            // Nothing can be said when the terminal itself is gone.
            let _ = e.print();
            return ExitCode::from(code);
        }
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

/// What goes to standard output, and the exit code.
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
    let selected = select(&run, arguments.experiment, &verdicts)?;
    let output = if arguments.json {
        let number = selected.map(|verdict| verdict.experiment);
        let object = serde_json::json!({ "run": document, "selected": number, "verdicts": verdicts });
        format!("{object}\n")
    } else {
        let shown = match selected {
            None => "no experiment yet\n".to_string(),
            Some(verdict) => {
                let counted = report::counted(&counters(&run, verdict.experiment)?);
                format!("{}\n{}{counted}", report::experiments(&verdicts), report::experiment(verdict))
            }
        };
        format!("{}\n{shown}", report::header(&document))
    };
    let is_bad = |verdict: &Verdict| verdict.ruling == Ruling::Fail || verdict.figures.unpredictable_reads > 0;
    Ok((output, if selected.is_some_and(is_bad) { VIOLATION } else { SUCCESS }))
}

/// What the store has counted in an experiment; nothing where it did not come to its end.
fn counters(run: &RunFolder, experiment: u32) -> Result<BTreeMap<String, u64>, AnalyzeError> {
    let folder = run.experiments()?.into_iter().find(|(number, _)| *number == experiment);
    let path = folder.map(|(_, folder)| folder.report()).filter(|path| path.exists());
    let report = path.map(|path| schemas::files::read_json::<ReplayReport>(&path)).transpose()?;
    Ok(report.map(|report| report.store_counters).unwrap_or_default())
}

fn validate(arguments: &Validate) -> Result<(String, u8), AnalyzeError> {
    let run = RunFolder::new(&arguments.run);
    run.read_document()?;
    let verdicts = match arguments.experiment {
        Some(experiment) => vec![verdict(&run, experiment, None)?],
        None => match run.experiments()?.last() {
            Some((last, _)) => vec![verdict(&run, *last, None)?],
            None => Vec::new(),
        },
    };
    note_left_behind(&run)?;
    let Some(verdict) = verdicts.first() else {
        return Ok((if arguments.json { "null\n" } else { "no experiment yet\n" }.to_string(), SUCCESS));
    };
    let database = Database::open(&run, &verdicts, None)?;
    let worst = witness::worst_offenders(&database, verdict.experiment, arguments.worst)?;
    let figures = &verdict.figures;
    let in_warmup = witness::unpredictable_in_warmup(&database, verdict.experiment)?;
    let output = if arguments.json {
        let object = serde_json::json!({
            "experiment": verdict.experiment,
            "reads": figures.reads,
            "unpredictable_reads": figures.unpredictable_reads,
            "warmup_unpredictable_reads": in_warmup,
            "missing": figures.missing,
            "worst": worst,
        });
        format!("{object}\n")
    } else {
        report::validation(verdict, in_warmup, &worst)
    };
    Ok((output, if figures.unpredictable_reads > 0 { VIOLATION } else { SUCCESS }))
}

fn sql(arguments: &Sql) -> Result<(String, u8), AnalyzeError> {
    let limit = arguments.memory_limit.as_deref();
    let comparison = ComparisonFolder::new(&arguments.run);
    let database = if comparison.document().exists() {
        Database::of_comparison(&comparison, limit)?
    } else {
        let (run, verdicts) = whole(&arguments.run)?;
        Database::open(&run, &verdicts, limit)?
    };
    let answer = database.query(&arguments.statement)?;
    Ok((print(&database, &answer, arguments.format)?, SUCCESS))
}

/// A run and the verdicts of all its experiments, analyzing what is not analyzed yet.
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
        let object = serde_json::json!({ "unequal": compare::unequal(&runs), "figures": compare::judged(&runs) });
        format!("{object}\n")
    } else {
        compare::text(&runs)
    };
    Ok((output, SUCCESS))
}

fn exported(arguments: &Export) -> Result<(String, u8), AnalyzeError> {
    let (run, verdicts) = whole(&arguments.run)?;
    if let Some(experiment) = arguments.experiment {
        select(&run, Some(experiment), &verdicts)?;
    }
    let Export { format, rows, experiment, action, .. } = *arguments;
    let wanted = export::Wanted { kind: format, rows, experiment, action, output: arguments.output.as_deref() };
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

/// Says of experiments whose rows are not here where they are.
fn note_left_behind(run: &RunFolder) -> Result<(), AnalyzeError> {
    let mut numbers = Vec::new();
    for (number, folder) in run.experiments()? {
        if !summarize::left_behind(&folder)?.is_empty() {
            numbers.push(number.to_string());
        }
    }
    if !numbers.is_empty() {
        let (numbers, run) = (numbers.join(", "), run.root().display());
        complain(
            "note",
            format_args!(
                "logs of experiments {numbers} were left with their replayers: their rows are not here (`coord collect {run}` fetches them)"
            ),
        );
    }
    Ok(())
}

/// The verdict of an experiment: as it is stored, or analyzed now. A verdict
/// against another SLA than the run's own is not kept.
fn verdict(run: &RunFolder, experiment: u32, sla: Option<&Sla>) -> Result<Verdict, AnalyzeError> {
    let stored = stored_verdict(run, experiment)?;
    let is_its_own = match sla {
        Some(sla) => *sla == run.read_document()?.sla.unwrap_or_default(),
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
    // On standard error, and nowhere when that is no terminal.
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

/// The experiment asked for, else the last one.
fn select<'a>(
    run: &RunFolder,
    experiment: Option<u32>,
    verdicts: &'a [Verdict],
) -> Result<Option<&'a Verdict>, AnalyzeError> {
    let Some(experiment) = experiment else { return Ok(verdicts.last()) };
    let found = verdicts.iter().find(|verdict| verdict.experiment == experiment);
    found.map(Some).ok_or_else(|| {
        let numbers: Vec<String> = verdicts.iter().map(|verdict| verdict.experiment.to_string()).collect();
        let known = if numbers.is_empty() { "it has none".into() } else { format!("it has {}", numbers.join(", ")) };
        AnalyzeError::NoExperiment { run: run.root().to_path_buf(), experiment, known }
    })
}
