//! The `sql` family: trace sets of statements. Nothing is drawn here. A source gives schema, statements and
//! processes to a [`SetWriter`], which writes the trace set.

mod arrivals;
pub mod benchfoundry;
mod builder;
pub mod import;
mod literals;
mod recorded;
mod script;
mod sessions;
mod set;
mod statements;
pub mod tables;

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use schemas::digest::StateDigest;
use schemas::manifest::Manifest;
use schemas::part::Part;
use schemas::run::FragmentPosition;
use schemas::spec::{Spec, SpecError};
use schemas::workload::Workload;
use schemas::workload::sql::{CustomUse, SqlStatistics, SqlWorkload};

use crate::core::digest::DigestError;
use crate::core::error::GenerateError;
use crate::core::generator::AnyGenerator;
use crate::core::options::GenerateOptions;
use crate::core::parts::AssembleError;
use crate::core::show::{Facts, grouped};

pub use builder::{Builder, Building};
pub use script::{Call, Column, Kept, Script, Transaction};
pub use sessions::{Act, Process, Step};
pub(crate) use set::text_file;
pub use set::{Header, SetWriter};
pub use statements::{Known, Statements};

/// How many lists of custom parameters `trace show` prints.
const SOME_CUSTOM: usize = 5;

/// The family among those that generate.
pub(crate) struct Sql;

impl AnyGenerator for Sql {
    fn family(&self) -> &'static str {
        SqlWorkload::FAMILY
    }

    fn can_generate(&self) -> bool {
        false
    }

    fn generate(&self, spec: &Spec, _: &Path, _: &GenerateOptions<'_>) -> Result<Manifest, GenerateError> {
        Err(GenerateError::Infeasible(made_elsewhere(spec)))
    }

    fn generate_parts(
        &self,
        spec: &Spec,
        _: &Path,
        _: Range<u32>,
        _: &GenerateOptions<'_>,
    ) -> Result<Vec<Part>, GenerateError> {
        Err(GenerateError::Infeasible(made_elsewhere(spec)))
    }

    fn assemble(&self, parts: Vec<Part>) -> Result<Manifest, AssembleError> {
        Err(AssembleError::NotGenerated(parts.first().map(|part| made_elsewhere(&part.spec)).unwrap_or_default()))
    }

    fn digest(&self, _: &Manifest, _: &Path, _: &[FragmentPosition]) -> Result<StateDigest, DigestError> {
        Err(DigestError::Undetermined {
            what: "what SQL statements leave is known to a database alone; use `encore replay digest` on two stores",
        })
    }

    fn facts(&self, manifest: &Manifest) -> Result<Facts, SpecError> {
        let SqlWorkload { data, results } = manifest.spec.workload()?;
        let statistics: SqlStatistics = manifest.statistics_of::<SqlWorkload>().unwrap_or_default();
        let preload = match statistics.loaded_rows {
            Some(rows) => format!("{} statements, {} rows", grouped(data.preload), grouped(rows)),
            None => format!("{} statements", grouped(data.preload)),
        };
        let used = statistics.uses.iter().filter(|uses| **uses > 0).count() as u64;
        let about = vec![
            ("source", data.source),
            ("tables", grouped(data.tables)),
            ("preload", preload),
            ("statements", format!("{}, {} of them in sessions", grouped(data.statements), grouped(used))),
            ("custom parameters", custom(&statistics.custom)),
            ("warm-up", format!("the first {} sessions", grouped(data.warmup_sessions))),
            ("results", if results.log_results { "logged" } else { "number of rows and hash logged" }.to_string()),
        ];
        let draws = format!("threads that this trace can keep busy: {} (data.clients)", grouped(data.clients));
        Ok(Facts { about, draws, distributions: Vec::new() })
    }

    fn remark(&self, manifest: &Manifest) -> Option<String> {
        let warmup = manifest.spec.workload::<SqlWorkload>().ok()?.data.warmup_sessions;
        (warmup > 0).then(|| format!("the first {} are the warm-up", schemas::words::plural(warmup, "session")))
    }
}

/// The custom parameters of the sessions.
fn custom(all: &[CustomUse]) -> String {
    let uses = all.iter().map(|one| one.uses).sum();
    let lists: BTreeSet<String> = all.iter().map(|one| one.parameters.join(", ")).collect();
    let some = lists.iter().take(SOME_CUSTOM).cloned().collect::<Vec<_>>().join("; ");
    match lists.len() {
        0 => "none".to_string(),
        1..=SOME_CUSTOM => format!("{} operations: {some}", grouped(uses)),
        all => format!("{} operations: {some} and {} more", grouped(uses), all - SOME_CUSTOM),
    }
}

/// Why the family has no generator.
fn made_elsewhere(spec: &Spec) -> String {
    format!(
        "family: a trace set of the family {} is made from somebody's files, and {} only describes one; use `encore trace \
         import`",
        SqlWorkload::FAMILY,
        spec.name
    )
}
