//! Makes the sessions of one fragment, one after the other.

use std::ops::Range;

use schemas::spec::SpecOf;
use schemas::vocabulary::kv::{Kv, Operation, TraceRow, Verb, WriteId};
use schemas::workload::kv::{KvWorkload, LengthDistribution, SessionKind};

use super::draw::{Draw, Drawn, Sequence, hundredth};
use super::space::Space;
use super::statistics::Tally;
use crate::core::chance::Stream;
use crate::core::counts::Counts;
use crate::core::generator;
use crate::core::maps::{IdMap, IdSet};
use crate::core::mix::{Excluded, Mix};
use crate::core::recorder::Recorder;
use crate::core::zipfian::Zipfian;

/// A record that exists is searched with this many draws. If popular records are deleted, most
/// draws are in vain.
const DRAWS_MAX: u32 = 1_000;

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
    is_deleted: bool,
}

/// The sessions of a fragment.
pub(crate) struct Sessions<'a> {
    spec: &'a SpecOf<KvWorkload>,
    space: &'a Space,
    fragment: u32,
    kinds: Vec<SessionKind>,
    mix: Mix,
    clients: Range<u64>,
    sequence: Sequence,
    draw: Draw,
    scan_lengths: Option<Zipfian>,
    /// The record that the next insert looks at.
    next_record: u64,
    /// Whether a write waits for the last write of its record.
    ordered: bool,
    /// Records that sessions wrote.
    histories: IdMap<u64, History>,
    /// The most popular hundredth of the records.
    top: IdSet<u64>,
    drawn: IdSet<u64>,
    tally: Tally,
    chance: Stream,
    recorder: Recorder,
}

impl<'a> Sessions<'a> {
    /// The sessions of a fragment, from the first one on.
    pub(crate) fn new(spec: &'a SpecOf<KvWorkload>, space: &'a Space, fragment: u32) -> Sessions<'a> {
        let kinds: Vec<SessionKind> =
            spec.common.kinds().into_iter().filter_map(|(name, _)| SessionKind::from_name(name)).collect();
        let order = spec.common.kinds().into_iter().enumerate().map(|(place, (_, share))| (place, share)).collect();
        let mut initial = space.records(fragment).to_vec();
        initial.sort_unstable();
        let sequence = Sequence { initial, inserted: Vec::new(), settled: 0 };
        let access = &spec.own.access;
        let scan_choices = (access.scan_length_max - access.scan_length_min + 1) as u64;
        Sessions {
            fragment,
            mix: Mix::new(order),
            clients: clients(spec, fragment),
            draw: Draw::new(&spec.own, &sequence),
            sequence,
            scan_lengths: (access.scan_length == LengthDistribution::Zipfian).then(|| Zipfian::new(scan_choices)),
            next_record: spec.own.data.first_record + spec.own.data.records,
            // A record must exist when it is deleted, and nothing may write it later.
            ordered: access.ordered_writes || kinds.contains(&SessionKind::Delete),
            kinds,
            histories: IdMap::default(),
            top: space.top.iter().map(|index| space.first + *index as u64).collect(),
            drawn: IdSet::default(),
            tally: Tally::default(),
            chance: Stream::new(spec.common.seed, "sessions", fragment),
            recorder: Recorder::new::<Kv>(&spec.common, fragment),
            spec,
            space,
        }
    }

    /// What is counted of the sessions so far.
    pub(crate) fn tally(&self) -> Tally {
        Tally { inserted: self.sequence.inserted.len() as u64, drawn: self.drawn.len() as u64, ..self.tally }
    }

    /// Draws a record of the fragment that exists; None if hardly any does.
    fn draw_record(&mut self) -> Option<u64> {
        let foreign = self.spec.common.fragments;
        for _ in 0..DRAWS_MAX.saturating_mul(foreign) {
            let drawn = self.draw.draw(&self.spec.own, self.space, &self.sequence, &mut self.chance);
            if self.exists(drawn.record) && self.space.is_in(self.fragment, drawn.record) {
                self.count(drawn);
                return Some(drawn.record);
            }
        }
        None
    }

    fn count(&mut self, Drawn { record, rank }: Drawn) {
        let (is_hottest, is_top) = match rank {
            Some(rank) => (rank == 0, rank < hundredth(self.sequence.len())),
            None => {
                let hottest = self.space.first + self.space.top[0] as u64;
                (record == hottest, self.top.contains(&record))
            }
        };
        self.tally.draws += 1;
        self.tally.to_hottest += is_hottest as u64;
        self.tally.to_top += is_top as u64;
        self.drawn.insert(record);
    }

    fn exists(&self, record: u64) -> bool {
        let is_initial = record - self.space.first < self.spec.own.data.records;
        match self.histories.get(&record) {
            Some(history) => !history.is_deleted && (is_initial || history.inserted.is_some()),
            None => is_initial,
        }
    }

    /// The session whose write an operation on a record has to wait for.
    fn after(&self, record: u64, writes: bool) -> Option<u64> {
        let history = self.histories.get(&record)?;
        if writes && self.ordered { history.written.or(history.inserted) } else { history.inserted }
    }

    /// All fields, or one that is drawn.
    fn fields(&mut self, all: bool) -> u64 {
        let data = &self.spec.own.data;
        if all { data.all_fields() } else { 1 << self.chance.below(data.fields as u64) }
    }

    /// The next record that belongs to this fragment and has never existed.
    fn new_record(&mut self) -> u64 {
        loop {
            let record = self.next_record;
            self.next_record += 1;
            if self.space.is_in(self.fragment, record) {
                return record;
            }
        }
    }

    /// The operation, which becomes the next row of the session.
    fn row(&mut self, place: usize, verb: Verb, record: u64, fields: u64, length: u32) -> TraceRow {
        let session = self.recorder.session();
        let after = self.after(record, verb.writes());
        let actor = self.clients.start + session % (self.clients.end - self.clients.start);
        match verb {
            Verb::Insert => {
                self.histories.insert(record, History { inserted: Some(session), ..History::default() });
                self.sequence.inserted.push((record, session));
            }
            Verb::Update if self.ordered => self.histories.entry(record).or_default().written = Some(session),
            Verb::Delete => {
                let history = self.histories.entry(record).or_default();
                (history.written, history.is_deleted) = (Some(session), true);
                self.tally.deleted += 1;
            }
            _ => {}
        }
        let id = WriteId::new(self.fragment, session, self.recorder.step());
        self.recorder.row(place, Operation { verb, key: record, fields, length, id }, actor, after)
    }

    fn scan_length(&mut self) -> u32 {
        let access = &self.spec.own.access;
        let (least, most) = (access.scan_length_min, access.scan_length_max);
        match (access.scan_length, &self.scan_lengths) {
            (LengthDistribution::Constant, _) => most,
            (_, Some(lengths)) => least + lengths.draw(&mut self.chance) as u32,
            _ => least + self.chance.below((most - least + 1) as u64) as u32,
        }
    }

    /// Where a scan of so many records begins, and how many it asks for: it stays inside the fragment.
    fn inside(&self, record: u64, length: u32) -> (u64, u32) {
        if self.space.is_last(self.fragment) || self.space.from(self.fragment, record) >= length as usize {
            return (record, length);
        }
        let records = self.space.records(self.fragment);
        let length = length.min(records.len() as u32);
        (self.space.first + records[records.len() - length as usize] as u64, length)
    }

    /// Moves the inserts that are long enough ago into the reach of the draws.
    fn settle(&mut self) {
        let window = self.spec.own.access.dependency_window;
        while let Some((_, session)) = self.sequence.inserted.get(self.sequence.settled)
            && session + window <= self.recorder.session()
        {
            self.sequence.settled += 1;
            self.draw.grow();
        }
    }
}

impl generator::Sessions<Operation> for Sessions<'_> {
    fn counts(&self) -> &Counts {
        self.recorder.counts()
    }

    fn try_next(&mut self, mut each: impl FnMut(&TraceRow)) -> generator::Drawn {
        if Space::follows_inserts(self.spec.own.access.distribution) {
            self.settle();
        }
        let (read_all, write_all) = (self.spec.own.access.read_all_fields, self.spec.own.access.write_all_fields);
        let mut excluded = Excluded::default();
        while let Some(place) = self.mix.draw(excluded, &mut self.chance) {
            let kind = self.kinds[place];
            let record = match kind {
                SessionKind::Insert => Some(self.new_record()),
                _ => self.draw_record(),
            };
            if let Some(record) = record {
                match kind {
                    SessionKind::Read => {
                        let fields = self.fields(read_all);
                        each(&self.row(place, Verb::Read, record, fields, 0));
                    }
                    SessionKind::Update => {
                        let fields = self.fields(write_all);
                        each(&self.row(place, Verb::Update, record, fields, 0));
                    }
                    SessionKind::Insert => {
                        let fields = self.spec.own.data.all_fields();
                        each(&self.row(place, Verb::Insert, record, fields, 0));
                    }
                    SessionKind::Delete => each(&self.row(place, Verb::Delete, record, 0, 0)),
                    SessionKind::Scan => {
                        let (fields, length) = (self.fields(read_all), self.scan_length());
                        let (record, length) = self.inside(record, length);
                        each(&self.row(place, Verb::Scan, record, fields, length));
                    }
                    SessionKind::ReadModifyWrite => {
                        let (read, written) = (self.fields(read_all), self.fields(write_all));
                        each(&self.row(place, Verb::Read, record, read, 0));
                        each(&self.row(place, Verb::Update, record, written, 0));
                    }
                }
            }
            if self.recorder.end(place, 1) {
                return generator::Drawn::Session;
            }
            excluded.add(place);
        }
        self.recorder.nothing()
    }
}
