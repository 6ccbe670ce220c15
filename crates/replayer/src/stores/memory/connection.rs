//! Performs operations, with the injected faults, whatever the vocabulary.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use schemas::digest::StateDigest;
use schemas::vocabulary::{Operation, Vocabulary};

use super::{Inner, Lies, Room, Shared};
use crate::source::Source;
use crate::stores::url::StoreUrl;
use crate::stores::{Answer, Connection, OperationError, StoreError};

/// What the store holds of one family, and what operations do there.
pub trait State<V: Vocabulary>: Clone + Send + Sized + 'static {
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

    /// Performs a write. With `keep_before`, what it changes stays readable as it was before.
    fn write(&mut self, write: &V::Operation, keep_before: bool);

    /// Performs a read; a stale one sees what was there before the last write.
    fn read(&self, read: &V::Operation, stale: bool, answer: &mut Answer);
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

/// A thread's connection to the store, to what it holds of one family.
pub struct MemoryConnection {
    shared: Arc<Shared>,
    faults: Faults,
}

/// The faults of one connection.
struct Faults {
    lies: Lies,
    chance: Chance,
    /// What a correct store would have answered.
    truth: Answer,
    unknowns: u64,
}

impl MemoryConnection {
    pub(super) fn new(shared: Arc<Shared>, lies: Lies, thread: u32) -> MemoryConnection {
        let chance = Chance(lies.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (thread as u64) << 32);
        MemoryConnection { shared, faults: Faults { lies, chance, truth: Answer::default(), unknowns: 0 } }
    }
}

impl Faults {
    /// Performs the operation, at the instant at which it takes effect.
    fn take_effect<V: Vocabulary, S: State<V>>(
        &mut self,
        shared: &Shared,
        operation: &V::Operation,
        answer: &mut Answer,
    ) -> Result<(), OperationError> {
        let mut inner = shared.lock();
        let Some(room) = S::room(&mut inner) else {
            return Err(OperationError::Failed("nothing is loaded".into()));
        };
        if self.chance.happens(self.lies.error) {
            return Err(OperationError::Failed("injected fault (error=)".into()));
        }
        if operation.writes() {
            return self.write(room, operation);
        }
        let stale = self.chance.happens(self.lies.stale);
        room.shown.read(operation, stale, answer);
        if stale || room.truth.is_some() {
            self.truth.clear_rows();
            room.truth.as_ref().unwrap_or(&room.shown).read(operation, false, &mut self.truth);
            if self.truth.values != answer.values {
                shared.lies_told.fetch_add(1, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn write<V: Vocabulary, S: State<V>>(
        &mut self,
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
            return Err(OperationError::Unknown("injected fault (unknown=)".into()));
        }
        if let Some(truth) = &mut room.truth {
            truth.write(operation, false);
        }
        if !self.chance.happens(self.lies.lost) {
            room.shown.write(operation, self.lies.stale > 0.0);
        }
        match unknown {
            true => Err(OperationError::Unknown("injected fault (unknown=)".into())),
            false => Ok(()),
        }
    }
}

impl<V: super::Kept> Connection<V> for MemoryConnection {
    async fn execute(&mut self, operation: &V::Operation, answer: &mut Answer) -> Result<(), OperationError> {
        let MemoryConnection { shared, faults } = self;
        shared.timing.perform(|| faults.take_effect::<V, V::State>(shared, operation, answer)).await
    }
}
