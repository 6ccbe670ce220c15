//! Makes the sessions of one fragment, one after the other.

use std::ops::Range;

use schemas::spec::SpecOf;
use schemas::vocabulary::Control;
use schemas::vocabulary::kv::{Kv, Operation, TraceRow, Verb, WriteId};
use schemas::workload::kv::{KvWorkload, LengthDistribution, SessionKind};

use super::draw::{Drawn, Draws};
use super::space::Space;
use super::statistics::{Expectation, Tally};
use crate::core::chance::Stream;
use crate::core::counts::Counts;
use crate::core::generator;
use crate::core::maps::{IdMap, IdSet};
use crate::core::mix::{Excluded, Mix};
use crate::core::recorder::Recorder;
use crate::core::zipfian::Zipfian;

/// The clients of a fragment.
pub(crate) fn clients(spec: &SpecOf<KvWorkload>, fragment: u32) -> Range<u64> {
    let (clients, fragments, fragment) =
        (spec.own.access.clients as u128, spec.common.fragments as u128, fragment as u128);
    (clients * fragment / fragments) as u64..(clients * (fragment + 1) / fragments) as u64
}

/// What the sessions so far did to a record.
#[derive(Debug, Clone, Copy, Default)]
struct History {
    /// The session that inserted it.
    inserted: Option<u64>,
    /// The session that wrote it last, if writes of a record wait for each other.
    written: Option<u64>,
}

/// How transactions end.
struct Endings {
    abort_share: f64,
    /// Of their own, so that the sessions are the same with and without transactions.
    chance: Stream,
}

/// The sessions of a fragment.
pub(crate) struct Sessions<'a> {
    spec: &'a SpecOf<KvWorkload>,
    space: &'a Space,
    fragment: u32,
    kinds: Vec<SessionKind>,
    pub(crate) mix: Mix,
    clients: Range<u64>,
    pub(crate) draws: Draws<'a>,
    scan_lengths: Option<Zipfian>,
    /// Which transactions end with an abort; None if sessions are no transactions.
    endings: Option<Endings>,
    /// Whether the session that is made ends with an abort, and leaves nothing.
    pub(crate) aborts: bool,
    /// The record that the next insert looks at.
    next_record: u64,
    /// Whether a write waits for the last write of its record.
    pub(crate) ordered: bool,
    /// Records that sessions wrote.
    histories: IdMap<u64, History>,
    /// Records that were drawn.
    drawn: IdSet<u64>,
    tally: Tally,
    expectation: Expectation,
    pub(crate) chance: Stream,
    pub(crate) recorder: Recorder,
}

impl<'a> Sessions<'a> {
    /// The sessions of a fragment, from the first one on.
    pub(crate) fn new(spec: &'a SpecOf<KvWorkload>, space: &'a Space, fragment: u32) -> Sessions<'a> {
        let kinds: Vec<SessionKind> =
            spec.common.kinds().into_iter().filter_map(|(name, _)| SessionKind::from_name(name)).collect();
        let order = spec.common.kinds().into_iter().enumerate().map(|(place, (_, share))| (place, share)).collect();
        let access = &spec.own.access;
        let scan_choices = (access.scan_length_max - access.scan_length_min + 1) as u64;
        Sessions {
            fragment,
            mix: Mix::new(order),
            clients: clients(spec, fragment),
            draws: Draws::new(&spec.own, space, fragment),
            scan_lengths: (access.scan_length == LengthDistribution::Zipfian).then(|| Zipfian::new(scan_choices)),
            endings: spec.own.transactions.map(|transactions| Endings {
                abort_share: transactions.abort_share,
                chance: Stream::new(spec.common.seed, "transactions", fragment),
            }),
            aborts: false,
            next_record: spec.own.data.first_record + spec.own.data.records,
            // A record must exist when it is deleted, and nothing may write it later.
            ordered: access.ordered_writes || kinds.contains(&SessionKind::Delete),
            kinds,
            histories: IdMap::default(),
            drawn: IdSet::default(),
            tally: Tally::default(),
            expectation: Expectation::default(),
            chance: Stream::new(spec.common.seed, "sessions", fragment),
            recorder: Recorder::new::<Kv>(&spec.common, fragment),
            spec,
            space,
        }
    }

    /// What is counted of the sessions so far.
    pub(crate) fn tally(&self) -> Tally {
        Tally {
            alone: self.draws.alone(),
            expected: self.expectation.sum(),
            drawn: self.drawn.len() as u64,
            ..self.tally
        }
    }

    /// Draws a record of the fragment that exists; None if none can be drawn.
    pub(crate) fn draw_record(&mut self) -> Option<Drawn> {
        let drawn = self.draws.draw(&mut self.chance)?;
        self.tally.draws += 1;
        self.tally.to_hottest += drawn.is_hot[0] as u64;
        self.tally.to_top += drawn.is_hot[1] as u64;
        self.expectation.add(drawn.expected);
        self.drawn.insert(drawn.record);
        Some(drawn)
    }

    /// The session whose write an operation on a record has to wait for.
    pub(crate) fn after(&self, record: u64, writes: bool) -> Option<u64> {
        let history = self.histories.get(&record)?;
        if writes && self.ordered { history.written.or(history.inserted) } else { history.inserted }
    }

    /// All fields, or one that is drawn.
    fn fields(&mut self, all: bool) -> u64 {
        let data = &self.spec.own.data;
        if all { data.all_fields() } else { 1 << self.chance.below(data.fields as u64) }
    }

    /// The next record that belongs to this fragment and has never existed.
    pub(crate) fn new_record(&mut self) -> u64 {
        loop {
            let record = self.next_record;
            self.next_record += 1;
            if self.space.is_in(self.fragment, record) {
                return record;
            }
        }
    }

    /// Draws whether the session that is made ends with an abort.
    pub(crate) fn draw_ending(&mut self) {
        self.aborts = match &mut self.endings {
            Some(endings) if endings.abort_share > 0.0 => endings.chance.unit() < endings.abort_share,
            _ => false,
        };
    }

    /// A client of the fragment: one after the other, and from the first one again after the last.
    pub(crate) fn client(&self, turn: u64) -> u64 {
        self.clients.start + turn % (self.clients.end - self.clients.start)
    }

    /// On whose behalf the session runs.
    fn actor(&self) -> u64 {
        self.client(self.recorder.session())
    }

    /// The operation, which becomes the next row of the session.
    pub(crate) fn row(&mut self, place: usize, verb: Verb, record: u64, fields: u64, length: u32) -> TraceRow {
        let session = self.recorder.session();
        let after = self.after(record, verb.writes());
        let actor = self.actor();
        match verb {
            _ if self.aborts => {}
            Verb::Insert => {
                self.histories.insert(record, History { inserted: Some(session), ..History::default() });
                self.draws.insert(record, session);
                self.tally.inserted += 1;
            }
            Verb::Update if self.ordered => self.histories.entry(record).or_default().written = Some(session),
            Verb::Delete => {
                self.histories.entry(record).or_default().written = Some(session);
                self.tally.deleted += 1;
            }
            _ => {}
        }
        let id = WriteId::new(self.fragment, session, self.recorder.step());
        self.recorder.row(place, Operation { verb, key: record, fields, length, id, amount: 0 }, actor, after)
    }

    /// The operation that begins or ends the session's transaction.
    pub(crate) fn control(&mut self, place: usize, control: Control, after: Option<u64>) -> TraceRow {
        let id = WriteId::new(self.fragment, self.recorder.session(), self.recorder.step());
        let actor = self.actor();
        self.recorder.row(place, Operation::of_transaction(control, id), actor, after)
    }

    pub(crate) fn scan_length(&mut self) -> u32 {
        let access = &self.spec.own.access;
        let (least, most) = (access.scan_length_min, access.scan_length_max);
        match (access.scan_length, &self.scan_lengths) {
            (LengthDistribution::Constant, _) => most,
            (_, Some(lengths)) => least + lengths.draw(&mut self.chance) as u32,
            _ => least + self.chance.below((most - least + 1) as u64) as u32,
        }
    }

    /// Where a scan of so many records begins, and how many it asks for: it stays inside the fragment.
    pub(crate) fn inside(&self, record: u64, length: u32) -> (u64, u32) {
        if self.space.is_last(self.fragment) || self.space.from(self.fragment, record) >= length as usize {
            return (record, length);
        }
        let records = self.space.records(self.fragment);
        let length = length.min(records.len() as u32);
        (self.space.first + records[records.len() - length as usize] as u64, length)
    }
}

impl generator::Sessions<Operation> for Sessions<'_> {
    fn counts(&self) -> &Counts {
        self.recorder.counts()
    }

    fn try_next(&mut self, mut each: impl FnMut(&TraceRow)) -> generator::Drawn {
        self.draws.settle(self.recorder.session());
        let mut excluded = Excluded::default();
        while let Some(place) = self.mix.draw(excluded, &mut self.chance) {
            self.make(place, &mut each);
            if self.recorder.end(place, 1) {
                return generator::Drawn::Session;
            }
            excluded.add(place);
        }
        // An insert is always possible. Without one, no record will ever exist again.
        generator::Drawn::Never { noops: self.recorder.noops() }
    }
}

/// An operation of a session.
#[derive(Clone, Copy)]
struct Planned {
    verb: Verb,
    record: u64,
    fields: u64,
    length: u32,
}

impl Sessions<'_> {
    /// The operations of a session of the kind at this place of the mix; none if there is no record for it.
    fn make(&mut self, place: usize, mut each: impl FnMut(&TraceRow)) {
        self.draw_ending();
        let [first, second] = self.plan(self.kinds[place]);
        let Some(first) = first else { return };
        let is_transaction = self.endings.is_some();
        if is_transaction {
            // It waits for other sessions before it begins: later it would hold what they need.
            let writes = second.unwrap_or(first).verb.writes();
            let after = self.after(first.record, writes);
            each(&self.control(place, Control::Begin, after));
        }
        for Planned { verb, record, fields, length } in [Some(first), second].into_iter().flatten() {
            each(&self.row(place, verb, record, fields, length));
        }
        if is_transaction {
            let control = if self.aborts { Control::Abort } else { Control::Commit };
            each(&self.control(place, control, None));
        }
    }

    /// Draws the operations of a session of a kind.
    fn plan(&mut self, kind: SessionKind) -> [Option<Planned>; 2] {
        let (read_all, write_all) = (self.spec.own.access.read_all_fields, self.spec.own.access.write_all_fields);
        let one = |verb, record, fields, length| Some(Planned { verb, record, fields, length });
        if kind == SessionKind::Insert {
            let (record, fields) = (self.new_record(), self.spec.own.data.all_fields());
            return [one(Verb::Insert, record, fields, 0), None];
        }
        let Some(drawn) = self.draw_record() else { return [None; 2] };
        let record = drawn.record;
        match kind {
            SessionKind::Insert => [None; 2],
            SessionKind::Read => [one(Verb::Read, record, self.fields(read_all), 0), None],
            SessionKind::Update => [one(Verb::Update, record, self.fields(write_all), 0), None],
            SessionKind::Delete => {
                if !self.aborts {
                    self.draws.delete(drawn);
                }
                [one(Verb::Delete, record, 0, 0), None]
            }
            SessionKind::Scan => {
                let (fields, length) = (self.fields(read_all), self.scan_length());
                let (record, length) = self.inside(record, length);
                [one(Verb::Scan, record, fields, length), None]
            }
            SessionKind::ReadModifyWrite => {
                let (read, written) = (self.fields(read_all), self.fields(write_all));
                [one(Verb::Read, record, read, 0), one(Verb::Update, record, written, 0)]
            }
        }
    }
}
