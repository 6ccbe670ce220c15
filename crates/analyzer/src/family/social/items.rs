//! The items of a fragment during an experiment: every count and list, each with the writes that
//! are not settled yet.

use schemas::social::{Change, CountKind, ListKind, Observation, Operation};

use super::initial::Initial;
use super::names;
use crate::validate::count::Count;
use crate::validate::membership::{List, WrongElement, check_settled};
use crate::validate::{
    CountWrite, ElementWrite, Findings, Interval, ItemRead, Items, Range, SHAPE, States, UnknownId, Violation,
};

/// Items by owner; an owner without writes takes only four bytes.
struct Slots<X> {
    slot_of: Vec<u32>,
    items: Vec<X>,
}

const UNTOUCHED: u32 = u32::MAX;

impl<X> Slots<X> {
    fn new(owners: usize) -> Slots<X> {
        Slots { slot_of: vec![UNTOUCHED; owners], items: Vec::new() }
    }

    fn get(&mut self, owner: usize) -> Option<&mut X> {
        let slot = self.slot_of[owner];
        if slot == UNTOUCHED { None } else { Some(&mut self.items[slot as usize]) }
    }

    fn get_or_insert(&mut self, owner: usize, new: impl FnOnce() -> X) -> &mut X {
        if self.slot_of[owner] == UNTOUCHED {
            self.slot_of[owner] = self.items.len() as u32;
            self.items.push(new());
        }
        &mut self.items[self.slot_of[owner] as usize]
    }
}

/// The items of a fragment.
pub struct SocialItems {
    initial: Initial,
    friend_counts: Slots<Count>,
    pending_counts: Slots<Count>,
    friends: Slots<List>,
    pending: Slots<List>,
    comments: Slots<List>,
    scratch: Vec<i64>,
}

impl SocialItems {
    /// The items of the data set.
    pub fn new(initial: Initial) -> SocialItems {
        let (members, resources) = (initial.members.len(), initial.resources.len());
        SocialItems {
            friend_counts: Slots::new(members),
            pending_counts: Slots::new(members),
            friends: Slots::new(members),
            pending: Slots::new(members),
            comments: Slots::new(resources),
            initial,
            scratch: Vec::new(),
        }
    }

    fn lists(&mut self, kind: ListKind) -> (&mut Slots<List>, &Initial) {
        let lists = match kind {
            ListKind::Friends => &mut self.friends,
            ListKind::Pending => &mut self.pending,
            ListKind::Comments => &mut self.comments,
        };
        (lists, &self.initial)
    }

    /// What a read of a count may return, and the end of the last write that was complete before
    /// the read.
    fn count(&mut self, kind: CountKind, owner: u64, read: Interval, horizon: i64) -> Result<(Range, i64), UnknownId> {
        let index = self.initial.member(owner)?;
        let (counts, initial) = match kind {
            CountKind::FriendCount => (&mut self.friend_counts, &self.initial.friends),
            CountKind::PendingCount => (&mut self.pending_counts, &self.initial.pending),
        };
        Ok(match counts.get(index) {
            Some(count) => (count.acceptable(read, horizon), count.last_end_before(read.start)),
            None => {
                let value = initial.of(index).len() as i64;
                (Range { low: value, high: value }, i64::MIN)
            }
        })
    }

    fn check_list(
        &mut self,
        kind: ListKind,
        owner: u64,
        observed: &[i64],
        read: Interval,
        horizon: i64,
        findings: &mut Findings,
    ) -> Result<(), UnknownId> {
        let Findings { violations, items } = findings;
        let violations_before = violations.len();
        let mut last_end = i64::MIN;
        let index = self.initial.owner(kind, owner)?;
        let mut scratch = std::mem::take(&mut self.scratch);
        let (lists, initial) = self.lists(kind);
        let wrong = |wrong: WrongElement| {
            let States { absent, present } = wrong.acceptable;
            let (low, high) = (i64::from(!absent), i64::from(present));
            let (item, element) = (names::list(kind), Some(wrong.element));
            violations.push(Violation { item, owner, element, observed: wrong.times, low, high });
        };
        match lists.get(index) {
            Some(list) => {
                list.check(observed, read, horizon, &mut scratch, wrong);
                last_end = list.last_end_before(read.start);
            }
            None => check_settled(initial.list(kind).of(index), observed, &mut scratch, wrong),
        }
        self.scratch = scratch;
        items.extend(ItemRead::after(last_end, read.start, violations.len() == violations_before));
        Ok(())
    }

    fn check_top_k(&self, owner: u64, observed: &[i64], violations: &mut Vec<Violation>) -> Result<(), UnknownId> {
        let wall = self.initial.walls.of(self.initial.member(owner)?);
        let expected = wall.len().min(self.initial.top_k);
        for place in 0..expected.max(observed.len()) {
            let should = if place < expected { wall[wall.len() - 1 - place] as i64 } else { -1 };
            let value = observed.get(place).copied().unwrap_or(-1);
            // A value below 0 is not a resource, and does not stand for a missing one.
            if value != should || observed.get(place).is_some_and(|v| *v < 0) {
                let (item, element) = (names::TOP_K, Some(place as i64));
                violations.push(Violation { item, owner, element, observed: value, low: should, high: should });
            }
        }
        Ok(())
    }
}

impl Items<Operation> for SocialItems {
    fn register(&mut self, operation: &Operation, at: Interval, horizon: i64) -> Result<(), UnknownId> {
        for change in operation.changes().iter() {
            match change {
                Change::Count { kind, owner, delta } => {
                    let index = self.initial.member(owner)?;
                    let (counts, initial) = match kind {
                        CountKind::FriendCount => (&mut self.friend_counts, &self.initial.friends),
                        CountKind::PendingCount => (&mut self.pending_counts, &self.initial.pending),
                    };
                    let count = counts.get_or_insert(index, || Count::new(initial.of(index).len() as i64));
                    count.register(CountWrite { at, delta: delta as i64 }, horizon);
                }
                Change::Element { kind, owner, element, present } => {
                    let what = if kind == ListKind::Comments { "comment" } else { "member" };
                    let element = u32::try_from(element).map_err(|_| UnknownId { what, id: element })?;
                    let index = self.initial.owner(kind, owner)?;
                    let (lists, initial) = self.lists(kind);
                    let list = lists.get_or_insert(index, || List::new(initial.list(kind).of(index)));
                    list.register(element, ElementWrite { at, present }, horizon);
                }
            }
        }
        Ok(())
    }

    fn check(
        &mut self,
        operation: &Operation,
        observed: &[i64],
        read: Interval,
        horizon: i64,
        findings: &mut Findings,
    ) -> Result<(), UnknownId> {
        let observations = operation.observations();
        let mut values = observed.iter().copied();
        for observation in observations.iter() {
            let (item, owner, (acceptable, last_end)) = match observation {
                Observation::List { kind, owner } => {
                    return self.check_list(kind, owner, observed, read, horizon, findings);
                }
                Observation::TopK { owner } => {
                    return self.check_top_k(owner, observed, &mut findings.violations);
                }
                Observation::Count { kind, owner } => {
                    (names::count(kind), owner, self.count(kind, owner, read, horizon)?)
                }
                Observation::ResourceCount { owner } => {
                    let resources = self.initial.walls.of(self.initial.member(owner)?).len() as i64;
                    (names::RESOURCE_COUNT, owner, (Range { low: resources, high: resources }, i64::MIN))
                }
            };
            if observed.len() != observations.len() {
                let expected = observations.len() as i64;
                let (item, observed) = (SHAPE, observed.len() as i64);
                let violation = Violation { item, owner, element: None, observed, low: expected, high: expected };
                findings.violations.push(violation);
                return Ok(());
            }
            let value = values.next().unwrap_or_else(|| unreachable!("there are as many values as observations"));
            let is_fresh = acceptable.contains(value);
            if !is_fresh {
                let Range { low, high } = acceptable;
                findings.violations.push(Violation { item, owner, element: None, observed: value, low, high });
            }
            findings.items.extend(ItemRead::after(last_end, read.start, is_fresh));
        }
        Ok(())
    }
}
