//! Makes the transactions of one fragment, one after the other.
//!
//! The balances that sessions leave one after the other are known here, so the money that deletes
//! capture is known too: inserts and updates release no more than that. In a replay with several threads
//! deletes may capture other amounts, because other sessions come before them. What was captured and
//! released is then in the log, and the sum still has to be the same.

use std::collections::VecDeque;

use schemas::vocabulary::Control;
use schemas::vocabulary::kv::{Operation, TraceRow, Verb, WHOLE_BALANCE, new_balance};
use schemas::workload::economy::SessionKind;
use schemas::workload::kv::Values;
use schemas::workload::kv::values::BALANCE_FIELD;

use crate::core::counts::Counts;
use crate::core::generator;
use crate::core::maps::IdMap;
use crate::core::mix::Excluded;
use crate::kv::Kv;
use crate::kv::draw::Drawn;
use crate::kv::sessions::Sessions as RecordSessions;
use crate::kv::statistics::Tally;

/// How often the second record of a session is drawn, until it is another one than the first.
const DRAWS_MAX: u32 = 100;

/// The sessions of a fragment.
pub(crate) struct Sessions<'a> {
    records: RecordSessions<'a>,
    kinds: Vec<SessionKind>,
    values: Values,
    /// What each record would get if the money were divided among them.
    cash_each: i64,
    /// Balances that sessions have changed.
    balances: IdMap<u64, i64>,
    /// The money that was captured and not released yet.
    captured: i64,
    /// Records that are no longer drawn and not deleted yet, each with the session that chose it.
    leaving: VecDeque<(u64, u64)>,
    /// How many sessions a record stays there, so that sessions that still use it have ended.
    window: u64,
    read_fields: u64,
    written_fields: u64,
    /// The fields of an insert.
    all_fields: u64,
}

impl<'a> Sessions<'a> {
    /// The sessions of a fragment, from the first one on.
    pub(crate) fn new(kv: &'a Kv, fragment: u32) -> Sessions<'a> {
        let spec = kv.spec();
        let (common, data, access) = (&spec.common, &spec.own.data, &spec.own.access);
        let mut records = RecordSessions::new(spec, kv.space(), fragment);
        // Transactions order writes.
        records.ordered = false;
        records.draws.wait_for_inserts(access.dependency_window);
        let all_fields = data.all_fields();
        let fields = |all: bool| if all { all_fields } else { 1 << BALANCE_FIELD };
        let kinds = common.kinds().into_iter().filter_map(|(name, _)| SessionKind::from_name(name)).collect();
        Sessions {
            records,
            kinds,
            values: Values::new(common, data),
            cash_each: (data.total_cash.unwrap_or_default() / data.records.max(1)) as i64,
            balances: IdMap::default(),
            captured: 0,
            leaving: VecDeque::new(),
            window: access.dependency_window,
            read_fields: fields(access.read_all_fields),
            written_fields: fields(access.write_all_fields),
            all_fields,
        }
    }

    /// What is counted of the sessions so far.
    pub(crate) fn tally(&self) -> Tally {
        self.records.tally()
    }

    /// The money that was captured and not released.
    #[cfg(test)]
    pub(super) fn captured(&self) -> i64 {
        self.captured
    }

    /// The balance of a record after the sessions so far.
    fn balance(&self, record: u64) -> i64 {
        self.balances.get(&record).copied().unwrap_or_else(|| self.values.initial_balance(record))
    }

    /// $1 of what was captured; if nothing is left, $1 is captured of the record.
    fn dollar(&self) -> i64 {
        if self.captured > 0 { 1 } else { -1 }
    }

    /// Two different records; None if none are found.
    fn draw_two(&mut self) -> Option<[u64; 2]> {
        let first = self.records.draw_record()?.record;
        let mut draws = 0..DRAWS_MAX;
        draws.find_map(|_| {
            let second = self.records.draw_record()?.record;
            (second != first).then_some([first, second])
        })
    }

    /// The record that a delete removes. It was chosen some time ago; this delete chooses one for later.
    fn draw_leaving(&mut self) -> Option<u64> {
        let session = self.records.recorder.session();
        if let Some(drawn @ Drawn { record, .. }) = self.records.draw_record() {
            self.records.draws.delete(drawn);
            self.leaving.push_back((record, session));
        }
        let (record, _) = self.leaving.front().filter(|(_, chosen)| chosen.saturating_add(self.window) <= session)?;
        Some(*record)
    }

    /// The operations of a session of the kind at this place of the mix; none if there are no records
    /// for it.
    fn make(&mut self, place: usize, each: impl FnMut(&TraceRow)) {
        self.records.draw_ending();
        match self.kinds[place] {
            SessionKind::Insert => {
                let record = self.records.new_record();
                // A delete of a record with a debt has captured the debt.
                let amount = self.captured.min(self.cash_each).max(0);
                self.transaction(place, each, &[(Verb::Insert, record, amount)]);
            }
            SessionKind::Read => {
                let Some(drawn) = self.records.draw_record() else { return };
                self.transaction(place, each, &[(Verb::Read, drawn.record, 0)]);
            }
            SessionKind::Update => {
                let Some(Drawn { record, .. }) = self.records.draw_record() else { return };
                let amount = self.dollar();
                self.transaction(place, each, &[(Verb::Read, record, 0), (Verb::Update, record, amount)]);
            }
            SessionKind::Delete => {
                if let Some(record) = self.draw_leaving() {
                    self.delete(place, each, record);
                }
            }
            SessionKind::Scan => {
                let Some(drawn) = self.records.draw_record() else { return };
                self.transaction(place, each, &[(Verb::Scan, drawn.record, 0)]);
            }
            SessionKind::ReadModifyWrite => {
                let Some([from, to]) = self.draw_two() else { return };
                let reads = [(Verb::Read, from, 0), (Verb::Read, to, 0)];
                let updates = [(Verb::Update, from, -1), (Verb::Update, to, 1)];
                self.transaction(place, each, &[reads, updates].concat());
            }
            SessionKind::Adjust => {
                let Some([one, other]) = self.draw_two() else { return };
                let amount = self.dollar();
                let steps = [(Verb::Read, one, 0), (Verb::Read, other, 0), (Verb::Update, one, amount)];
                self.transaction(place, each, &steps);
            }
            SessionKind::ReadTwo => {
                let Some([one, other]) = self.draw_two() else { return };
                self.transaction(place, each, &[(Verb::Read, one, 0), (Verb::Read, other, 0)]);
            }
            SessionKind::TransferInSteps => {
                let Some([from, to]) = self.draw_two() else { return };
                let step = |record, amount| [(Verb::Read, record, 0), (Verb::Update, record, amount)];
                // $2 are taken first, and one of them is put back.
                self.transaction(place, each, &[step(from, -2), step(from, 1), step(to, 1)].concat());
            }
        }
    }

    /// Deletes the first record of those that are leaving.
    fn delete(&mut self, place: usize, each: impl FnMut(&TraceRow), record: u64) {
        if !self.records.aborts {
            self.leaving.pop_front();
        }
        self.transaction(place, each, &[(Verb::Read, record, 0), (Verb::Delete, record, WHOLE_BALANCE)]);
    }

    /// The rows of a transaction with these operations: verb, record and amount.
    fn transaction(&mut self, place: usize, mut each: impl FnMut(&TraceRow), steps: &[(Verb, u64, i64)]) {
        // It waits for inserts before it begins: later it would hold what they need.
        let after = |(verb, record, _): &(Verb, u64, i64)| self.records.after(*record, verb.writes());
        let after = steps.iter().filter_map(after).max();
        each(&self.records.control(place, Control::Begin, after));
        let (mut captured, is_kept) = (0, !self.records.aborts);
        for (verb, record, amount) in steps.iter().copied() {
            let (fields, (record, length)) = match verb {
                Verb::Scan => {
                    let length = self.records.scan_length();
                    (self.read_fields, self.records.inside(record, length))
                }
                Verb::Read => (self.read_fields, (record, 0)),
                Verb::Insert => (self.all_fields, (record, 0)),
                Verb::Update => (self.written_fields, (record, 0)),
                _ => (0, (record, 0)),
            };
            if verb.writes() && is_kept {
                let found = if verb == Verb::Insert { 0 } else { self.balance(record) };
                let left = new_balance(found, amount);
                captured += found - left;
                self.balances.insert(record, left);
            }
            let row = self.records.row(place, verb, record, fields, length);
            each(&TraceRow { operation: Operation { amount, ..row.operation }, ..row });
        }
        self.captured += captured;
        let end = if is_kept { Control::Commit } else { Control::Abort };
        each(&self.records.control(place, end, None));
    }
}

impl generator::Sessions<Operation> for Sessions<'_> {
    fn counts(&self) -> &Counts {
        self.records.recorder.counts()
    }

    fn try_next(&mut self, mut each: impl FnMut(&TraceRow)) -> generator::Drawn {
        self.records.draws.settle(self.records.recorder.session());
        let mut excluded = Excluded::default();
        while let Some(place) = self.records.mix.draw(excluded, &mut self.records.chance) {
            self.make(place, &mut each);
            if self.records.recorder.end(place, 1) {
                return generator::Drawn::Session;
            }
            excluded.add(place);
        }
        // A record that was chosen lately is better than no session at all.
        let delete = self.kinds.iter().position(|kind| *kind == SessionKind::Delete);
        if let (Some(place), Some((record, _))) = (delete, self.leaving.front().copied()) {
            self.delete(place, &mut each, record);
            if self.records.recorder.end(place, 1) {
                return generator::Drawn::Session;
            }
        }
        generator::Drawn::Never { noops: self.records.recorder.noops() }
    }
}
