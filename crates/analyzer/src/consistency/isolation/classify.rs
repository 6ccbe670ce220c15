//! Which cycles a transaction is in, from the components of four graphs.

use schemas::anomalies::{Anomalies, Class};

use super::graph::{Components, Edge, Graph, Kind};
use super::window::{NO_CLASS, Window};
use super::witness;

/// The classes of cycles, the worst one first.
pub(super) const CYCLES: [Class; 4] = [Class::DirtyWrite, Class::CircularRead, Class::ReadSkew, Class::WriteSkew];

/// Where an edge leads in the graph of a class of cycles; None if it is not in that graph.
///
/// In the graph of [`Class::ReadSkew`] every transaction has two vertices: one for those who come to it by
/// an rw edge, with an odd number, which no rw edge leaves. So its cycles are those without two rw edges
/// in a row. In the other graphs the vertices are the places in the window.
pub(super) fn step(class: Class, vertex: u32, edge: Edge) -> Option<u32> {
    let (target, kind) = (edge.target(), edge.kind());
    match class {
        Class::DirtyWrite => (kind == Kind::Overwrote).then_some(target),
        Class::CircularRead => (kind != Kind::OverwroteRead).then_some(target),
        Class::ReadSkew if kind == Kind::OverwroteRead => (vertex & 1 == 0).then_some(2 * target + 1),
        Class::ReadSkew => Some(2 * target),
        _ => Some(target),
    }
}

/// The vertices of a transaction in the graph of a class.
pub(super) fn vertices(class: Class, place: u32) -> std::ops::RangeInclusive<u32> {
    if class == Class::ReadSkew { 2 * place..=2 * place + 1 } else { place..=place }
}

/// The place in the window of a vertex in the graph of a class.
pub(super) fn place(class: Class, vertex: u32) -> u32 {
    if class == Class::ReadSkew { vertex >> 1 } else { vertex }
}

/// Keeps its memory from one check to the next.
#[derive(Default)]
pub(super) struct Classifier {
    pub(super) graph: Graph,
    components: Components,
    /// For each transaction the component of the whole graph that it is in, from 1; 0 if it is alone.
    pub(super) component: Vec<u32>,
    /// The transactions of components of several.
    pub(super) members: Vec<u32>,
    /// When the first of those ended that come after a transaction.
    reached_ns: Vec<i64>,
    pub(super) search: witness::Search,
}

impl Classifier {
    /// Finds the worst class of the cycles of each transaction in the window, and who saw the past.
    pub(super) fn classify(&mut self, window: &mut Window) {
        self.graph.build(window);
        self.find_components(window);
        if self.members.is_empty() {
            return;
        }
        for class in CYCLES {
            let (graph, component) = (&self.graph, &self.component);
            self.components.begin(2 * graph.len());
            for member in &self.members {
                for root in vertices(class, *member) {
                    self.components.search(
                        root,
                        |vertex| graph.edges(place(class, vertex)),
                        |vertex, edge| {
                            let from = place(class, vertex) as usize;
                            let stays = component[from] == component[edge.target() as usize];
                            step(class, vertex, edge).filter(|_| stays)
                        },
                        |found| {
                            if found.len() > 1 {
                                for vertex in found {
                                    let known = &mut window.nodes[place(class, *vertex) as usize].class;
                                    *known = (class as u8).min(*known);
                                }
                            }
                        },
                    );
                }
            }
        }
    }

    fn find_components(&mut self, window: &mut Window) {
        let Classifier { graph, components, component, members, reached_ns, .. } = self;
        components.begin(graph.len());
        members.clear();
        component.clear();
        component.resize(graph.len(), 0);
        reached_ns.clear();
        reached_ns.resize(graph.len(), i64::MAX);
        let mut count = 0;
        for root in 0..graph.len() as u32 {
            if !window.is_active(root as usize) {
                continue;
            }
            let follow = |_: u32, edge: Edge| Some(edge.target());
            components.search(
                root,
                |vertex| graph.edges(vertex),
                follow,
                |found| {
                    if found.len() > 1 {
                        count += 1;
                        members.extend_from_slice(found);
                        found.iter().for_each(|vertex| component[*vertex as usize] = count);
                    }
                    // All that a component has edges to is known by now.
                    let mut first = i64::MAX;
                    for vertex in found {
                        first = first.min(window.nodes[*vertex as usize].settled_ns());
                        let targets = graph.edges(*vertex).iter().map(|edge| reached_ns[edge.target() as usize]);
                        first = targets.fold(first, i64::min);
                    }
                    for vertex in found {
                        reached_ns[*vertex as usize] = first;
                        let node = &mut window.nodes[*vertex as usize];
                        node.is_stale |= first < node.transaction.start_ns;
                    }
                },
            );
        }
    }

    /// Looks for smaller witnesses of cycles than those that are known.
    pub(super) fn witnesses(&mut self, window: &Window, fragment: u32, found: &mut Anomalies) {
        let Classifier { graph, component, members, search, .. } = self;
        for class in CYCLES {
            let candidates =
                members.iter().copied().filter(|member| window.nodes[*member as usize].class == class as u8);
            search.cycles(class, window, graph, component, candidates, fragment, found);
        }
        let is_stale = |place: &u32| {
            let node = &window.nodes[*place as usize];
            node.is_stale && node.class == NO_CLASS
        };
        search.stale(window, graph, (0..graph.len() as u32).filter(is_stale), fragment, found);
    }
}
