//! The graph of the transactions in the window, and its strongly connected components.

use super::window::{Held, Role, Saw, Window};

/// Why the target of an edge comes after its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// It read and overwrote what the source had written.
    Overwrote = 0,
    /// It read what the source had written.
    Read = 1,
    /// It overwrote what the source had read.
    OverwroteRead = 2,
}

/// An edge: its target and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edge(u32);

impl Edge {
    fn new(target: usize, kind: Kind) -> Edge {
        Edge((target as u32) << 2 | kind as u32)
    }

    pub(super) fn target(self) -> u32 {
        self.0 >> 2
    }

    pub(super) fn kind(self) -> Kind {
        match self.0 & 3 {
            0 => Kind::Overwrote,
            1 => Kind::Read,
            _ => Kind::OverwroteRead,
        }
    }
}

/// If more transactions than this overwrote the same version, those who only read it have edges to some
/// of them. All of them are lost updates, and the level does not depend on more.
const OVERWRITERS_MAX: usize = 8;

/// How long a list of overwriters is searched for those that count as committed.
const SEARCHED_MAX: usize = 64;

/// The edges of the transactions that count as committed. A vertex is a place in the window.
#[derive(Default)]
pub(super) struct Graph {
    begins: Vec<u32>,
    edges: Vec<Edge>,
}

impl Graph {
    /// How many vertices there are.
    pub(super) fn len(&self) -> usize {
        self.begins.len().saturating_sub(1)
    }

    /// The edges from a vertex.
    pub(super) fn edges(&self, vertex: u32) -> &[Edge] {
        let at = vertex as usize;
        &self.edges[self.begins[at] as usize..self.begins[at + 1] as usize]
    }

    pub(super) fn build(&mut self, window: &Window) {
        self.begins.clear();
        self.edges.clear();
        for place in 0..window.len() {
            self.begins.push(self.edges.len() as u32);
            if !window.is_active(place) {
                continue;
            }
            for number in window.events_of(place) {
                let access = window.access(number);
                match access.role {
                    Role::Write => {
                        let version = window.version(access.version);
                        if version.writer == access.node {
                            self.add_after_write(window, place, version);
                        }
                    }
                    Role::Read => {
                        let version = window.version(access.version);
                        // What a rolled back try wrote was not overwritten.
                        if window.saw(version, window.event(number)) == Saw::Written {
                            let overwriters = active(window, place, version, version.overwriters, SEARCHED_MAX);
                            let overwriters = overwriters.take(OVERWRITERS_MAX);
                            self.edges.extend(overwriters.map(|target| Edge::new(target, Kind::OverwroteRead)));
                        }
                    }
                    // Who else overwrote the same version comes before or after; it is a lost update.
                    Role::Overwrite | Role::None => {}
                }
            }
        }
        self.begins.push(self.edges.len() as u32);
    }

    fn add_after_write(&mut self, window: &Window, place: usize, version: &Held) {
        for (list, kind) in [(version.overwriters, Kind::Overwrote), (version.readers, Kind::Read)] {
            let targets = active(window, place, version, list, usize::MAX);
            self.edges.extend(targets.map(|target| Edge::new(target, kind)));
        }
    }
}

/// The other transactions of a version's list that count as committed, and saw what the writer wrote, and not
/// what another try did. Only `searched` members of the list are looked at.
fn active<'a>(
    window: &'a Window,
    own: usize,
    version: &'a Held,
    list: u64,
    searched: usize,
) -> impl Iterator<Item = usize> + 'a {
    window.list(list).take(searched).filter_map(move |number| {
        let place = window.place(window.access(number).node)?;
        let is_other = place != own && window.is_active(place);
        (is_other && window.saw(version, window.event(number)) == Saw::Written).then_some(place)
    })
}

/// A vertex whose component is known.
const DONE: u32 = u32::MAX;

/// Finds strongly connected components (Tarjan's algorithm) with stacks of its own: a component may have
/// millions of vertices.
#[derive(Default)]
pub(super) struct Components {
    /// The order in which vertices were found, from 1; 0 for a vertex that was not found yet.
    order: Vec<u32>,
    /// The first vertex on the path that can be reached.
    low: Vec<u32>,
    path: Vec<u32>,
    /// The vertices under way, each with the number of its edges that have been followed.
    calls: Vec<(u32, u32)>,
    found: u32,
}

impl Components {
    /// Begins with a graph of so many vertices.
    pub(super) fn begin(&mut self, vertices: usize) {
        self.order.clear();
        self.order.resize(vertices, 0);
        self.low.resize(vertices.max(self.low.len()), 0);
        self.found = 0;
    }

    /// Calls `each` with every component that can be reached from `root` and was not found before. A
    /// component comes after those that it has edges to. `step` says where an edge leads, if it counts.
    pub(super) fn search<'a>(
        &mut self,
        root: u32,
        edges: impl Fn(u32) -> &'a [Edge],
        step: impl Fn(u32, Edge) -> Option<u32>,
        mut each: impl FnMut(&[u32]),
    ) {
        if self.order[root as usize] != 0 {
            return;
        }
        self.enter(root);
        while let Some((vertex, followed)) = self.calls.last_mut() {
            let vertex = *vertex;
            if let Some(edge) = edges(vertex).get(*followed as usize) {
                *followed += 1;
                let Some(target) = step(vertex, *edge) else { continue };
                match self.order[target as usize] {
                    0 => self.enter(target),
                    DONE => {}
                    order => self.low[vertex as usize] = self.low[vertex as usize].min(order),
                }
                continue;
            }
            self.calls.pop();
            let low = self.low[vertex as usize];
            if let Some((parent, _)) = self.calls.last() {
                let of_parent = &mut self.low[*parent as usize];
                *of_parent = low.min(*of_parent);
            }
            if low == self.order[vertex as usize] {
                let from = self.path.iter().rposition(|on_path| *on_path == vertex).unwrap_or_default();
                self.path[from..].iter().for_each(|member| self.order[*member as usize] = DONE);
                each(&self.path[from..]);
                self.path.truncate(from);
            }
        }
    }

    fn enter(&mut self, vertex: u32) {
        self.found += 1;
        (self.order[vertex as usize], self.low[vertex as usize]) = (self.found, self.found);
        self.path.push(vertex);
        self.calls.push((vertex, 0));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Two vertices are in one component if each can be reached from the other.
        #[test]
        fn components_are_those_of_reachability(pairs in prop::collection::vec((0u32..12, 0u32..12), 0..30)) {
            let lists: Vec<Vec<Edge>> = (0..12)
                .map(|from| {
                    let of_one = pairs.iter().filter(|pair| pair.0 == from);
                    of_one.map(|pair| Edge::new(pair.1 as usize, Kind::Read)).collect()
                })
                .collect();
            let mut reaches = [[false; 12]; 12];
            (0..12).for_each(|vertex| reaches[vertex][vertex] = true);
            pairs.iter().for_each(|(from, to)| reaches[*from as usize][*to as usize] = true);
            for middle in 0..12 {
                for from in 0..12 {
                    for to in 0..12 {
                        reaches[from][to] |= reaches[from][middle] && reaches[middle][to];
                    }
                }
            }
            let (mut component, mut count) = ([0; 12], 0);
            let mut components = Components::default();
            components.begin(12);
            for root in 0..12 {
                components.search(root, |v| &lists[v as usize], |_, edge| Some(edge.target()), |members| {
                    count += 1;
                    members.iter().for_each(|member| component[*member as usize] = count);
                });
            }
            for from in 0..12 {
                for to in 0..12 {
                    let mutual = reaches[from][to] && reaches[to][from];
                    prop_assert_eq!(component[from] == component[to], mutual);
                    // What can be reached has been found before.
                    prop_assert!(!reaches[from][to] || component[to] <= component[from]);
                }
            }
        }
    }

    #[test]
    fn a_cycle_of_a_million_needs_no_deep_stack() {
        let edges: Vec<[Edge; 1]> =
            (0..1_000_000).map(|vertex| [Edge::new((vertex + 1) % 1_000_000, Kind::Read)]).collect();
        let mut components = Components::default();
        components.begin(edges.len());
        let mut sizes = Vec::new();
        components.search(
            0,
            |v| &edges[v as usize],
            |_, edge| Some(edge.target()),
            |members| sizes.push(members.len()),
        );
        assert_eq!(sizes, [1_000_000]);
    }
}
