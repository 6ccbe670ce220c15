//! The families: for each a generator. The list here is the only place that names them all. A program
//! can add a family of its own with [`add`].

use std::marker::PhantomData;
use std::ops::Range;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use schemas::digest::StateDigest;
use schemas::manifest::{Manifest, TraceSetError};
use schemas::part::Part;
use schemas::run::FragmentPosition;
use schemas::spec::{Spec, SpecError};
use schemas::workload::Workload;

use crate::consbench::Consbench;
use crate::core::digest::{DigestError, Ran};
use crate::core::error::GenerateError;
use crate::core::generate::generate_with;
use crate::core::generator::{AnyGenerator, Generator};
use crate::core::options::GenerateOptions;
use crate::core::parts::{self, AssembleError};
use crate::core::show::{Facts, Overview};
use crate::economy::Economy;
use crate::kv::Kv;
use crate::social::Social;
use crate::sql::Sql;
use crate::tpcc::Tpcc;

/// The families of Encore.
static FAMILIES: [&dyn AnyGenerator; 6] = [
    &Of::<Social>(PhantomData),
    &Of::<Kv>(PhantomData),
    &Of::<Economy>(PhantomData),
    &Of::<Consbench>(PhantomData),
    &Sql,
    &Of::<Tpcc>(PhantomData),
];

/// The families that a program has added.
static ADDED: RwLock<Vec<&'static dyn AnyGenerator>> = RwLock::new(Vec::new());

/// Adds the generator of a family that the program has added to
/// [`schemas::workload`](schemas::workload::add).
pub fn add<G: Generator + 'static>() {
    ADDED.write().unwrap_or_else(PoisonError::into_inner).push(&Of::<G>(PhantomData));
}

struct Of<G>(PhantomData<G>);

impl<G: Generator> AnyGenerator for Of<G> {
    fn family(&self) -> &'static str {
        G::Workload::FAMILY
    }

    fn generate(&self, spec: &Spec, folder: &Path, options: &GenerateOptions<'_>) -> Result<Manifest, GenerateError> {
        generate_with::<G>(spec, folder, options)
    }

    fn generate_parts(
        &self,
        spec: &Spec,
        folder: &Path,
        fragments: Range<u32>,
        options: &GenerateOptions<'_>,
    ) -> Result<Vec<Part>, GenerateError> {
        parts::generate_with::<G>(spec, folder, fragments, options)
    }

    fn assemble(&self, parts: Vec<Part>) -> Result<Manifest, AssembleError> {
        parts::assemble_with::<G>(parts)
    }

    fn digest(
        &self,
        manifest: &Manifest,
        folder: &Path,
        positions: &[FragmentPosition],
    ) -> Result<StateDigest, DigestError> {
        let spec = manifest.spec.of::<G::Workload>()?;
        let mut whole = StateDigest::default();
        for position in positions {
            whole.merge(G::digest(&spec, manifest, folder, position)?);
        }
        Ok(whole)
    }

    fn facts(&self, manifest: &Manifest) -> Result<Facts, SpecError> {
        G::facts(manifest)
    }

    fn remark(&self, manifest: &Manifest) -> Option<String> {
        G::remark(manifest)
    }
}

/// The generator for a specification whose family is known.
fn of(spec: &Spec) -> Result<&'static dyn AnyGenerator, SpecError> {
    let family = spec.family()?.family();
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let found = FAMILIES.iter().chain(added.iter()).find(|generator| generator.family() == family);
    found.copied().ok_or_else(|| SpecError::Value {
        file: spec.name.clone(),
        key: "family".into(),
        message: format!("this program cannot generate trace sets of the family {family:?}"),
    })
}

/// Generates the trace set of a specification into `folder`.
///
/// The bytes depend on the specification alone. If `folder` holds a trace set of the same workload
/// that is no longer than the new one, `generate` replaces it. Anything else there is an error.
pub fn generate(spec: &Spec, folder: &Path, options: &GenerateOptions<'_>) -> Result<Manifest, GenerateError> {
    spec.check(&spec.name)?;
    of(spec)?.generate(spec, folder, options)
}

/// Whether the trace sets of a specification are generated, so that one can be made longer. Others are imported.
pub fn can_generate(spec: &Spec) -> bool {
    of(spec).is_ok_and(|generator| generator.can_generate())
}

/// Generates some fragments of a trace set into `folder`, and a part for each. Others may generate the rest at the
/// same time, elsewhere too: [`assemble`] makes the trace set of all parts.
///
/// What is there of these fragments is replaced by the same. Parts of another specification are an error, and
/// a trace set that is complete stays as it is.
pub fn generate_parts(
    spec: &Spec,
    folder: &Path,
    fragments: Range<u32>,
    options: &GenerateOptions<'_>,
) -> Result<Vec<Part>, GenerateError> {
    spec.check(&spec.name)?;
    of(spec)?.generate_parts(spec, folder, fragments, options)
}

/// Makes a trace set of its parts, the same as [`generate`] makes at once. A trace set that is complete stays as it
/// is.
pub fn assemble(folder: &Path) -> Result<Manifest, AssembleError> {
    assemble_checked(folder, |manifest| manifest.check_files(folder))
}

/// The same where only the parts are in `folder`; `check` checks that the files of the manifest are where they belong.
pub(crate) fn assemble_checked(
    folder: &Path,
    check: impl FnOnce(&Manifest) -> Result<(), TraceSetError>,
) -> Result<Manifest, AssembleError> {
    parts::assemble(folder, check, |parts, spec| of(spec)?.assemble(parts))
}

/// The digest of the state that these sessions of a trace set leave in a store.
pub fn digest(folder: &Path, ran: Ran<'_>) -> Result<StateDigest, DigestError> {
    let manifest = Manifest::read(folder)?;
    manifest.verify(folder)?;
    let positions = ran.positions(&manifest);
    let asked = positions.iter().map(FragmentPosition::sessions_run).sum();
    if asked > manifest.sessions() {
        return Err(DigestError::Short { folder: folder.into(), has: manifest.sessions(), asked });
    }
    of(&manifest.spec)?.digest(&manifest, folder, &positions)
}

impl<'a> Overview<'a> {
    /// The figures of a manifest.
    pub fn new(manifest: &'a Manifest) -> Result<Overview<'a>, SpecError> {
        Ok(Overview::with(manifest, of(&manifest.spec)?.facts(manifest)?))
    }
}

/// What the user should know about a new trace set.
pub(crate) fn remark(manifest: &Manifest) -> Option<String> {
    of(&manifest.spec).ok()?.remark(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_a_generator() {
        let generators = FAMILIES.map(|generator| generator.family());
        let families = schemas::workload::families().into_iter().map(|family| family.family()).collect::<Vec<_>>();
        assert_eq!(generators[..], families);
    }
}
