//! What a look at a counter may return: the item model `count`.

use std::collections::HashMap;
use std::path::Path;

use analyzer::family::{Family, ItemIs, ItemWords};
use analyzer::validate::{
    CountWrite, Findings, Interval, ItemRead, Items, SHAPE, UnknownId, Violation, acceptable_range,
};
use schemas::manifest::Manifest;
use schemas::workload::Workload;

use crate::workload::{self, Counting, Operation};

/// The family.
pub struct Counters;

impl Family for Counters {
    const NAME: &'static str = workload::Counters::FAMILY;
    type Vocabulary = Counting;
    type Items = Raises;

    fn items(_folder: &Path, _manifest: &Manifest, _fragment: u32) -> Result<Raises, analyzer::DataSetError> {
        Ok(Raises::default())
    }

    fn views() -> String {
        "CREATE VIEW item_updates AS
         SELECT experiment, fragment, session, step, operation, outcome, start_ns, end_ns,
             'counter' AS item, counter AS owner, NULL::BIGINT AS element, 1 AS change
         FROM operations WHERE operation = 'raise' AND outcome IN ('ok', 'unknown');
         CREATE VIEW item_reads AS
         SELECT experiment, fragment, session, step, start_ns, warmup, drained, 'counter' AS item, counter AS owner,
             NULL::BIGINT AS element, 'counter' AS unit
         FROM operations WHERE operation = 'look' AND outcome = 'ok';"
            .into()
    }

    fn words(item: &str) -> Option<ItemWords> {
        (item == "counter").then_some(ItemWords { owner: "counter", is: ItemIs::Count("raises") })
    }

    fn popularity(_manifest: &Manifest) -> Option<String> {
        None
    }
}

/// The raises of each counter.
#[derive(Default)]
pub struct Raises(HashMap<u64, Vec<CountWrite>>);

impl Items<Operation> for Raises {
    fn register(&mut self, operation: &Operation, at: Interval, _horizon: i64) -> Result<(), UnknownId> {
        self.0.entry(operation.counter).or_default().push(CountWrite { at, delta: 1 });
        Ok(())
    }

    fn check(
        &mut self,
        operation: &Operation,
        observed: &[i64],
        read: Interval,
        _horizon: i64,
        findings: &mut Findings,
    ) -> Result<(), UnknownId> {
        let owner = operation.counter;
        let raises = self.0.get(&owner).map_or(&[][..], Vec::as_slice);
        let range = acceptable_range(0, raises, read);
        let wrong =
            |item, observed| Violation { item, owner, element: None, observed, low: range.low, high: range.high };
        match observed {
            [seen] if range.contains(*seen) => {}
            [seen] => findings.violations.push(wrong("counter", *seen)),
            _ => findings.violations.push(wrong(SHAPE, observed.len() as i64)),
        }
        let last = raises.iter().map(|raise| raise.at.end).filter(|end| *end < read.start).max();
        let is_fresh = findings.violations.is_empty();
        findings.items.extend(last.and_then(|end| ItemRead::after(end, read.start, is_fresh)));
        Ok(())
    }
}
