//! Makes the sessions of a fragment, one after the other: each is a transaction of a terminal.

use arrow::array::RecordBatch;
use schemas::vocabulary::sql::{Sql, TraceRow};
use schemas::workload::sql::rows::timestamp;
use schemas::workload::tpcc::{Data, Draws, Kind, TpccWorkload, Waits, draws_batch};

use super::Tpcc;
use super::dataset::LOADED_US;
use super::random::{Constants, LAST_NAMES};
use super::statements::Catalog;
use super::transactions;
use crate::core::chance::Stream;
use crate::core::counts::Counts;
use crate::core::generator;
use crate::core::mix::{Excluded, Mix};
use crate::core::recorder::Recorder;
use crate::sql::Script;

/// Sessions enter their orders and payments a day after those of the data set, one a second.
const FIRST_US: i64 = LOADED_US + 86_400_000_000;

/// The longest think time, in means of it (clause 5.2.5.4).
const THINK_MAX: f64 = 10.0;

/// What transactions are drawn from.
pub(super) struct Drawing<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) data: &'a Data,
    pub(super) constants: Constants,
    pub(super) chance: Stream,
    pub(super) draws: Draws,
}

impl Drawing<'_> {
    /// How many last names there are among the customers of each district.
    pub(super) fn last_names(&self) -> u64 {
        self.data.customers.min(LAST_NAMES)
    }

    /// Another warehouse than this one, of which there are at least two.
    pub(super) fn other_warehouse(&mut self, home: u64) -> u64 {
        let drawn = self.chance.below(self.data.warehouses - 1) + 1;
        if drawn >= home { drawn + 1 } else { drawn }
    }
}

/// The terminal of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Terminal {
    pub(super) warehouse: u64,
    /// Its number in the warehouse, from 0.
    pub(super) number: u64,
}

/// The sessions of a fragment.
pub(crate) struct Sessions<'a> {
    drawing: Drawing<'a>,
    waits: Waits,
    think: Stream,
    recorder: Recorder,
    mix: Mix,
    kinds: Vec<Kind>,
    /// The fragment's terminals, in the order in which they act again and again.
    order: Vec<u32>,
    warehouses: Vec<u64>,
    script: Script,
    uses: Vec<u64>,
    /// What was drawn for the sessions since [`generator::Sessions::take_notes`].
    noted: Vec<Draws>,
}

impl<'a> Sessions<'a> {
    /// The sessions of a fragment, from the first one on.
    pub(super) fn new(tpcc: &'a Tpcc, fragment: u32) -> Sessions<'a> {
        let (common, TpccWorkload { data, waits, .. }) = (&tpcc.spec.common, &tpcc.spec.own);
        let stream = |purpose| Stream::new(common.seed, purpose, fragment);
        let warehouses: Vec<u64> = tpcc.warehouses(fragment).collect();
        let kinds: Vec<(Kind, f64)> =
            common.kinds().into_iter().filter_map(|(name, share)| Some((Kind::from_name(name)?, share))).collect();
        // A terminal acts again after all others, so that as many threads as there are terminals find work.
        let mut order: Vec<u32> = (0..(warehouses.len() as u64 * data.terminals) as u32).collect();
        stream("tpcc terminals").shuffle(&mut order);
        Sessions {
            drawing: Drawing {
                catalog: &tpcc.catalog,
                data,
                constants: Constants::new(common.seed),
                chance: stream("tpcc sessions"),
                draws: Draws::default(),
            },
            waits: *waits,
            think: stream("tpcc think time"),
            recorder: Recorder::new::<Sql>(common, fragment),
            mix: Mix::new(kinds.iter().enumerate().map(|(place, (_, share))| (place, *share)).collect()),
            kinds: kinds.into_iter().map(|(kind, _)| kind).collect(),
            order,
            warehouses,
            script: Script::new(),
            uses: vec![0; tpcc.catalog.list.list().len()],
            noted: Vec::new(),
        }
    }

    /// What was drawn, and how often each statement is used.
    pub(super) fn tally(&self) -> (Draws, Vec<u64>) {
        (self.drawing.draws, self.uses.clone())
    }

    /// How long the users of a transaction take: one who types its input, and one who reads its answer. The thread
    /// waits so long after the session.
    fn wait_us(&mut self, kind: Kind) -> u32 {
        let keying_us = if self.waits.keying { kind.keying_s() * 1_000_000 } else { 0 };
        if !self.waits.thinking {
            return keying_us;
        }
        let drawn = -libm::log(1.0 - self.think.unit());
        keying_us + (drawn.min(THINK_MAX) * f64::from(kind.think_s()) * 1e6).round() as u32
    }
}

impl generator::Sessions<schemas::vocabulary::sql::Operation> for Sessions<'_> {
    fn try_next(&mut self, mut each: impl FnMut(&TraceRow)) -> generator::Drawn {
        // A checked specification has a kind of session.
        let Some(place) = self.mix.draw(Excluded::default(), &mut self.drawing.chance) else {
            return generator::Drawn::Never { noops: self.recorder.noops() };
        };
        let kind = self.kinds[place];
        let session = self.recorder.session();
        let turn = (session % self.order.len() as u64) as usize;
        let own = u64::from(self.order[turn]);
        let terminals = self.drawing.data.terminals;
        let terminal = Terminal { warehouse: self.warehouses[(own / terminals) as usize], number: own % terminals };
        let now = timestamp(FIRST_US + (session as i64).saturating_mul(1_000_000));
        self.script.clear();
        let before = self.drawing.draws;
        transactions::make(kind, &mut self.drawing, terminal, &now, &mut self.script);
        self.noted.push(self.drawing.draws.since(&before));
        let wait_us = self.waits.is_any().then(|| self.wait_us(kind));
        let actor = (terminal.warehouse - 1) * terminals + terminal.number;
        for (_, operation) in self.script.operations() {
            if let Some(uses) = self.uses.get_mut(operation.statement as usize)
                && operation.verb.control().is_none()
            {
                *uses += 1;
            }
            let row = self.recorder.row(place, *operation, actor, None);
            match wait_us.filter(|_| row.step == 0) {
                Some(think_us) => each(&TraceRow { think_us, ..row }),
                None => each(&row),
            }
        }
        self.recorder.end(place, 1);
        generator::Drawn::Session
    }

    fn take_notes(&mut self) -> Option<RecordBatch> {
        let batch = draws_batch(&self.noted);
        self.noted.clear();
        Some(batch)
    }

    fn variable(&self) -> &[u8] {
        self.script.bytes()
    }

    fn counts(&self) -> &Counts {
        self.recorder.counts()
    }
}
