//! The command `isolation`.

use schemas::isolation::Isolation as Level;
use schemas::run::RunDocument;
use schemas::verdict::Verdict;
use serde_json::{Map, Value};

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
    let code = if chosen.iter().any(|verdict| is_weaker(&document, verdict)) { VIOLATION } else { SUCCESS };
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
    let experiments: Vec<Value> = chosen
        .iter()
        .map(|verdict| {
            let mut object = judged(verdict, promised, family);
            object.insert("experiment".into(), verdict.experiment.into());
            object.insert("threads".into(), verdict.threads.into());
            Value::Object(object)
        })
        .collect();
    format!("{}\n", serde_json::json!({ "promised": words, "experiments": experiments }))
}

/// What the transactions of an experiment show, beside what was promised; all null without transactions.
fn judged(verdict: &Verdict, promised: Option<Level>, family: &dyn AnyFamily) -> Map<String, Value> {
    let found = verdict.figures.anomalies.as_ref();
    let object = serde_json::json!({
        "shows": found.map(isolation::shown),
        "is_weaker_than_promised": found.map(|found| isolation::is_weaker(found, promised)),
        "anomalies": found,
        "stories": found.map(|found| isolation::stories(found, family)),
    });
    match object {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// The same as a part of another command's object; null if the workload has no transactions.
pub(super) fn object(document: &RunDocument, verdict: &Verdict, family: &dyn AnyFamily) -> Value {
    let (words, promised) = isolation::promised(document);
    if verdict.figures.transactions.is_none() {
        return Value::Null;
    }
    let mut object = judged(verdict, promised, family);
    object.insert("promised".into(), words.into());
    Value::Object(object)
}

/// Whether an experiment shows a weaker level than the store promises.
pub(super) fn is_weaker(document: &RunDocument, verdict: &Verdict) -> bool {
    let (_, promised) = isolation::promised(document);
    verdict.figures.anomalies.as_ref().is_some_and(|found| isolation::is_weaker(found, promised))
}
