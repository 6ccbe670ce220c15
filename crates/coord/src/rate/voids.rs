//! The void experiments that a rating rests on, in words.

use std::cmp::Ordering;

use crate::search::Unit;

/// Further reasons are counted, not listed.
const MOST_REASONS: usize = 3;

/// The void experiments with one load.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Void {
    /// Their load.
    pub(super) load: u32,
    /// Their numbers.
    pub(super) experiments: Vec<u32>,
    /// Why each was void.
    pub(super) reasons: Vec<String>,
}

impl Void {
    /// Which experiments were void, and why in short: their rows have the figures.
    fn clause(&self, unit: Unit) -> String {
        let numbers: Vec<String> = self.experiments.iter().map(u32::to_string).collect();
        let (plural, were) = if numbers.len() == 1 { ("", "was") } else { ("s", "were") };
        let brief: Vec<String> = self.reasons.iter().map(|reason| brief(reason).to_string()).collect();
        let (numbers, reasons) = (numbers.join(" and "), distinct(&brief));
        format!("experiment{plural} {numbers} ({}) {were} void: {reasons}", unit.named(self.load))
    }
}

/// What void experiments leave unverified in a rating with this load; none without void experiments.
pub(super) fn doubts(voids: &[Void], load: u32, unit: Unit) -> Option<String> {
    let sides = [
        (Ordering::Greater, "upper bound not verified"),
        (Ordering::Equal, "not verified by a final experiment"),
        (Ordering::Less, "lower bound not verified"),
    ];
    let sentences = sides.into_iter().filter_map(|(side, what)| {
        let clauses: Vec<String> =
            voids.iter().filter(|void| void.load.cmp(&load) == side).map(|void| void.clause(unit)).collect();
        (!clauses.is_empty()).then(|| format!("{what}: {}", clauses.join("; ")))
    });
    let sentences: Vec<String> = sentences.collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// The note on a rating whose experiments were all void.
pub(super) fn nothing_measured(voids: &[Void]) -> String {
    let count: usize = voids.iter().map(|void| void.experiments.len()).sum();
    let all = if count == 1 { "the only experiment was".to_string() } else { format!("all {count} experiments were") };
    let reasons: Vec<String> =
        voids.iter().flat_map(|void| void.reasons.iter().map(|reason| brief(reason).to_string())).collect();
    format!("nothing could be measured, because {all} void: {}", distinct(&reasons))
}

/// What a reason says before its figures.
pub(super) fn brief(reason: &str) -> &str {
    reason.split_once(": ").map_or(reason, |(brief, _)| brief)
}

/// Each distinct reason once, up to [`MOST_REASONS`].
fn distinct(reasons: &[String]) -> String {
    let mut distinct: Vec<&str> = Vec::new();
    for reason in reasons {
        if !distinct.contains(&reason.as_str()) {
            distinct.push(reason);
        }
    }
    let more = distinct.len().saturating_sub(MOST_REASONS);
    distinct.truncate(MOST_REASONS);
    let more = if more == 0 { String::new() } else { format!("; and {more} more") };
    format!("{}{more}", distinct.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn void(load: u32, experiments: &[u32], reasons: &[&str]) -> Void {
        let reasons = reasons.iter().map(|reason| reason.to_string()).collect();
        Void { load, experiments: experiments.to_vec(), reasons }
    }

    #[test]
    fn each_doubt_names_the_side_that_was_not_verified() {
        let voids = [
            void(64, &[7], &["CPU full: 99% of a core"]),
            void(8, &[2, 3], &["late", "late"]),
            void(32, &[9], &["torn"]),
        ];
        assert_eq!(
            doubts(&voids, 32, Unit::Threads).as_deref(),
            Some(
                "upper bound not verified: experiment 7 (T=64) was void: CPU full; \
                 not verified by a final experiment: experiment 9 (T=32) was void: torn; \
                 lower bound not verified: experiments 2 and 3 (T=8) were void: late"
            )
        );
        assert_eq!(doubts(&[], 32, Unit::Threads), None);
        let of_rate = doubts(&voids[..1], 32, Unit::SessionsPerS);
        assert_eq!(
            of_rate.as_deref(),
            Some("upper bound not verified: experiment 7 (64 sessions/s) was void: CPU full")
        );
    }

    #[test]
    fn a_few_reasons_stand_for_many() {
        let voids = [void(2, &[1, 2], &["a", "b"]), void(1, &[3, 4], &["c: 7 of 9", "d"])];
        assert_eq!(
            nothing_measured(&voids),
            "nothing could be measured, because all 4 experiments were void: a; b; c; and 1 more"
        );
        let one = "nothing could be measured, because the only experiment was void: a";
        assert_eq!(nothing_measured(&[void(1, &[1], &["a"])]), one);
    }
}
