//! The command `isolation`.

use schemas::run::RunDocument;
use schemas::verdict::Verdict;

use super::args::{Form, Isolation};
use super::verdicts::{select, whole};
use super::{SUCCESS, VIOLATION};
use crate::error::AnalyzeError;
use crate::families::{self, AnyFamily};
use crate::isolation;

pub(super) fn isolation(arguments: &Isolation) -> Result<(String, u8), AnalyzeError> {
    let (run, verdicts) = whole(&arguments.run)?;
    let document = run.read_document()?;
    let chosen: Vec<&Verdict> = match arguments.experiment {
        Some(experiment) => select(&run, Some(experiment), None, &verdicts)?.into_iter().collect(),
        None => verdicts.iter().collect(),
    };
    let (_, promised) = isolation::promised(&document);
    let is_weaker = |verdict: &&Verdict| {
        verdict.figures.anomalies.as_ref().is_some_and(|found| isolation::is_weaker(found, promised))
    };
    let code = if chosen.iter().any(is_weaker) { VIOLATION } else { SUCCESS };
    let family = families::of(&document.spec)?;
    let output = match arguments.format {
        Form::Text => text(&document, &chosen, family),
        Form::Json => json(&document, &chosen, family),
    };
    Ok((output, code))
}

fn text(document: &RunDocument, chosen: &[&Verdict], family: &dyn AnyFamily) -> String {
    let (words, promised) = isolation::promised(document);
    let mut out = format!("{} promises: {}\n", document.store, words.unwrap_or("nothing about isolation"));
    if chosen.is_empty() {
        return out + "this run has no experiment yet\n";
    }
    out += &isolation::table(chosen, promised);
    let judged = || chosen.iter().filter_map(|verdict| Some((verdict, verdict.figures.anomalies.as_ref()?)));
    let Some((verdict, found)) = judged().rfind(|(_, found)| !found.witnesses.is_empty()).or(judged().next_back())
    else {
        return out;
    };
    out += &format!("\nexperiment {}, {}\n", verdict.experiment, isolation::sentence(found));
    let seconds = isolation::by_second(found);
    if !seconds.is_empty() {
        out += &format!("\nanomalies by the second in which their transaction ended:\n{seconds}");
    }
    for story in isolation::stories(found, family) {
        out += &format!("\n{story}");
    }
    out
}

fn json(document: &RunDocument, chosen: &[&Verdict], family: &dyn AnyFamily) -> String {
    let (words, promised) = isolation::promised(document);
    let experiments: Vec<serde_json::Value> = chosen
        .iter()
        .map(|verdict| {
            let found = verdict.figures.anomalies.as_ref();
            serde_json::json!({
                "experiment": verdict.experiment,
                "threads": verdict.threads,
                "shows": found.map(|found| isolation::name(found.strongest())),
                "is_weaker_than_promised": found.map(|found| isolation::is_weaker(found, promised)),
                "anomalies": found,
                "stories": found.map(|found| isolation::stories(found, family)),
            })
        })
        .collect();
    format!("{}\n", serde_json::json!({ "promised": words, "experiments": experiments }))
}
