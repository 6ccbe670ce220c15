//! The command line of the analyzer.

mod apart;
mod args;
mod isolation;
mod remote;
mod verdicts;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use schemas::comparison::ComparisonFolder;
use schemas::conditions::{self, Condition, Found};
use schemas::program;
use schemas::run::{ReplayReport, RunFolder};
use schemas::terminal::complain;
use schemas::verdict::{ConsistencyFigures, Figures, RatingDocument, Ruling, Verdict};

use self::args::{Cli, Command, Compare, Consistency, Export, Report, Sql, Summarize, Summary, Validate};
use self::verdicts::{note_left_behind, select, verdict, whole};
use crate::error::AnalyzeError;
use crate::ruling::broken_promise;
use crate::sql::{Database, definitions, definitions_of_comparison, print, within_memory};
use crate::verify::verify;
use crate::{
    checks, compare, consistency_text, consistency_words, export, families, html, ratings, recorded, report, results,
    witness,
};

const SUCCESS: u8 = 0;
/// The SLA was missed or a violation was found.
const VIOLATION: u8 = 1;
const TOOL_FAILED: u8 = 3;

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
    match remote::with_folders(cli.command, cli.scratch.as_deref(), run) {
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
        Command::Consistency(arguments) => consistent(&arguments),
        Command::Isolation(arguments) => isolation::isolation(&arguments),
        Command::Sql(arguments) => sql(&arguments),
        Command::Report(arguments) => page(&arguments),
        Command::Export(arguments) => exported(&arguments),
        Command::Compare(arguments) => compared(&arguments),
        Command::Summarize(arguments) => summarized(&arguments),
        Command::Tasks(arguments) => apart::tasks(&arguments),
        Command::Fragment(arguments) => apart::fragment(&arguments),
        Command::Merge(arguments) => apart::merge(&arguments),
        Command::PlanCluster(arguments) => apart::plan_cluster(&arguments),
    }
}

fn summary(arguments: &Summary) -> Result<(String, u8), AnalyzeError> {
    let run = RunFolder::new(&arguments.run);
    let document = run.read_document()?;
    let mut verdicts = Vec::new();
    for experiment in verdicts::ended(&run)? {
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
    let is_bad = |verdict: &Verdict| {
        let is_weaker = isolation::is_weaker(&document, verdict);
        let figures = &verdict.figures;
        verdict.ruling == Ruling::Fail || has_unpredictable_reads(figures) || figures.breaks_conditions() || is_weaker
    };
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
    Ok(report_of(run, experiment)?.map(|report| report.store_counters).unwrap_or_default())
}

/// The replayer's report of an experiment; None if the experiment did not reach its end.
fn report_of(run: &RunFolder, experiment: u32) -> Result<Option<ReplayReport>, AnalyzeError> {
    let folder = run.experiments()?.into_iter().find(|(number, _)| *number == experiment);
    let path = folder.map(|(_, folder)| folder.report()).filter(|path| path.exists());
    Ok(path.map(|path| schemas::files::read_json::<ReplayReport>(&path)).transpose()?)
}

/// Whether the sum of all money is off, although the store promised isolation that keeps it.
fn breaks_promise(run: &RunFolder, verdict: &Verdict) -> Result<bool, AnalyzeError> {
    let report = report_of(run, verdict.experiment)?;
    Ok(broken_promise(&verdict.figures, report.as_ref()).is_some())
}

/// What was found of each condition of the data; empty if none were checked, or the file is not here.
fn conditions_of(run: &RunFolder, verdict: &Verdict) -> Result<Vec<Condition>, AnalyzeError> {
    let path = run.existing_experiment(verdict.experiment, verdict.threads).checks();
    let is_known = verdict.figures.conditions.as_ref().is_some_and(|conditions| conditions.missing.is_none());
    Ok(if is_known && path.exists() { conditions::read(&path)? } else { Vec::new() })
}

/// The rows that violate conditions, by the name of the condition.
fn violations_object(conditions: &[Condition]) -> serde_json::Value {
    let rows = conditions.iter().filter_map(|one| match &one.found {
        Found::Violated { first, .. } => Some((one.name.clone(), serde_json::json!(first))),
        _ => None,
    });
    serde_json::Value::Object(rows.collect())
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
    let conditions = conditions_of(&run, verdict)?;
    let in_warmup = witness::unpredictable_in_warmup(&database, verdict.experiment)?;
    let output = if arguments.json {
        let object = serde_json::json!({
            "experiment": verdict.experiment,
            "reads": figures.reads,
            "unpredictable_reads": figures.unpredictable_reads,
            "warmup_unpredictable_reads": in_warmup,
            "missing": figures.missing,
            "closing": figures.closing,
            "sum": figures.sum,
            "conditions": figures.conditions,
            "violations": violations_object(&conditions),
            "isolation": isolation::object(&document, verdict, family),
            "worst": worst,
        });
        format!("{object}\n")
    } else {
        let notes: String = document.notes().iter().map(|note| format!("note: {note}\n")).collect();
        notes + &report::validation(family, verdict, in_warmup, &worst, &conditions)
    };
    // A condition is no promise of the store alone: whatever the level of isolation, it says that the data are wrong.
    let is_bad = has_unpredictable_reads(figures)
        || figures.breaks_conditions()
        || breaks_promise(&run, verdict)?
        || isolation::is_weaker(&document, verdict);
    Ok((output, if is_bad { VIOLATION } else { SUCCESS }))
}

fn consistent(arguments: &Consistency) -> Result<(String, u8), AnalyzeError> {
    let (run, verdicts) = whole(&arguments.run)?;
    let verdict = match arguments.experiment {
        Some(_) => select(&run, arguments.experiment, None, &verdicts)?,
        None => verdicts.last(),
    };
    let Some(verdict) = verdict else {
        return Ok((if arguments.json { "null\n" } else { "this run has no experiment yet\n" }.to_string(), SUCCESS));
    };
    let family = families::of(&run.read_document()?.spec)?;
    let database = Database::open(&run, &verdicts, None)?;
    let figures = verdict.figures.consistency.as_ref();
    let availability = consistency_words::availability(verdict);
    let output = if arguments.json {
        let available = serde_json::json!({
            "outages": availability.outages,
            "between_failures_s": availability.between_failures_s(),
            "to_repair_s": availability.to_repair_s(),
        });
        let (experiment, missing) = (verdict.experiment, &verdict.figures.missing);
        let object = serde_json::json!({
            "experiment": experiment, "missing": missing, "consistency": figures,
            "within_gamma_percent": figures.and_then(ConsistencyFigures::within_gamma_percent), "availability": available,
        });
        format!("{object}\n")
    } else {
        consistency_text::text(&database, family, verdict, figures, &availability, arguments.worst)?
    };
    Ok((output, SUCCESS))
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
        match arguments.only_documents {
            true => Database::of_documents(&run, &verdicts, limit)?,
            false => Database::open(&run, &verdicts, limit)?,
        }
    };
    let answer = database.query_at_most(statement, arguments.max_rows.unwrap_or(u64::MAX))?;
    print(&database, &answer, arguments.format)
}

/// A run and the experiment of it that is compared.
fn side((path, name): (&Path, &str)) -> Result<results::Side, AnalyzeError> {
    let (run, verdicts) = whole(path)?;
    let rating = html::rating(&run)?;
    let Some(experiment) = html::representative(rating.as_ref(), &verdicts).map(|verdict| verdict.experiment) else {
        return Err(AnalyzeError::NothingToCompare { run: path.to_path_buf() });
    };
    let (name, document) = (name.to_string(), run.read_document()?);
    Ok(results::Side { name, run, document, verdicts, experiment })
}

/// What the statements of two runs returned.
fn compared_results(arguments: &Compare) -> Result<(String, u8), AnalyzeError> {
    let sides = arguments.named().map(side).collect::<Result<Vec<_>, _>>()?;
    let [first, second] = &sides[..] else {
        let all: Vec<&str> = sides.iter().map(|side| side.name.as_str()).collect();
        let (first, second) = (all[..1].join(""), all[1..].join(" and "));
        return Err(AnalyzeError::NoResults { first, second });
    };
    let results = results::Results::of(first, second)?;
    let code = if results.are_equal() { SUCCESS } else { VIOLATION };
    let output = match arguments.json {
        true => format!("{}\n", serde_json::json!(results)),
        false => results.text(first, second),
    };
    Ok((output, code))
}

/// A replay beside the log that it replays.
fn compared_with_log(arguments: &Compare) -> Result<(String, u8), AnalyzeError> {
    let (Some(run), None) = (arguments.named().next(), arguments.named().nth(1)) else {
        return Err(AnalyzeError::NoRecord { why: "--recorded compares one run with the log; name one run".into() });
    };
    let recorded = recorded::Comparison::of(&side(run)?)?;
    let output = match arguments.json {
        true => format!("{}\n", serde_json::json!(recorded)),
        false => recorded.to_string(),
    };
    Ok((output, if recorded.is_equal() { SUCCESS } else { VIOLATION }))
}

fn compared(arguments: &Compare) -> Result<(String, u8), AnalyzeError> {
    if arguments.results {
        return compared_results(arguments);
    }
    if arguments.recorded {
        return compared_with_log(arguments);
    }
    if arguments.runs.len() < 2 {
        return Err(AnalyzeError::OneRun { run: arguments.runs[0].clone() });
    }
    let mut runs = Vec::new();
    for (path, name) in arguments.named() {
        let (run, verdicts) = whole(path)?;
        let rating = html::rating(&run)?;
        let Some(verdict) = html::representative(rating.as_ref(), &verdicts).cloned() else {
            return Err(AnalyzeError::NothingToCompare { run: path.to_path_buf() });
        };
        let name = name.to_string();
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
    let Export { format, rows, experiment, times, .. } = *arguments;
    let (operation, output) = (arguments.operation.as_deref(), arguments.output.as_deref());
    let wanted = export::Wanted { kind: format, rows, experiment, operation, times, output };
    let text = export::export(&run, &verdicts, &wanted)?;
    if export::lacks_service_times(&verdicts, &wanted) {
        complain(
            "note",
            "these are response times; add --times service for service times, which differ in an open loop",
        );
    }
    Ok((text, SUCCESS))
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
