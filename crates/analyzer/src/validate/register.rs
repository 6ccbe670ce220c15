//! Registers: whether a read may return the value of a write, given all writes of the register and
//! when each of them ran.
//!
//! A register holds what was written into it last. Every write writes a value of its own, so a read
//! tells whose value it saw. A record is a row of registers that are written together: its fields,
//! and whether the record exists.

use std::collections::BTreeMap;

use super::{FOREVER, Interval};

/// The place of the register that says whether the record exists. Its value is 1 or 0: what a write
/// of any value but 0 leaves, and what a write of 0 leaves.
pub const EXISTENCE: u32 = u64::BITS - 1;

/// A write of some registers of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterWrite {
    /// When it ran; a write of unknown fate ends at [`FOREVER`].
    pub at: Interval,
    /// The registers that it writes: a bit for each place.
    pub places: u64,
    /// What it writes into all of them.
    pub value: i64,
}

impl RegisterWrite {
    fn writes(&self, place: u32) -> bool {
        self.places >> place & 1 == 1
    }

    /// Whether it can be the last write of a register before the read. `newest` is the
    /// [`newest_before`] the read.
    ///
    /// It cannot if it starts after the read, or if another write lies wholly between the two. The
    /// newest write is such a write if any is: it starts last of those that ended before the read.
    fn can_be_last(&self, newest: Option<&RegisterWrite>, read: Interval) -> bool {
        self.at.start <= read.end && newest.is_none_or(|newest| self.at.end >= newest.at.start)
    }
}

/// Of the writes of a register that ended before `start`, the one that started last. A read from
/// `start` on cannot return what it has overwritten.
pub fn newest_before(writes: &[RegisterWrite], place: u32, start: i64) -> Option<&RegisterWrite> {
    writes.iter().filter(|write| write.writes(place) && write.at.end < start).max_by_key(|write| write.at.start)
}

/// Whether the read may return this value of a register, over every order of the writes and the read
/// that agrees with their intervals. The initial value was written before everything else; None if
/// there is none.
pub fn may_return(initial: Option<i64>, writes: &[RegisterWrite], place: u32, read: Interval, value: i64) -> bool {
    let newest = newest_before(writes, place, read.start);
    newest.is_none() && initial == Some(value)
        || writes
            .iter()
            .any(|write| write.writes(place) && content(place, write.value) == value && write.can_be_last(newest, read))
}

/// What a write of this value leaves in the register at a place.
fn content(place: u32, value: i64) -> i64 {
    if place == EXISTENCE { i64::from(value != 0) } else { value }
}

/// The places of a mask, in ascending order.
pub(crate) fn places(mask: u64) -> impl Iterator<Item = u32> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let place = rest.trailing_zeros();
            rest &= rest - 1;
            place
        })
    })
}

/// The registers of a record during an experiment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registers {
    /// The writes that a later read may still return, and some that it may not.
    writes: Vec<RegisterWrite>,
    /// What few records have.
    rare: Option<Box<Rare>>,
    /// From when on the record may be absent for another reason than that it was not inserted yet: the first
    /// start of a delete, or the smallest number if it was written before the experiment.
    gone_from: Option<i64>,
}

/// Writes that are looked up by their value, since a popular record may have very many of them.
#[derive(Debug, Clone, Default)]
struct Rare {
    /// The writes of unknown fate, by place and content: the earliest start of each. They overwrite
    /// nothing, and every read from their start on may return them.
    unknown: BTreeMap<(u32, i64), i64>,
    earlier: Earlier,
}

/// Writes before the experiment that may have run in any order. Each may have been the last one.
#[derive(Debug, Clone, Default)]
struct Earlier {
    /// The registers that they wrote.
    places: u64,
    /// The value and the places of each write of fields, ascending.
    writes: Vec<(i64, u64)>,
    /// Whether the record may be absent, and whether it may be present.
    existence: [bool; 2],
    /// Of the registers that they wrote, those that may still have their initial value, because the
    /// writes may have been rolled back.
    initial: u64,
}

impl Earlier {
    fn left(&self, place: u32, content: i64) -> bool {
        if place == EXISTENCE {
            return self.existence[usize::from(content != 0)];
        }
        let found = self.writes.binary_search_by_key(&content, |(value, _)| *value);
        found.is_ok_and(|at| self.writes[at].1 >> place & 1 == 1)
    }
}

impl Registers {
    /// Whether the record may have been absent at this time for another reason than that it was not inserted
    /// yet.
    pub(crate) fn may_be_gone(&self, at: i64) -> bool {
        self.gone_from.is_some_and(|from| from <= at)
    }

    /// Registers a write of the experiment. No later read starts before the horizon.
    pub(crate) fn register(&mut self, write: RegisterWrite, horizon: i64) {
        if write.value == 0 || write.at.end < 0 {
            let from = if write.at.end < 0 { i64::MIN } else { write.at.start };
            self.gone_from = Some(self.gone_from.map_or(from, |before| before.min(from)));
        }
        if write.at.end == FOREVER {
            let unknown = &mut self.rare.get_or_insert_default().unknown;
            for place in places(write.places) {
                let start = unknown.entry((place, content(place, write.value))).or_insert(FOREVER);
                *start = write.at.start.min(*start);
            }
            return;
        }
        let (used, room) = (self.writes.len(), self.writes.capacity());
        if used > 0 && used == room {
            self.prune(horizon);
            if self.writes.len() > room / 2 {
                self.writes.reserve(room);
            }
        } else if room == 0 {
            // Most records of an insert are never written again.
            self.writes.reserve_exact(1);
        }
        self.writes.push(write);
    }

    /// Registers a write before the experiment. It may have run at the same time as any other one
    /// that is registered so.
    pub(crate) fn register_earlier(&mut self, places: u64, value: i64) {
        self.gone_from = Some(i64::MIN);
        let earlier = &mut self.rare.get_or_insert_default().earlier;
        earlier.places |= places;
        if places >> EXISTENCE & 1 == 1 {
            earlier.existence[usize::from(value != 0)] = true;
        }
        let fields = places & !(1 << EXISTENCE);
        if fields != 0 {
            // Values grow with the place in the trace, so this is nearly always at the end.
            match earlier.writes.binary_search_by_key(&value, |(value, _)| *value) {
                Ok(at) => earlier.writes[at].1 |= fields,
                Err(at) => earlier.writes.insert(at, (value, fields)),
            }
        }
    }

    /// The writes before the experiment of these registers may have been rolled back, each of them.
    /// `exists` says whether the record existed initially.
    pub(crate) fn may_be_initial(&mut self, places: u64, exists: bool) {
        let earlier = &mut self.rare.get_or_insert_default().earlier;
        earlier.initial |= places & !(1 << EXISTENCE);
        if places >> EXISTENCE & 1 == 1 {
            earlier.existence[usize::from(exists)] = true;
        }
    }

    /// Of the contents that the writes before the experiment may have left in a register, only this one
    /// is possible. A content that they cannot have left changes nothing.
    pub(crate) fn began_with(&mut self, place: u32, content: i64) {
        let Some(rare) = &mut self.rare else { return };
        let earlier = &mut rare.earlier;
        let is_initial = place != EXISTENCE && content == 0 && earlier.initial >> place & 1 == 1;
        if earlier.places >> place & 1 == 0 || !(is_initial || earlier.left(place, content)) {
            return;
        }
        if !is_initial {
            earlier.initial &= !(1 << place);
        }
        if place == EXISTENCE {
            earlier.existence = [content == 0, content != 0];
            return;
        }
        for (value, places) in &mut earlier.writes {
            if *value != content {
                *places &= !(1 << place);
            }
        }
        earlier.writes.retain(|(_, places)| *places != 0);
    }

    /// Drops the writes that no read from the horizon on may return: all their registers were
    /// overwritten by writes that ended before. Of each register the newest of these stays, so that
    /// what [`newest_before`] and [`Registers::last_end_before`] find does not change.
    fn prune(&mut self, horizon: i64) {
        let mut newest = [i64::MIN; u64::BITS as usize];
        let mut settled = 0;
        for write in self.writes.iter().filter(|write| write.at.end < horizon) {
            settled |= write.places;
            for place in places(write.places) {
                newest[place as usize] = newest[place as usize].max(write.at.start);
            }
        }
        self.writes.retain(|write| places(write.places).any(|place| write.at.end >= newest[place as usize]));
        if let Some(rare) = &mut self.rare
            && rare.earlier.places & !settled == 0
        {
            rare.earlier = Earlier::default();
        }
    }

    /// Whether the read may return this content of a register. The initial content is None if the
    /// record had none.
    #[inline]
    pub(crate) fn may_return(&self, initial: Option<i64>, place: u32, read: Interval, value: i64) -> bool {
        let Some(rare) = &self.rare else { return may_return(initial, &self.writes, place, read, value) };
        let was_written_earlier = rare.earlier.places >> place & 1 == 1;
        let is_gone = was_written_earlier && rare.earlier.initial >> place & 1 == 0;
        let initial = if is_gone { None } else { initial };
        may_return(initial, &self.writes, place, read, value)
            || rare.unknown.get(&(place, value)).is_some_and(|start| *start <= read.end)
            || was_written_earlier && rare.earlier.left(place, value) && self.newest_before(place, read.start).is_none()
    }

    /// [`newest_before`].
    pub(crate) fn newest_before(&self, place: u32, start: i64) -> Option<&RegisterWrite> {
        newest_before(&self.writes, place, start)
    }

    /// The end of the last write of any of these registers that was complete before `start`; the
    /// smallest number if there is none.
    pub(crate) fn last_end_before(&self, places: u64, start: i64) -> i64 {
        let ended = self.writes.iter().filter(|write| write.places & places != 0 && write.at.end < start);
        ended.map(|write| write.at.end).max().unwrap_or(i64::MIN)
    }

    /// How many writes are kept.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        self.writes.len()
    }
}
