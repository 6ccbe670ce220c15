//! Γ (Golab, Rahman, AuYoung, Keeton, Gupta: "Client-centric benchmarking of eventual consistency",
//! 2014, the reference of YCSB-D, 2016): the least time t such that the history is linearizable once
//! each start is t/2 earlier and each end t/2 later.
//!
//! A history of unique values is linearizable if no read ends before the write of its value starts,
//! and no two values conflict: one of two values was gone before the other one came. With f the least
//! end and s the greatest start of a cluster, `v` can be before `w` if s(v) <= f(w). So
//! χ(v, w) = max(0, min(s(v) - f(w), s(w) - f(v))) says by how much neither can be before the other,
//! and Γ(v) is the greatest of future(v) and χ(v, w) over all w.
//!
//! All Γ(v) take O(n log n): with the clusters in the order of f, s(v) - f(w) falls. What rises is the
//! greatest s(w) - f(v) of the clusters so far. The greatest minimum is where the two cross.

use schemas::verdict::Step;

use super::history::{BEFORE, Clients, Cluster, History, Peaks, crossing};
use crate::validate::{FOREVER, Interval};

/// Γ of the values of a register. It can be filled again, so that it allocates seldom.
#[derive(Debug, Clone, Default)]
pub struct Gamma {
    /// Γ of each cluster, in nanoseconds.
    pub values: Vec<i64>,
    /// What proves that the history is not linearizable.
    pub conflict: Option<Conflict>,
    /// The clusters by their least end.
    order: Vec<(i64, u32)>,
    peaks: Peaks,
}

impl PartialEq for Gamma {
    fn eq(&self, other: &Gamma) -> bool {
        (&self.values, self.conflict) == (&other.values, other.conflict)
    }
}

/// Why a history is not linearizable, as indexes of clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// A read of the value ended before its write started.
    Future(usize),
    /// Neither value was gone before the other one came.
    Pair(usize, usize),
}

impl Gamma {
    /// Γ of the clusters of a history.
    pub fn of(clusters: &[Cluster]) -> Gamma {
        let mut gamma = Gamma::default();
        gamma.fill(clusters);
        gamma
    }

    /// The same in place of what was here.
    pub fn fill(&mut self, clusters: &[Cluster]) {
        let Gamma { values, order, peaks, .. } = self;
        values.clear();
        values.extend(clusters.iter().map(|cluster| cluster.future));
        let future = (0..).zip(clusters).find(|(_, cluster)| cluster.future > 0);
        let mut conflict = future.map(|(index, _)| Conflict::Future(index));
        order.clear();
        order.extend(clusters.iter().zip(0..).map(|(cluster, index)| (cluster.first_end, index)));
        order.sort_unstable();
        let last_start = |place: usize| clusters[order[place].1 as usize].last_start();
        peaks.fill((0..order.len()).map(last_start));
        let mut shortest = None;
        // The clusters before this place end before the one at hand starts last. It moves little.
        let mut end = 0;
        for place in 0..order.len() {
            let (first_end, index) = order[place];
            let last_start = last_start(place);
            while end < order.len() && order[end].0 < last_start {
                end += 1;
            }
            while end > 0 && order[end - 1].0 >= last_start {
                end -= 1;
            }
            if end == 0 || peaks.greatest(end - 1, place).0 <= first_end {
                continue;
            }
            let falls = |other: usize| last_start.saturating_sub(order[other].0);
            let rises = |other: usize| peaks.greatest(other, place).0.saturating_sub(first_end);
            let Some((found, at)) = crossing(end, falls, rises) else { continue };
            let gamma = &mut values[index as usize];
            *gamma = found.max(*gamma);
            // The cluster with the greatest start so far is the one that conflicts.
            let (start, other) = peaks.greatest(at, place);
            if matches!(conflict, Some(Conflict::Future(_))) {
                continue;
            }
            let other_end = order[other].0;
            // The initial value has always been there.
            let first = [first_end, other_end].into_iter().filter(|end| *end != BEFORE).min();
            let span = last_start.max(start).saturating_sub(first.unwrap_or(BEFORE));
            if shortest.is_none_or(|shortest| span < shortest) {
                shortest = Some(span);
                let pair = (index as usize, order[other].1 as usize);
                conflict = Some(Conflict::Pair(pair.0.min(pair.1), pair.0.max(pair.1)));
            }
        }
        self.conflict = conflict;
    }

    /// The clusters by their least end: that end, and the index.
    pub(super) fn order(&self) -> &[(i64, u32)] {
        &self.order
    }

    /// Γ of the history.
    pub fn item(&self) -> i64 {
        self.values.iter().copied().max().unwrap_or_default()
    }

    /// Whether the history is linearizable.
    pub fn is_linearizable(&self) -> bool {
        self.conflict.is_none()
    }
}

/// The operations that prove a conflict: of each value its write, the operation that ended first, and the
/// one that started last. In the order of their start, each once.
pub fn proof(history: &History, clusters: &[Cluster], conflict: Conflict) -> Vec<Step> {
    let of = |cluster: &Cluster| {
        let (first_end, last_start) = (cluster.first_end, cluster.last_start());
        let mut steps = Vec::new();
        if let Some(index) = cluster.write {
            let write = &history.writes[index as usize];
            steps.push(step(true, write.value, write.at, write.by));
        }
        let reads = || history.reads.iter().filter(|read| read.saw == cluster.write).map(|read| read.access);
        let written = history.written(cluster.write);
        let first = reads().find(|read| read.at.end == first_end && written.end != first_end);
        let last = reads().find(|read| read.at.start == last_start && written.start != last_start);
        steps.extend(first.into_iter().chain(last).map(|read| step(false, read.value, read.at, read.by)));
        steps
    };
    let mut steps = match conflict {
        Conflict::Future(index) => of(&clusters[index]),
        Conflict::Pair(a, b) => [of(&clusters[a]), of(&clusters[b])].concat(),
    };
    steps.sort_by_key(|step| (step.start_ns, step.end_ns, step.value, step.thread));
    steps.dedup();
    steps
}

fn step(is_write: bool, value: i64, at: Interval, by: Clients) -> Step {
    let end_ns = (at.end != FOREVER).then_some(at.end);
    Step { is_write, value, thread: by.thread, actor: by.actor, start_ns: at.start, end_ns }
}

#[cfg(test)]
mod tests {
    use super::super::brute::{self, histories, history, r, shuffled, w};
    use super::*;

    fn gamma(history: &History) -> Gamma {
        Gamma::of(&history.clusters())
    }

    #[test]
    fn gamma_is_what_exhaustive_search_finds() {
        let mut broken = 0;
        for (writes, reads) in histories(6_000, 2, 14) {
            let history = History::new(writes.clone(), reads.clone());
            let found = gamma(&history);
            assert_eq!(found.item(), brute::gamma(&history), "{history:?}");
            assert_eq!(found.is_linearizable(), found.item() == 0);
            assert_eq!(gamma(&shuffled(&writes, &reads, 5)), found);
            broken += u32::from(!found.is_linearizable());
        }
        assert!(broken > 1_000, "{broken} of the histories are not linearizable");
    }

    /// Γ of each value is the greatest χ with any other, computed pair by pair.
    #[test]
    fn gamma_of_each_value_is_that_of_its_pairs() {
        for (writes, reads) in histories(2_000, 3, 40) {
            let clusters = History::new(writes, reads).clusters();
            let chi = |v: &Cluster, w: &Cluster| {
                let forth = v.last_start().saturating_sub(w.first_end);
                forth.min(w.last_start().saturating_sub(v.first_end)).max(0)
            };
            let others = |v: usize| (0..clusters.len()).filter(move |w| *w != v);
            let of = |v: usize| others(v).map(|w| chi(&clusters[v], &clusters[w])).max().unwrap_or(0);
            let expected: Vec<i64> = (0..clusters.len()).map(|v| of(v).max(clusters[v].future)).collect();
            assert_eq!(Gamma::of(&clusters).values, expected);
        }
    }

    /// What the proof shows is not linearizable by itself.
    #[test]
    fn a_proof_stands_by_itself() {
        for (writes, reads) in histories(3_000, 4, 14) {
            let history = History::new(writes, reads);
            let clusters = history.clusters();
            let Some(conflict) = Gamma::of(&clusters).conflict else { continue };
            let steps = proof(&history, &clusters, conflict);
            assert!(steps.len() <= 6);
            let (writes, reads) = brute::of_steps(&steps);
            assert!(brute::gamma(&History::new(writes, reads)) > 0, "{history:?} {steps:?}");
        }
    }

    #[test]
    fn known_answers() {
        // One after the other.
        assert_eq!(gamma(&history(&[w(1, 0, 5), r(1, 6, 7), w(2, 8, 9), r(2, 10, 11)])).item(), 0);
        // The initial value is seen 10 after the write of the next one ended.
        assert_eq!(gamma(&history(&[w(1, 0, 5), r(0, 15, 16)])).item(), 10);
        // A read inversion: during a write one read sees the new value, a later one the old.
        let inversion = history(&[w(1, 0, 100), r(1, 10, 20), r(0, 50, 60)]);
        assert_eq!(gamma(&inversion).item(), 30);
        // A read from the future.
        let future = gamma(&history(&[r(1, 0, 5), w(1, 9, 12)]));
        assert_eq!((future.item(), future.conflict), (4, Some(Conflict::Future(1))));
        // A write of unknown fate that takes effect late.
        assert_eq!(gamma(&history(&[w(1, 0, FOREVER), w(2, 1, 5), r(2, 6, 7), r(1, 8, 9)])).item(), 0);
        assert!(gamma(&history(&[w(1, 0, FOREVER), r(1, 2, 3), r(0, 8, 9)])).item() == 5);
    }
}
