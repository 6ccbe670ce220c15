//! Searches the smallest cycle of a class, and tells the transactions of an anomaly.

use schemas::anomalies::{
    Anomalies, Class, Dependency, Version, Witness, WitnessLink, WitnessOperation, WitnessTransaction,
};

use super::classify::{place, step, vertices};
use super::graph::{Graph, Kind};
use super::window::{Role, Window};
use super::{Act, Event};

/// The edges that a search may follow in one check of the window. It looks for witnesses only; no count
/// depends on it.
const EDGES_MAX: u32 = 1 << 18;

/// No cycle is shorter.
const SHORTEST: usize = 2;

/// A breadth-first search that keeps its memory.
#[derive(Default)]
pub(super) struct Search {
    /// In which search a vertex was found last, and from where.
    found_in: Vec<(u32, u32)>,
    number: u32,
    queue: Vec<u32>,
}

impl Search {
    /// Looks for a shorter cycle of a class than the known one, through these transactions.
    #[allow(clippy::too_many_arguments, reason = "the parts of a classifier, borrowed one by one")]
    pub(super) fn cycles(
        &mut self,
        class: Class,
        window: &Window,
        graph: &Graph,
        component: &[u32],
        candidates: impl Iterator<Item = u32>,
        fragment: u32,
        found: &mut Anomalies,
    ) {
        let mut shortest = found.witness(class).map_or(usize::MAX, |witness| witness.transactions.len());
        let mut left = EDGES_MAX;
        for candidate in candidates {
            for root in vertices(class, candidate) {
                if shortest <= SHORTEST || left == 0 {
                    return;
                }
                let stays = |from: u32, to: u32| component[from as usize] == component[to as usize];
                let path = self.path(class, graph, root, shortest, &mut left, stays, |vertex| vertex == root);
                if let Some(path) = path {
                    shortest = path.len() - 1;
                    found.keep(of_path(window, graph, class, &path, fragment));
                }
            }
        }
    }

    /// Looks for the shortest way from one of these transactions to one that had ended before.
    pub(super) fn stale(
        &mut self,
        window: &Window,
        graph: &Graph,
        candidates: impl Iterator<Item = u32>,
        fragment: u32,
        found: &mut Anomalies,
    ) {
        let class = Class::StaleTransaction;
        let mut shortest = found.witness(class).map_or(usize::MAX, |witness| witness.transactions.len());
        let mut left = EDGES_MAX;
        for root in candidates {
            if shortest <= SHORTEST || left == 0 {
                return;
            }
            let start_ns = window.nodes[root as usize].transaction.start_ns;
            let had_ended = |vertex: u32| window.nodes[vertex as usize].settled_ns() < start_ns;
            if let Some(path) = self.path(class, graph, root, shortest, &mut left, |_, _| true, had_ended) {
                shortest = path.len();
                found.keep(of_path(window, graph, class, &path, fragment));
            }
        }
    }

    /// The shortest path in the graph of a class from a vertex, by at least one edge, to one where it
    /// ends. Only paths of fewer than `shorter_than` vertices besides the last one count.
    #[allow(clippy::too_many_arguments, reason = "what a search is about")]
    fn path(
        &mut self,
        class: Class,
        graph: &Graph,
        root: u32,
        shorter_than: usize,
        left: &mut u32,
        stays: impl Fn(u32, u32) -> bool,
        ends: impl Fn(u32) -> bool,
    ) -> Option<Vec<u32>> {
        self.found_in.resize(self.found_in.len().max(2 * graph.len()), (0, 0));
        self.number += 1;
        self.queue.clear();
        self.queue.push(root);
        // Where the vertices begin that are one step farther than those before.
        let (mut at, mut depth, mut next_depth) = (0, 1, 1);
        while let Some(vertex) = self.queue.get(at).copied() {
            if at == next_depth {
                (depth, next_depth) = (depth + 1, self.queue.len());
            }
            if depth >= shorter_than {
                return None;
            }
            at += 1;
            let from = place(class, vertex);
            for edge in graph.edges(from) {
                *left = left.checked_sub(1)?;
                let Some(target) = step(class, vertex, *edge).filter(|_| stays(from, edge.target())) else { continue };
                if ends(target) {
                    let mut path = vec![target, vertex];
                    while path.last() != Some(&root) {
                        let last = *path.last()?;
                        path.push(self.found_in[last as usize].1);
                    }
                    path.reverse();
                    return Some(path);
                }
                let known = &mut self.found_in[target as usize];
                if known.0 != self.number && target != root {
                    *known = (self.number, vertex);
                    self.queue.push(target);
                }
            }
        }
        None
    }
}

/// The witness of a path: of a cycle if it ends where it began, else of one with the order of time.
fn of_path(window: &Window, graph: &Graph, class: Class, path: &[u32], fragment: u32) -> Witness {
    let is_cycle = path.first() == path.last();
    let count = if is_cycle { path.len() - 1 } else { path.len() };
    let mut path = path.to_vec();
    if is_cycle {
        // A cycle is told from the transaction that began first.
        path.truncate(count);
        let start_of = |vertex: &u32| window.nodes[place(class, *vertex) as usize].transaction.start_ns;
        let first = path.iter().enumerate().min_by_key(|(_, vertex)| start_of(vertex)).map_or(0, |(at, _)| at);
        path.rotate_left(first);
        path.push(path[0]);
    }
    let places: Vec<usize> = path[..count].iter().map(|vertex| place(class, *vertex) as usize).collect();
    let mut links = Vec::new();
    for (from, pair) in path.windows(2).enumerate() {
        let target = place(class, pair[1]);
        let edges = graph.edges(place(class, pair[0])).iter().filter(|edge| edge.target() == target);
        let kinds = edges.filter(|edge| step(class, pair[0], **edge) == Some(pair[1])).map(|edge| edge.kind());
        let Some(kind) = kinds.min_by_key(|kind| *kind as u8) else { continue };
        let (why, version) = link(window, places[from], target as usize, kind);
        links.push(WitnessLink { from, to: (from + 1) % count, why, version });
    }
    if !is_cycle {
        links.push(WitnessLink { from: count - 1, to: 0, why: Dependency::EndedBefore, version: None });
    }
    tell(window, class, &places, links, fragment)
}

/// What an edge is about.
fn link(window: &Window, from: usize, to: usize, kind: Kind) -> (Dependency, Option<Version>) {
    let target = window.base + to as u64;
    let (why, role) = match kind {
        Kind::Overwrote => (Dependency::Overwrote, Role::Write),
        Kind::Read => (Dependency::Read, Role::Write),
        Kind::OverwroteRead => (Dependency::OverwroteRead, Role::Read),
    };
    let mut accesses = window.events_of(from).map(|number| window.access(number)).filter(|one| one.role == role);
    let about = accesses.find_map(|access| {
        let version = window.version(access.version);
        let list = if kind == Kind::Read { version.readers } else { version.overwriters };
        let mut events = window.list(list);
        events.find(|number| window.access(*number).node == target).map(|number| version_of(window.event(number)))
    });
    (why, about)
}

/// Two transactions, and the event of the second that has to do with a version of the first.
pub(super) fn of_pair(
    window: &Window,
    class: Class,
    places: [usize; 2],
    number: u64,
    why: Dependency,
    fragment: u32,
) -> Witness {
    let version = Some(version_of(window.event(number)));
    tell(window, class, &places, vec![WitnessLink { from: 0, to: 1, why, version }], fragment)
}

/// A transaction that saw an item change, with those who changed it. None if there is no such item.
pub(super) fn of_fuzzy_read(window: &Window, own: usize, fragment: u32) -> Option<Witness> {
    let events: Vec<u64> = window.events_of(own).collect();
    // A later read that saw another version of an item than the event before.
    let (index, before) = events.iter().enumerate().find_map(|(index, number)| {
        let event = window.event(*number);
        let before = events[..index].iter().rev().map(|number| window.event(*number));
        let before = before.into_iter().find(|before| before.item == event.item)?;
        let is_read = window.access(*number).role == Role::Read || window.access(*number).role == Role::Overwrite;
        (is_read && before.version != event.version).then_some((index, before))
    })?;
    let event = window.event(events[index]);
    let (mut places, mut links) = (vec![own], Vec::new());
    for seen in [before, event] {
        let number = events.iter().find(|number| std::ptr::eq(window.event(**number), seen))?;
        let access = window.access(*number);
        if !matches!(access.role, Role::Read | Role::Overwrite) {
            continue;
        }
        if let Some(writer) = window.place(window.version(access.version).writer).filter(|writer| *writer != own) {
            let from = places.len();
            places.push(writer);
            links.push(WitnessLink { from, to: 0, why: Dependency::Read, version: Some(version_of(seen)) });
        }
    }
    let mut witness = tell(window, Class::FuzzyRead, &places, links, fragment);
    // The item is the one that changed, also where its writers are not known any more.
    for (one, place) in witness.transactions.iter_mut().zip(&places) {
        one.operations = operations(window, *place, |event| event.item == before.item);
    }
    Some(witness)
}

fn version_of(event: &Event) -> Version {
    Version { owner: event.item.owner(), element: event.item.element(), write: event.version }
}

fn tell(window: &Window, class: Class, places: &[usize], links: Vec<WitnessLink>, fragment: u32) -> Witness {
    let is_told = |event: &Event| {
        let version = version_of(event);
        links
            .iter()
            .flat_map(|link| link.version)
            .any(|about| (about.owner, about.element) == (version.owner, version.element))
    };
    let transactions = places.iter().map(|place| {
        let transaction = window.nodes[*place].transaction;
        WitnessTransaction {
            session: transaction.session,
            txn: transaction.txn,
            try_number: transaction.try_number,
            thread: transaction.thread,
            start_ns: transaction.start_ns,
            end_ns: transaction.end_ns,
            fate: transaction.fate,
            operations: operations(window, *place, is_told),
        }
    });
    let transactions = transactions.collect();
    Witness { class, fragment, transactions, links }
}

/// At most so many operations of a transaction are told.
const TOLD_MAX: usize = 32;

fn operations(window: &Window, place: usize, is_told: impl Fn(&Event) -> bool) -> Vec<WitnessOperation> {
    let events = window.events_of(place).map(|number| window.event(number)).filter(|event| is_told(event));
    let told = events.take(TOLD_MAX).map(|event| WitnessOperation {
        step: event.step,
        start_ns: event.start_ns,
        end_ns: event.end_ns,
        writes: event.act != Act::Read,
        version: version_of(event),
    });
    told.collect()
}
