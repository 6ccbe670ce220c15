//! Every family, for callers that do not care which: the one place that chooses between families.
//! The choice is made once for each fragment, page or query. A program can add a family of its own
//! with [`add`].

use std::marker::PhantomData;
use std::sync::{PoisonError, RwLock};

use arrow::datatypes::SchemaRef;
use schemas::manifest::Manifest;
use schemas::sealed::{closing_reads_schema, operations_schema};
use schemas::spec::{Spec, SpecError};
use schemas::vocabulary::{OperationKind, Vocabulary};

use crate::error::AnalyzeError;
use crate::family::{Family, ItemWords, WritePlace, consbench, economy, kv, social, sql, tpcc};
use crate::figures::Summary;
use crate::fragment::FragmentInput;
use crate::log::Survey;
use crate::seal::Sealed;
use crate::timeline::Measured;

/// A family of any kind.
pub(crate) trait AnyFamily: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Its operations.
    fn kinds(&self) -> &'static [OperationKind];
    /// The columns of its sealed operations.
    fn operations_schema(&self) -> SchemaRef;
    /// The columns of its sealed closing reads.
    fn closing_reads_schema(&self) -> SchemaRef;
    /// [`Family::views`].
    fn views(&self) -> String;
    /// [`Family::registers`].
    fn registers(&self) -> Option<&'static str>;
    /// [`Family::words`].
    fn words(&self, item: &str) -> Option<ItemWords>;
    /// [`Family::wrongness`].
    fn wrongness(&self) -> &'static str;
    /// [`Family::writer`].
    fn writer(&self, value: i64) -> Option<WritePlace>;
    /// [`Family::item_in_history`].
    fn item_in_history(&self, owner: u64, element: u32) -> String;
    /// [`Family::popularity`].
    fn popularity(&self, manifest: &Manifest) -> Option<String>;
    /// [`FragmentInput::analyze`].
    fn analyze(
        &self,
        input: &FragmentInput<'_>,
        survey: Option<&Survey>,
        measured: Measured,
    ) -> Result<(Summary, Option<Sealed>), AnalyzeError>;
}

/// A family as one of any kind.
struct Of<F>(PhantomData<F>);

impl<F: Family> AnyFamily for Of<F> {
    fn name(&self) -> &'static str {
        F::NAME
    }

    fn kinds(&self) -> &'static [OperationKind] {
        F::Vocabulary::KINDS
    }

    fn operations_schema(&self) -> SchemaRef {
        operations_schema::<F::Vocabulary>()
    }

    fn closing_reads_schema(&self) -> SchemaRef {
        closing_reads_schema::<F::Vocabulary>()
    }

    fn views(&self) -> String {
        F::views()
    }

    fn registers(&self) -> Option<&'static str> {
        F::registers()
    }

    fn words(&self, item: &str) -> Option<ItemWords> {
        F::words(item)
    }

    fn wrongness(&self) -> &'static str {
        F::wrongness()
    }

    fn writer(&self, value: i64) -> Option<WritePlace> {
        F::writer(value)
    }

    fn item_in_history(&self, owner: u64, element: u32) -> String {
        F::item_in_history(owner, element)
    }

    fn popularity(&self, manifest: &Manifest) -> Option<String> {
        F::popularity(manifest)
    }

    fn analyze(
        &self,
        input: &FragmentInput<'_>,
        survey: Option<&Survey>,
        measured: Measured,
    ) -> Result<(Summary, Option<Sealed>), AnalyzeError> {
        input.analyze::<F>(survey, measured)
    }
}

/// The families of Encore.
static FAMILIES: [&dyn AnyFamily; 6] = [
    &Of::<social::Social>(PhantomData),
    &Of::<kv::Kv>(PhantomData),
    &Of::<economy::Economy>(PhantomData),
    &Of::<consbench::Consbench>(PhantomData),
    &Of::<sql::Sql>(PhantomData),
    &Of::<tpcc::Tpcc>(PhantomData),
];

/// The families that a program has added.
static ADDED: RwLock<Vec<&'static dyn AnyFamily>> = RwLock::new(Vec::new());

/// Adds a family that the program has added to [`schemas::workload`](schemas::workload::add).
pub fn add<F: Family>() {
    ADDED.write().unwrap_or_else(PoisonError::into_inner).push(&Of::<F>(PhantomData));
}

/// The family of a workload.
pub(crate) fn of(spec: &Spec) -> Result<&'static dyn AnyFamily, SpecError> {
    let name = spec.family()?.family();
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let found = FAMILIES.iter().chain(added.iter()).find(|family| family.name() == name);
    found.copied().ok_or_else(|| SpecError::Value {
        file: spec.name.clone(),
        key: "family".into(),
        message: format!("this program cannot analyze runs of the family {name:?}"),
    })
}
