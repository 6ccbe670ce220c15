//! What a run says before its first experiment.

use std::fmt;
use std::path::Path;

use analyzer::sla_in_words;
use schemas::manifest::Manifest;
use schemas::sla::Sla;
use schemas::verdict::Between;
use schemas::words::{plural, thousands};

/// The header of a run: its store, trace set, SLA and folder, a line for each.
pub struct Header<'a> {
    /// The store's URL without secrets.
    pub store: &'a str,
    /// The folder of the trace set.
    pub trace: &'a Path,
    /// The trace set.
    pub manifest: &'a Manifest,
    /// The SLA.
    pub sla: &'a Sla,
    /// The folder of the run.
    pub run: &'a Path,
    /// What happens to the store between two experiments, if experiments end with a closing read.
    pub closing_read: Option<Between>,
}

impl fmt::Display for Header<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Header { store, trace, manifest, sla, run, closing_read } = self;
        let size = manifest.spec.family().and_then(|family| family.size(&manifest.spec)).ok();
        let trace = format!(
            "{} ({}{} sessions, id {})",
            trace.display(),
            size.map_or(String::new(), |size| format!("{size}, ")),
            thousands(manifest.sessions()),
            manifest.trace_id.get(..8).unwrap_or(&manifest.trace_id)
        );
        let (sla, run) = (sla_in_words(sla), run.display().to_string());
        for (name, text) in [("store", *store), ("trace", &trace), ("SLA", &sla), ("run", &run)] {
            writeln!(f, "{name:<6} {text}")?;
        }
        if let Some(unchecked) = manifest.spec.unchecked() {
            writeln!(f, "note   {unchecked}")?;
        }
        let family = manifest.spec.family().ok();
        let has_conditions = family.and_then(|family| family.has_conditions(&manifest.spec).ok()).unwrap_or_default();
        let read = if has_conditions { "the conditions of the data are checked" } else { "every item is read" };
        let experiments = match closing_read {
            None => return Ok(()),
            Some(Between::Load) if !has_conditions => "an experiment (in a rating: only after final ones)",
            Some(Between::Load | Between::Continue) => "each experiment",
        };
        writeln!(f, "note   {read} after {experiments}; --no-closing-read disables this")?;
        Ok(())
    }
}

/// A warning if an experiment may have more threads than the trace keeps busy: each actor acts in
/// one session at a time. `flag` gives this number of threads.
pub fn busy_at_most(manifest: &Manifest, flag: &str, threads: u32) -> Option<String> {
    let most = manifest.active_threads_max;
    let busy = plural(most, "thread");
    let words = manifest.spec.family().map(|family| family.actor_words()).ok()?;
    (u64::from(threads) > most).then(|| {
        format!(
            "warning: {flag} {threads} exceeds the {busy} that this trace can keep busy; experiments with \
             more will be void; {}, or use --shared-actors\n",
            words.remedy()
        )
    })
}
