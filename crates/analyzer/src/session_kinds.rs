//! Figures by kind of session: how the sessions of each kind ended, and how long they took.

use std::collections::{BTreeMap, HashMap};

use indexmap::IndexMap;
use schemas::latency::ResponseTimes;
use schemas::oplog::{Outcome, TryEnd};
use schemas::verdict::SessionFigures;
use schemas::vocabulary::Operation;
use serde::{Deserialize, Serialize};

use crate::join::Row;
use crate::shares::percent;
use crate::timeline::Measured;

/// How a session ended, from the best to the worst: the worst end of its transactions is its own. The view
/// `session_kinds` has the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum End {
    #[default]
    Committed,
    RolledBack,
    Skipped,
    Aborted,
    Failed,
    Unknown,
}

const ENDS: usize = End::Unknown as usize + 1;

impl End {
    /// What a row says of the end of its transaction, or of its session if it is in none.
    fn of<O>(row: &Row<O>) -> End {
        match row.of_try.map(|of_try| of_try.end) {
            Some(TryEnd::Committed) => End::Committed,
            Some(TryEnd::AbortAsked) => End::RolledBack,
            Some(TryEnd::Aborted) => End::Aborted,
            Some(TryEnd::Failed) => End::Failed,
            Some(TryEnd::Unknown) => End::Unknown,
            Some(TryEnd::Skipped) => End::Skipped,
            Some(TryEnd::BestEffort) | None => match row.log.outcome {
                Outcome::Ok => End::Committed,
                Outcome::Failed => End::Failed,
                Outcome::Unknown => End::Unknown,
                Outcome::Skipped => End::Skipped,
                Outcome::Aborted => End::Aborted,
            },
        }
    }
}

/// A session whose later rows may come.
#[derive(Debug, Clone, Copy)]
struct Open {
    session: u64,
    kind: u8,
    from_ns: i64,
    end_ns: i64,
    /// The worst end of the transactions that are over.
    end: End,
    /// The transaction that the last row belongs to, its try, and how that ended.
    last: (Option<u16>, u16, End),
}

impl Open {
    fn end(&self) -> End {
        self.end.max(self.last.2)
    }
}

/// Puts the rows of each session together. A thread runs one session after the other.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: HashMap<u32, Open>,
    /// By the number of the kind.
    kinds: BTreeMap<u8, KindOfSession>,
}

/// The sessions of a kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct KindOfSession {
    by_end: [u64; ENDS],
    /// Committed ones that count for the rates.
    committed_counted: u64,
    times: ResponseTimes,
}

impl Sessions {
    /// Adds a row of the measured part. The rows of a session come in their order.
    pub(crate) fn add<O: Operation>(&mut self, row: &Row<O>, measured: Measured) {
        let end = End::of(row);
        let of_row = (row.txn, row.log.try_number, end);
        let log = &row.log;
        if let Some(open) = self.open.get_mut(&log.thread).filter(|open| open.session == log.session) {
            open.end_ns = open.end_ns.max(log.end_ns);
            open.last = match open.last {
                // Another try replaces the one before; within a try the worst row counts.
                (txn, number, _) if txn.is_some() && txn == row.txn && number != log.try_number => of_row,
                (txn, number, before) if txn == row.txn => (txn, number, before.max(end)),
                (.., before) => {
                    open.end = open.end.max(before);
                    of_row
                }
            };
            return;
        }
        // A session that is missing its first rows is not known well enough.
        let begins = log.step == 0 && !row.drained;
        let from_ns = log.due_ns.unwrap_or(log.start_ns);
        let open = Open {
            session: log.session,
            kind: row.kind,
            from_ns,
            end_ns: log.end_ns,
            end: End::Committed,
            last: of_row,
        };
        let before = match begins {
            true => self.open.insert(log.thread, open),
            false => self.open.remove(&log.thread),
        };
        before.into_iter().for_each(|before| self.close(&before, measured));
    }

    fn close(&mut self, open: &Open, measured: Measured) {
        let kind = self.kinds.entry(open.kind).or_default();
        let end = open.end();
        kind.by_end[end as usize] += 1;
        if matches!(end, End::Committed | End::RolledBack) {
            kind.times.record(open.end_ns - open.from_ns);
        }
        kind.committed_counted += u64::from(end == End::Committed && measured.counts(open.end_ns));
    }

    /// The sessions by the names of their kinds.
    pub(crate) fn finish(mut self, measured: Measured, names: &[String]) -> SessionKinds {
        for open in std::mem::take(&mut self.open).into_values() {
            self.close(&open, measured);
        }
        let named = |(kind, found): (u8, KindOfSession)| Some((names.get(usize::from(kind))?.clone(), found));
        SessionKinds(self.kinds.into_iter().filter_map(named).collect())
    }
}

/// The sessions of all kinds, by name.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct SessionKinds(BTreeMap<String, KindOfSession>);

impl SessionKinds {
    /// Adds those of other fragments.
    pub(crate) fn merge(&mut self, other: &SessionKinds) {
        for (name, theirs) in &other.0 {
            let mine = self.0.entry(name.clone()).or_default();
            mine.by_end.iter_mut().zip(theirs.by_end).for_each(|(mine, theirs)| *mine += theirs);
            mine.committed_counted += theirs.committed_counted;
            mine.times.merge(&theirs.times);
        }
    }

    /// The figures by kind, in the order of their names.
    pub(crate) fn figures(&self, measured: Measured) -> IndexMap<String, SessionFigures> {
        let completed =
            |kind: &KindOfSession| kind.by_end[End::Committed as usize] + kind.by_end[End::RolledBack as usize];
        let all: u64 = self.0.values().map(completed).sum();
        let figures = self.0.iter().map(|(name, kind)| {
            let [committed, rolled_back, skipped, aborted, failed, unknown] = kind.by_end;
            let minutes = measured.counted_ns as f64 / 60e9;
            let figures = SessionFigures {
                sessions: kind.by_end.iter().sum(),
                committed,
                rolled_back,
                aborted,
                failed,
                unknown,
                skipped,
                per_minute: if minutes > 0.0 { kind.committed_counted as f64 / minutes } else { 0.0 },
                share_percent: percent(completed(kind), all),
                p50_ns: kind.times.percentile_ns(50.0),
                p90_ns: kind.times.percentile_ns(90.0),
                max_ns: kind.times.max_ns(),
                p90_max_ns: None,
                share_min_percent: None,
            };
            (name.clone(), figures)
        });
        figures.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::read_row;
    use crate::join::OfTry;

    const MEASURED: Measured =
        Measured { from_ns: 0, elapsed_ns: 60_000_000_000, counted_ns: 30_000_000_000, planned_ns: None };

    /// A row of a session: its step, the transaction with its try and end, and when it ended.
    type OneRow = (u16, Option<(u16, u16, TryEnd)>, i64);

    fn rows(session: u64, all: &[OneRow]) -> Vec<Row<schemas::social::Operation>> {
        let of = |(step, txn, end_ns): &OneRow| {
            let mut row = read_row(session, end_ns - 10, *end_ns);
            (row.log.step, row.kind) = (*step, (session % 2) as u8);
            if let Some((txn, try_number, end)) = txn {
                (row.txn, row.log.try_number) = (Some(*txn), *try_number);
                let (begin_ns, end_ns) = (row.log.start_ns, row.log.end_ns);
                let of_try = OfTry { end: *end, begin_ns, end_ns, is_first: true, is_last: true, may_go_on: false };
                row.of_try = Some(of_try);
            }
            row
        };
        all.iter().map(of).collect()
    }

    fn figures(sessions: &[Vec<Row<schemas::social::Operation>>]) -> IndexMap<String, SessionFigures> {
        let mut found = Sessions::default();
        sessions.iter().flatten().for_each(|row| found.add(row, MEASURED));
        found.finish(MEASURED, &["even".into(), "odd".into()]).figures(MEASURED)
    }

    #[test]
    fn a_session_ends_as_its_transactions_do_in_their_last_tries() {
        use TryEnd::{AbortAsked, Aborted, Committed, Failed};
        let found = figures(&[
            // Rolled back by the store, and committed in the second try; then another transaction.
            rows(
                0,
                &[(0, Some((0, 0, Aborted)), 20), (0, Some((0, 1, Committed)), 40), (3, Some((3, 0, Committed)), 60)],
            ),
            rows(1, &[(0, Some((0, 0, AbortAsked)), 110), (1, Some((0, 0, AbortAsked)), 120)]),
            rows(2, &[(0, Some((0, 0, Committed)), 220), (3, Some((3, 0, Aborted)), 230)]),
            rows(4, &[(0, Some((0, 0, Failed)), 330), (3, Some((3, 0, Committed)), 340)]),
            rows(3, &[(0, None, 400), (1, None, 500)]),
            // It ended after the time that counts.
            rows(6, &[(0, Some((0, 0, Committed)), 31_000_000_000)]),
        ]);
        let (even, odd) = (&found["even"], &found["odd"]);
        assert_eq!((even.sessions, even.committed, even.aborted, even.failed), (4, 2, 1, 1));
        assert_eq!((even.per_minute, even.share_percent, even.max_ns), (2.0, 50.0, 50));
        assert_eq!((odd.sessions, odd.committed, odd.rolled_back, odd.per_minute), (2, 1, 1, 2.0));
        assert_eq!(odd.p90_ns, 110);
    }

    #[test]
    fn sessions_of_two_halves_are_those_of_the_whole() {
        let all: Vec<_> = (0..40u64).map(|n| rows(n, &[(0, None, 1_000 * n as i64 + 10)])).collect();
        let of = |some: &[Vec<Row<schemas::social::Operation>>]| {
            let mut found = Sessions::default();
            some.iter().flatten().for_each(|row| found.add(row, MEASURED));
            found.finish(MEASURED, &["even".into(), "odd".into()])
        };
        let mut merged = of(&all[..13]);
        merged.merge(&of(&all[13..]));
        assert_eq!(merged, of(&all));
    }
}
