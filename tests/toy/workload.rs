//! What a specification and a trace set of the family hold.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field};
use schemas::spec::{SpecOf, Wrong};
use schemas::table::TableError;
use schemas::verdict::Headline;
use schemas::vocabulary::{self, OperationKind, Place, Vocabulary};
use schemas::workload::{ActorWords, KindGoal, SessionGoals, Workload};
use serde::{Deserialize, Serialize};

/// The vocabulary: two operations on a counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counting;

impl Vocabulary for Counting {
    const NAME: &'static str = "counting";
    const KINDS: &'static [OperationKind] = &[
        OperationKind { name: "look", reads: true, writes: false },
        OperationKind { name: "raise", reads: false, writes: true },
    ];
    const HAS_SESSION_FIGURES: bool = true;
    type Operation = Operation;
    type Columns = Columns;
    type Memory = ();
    type Request = Operation;

    fn request<'a>(operation: &'a Operation, _: &Columns, _: &'a mut ()) -> Result<&'a Operation, &'static str> {
        Ok(operation)
    }
}

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Whether it raises the counter.
    pub raises: bool,
    /// The counter.
    pub counter: u64,
}

impl vocabulary::Operation for Operation {
    fn code(&self) -> u8 {
        self.raises as u8
    }

    fn reads(&self) -> bool {
        !self.raises
    }

    fn writes(&self) -> bool {
        self.raises
    }
}

/// Operations, column by column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Columns(Vec<Operation>);

impl vocabulary::Columns<Operation> for Columns {
    fn fields() -> Vec<Field> {
        vec![Field::new("counter", DataType::Int64, false)]
    }

    fn arrays(operations: &[Operation]) -> Vec<ArrayRef> {
        vec![Arc::new(Int64Array::from_iter_values(operations.iter().map(|one| one.counter as i64)))]
    }

    fn get(&self, row: usize, _place: Place) -> Operation {
        self.0[row]
    }

    fn push(&mut self, _rows: usize, operation: &Operation) {
        self.0.push(*operation);
    }

    fn append(
        &mut self,
        _rows: usize,
        codes: impl Iterator<Item = u8>,
        batch: &RecordBatch,
        path: &Path,
    ) -> Result<(), TableError> {
        let counters = batch.column_by_name("counter").and_then(|column| column.as_any().downcast_ref::<Int64Array>());
        let counters = counters.ok_or_else(|| TableError::new(path, "has no column counter"))?;
        self.0
            .extend(codes.zip(counters.values()).map(|(code, n)| Operation { raises: code == 1, counter: *n as u64 }));
        Ok(())
    }

    fn split_off(&mut self, row: usize, _room: usize) -> Columns {
        Columns(self.0.split_off(row))
    }
}

/// The family's part of a specification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// The counters; all begin at 0.
    pub data: Data,
}

/// The counters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// How many there are.
    pub counters: u64,
}

/// Nothing to tell.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Statistics {}

impl Workload for Counters {
    const FAMILY: &'static str = "counters";
    const KEYS: &'static [&'static str] = &["data"];
    const ACTORS: ActorWords = ActorWords { plural: "counters", keys: &["data.counters"] };
    type Vocabulary = Counting;
    type Statistics = Statistics;

    fn check(spec: &SpecOf<Counters>) -> Result<(), Wrong> {
        if spec.own.data.counters < spec.common.fragments as u64 {
            return Err(Wrong::new("data.counters", "every fragment needs a counter"));
        }
        match spec.common.mix.keys().find(|kind| !["look", "raise"].contains(&kind.as_str())) {
            Some(other) => Err(Wrong::new(format!("mix.{other}"), "is not look or raise")),
            None => Ok(()),
        }
    }

    fn actors(&self) -> u64 {
        self.data.counters
    }

    fn session_goals(_spec: &SpecOf<Counters>) -> SessionGoals {
        let goal =
            |kind: &str, p90_max_ns, share_min_percent| KindGoal { kind: kind.into(), p90_max_ns, share_min_percent };
        SessionGoals {
            headline: Some(Headline { name: "looksC".into(), kind: "look".into() }),
            kinds: vec![goal("look", Some(3_600_000_000_000), Some(80.0)), goal("raise", None, Some(50.0))],
        }
    }

    fn size(&self) -> String {
        format!("{} counters", self.data.counters)
    }
}
