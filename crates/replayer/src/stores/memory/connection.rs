//! Performs operations, with the injected faults, whatever the vocabulary.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use schemas::digest::StateDigest;
use schemas::isolation::Isolation;
use schemas::vocabulary::{Operation, Request, Vocabulary};

use super::{Inner, Kept, Lies, Room, Shared};
use crate::source::Source;
use crate::stores::url::StoreUrl;
use crate::stores::{Answer, Connection, OperationError, StoreError};

/// What the store holds of one family, and what operations do there.
pub trait State<V: Vocabulary>: Clone + Send + Sized + 'static {
    /// A transaction on it.
    type Transaction: Transaction<V, Self>;

    /// What [`State::count`] counts, in words.
    const COUNTED: &'static str;

    /// The data set of a trace set.
    fn loaded(source: &Source, url: &StoreUrl) -> Result<Self, StoreError>;

    /// Where the store keeps it.
    fn room(inner: &mut Inner) -> &mut Option<Room<Self>>;

    /// How many members or records there are.
    fn count(&self) -> u64;

    /// How many members or records a trace set has.
    fn expected(source: &Source) -> u64;

    /// The digest of the state.
    fn digest(&self, source: &Source, url: &StoreUrl) -> Result<StateDigest, StoreError>;

    /// Why a write cannot be performed, if it cannot.
    #[inline]
    fn refusal(&self, _write: &V::Operation) -> Option<&'static str> {
        None
    }

    /// Whether a transaction has changed what this write changes, and has not ended.
    #[inline]
    fn is_taken(&self, _write: &V::Operation) -> bool {
        false
    }

    /// Performs a write. With `keep_before`, what it changes stays readable as it was before.
    fn write(&mut self, write: &V::Operation, keep_before: bool);

    /// Performs a read; a stale one sees what was there before the last write.
    fn read(&self, read: &V::Operation, stale: bool, answer: &mut Answer);

    /// Whether it can keep what was there before, for reads of the past.
    const KEEPS_PAST: bool = false;

    /// Performs a write at this time. What it changes stays readable for so long.
    fn write_at(&mut self, write: &V::Operation, _now_ns: i64, _keep_ns: i64) {
        self.write(write, false);
    }

    /// Performs a read of what was there at this time.
    fn read_at(&self, read: &V::Operation, _at_ns: i64, answer: &mut Answer) {
        self.read(read, false, answer);
    }
}

/// A transaction that is under way.
pub trait Transaction<V: Vocabulary, S>: Sized + 'static {
    /// Whether there are transactions at all.
    const EXIST: bool;

    /// Begins one at a level of isolation; None if there are none.
    /// With `has_write_locks`, no other one overwrites what it writes until it ends.
    fn begin(state: &mut S, level: Isolation, has_write_locks: bool) -> Option<Self>;

    /// Performs a read.
    fn read(&mut self, state: &S, read: &V::Operation, answer: &mut Answer);

    /// Performs a write. After [`OperationError::Aborted`], the transaction is aborted.
    fn write(&mut self, state: &mut S, write: &V::Operation) -> Result<(), OperationError>;

    /// Ends it. After an error it has not happened.
    fn commit(self, state: &mut S) -> Result<(), OperationError>;

    /// Ends it, as if it had not happened.
    fn abort(self, state: &mut S);
}

/// The transaction of a vocabulary that has none.
pub enum NoTransaction {}

impl<V: Vocabulary, S> Transaction<V, S> for NoTransaction {
    const EXIST: bool = false;

    fn begin(_state: &mut S, _level: Isolation, _has_write_locks: bool) -> Option<NoTransaction> {
        None
    }

    fn read(&mut self, _state: &S, _read: &V::Operation, _answer: &mut Answer) {
        match *self {}
    }

    fn write(&mut self, _state: &mut S, _write: &V::Operation) -> Result<(), OperationError> {
        match *self {}
    }

    fn commit(self, _state: &mut S) -> Result<(), OperationError> {
        match self {}
    }

    fn abort(self, _state: &mut S) {
        match self {}
    }
}

/// SplitMix64: small, and random enough for injected faults.
struct Chance(u64);

impl Chance {
    fn happens(&mut self, probability: f64) -> bool {
        if probability <= 0.0 {
            return false;
        }
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((z ^ (z >> 31)) >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

/// How long a write waits before it looks again whether the transaction has ended that has changed the
/// same record. Only at read uncommitted does a write ever wait.
const TAKEN_PAUSE: Duration = Duration::from_micros(100);

/// The transactions of a vocabulary.
type TransactionOf<V> = <<V as Kept>::State as State<V>>::Transaction;

/// A thread's connection to the store, to what it holds of one family.
pub struct MemoryConnection<V: Kept> {
    shared: Arc<Shared>,
    faults: Faults,
    transaction: Option<TransactionOf<V>>,
}

/// The faults of one connection.
struct Faults {
    lies: Lies,
    chance: Chance,
    /// What a correct store would have answered.
    truth: Answer,
    unknowns: u64,
}

/// An operation cannot be performed yet, since a transaction is in its way.
struct Taken;

impl<V: Kept> MemoryConnection<V> {
    pub(super) fn new(shared: Arc<Shared>, lies: Lies, thread: u32) -> MemoryConnection<V> {
        let chance = Chance(lies.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (thread as u64) << 32);
        let faults = Faults { lies, chance, truth: Answer::default(), unknowns: 0 };
        MemoryConnection { shared, faults, transaction: None }
    }

    /// Ends the transaction that is under way, if there is one, as if it had not happened.
    fn abort_now(&mut self) {
        if let Some(transaction) = self.transaction.take()
            && let Some(room) = V::State::room(&mut self.shared.lock())
        {
            transaction.abort(&mut room.shown);
        }
    }
}

impl<V: Kept> Drop for MemoryConnection<V> {
    /// What a transaction has written whose thread has ended must not stay, nor what is kept for it.
    fn drop(&mut self) {
        self.abort_now();
    }
}

fn not_loaded() -> OperationError {
    OperationError::Failed("nothing is loaded".into())
}

fn injected_error() -> OperationError {
    OperationError::Failed("injected fault (error=)".into())
}

fn injected_unknown() -> OperationError {
    OperationError::Unknown("injected fault (unknown=)".into())
}

impl Faults {
    /// Performs the operation, at the instant at which it takes effect.
    fn take_effect<V: Vocabulary, S: State<V>>(
        &mut self,
        shared: &Shared,
        operation: &V::Operation,
        answer: &mut Answer,
    ) -> Result<Result<(), OperationError>, Taken> {
        let mut inner = shared.lock();
        let Some(room) = S::room(&mut inner) else { return Ok(Err(not_loaded())) };
        if operation.writes() && room.shown.is_taken(operation) {
            return Err(Taken);
        }
        if self.chance.happens(self.lies.error) {
            return Ok(Err(injected_error()));
        }
        if operation.writes() {
            return Ok(self.write(shared, room, operation));
        }
        let stale = self.chance.happens(self.lies.stale);
        let past_ns = self.looks_back();
        match past_ns {
            0 => room.shown.read(operation, stale, answer),
            past_ns => room.shown.read_at(operation, shared.timing.now_ns() - past_ns, answer),
        }
        if stale || past_ns > 0 || room.truth.is_some() {
            self.truth.clear_rows();
            room.truth.as_ref().unwrap_or(&room.shown).read(operation, false, &mut self.truth);
            if self.truth.values != answer.values {
                shared.lies_told.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(Ok(()))
    }

    /// How far back a read sees.
    fn looks_back(&mut self) -> i64 {
        let Lies { lag_ns, invert_ns, .. } = self.lies;
        if invert_ns > 0 && self.chance.happens(0.5) { lag_ns.max(invert_ns) } else { lag_ns }
    }

    fn write<V: Vocabulary, S: State<V>>(
        &mut self,
        shared: &Shared,
        room: &mut Room<S>,
        operation: &V::Operation,
    ) -> Result<(), OperationError> {
        if let Some(why) = room.shown.refusal(operation) {
            return Err(OperationError::Failed(why.into()));
        }
        let unknown = self.chance.happens(self.lies.unknown);
        if unknown {
            self.unknowns += 1;
        }
        if unknown && self.unknowns.is_multiple_of(2) {
            return Err(injected_unknown());
        }
        if let Some(truth) = &mut room.truth {
            truth.write(operation, false);
        }
        if !self.chance.happens(self.lies.lost) {
            match self.lies.keep_ns() {
                0 => room.shown.write(operation, self.lies.stale > 0.0),
                keep_ns => room.shown.write_at(operation, shared.timing.now_ns(), keep_ns),
            }
        }
        match unknown {
            true => Err(injected_unknown()),
            false => Ok(()),
        }
    }

    /// Performs an operation of a transaction. Returns the transaction, unless it has ended.
    fn take_effect_in<V: Kept>(
        &mut self,
        shared: &Shared,
        mut transaction: TransactionOf<V>,
        operation: &V::Operation,
        answer: &mut Answer,
    ) -> (Option<TransactionOf<V>>, Result<(), OperationError>) {
        let mut inner = shared.lock();
        let Some(room) = V::State::room(&mut inner) else { return (None, Err(not_loaded())) };
        if self.chance.happens(self.lies.error) {
            return (Some(transaction), Err(injected_error()));
        }
        if !operation.writes() {
            transaction.read(&room.shown, operation, answer);
            return (Some(transaction), Ok(()));
        }
        match transaction.write(&mut room.shown, operation) {
            Err(OperationError::Aborted(why)) => {
                transaction.abort(&mut room.shown);
                (None, Err(OperationError::Aborted(why)))
            }
            done => (Some(transaction), done),
        }
    }

    /// Commits a transaction. Every second commit of unknown fate has happened.
    fn commit<V: Kept>(&mut self, shared: &Shared, transaction: TransactionOf<V>) -> Result<(), OperationError> {
        let mut inner = shared.lock();
        let Some(room) = V::State::room(&mut inner) else { return Err(not_loaded()) };
        if self.chance.happens(self.lies.error) {
            transaction.abort(&mut room.shown);
            return Err(injected_error());
        }
        if !self.chance.happens(self.lies.unknown) {
            return transaction.commit(&mut room.shown);
        }
        self.unknowns += 1;
        if self.unknowns.is_multiple_of(2) {
            transaction.abort(&mut room.shown);
        } else {
            transaction.commit(&mut room.shown)?;
        }
        Err(injected_unknown())
    }
}

impl<V: Kept> Connection<V> for MemoryConnection<V> {
    async fn execute(&mut self, request: &V::Request, answer: &mut Answer) -> Result<(), OperationError> {
        let operation = request.operation();
        if self.transaction.is_some() {
            return self.execute_in_transaction(operation, answer).await;
        }
        let MemoryConnection { shared, faults, .. } = self;
        let effect = shared.timing.perform(|| faults.take_effect::<V, V::State>(shared, operation, answer));
        let done = match effect.await {
            Ok(done) => done,
            Err(Taken) => return self.execute_later(operation, answer).await,
        };
        if faults.lies.invert_ns > 0 && operation.writes() {
            // Its end comes after that of the last read that does not see it.
            shared.timing.sleep(faults.lies.invert_ns).await;
        }
        done
    }

    async fn begin(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        if self.transaction.is_some() {
            return Err(OperationError::Failed("a transaction is under way already".into()));
        }
        let shared = &self.shared;
        let Some(level) = shared.level else { return Ok(()) };
        let begin = || {
            let mut inner = shared.lock();
            let room = V::State::room(&mut inner).as_mut();
            room.map(|room| Transaction::begin(&mut room.shown, level, shared.has_write_locks))
        };
        self.transaction = shared.timing.perform(begin).await.ok_or_else(not_loaded)?;
        Ok(())
    }

    async fn commit(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        let MemoryConnection { shared, faults, transaction } = self;
        let commit = || match transaction.take() {
            Some(transaction) => faults.commit::<V>(shared, transaction),
            None => Err(OperationError::Failed("no transaction is under way".into())),
        };
        shared.timing.perform(commit).await
    }

    async fn abort(&mut self, _answer: &mut Answer) -> Result<(), OperationError> {
        let shared = self.shared.clone();
        shared.timing.perform(|| self.abort_now()).await;
        Ok(())
    }
}

impl<V: Kept> MemoryConnection<V> {
    async fn execute_in_transaction(
        &mut self,
        operation: &V::Operation,
        answer: &mut Answer,
    ) -> Result<(), OperationError> {
        let MemoryConnection { shared, faults, transaction } = self;
        let perform = || {
            let Some(open) = transaction.take() else { return Ok(()) };
            let (open, done) = faults.take_effect_in::<V>(shared, open, operation, answer);
            *transaction = open;
            done
        };
        shared.timing.perform(perform).await
    }

    /// Tries an operation until no transaction is in its way.
    #[cold]
    async fn execute_later(&mut self, operation: &V::Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let MemoryConnection { shared, faults, .. } = self;
        loop {
            tokio::time::sleep(TAKEN_PAUSE).await;
            let effect = shared.timing.perform(|| faults.take_effect::<V, V::State>(shared, operation, answer));
            if let Ok(done) = effect.await {
                return done;
            }
        }
    }
}
