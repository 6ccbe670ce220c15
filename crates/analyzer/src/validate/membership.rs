//! Memberships: whether a read may find an element in a list or absent from it, given the writes
//! that add and remove it and when each of them ran.

use super::{FOREVER, Interval};

/// A write that adds an element to a list or removes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementWrite {
    /// When it ran; a write of unknown fate ends at [`FOREVER`].
    pub at: Interval,
    /// True for added.
    pub present: bool,
}

/// The states of an element that a read may find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct States {
    /// It may be absent.
    pub absent: bool,
    /// It may be present.
    pub present: bool,
}

impl States {
    /// Only this state.
    pub fn only(present: bool) -> States {
        States { absent: !present, present }
    }

    /// Whether a read may find this state.
    pub fn allow(self, present: bool) -> bool {
        if present { self.present } else { self.absent }
    }

    fn add(&mut self, present: bool) {
        if present {
            self.present = true;
        } else {
            self.absent = true;
        }
    }

    fn union(self, other: States) -> States {
        States { absent: self.absent || other.absent, present: self.present || other.present }
    }

    fn is_definite(self) -> bool {
        self.absent != self.present
    }
}

/// The states that the read may find, over every order of the writes and the read that agrees
/// with their intervals. They are the states left by the writes that can come last before the
/// read.
///
/// A write that overlaps the read can always come last. A write that ended before the read can if
/// it overlaps or follows every other such write. The read can find the initial state only if no
/// write ended before the read.
pub fn acceptable_states(initial: States, writes: &[ElementWrite], read: Interval) -> States {
    let latest_start = writes.iter().filter(|w| w.at.end < read.start).map(|w| w.at.start).max();
    let mut states = if latest_start.is_none() { initial } else { States::default() };
    for write in writes {
        let last = if write.at.end < read.start {
            latest_start.is_some_and(|start| write.at.end >= start)
        } else {
            write.at.start <= read.end
        };
        if last {
            states.add(write.present);
        }
    }
    states
}

/// An element with writes that are not settled, or with a state that is not definite.
#[derive(Debug, Clone)]
struct Element {
    element: u32,
    settled: States,
    /// From when on it may be absent, and from when on present, for ever, because of a write of
    /// unknown fate.
    free_from: [i64; 2],
    writes: Vec<ElementWrite>,
}

impl Element {
    fn acceptable(&self, read: Interval) -> States {
        let free = States { absent: self.free_from[0] <= read.end, present: self.free_from[1] <= read.end };
        acceptable_states(self.settled, &self.writes, read).union(free)
    }

    /// Settles the writes if all of them ended before the horizon. Everything later starts after
    /// them, so only the states that they may leave still matter. Keeps their last end in
    /// `last_end`.
    fn settle(&mut self, horizon: i64, last_end: &mut i64) {
        if !self.writes.is_empty() && self.writes.iter().all(|w| w.at.end < horizon) {
            let later = Interval { start: horizon, end: horizon };
            self.settled = acceptable_states(self.settled, &self.writes, later);
            *last_end = self.writes.iter().map(|w| w.at.end).fold(*last_end, i64::max);
            self.writes.clear();
        }
    }

    fn is_definite(&self) -> bool {
        self.writes.is_empty() && self.settled.is_definite() && self.free_from == [FOREVER; 2]
    }
}

/// A list during an experiment.
#[derive(Debug, Clone)]
pub(crate) struct List {
    /// The elements that are in the list, ascending. It says nothing about the elements in
    /// `open`.
    settled: Vec<u32>,
    open: Vec<Element>,
    /// The latest end of a settled write.
    last_end: i64,
}

/// An element that is wrong in the answer to a read: listed, missing, or listed more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrongElement {
    pub(crate) element: i64,
    /// How often the read lists it.
    pub(crate) times: i64,
    pub(crate) acceptable: States,
}

impl List {
    pub(crate) fn new(initial: &[u32]) -> List {
        List { settled: initial.to_vec(), open: Vec::new(), last_end: i64::MIN }
    }

    pub(crate) fn register(&mut self, element: u32, write: ElementWrite, horizon: i64) {
        self.settle(horizon);
        let at = match self.open.iter().position(|e| e.element == element) {
            Some(at) => at,
            None => {
                let settled = States::only(self.settled.binary_search(&element).is_ok());
                self.open.push(Element { element, settled, free_from: [FOREVER; 2], writes: Vec::new() });
                self.open.len() - 1
            }
        };
        let open = &mut self.open[at];
        if write.at.end == FOREVER {
            let from = &mut open.free_from[write.present as usize];
            *from = write.at.start.min(*from);
        } else {
            open.writes.push(write);
        }
    }

    /// Moves elements whose state is definite from the horizon on back to the settled list.
    fn settle(&mut self, horizon: i64) {
        let List { settled, open, last_end } = self;
        open.retain_mut(|element| {
            element.settle(horizon, last_end);
            if !element.is_definite() {
                return true;
            }
            match (settled.binary_search(&element.element), element.settled.present) {
                (Ok(at), false) => {
                    settled.remove(at);
                }
                (Err(at), true) => settled.insert(at, element.element),
                _ => {}
            }
            false
        });
    }

    /// The end of the last write of any element that was complete before `start`, which is at or
    /// after the horizon; the smallest number if there is none.
    pub(crate) fn last_end_before(&self, start: i64) -> i64 {
        let ends = self.open.iter().flat_map(|element| &element.writes).map(|write| write.at.end);
        ends.filter(|end| *end < start).fold(self.last_end, i64::max)
    }

    /// Checks a read that starts at or after the horizon; see [`check_settled`].
    pub(crate) fn check(
        &mut self,
        observed: &[i64],
        read: Interval,
        horizon: i64,
        scratch: &mut Vec<i64>,
        mut wrong: impl FnMut(WrongElement),
    ) {
        self.settle(horizon);
        if self.open.is_empty() {
            return check_settled(&self.settled, observed, scratch, wrong);
        }
        let observed = ascending(observed, scratch);
        for open in &self.open {
            let times = occurrences(observed, open.element as i64);
            let acceptable = open.acceptable(read);
            if times > 1 || !acceptable.allow(times == 1) {
                wrong(WrongElement { element: open.element as i64, times, acceptable });
            }
        }
        compare(&self.settled, observed, |difference| {
            if !self.open.iter().any(|open| open.element as i64 == difference.element) {
                wrong(difference);
            }
        });
    }
}

/// Checks a read of a list in which every element is definite. `scratch` is used to sort the
/// observed values if they are not in ascending order.
pub(crate) fn check_settled(
    settled: &[u32],
    observed: &[i64],
    scratch: &mut Vec<i64>,
    wrong: impl FnMut(WrongElement),
) {
    if same(settled, observed) {
        return;
    }
    let observed = ascending(observed, scratch);
    if !same(settled, observed) {
        compare(settled, observed, wrong);
    }
}

fn same(settled: &[u32], observed: &[i64]) -> bool {
    settled.len() == observed.len() && settled.iter().zip(observed).all(|(s, o)| *s as i64 == *o)
}

fn ascending<'a>(observed: &'a [i64], scratch: &'a mut Vec<i64>) -> &'a [i64] {
    if observed.is_sorted() {
        return observed;
    }
    scratch.clear();
    scratch.extend_from_slice(observed);
    scratch.sort_unstable();
    scratch
}

fn occurrences(ascending: &[i64], element: i64) -> i64 {
    let from = ascending.partition_point(|o| *o < element);
    ascending[from..].iter().take_while(|o| **o == element).count() as i64
}

/// Calls `wrong` for each element that is in only one of two ascending lists, or more than once
/// in the observed one.
fn compare(settled: &[u32], observed: &[i64], mut wrong: impl FnMut(WrongElement)) {
    let mut settled = settled.iter().map(|s| *s as i64).peekable();
    let missing = |element| WrongElement { element, times: 0, acceptable: States::only(true) };
    for group in observed.chunk_by(|a, b| a == b) {
        let (element, times) = (group[0], group.len() as i64);
        while let Some(absent) = settled.next_if(|s| *s < element) {
            wrong(missing(absent));
        }
        let expected = settled.next_if_eq(&element).is_some();
        if !expected || times > 1 {
            wrong(WrongElement { element, times, acceptable: States::only(expected) });
        }
    }
    settled.for_each(|absent| wrong(missing(absent)));
}
