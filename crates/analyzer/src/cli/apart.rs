//! The commands on fragments that are analyzed by themselves. An engine takes any exit code but 0 for a failure, so
//! an SLA that is missed is a line of the output here.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use schemas::files::{self, FileError};
use schemas::run::RunFolder;
use schemas::verdict::Verdict;
use serde::Serialize;

use super::SUCCESS;
use super::args::{Fragment, Merge, PlanCluster, Tasks};
use crate::apart::{merge_with, sealed_tables, size_here};
use crate::cluster_plan::{self, Costs, MEASURED, Wanted};
use crate::error::AnalyzeError;
use crate::experiment::{find, read_verdict};
use crate::fragments::read_plan;
use crate::{analyze_fragment, report};

/// What there is to do in an experiment.
#[derive(Debug, Serialize)]
struct Work {
    experiment: u32,
    has_verdict: bool,
    fragments: Vec<u32>,
    /// The bytes of the sealed tables that the verdict names, by their paths in the run.
    sealed: BTreeMap<String, u64>,
}

pub(super) fn tasks(arguments: &Tasks) -> Result<(String, u8), AnalyzeError> {
    let run = RunFolder::new(&arguments.run);
    run.read_document()?;
    let experiments = match arguments.experiment {
        Some(one) => vec![(one, find(&run, one)?)],
        None => run.experiments()?,
    };
    let work = experiments.into_iter().map(|(experiment, folder)| {
        // An experiment that never ran has a verdict and no plan.
        let plan = folder.plan().exists().then(|| read_plan(&folder)).transpose()?;
        let fragments = plan.map_or(Vec::new(), |plan| plan.fragments.iter().map(|own| own.fragment).collect());
        let verdict = read_verdict(&folder)?;
        let sealed = verdict.as_ref().map(|verdict| sealed_bytes(&run, verdict)).unwrap_or_default();
        Ok(Work { experiment, has_verdict: verdict.is_some(), fragments, sealed })
    });
    let work = work.collect::<Result<Vec<Work>, AnalyzeError>>()?;
    if arguments.json {
        return Ok((format!("{}\n", serde_json::json!(work)), SUCCESS));
    }
    let is_due = |work: &&Work| arguments.experiment.is_some() || !work.has_verdict;
    let lines = work.iter().filter(is_due).flat_map(|Work { experiment, fragments, .. }| {
        fragments.iter().map(move |fragment| format!("--experiment {experiment} --fragment {fragment}\n"))
    });
    Ok((lines.collect(), SUCCESS))
}

/// The sealed tables of an experiment, by their paths in the run, with their lengths.
fn sealed_bytes(run: &RunFolder, verdict: &Verdict) -> BTreeMap<String, u64> {
    let tables = verdict.sealed.iter().flat_map(|sealed| sealed_tables(run, verdict.experiment, sealed));
    let within = |path: &Path| path.strip_prefix(run.root()).unwrap_or(path).display().to_string();
    tables.map(|(path, checksum)| (within(&path), checksum.bytes)).collect()
}

pub(super) fn fragment(arguments: &Fragment) -> Result<(String, u8), AnalyzeError> {
    let Fragment { run, experiment, fragment, trace, sla } = arguments;
    let run = RunFolder::new(run);
    let path = analyze_fragment(&run, (*experiment, *fragment), trace.as_deref(), sla.as_ref())?;
    Ok((format!("{}\n", path.display()), SUCCESS))
}

pub(super) fn merge(arguments: &Merge) -> Result<(String, u8), AnalyzeError> {
    let run = RunFolder::new(&arguments.run);
    run.read_document()?;
    let numbers = match arguments.experiment {
        Some(one) => vec![one],
        None => run.experiments()?.into_iter().map(|(number, _)| number).collect(),
    };
    let (trace, sla) = (arguments.trace.as_deref(), arguments.sla.as_ref());
    let size_of = |path: &Path| arguments.elsewhere.get(path).map_or_else(|| size_here(path), |bytes| Ok(*bytes));
    let merged = numbers.into_iter().map(|one| merge_with(&run, one, trace, sla, &size_of));
    let verdicts = merged.collect::<Result<Vec<Verdict>, _>>()?;
    let output = match arguments.json {
        true => format!("{}\n", serde_json::json!(verdicts)),
        false if verdicts.is_empty() => "this run has no experiment yet\n".to_string(),
        false => report::experiments(&verdicts),
    };
    Ok((output, SUCCESS))
}

pub(super) fn plan_cluster(arguments: &PlanCluster) -> Result<(String, u8), AnalyzeError> {
    let costs = match &arguments.measured {
        None => Costs::read(MEASURED).unwrap_or_else(|e| unreachable!("a test reads this report: {e}")),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(files::at(path))?;
            let wrong = |e| FileError { path: path.clone(), source: io::Error::new(io::ErrorKind::InvalidData, e) };
            Costs::read(&text).map_err(|e| wrong(format!("not a report of `benches/run cluster`: {e}")))?
        }
    };
    let plans: Vec<_> = arguments
        .operations
        .iter()
        .map(|operations| {
            let within_s = arguments.within.as_secs_f64();
            cluster_plan::plan(&costs, &Wanted { operations: *operations, cores: arguments.cores, within_s })
        })
        .collect();
    let output = match arguments.json {
        true => format!("{}\n", serde_json::json!(plans)),
        false => {
            let each = plans.iter().map(ToString::to_string).chain([cluster_plan::notes(&costs)]);
            each.collect::<Vec<_>>().join("\n")
        }
    };
    Ok((output, SUCCESS))
}
