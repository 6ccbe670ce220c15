//! An experiment that is to be analyzed: its documents, its trace set, and what is known of each of its fragments.

use std::path::Path;

use schemas::manifest::Manifest;
use schemas::plan::{FragmentPlan, Plan};
use schemas::run::{ExperimentFolder, ReplayReport, RunFolder};
use schemas::sla::Sla;
use schemas::verdict::ConditionFigures;

use crate::closing::ClosingPlan;
use crate::error::AnalyzeError;
use crate::fragment::{FragmentInput, SealedPaths};
use crate::fragments::{closing, conditions, given_back, read_report, tells_of};

/// Which files of a trace set an analysis needs besides its manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// All.
    All,
    /// Those of one fragment.
    Fragment(u32),
    /// None.
    Nothing,
}

impl Needs {
    /// The manifest of a trace set that has these files.
    fn manifest(self, trace: &Path) -> Result<Manifest, AnalyzeError> {
        let manifest = Manifest::read_alone(trace)?;
        match self {
            Needs::All => manifest.check_files(trace)?,
            Needs::Fragment(fragment) => manifest.check_some_files(trace, |file| file.is_for(fragment))?,
            Needs::Nothing => {}
        }
        Ok(manifest)
    }
}

/// An experiment and what belongs to it.
pub(crate) struct Subject<'a> {
    pub(crate) run: &'a RunFolder,
    pub(crate) folder: ExperimentFolder,
    /// With the trace set's folder on this machine.
    pub(crate) plan: Plan,
    pub(crate) report: Option<ReplayReport>,
    pub(crate) manifest: Manifest,
    pub(crate) closing: ClosingPlan,
}

impl<'a> Subject<'a> {
    /// The experiment of this plan. Its trace set is in `trace`, or where the plan says.
    pub(crate) fn new(
        run: &'a RunFolder,
        folder: ExperimentFolder,
        plan: Plan,
        trace: Option<&Path>,
        needs: Needs,
    ) -> Result<Subject<'a>, AnalyzeError> {
        let plan = Plan { trace: trace.map_or(plan.trace, Path::to_path_buf), ..plan };
        let report = read_report(&folder)?;
        let manifest = needs.manifest(&plan.trace)?;
        // Trace sets of one workload are prefixes of each other, so an extended trace set is
        // accepted. If the trace set is too short, the join reports the missing sessions.
        let is_extended = || run.read_document().is_ok_and(|d| d.workload_id == manifest.workload_id);
        if manifest.trace_id != plan.trace_id && !is_extended() {
            let (found, expected, experiment) = (manifest.trace_id, plan.trace_id, plan.experiment);
            return Err(AnalyzeError::OtherTrace { folder: plan.trace, experiment, found, expected });
        }
        let closing = closing(run, &folder, &plan, &manifest, report.as_ref())?;
        Ok(Subject { run, folder, plan, report, manifest, closing })
    }

    /// The experiment's number.
    pub(crate) fn experiment(&self) -> u32 {
        self.plan.experiment
    }

    /// A fragment and its files.
    pub(crate) fn input<'s>(
        &'s self,
        fragment: &FragmentPlan,
        sla: &Sla,
        is_sealed: bool,
        progress: &'s (dyn Fn(u64) + Sync),
    ) -> FragmentInput<'s> {
        let (number, log) = (fragment.fragment, self.folder.log(fragment.fragment));
        FragmentInput {
            experiment: self.experiment(),
            plan: fragment.clone(),
            trace: &self.plan.trace,
            manifest: &self.manifest,
            limits: sla.into(),
            has_report: self.report.as_ref().is_some_and(|report| tells_of(report, fragment, &log)),
            given_back: given_back(self.report.as_ref(), number),
            closing: self.closing.clone(),
            sealed: is_sealed.then(|| sealed_paths(self.run, self.experiment(), number)),
            log,
            progress,
        }
    }

    /// The fragments of each replayer.
    pub(crate) fn by_replayer(&self) -> Vec<&[u32]> {
        let parts = self.report.as_ref().map_or(&[][..], |report| &report.replayers);
        parts.iter().map(|part| part.fragments.as_slice()).collect()
    }

    /// What was found of the conditions of the data after the experiment.
    pub(crate) fn conditions(&self) -> Result<Option<ConditionFigures>, AnalyzeError> {
        conditions(&self.folder, &self.plan, &self.manifest, self.report.as_ref())
    }

    /// Whether a fragment is the first one, whose replayer checks the conditions.
    pub(crate) fn is_first(&self, fragment: u32) -> bool {
        self.manifest.fragments.first().is_some_and(|first| first.fragment == fragment)
    }
}

/// Where the sealed tables of a fragment go.
pub(crate) fn sealed_paths(run: &RunFolder, experiment: u32, fragment: u32) -> SealedPaths {
    SealedPaths {
        operations: run.sealed_operations(experiment, fragment),
        unpredictable: run.unpredictable(experiment, fragment),
        closing_reads: run.closing_reads(experiment, fragment),
    }
}
