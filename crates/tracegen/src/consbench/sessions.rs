//! Makes the tests of one fragment, one after the other: a write, and the reads of its burst.
//!
//! Nobody knows when a write will end, so reads begin when it is due. They are spread over the burst, each
//! at a random time of its own slot: no periodic work of a store can hide between them, and no part of
//! the burst is without a read. A write is due at a random time of what the interval leaves, for the same reason.

use schemas::vocabulary::kv::{Operation, TraceRow, Verb};
use schemas::workload::consbench::Tests;

use crate::core::chance::Stream;
use crate::core::counts::Counts;
use crate::core::generator;
use crate::kv::Kv;
use crate::kv::sessions::Sessions as RecordSessions;
use crate::kv::statistics::Tally;

/// The sessions of a fragment.
pub(crate) struct Sessions<'a> {
    records: RecordSessions<'a>,
    tests: Tests,
    all_fields: u64,
    /// When the fragment's first test may begin: fragments begin one after the other.
    first_us: u64,
    chance: Stream,
    /// When the write of the test is due.
    written_us: u64,
    /// Its record.
    record: u64,
    /// The places of both kinds in the mix.
    read: usize,
    write: usize,
}

impl<'a> Sessions<'a> {
    /// The sessions of a fragment, from the first one on.
    pub(crate) fn new(kv: &'a Kv, tests: Tests, fragment: u32) -> Sessions<'a> {
        let spec = kv.spec();
        let (fragments, interval) = (u128::from(spec.common.fragments), u128::from(tests.interval_us));
        let kinds = spec.common.kinds();
        let place = |verb: Verb| kinds.iter().position(|(name, _)| *name == verb.name()).unwrap_or_default();
        Sessions {
            records: RecordSessions::new(spec, kv.space(), fragment),
            tests,
            all_fields: spec.own.data.all_fields(),
            first_us: (interval * u128::from(fragment) / fragments) as u64,
            chance: Stream::new(spec.common.seed, "consbench", fragment),
            written_us: 0,
            record: 0,
            read: place(Verb::Read),
            write: place(Verb::Update),
        }
    }

    /// What is counted of the sessions so far.
    pub(crate) fn tally(&self) -> Tally {
        self.records.tally()
    }

    /// The test of the next session, and its read in the burst; None for the write.
    fn place(&self) -> (u64, Option<u64>) {
        let session = self.records.recorder.session();
        (session / self.tests.sessions(), (session % self.tests.sessions()).checked_sub(1))
    }

    /// A random time of the slot from `from` to `to`.
    fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.chance.below((to - from).max(1))
    }
}

impl generator::Sessions<Operation> for Sessions<'_> {
    fn next_due_us(&mut self) -> Option<u64> {
        let Tests { interval_us, burst_us, reads, .. } = self.tests;
        Some(match self.place() {
            (test, None) => {
                let begin = self.first_us + test * interval_us;
                // The burst ends before the next test begins.
                self.written_us = self.within(begin, begin + (interval_us - burst_us));
                self.written_us
            }
            (_, Some(read)) => {
                let edge = |slot: u64| (u128::from(burst_us) * u128::from(slot) / u128::from(reads)) as u64;
                self.within(self.written_us + edge(read), self.written_us + edge(read + 1))
            }
        })
    }

    fn try_next(&mut self, mut each: impl FnMut(&TraceRow)) -> generator::Drawn {
        let (test, read) = self.place();
        if read.is_none() {
            match self.records.draw_record() {
                Some(drawn) => self.record = drawn.record,
                None => return generator::Drawn::Never { noops: self.records.recorder.noops() },
            }
        }
        // The client of the write is that of the first read, which waits until the write has ended. From test
        // to test another client writes.
        let (place, verb) = if read.is_none() { (self.write, Verb::Update) } else { (self.read, Verb::Read) };
        let client = self.records.client(test + read.unwrap_or_default());
        let row = self.records.row(place, verb, self.record, self.all_fields, 0);
        each(&TraceRow { actor: client, ..row });
        self.records.recorder.end(place, 1);
        generator::Drawn::Session
    }

    fn counts(&self) -> &Counts {
        self.records.recorder.counts()
    }
}
