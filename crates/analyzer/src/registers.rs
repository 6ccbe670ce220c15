//! The consistency of the registers of a fragment: which of its operations are those of registers, and what
//! [`crate::consistency`] says of them.

use schemas::oplog::{Outcome, TryEnd};
use schemas::plan::FragmentPlan;
use schemas::vocabulary::Operation;

use crate::consistency::history::{Clients, INITIAL, NEW, NOTHING};
use crate::consistency::summary::ConsistencySummary;
use crate::consistency::windows::{Excusable, WINDOW, Windows};
use crate::family::{Family, OperationOf};
use crate::figures::Summary;
use crate::join::Row;
use crate::validate::{Interval, Items, Touch, happened};

/// The registers of a fragment, as its rows pass by.
pub(crate) struct Registers {
    plan: FragmentPlan,
    windows: Windows,
    /// Rows of the log are missing: a write that is not in it may have removed a record.
    is_torn: bool,
}

impl Registers {
    /// None if the family has no registers.
    pub(crate) fn new<F: Family>(plan: &FragmentPlan, summary: &Summary, is_torn: bool) -> Option<Registers> {
        F::registers()?;
        let limit_ns = summary.limits().gamma_ns;
        let found = ConsistencySummary::new(summary.measured(), limit_ns);
        let windows = Windows::new(plan.fragment, found, limit_ns, WINDOW);
        Some(Registers { plan: plan.clone(), windows, is_torn })
    }

    /// Takes the writes of a row. Rows come by their start.
    #[inline]
    pub(crate) fn enter<O: Operation>(&mut self, row: &Row<O>, items: &impl Items<O>) {
        if !row.operation.writes() {
            return;
        }
        let Some(at) = happened(row) else { return };
        let (windows, by) = (&mut self.windows, clients(row));
        items.registers(&row.operation, &[], at.end, &mut |item, touch| match touch {
            Touch::Wrote(value) => windows.write(item, value, at, by),
            Touch::Removed(value) => windows.remove(item, value, at, by),
            Touch::Saw(_) | Touch::Missed(_) => {}
        });
        windows.settle();
    }

    /// Takes what a row observed, once all writes that started before its end have entered. Rows come by their
    /// start. `violations` says how much is wrong with it.
    #[inline]
    pub(crate) fn leave<F: Family>(
        &mut self,
        row: &Row<OperationOf<F>>,
        items: &F::Items,
        observed: &[i64],
        violations: usize,
        summary: &mut Summary,
    ) {
        self.windows.pass(row.log.start_ns);
        let is_alone = row.of_try.is_none_or(|of_try| of_try.end == TryEnd::BestEffort);
        let is_read = row.operation.reads() && row.log.outcome == Outcome::Ok && is_alone;
        if !is_read || row.warmup || row.drained {
            return;
        }
        let Registers { plan, windows, is_torn } = self;
        let mut tag = NEW;
        if violations > 0 && windows.excuses() && summary.is_within_beta(&row.log) {
            let (code, end_ns) = (row.operation.code(), row.log.end_ns);
            let violations = u32::try_from(violations).unwrap_or(u32::MAX);
            tag = windows.excusable(Excusable { code, end_ns, violations, stale: 0, t_ns: 0 });
        }
        // What a session before the experiment wrote is an initial value.
        let known = |value: Option<i64>| match value {
            None => NOTHING,
            Some(INITIAL) => INITIAL,
            Some(value) if plan.first_session == 0 => value,
            Some(value) => {
                let writer = F::writer(value).filter(|writer| writer.fragment == i64::from(plan.fragment));
                let is_earlier = writer.is_some_and(|writer| plan.is_before(writer.session.unsigned_abs()));
                if is_earlier { INITIAL } else { value }
            }
        };
        let (at, by) = (Interval { start: row.log.start_ns, end: row.log.end_ns }, clients(row));
        items.registers(&row.operation, observed, at.end, &mut |item, touch| match touch {
            Touch::Saw(value) => windows.read_as(item, known(value), at, by, tag),
            Touch::Missed(value) if !*is_torn => windows.read_as(item, known(value), at, by, tag),
            Touch::Missed(_) | Touch::Wrote(_) | Touch::Removed(_) => {}
        });
        windows.settle();
        self.excuse(summary);
    }

    /// Adds what was found to the summary.
    pub(crate) fn finish(&mut self, summary: &mut Summary) {
        let found = self.windows.finish();
        self.excuse(summary);
        summary.add_consistency(found);
    }

    fn excuse(&mut self, summary: &mut Summary) {
        self.windows.excused().for_each(|read| summary.excuse(read.code, read.end_ns));
    }
}

fn clients<O>(row: &Row<O>) -> Clients {
    Clients { thread: row.log.thread, actor: row.actor }
}
