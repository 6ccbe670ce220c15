//! Puts operations into sessions: gives each row its envelope, and counts.

use schemas::spec::Spec;
use schemas::trace::TraceRow;
use schemas::vocabulary::{Control, Operation, Vocabulary};

use super::chance::Stream;
use super::counts::Counts;
use super::delays::Delays;
use super::generator::Drawn;

/// The sessions of a fragment as far as they are made.
pub struct Recorder {
    think_time: Delays,
    inter_arrival_time: Delays,
    /// The session that is being made.
    session: u64,
    /// Its operations so far.
    done: usize,
    /// The step that began the transaction that is open.
    txn: Option<u16>,
    /// Whether the last row began a transaction.
    began: bool,
    /// No-operations since the last session.
    noops: u32,
    counts: Counts,
}

impl Recorder {
    /// No session is made yet.
    pub fn new<V: Vocabulary>(spec: &Spec, fragment: u32) -> Recorder {
        let stream = |purpose| Stream::new(spec.seed, purpose, fragment);
        Recorder {
            think_time: Delays::new(spec.think_time, stream("think time")),
            inter_arrival_time: Delays::new(spec.inter_arrival_time, stream("inter-arrival time")),
            session: 0,
            done: 0,
            txn: None,
            began: false,
            noops: 0,
            counts: Counts::new(spec.kinds().len(), V::KINDS.len()),
        }
    }

    /// The number of the session that is being made.
    pub fn session(&self) -> u64 {
        self.session
    }

    /// The step of the next row.
    pub fn step(&self) -> u16 {
        self.done as u16
    }

    /// The next row of the session, which is of the kind at this place of the mix.
    pub fn row<O: Operation>(&mut self, place: usize, operation: O, actor: u64, after: Option<u64>) -> TraceRow<O> {
        let control = operation.control();
        let (noops, think_us) = match self.done {
            0 => (self.noops, self.inter_arrival_time.draw_us()),
            // A client thinks between operations on data, as it does without transactions.
            _ if self.began || control.is_some() => (0, 0),
            _ => (0, self.think_time.draw_us()),
        };
        let row = TraceRow::plain(self.session, self.done as u16, operation, actor);
        self.began = control == Some(Control::Begin);
        if self.began {
            self.txn = Some(self.done as u16);
        }
        let txn = self.txn;
        if matches!(control, Some(Control::Commit | Control::Abort)) {
            self.txn = None;
        }
        self.done += 1;
        self.counts.operations[operation.code() as usize] += 1;
        TraceRow { kind: place as u8, noops, think_us, after, txn, ..row }
    }

    /// Ends the session if it has an operation, and begins the next one. Otherwise it was a
    /// no-operation, and the session is still to be made. `steps` is the number of operations that
    /// a session of this kind has if it does not end early.
    pub fn end(&mut self, place: usize, steps: usize) -> bool {
        if self.done == 0 {
            self.counts.noops[place] += 1;
            self.noops += 1;
            return false;
        }
        self.counts.sessions[place] += 1;
        self.counts.ended_early[place] += (self.done < steps) as u64;
        (self.session, self.done, self.noops) = (self.session + 1, 0, 0);
        true
    }

    /// The result for an actor who can do nothing of the mix.
    pub fn nothing(&self) -> Drawn {
        Drawn::Nothing { noops: self.noops }
    }

    /// No-operations since the last session.
    pub fn noops(&self) -> u32 {
        self.noops
    }

    /// The totals over the sessions so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }
}
