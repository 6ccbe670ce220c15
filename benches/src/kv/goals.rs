//! What is demanded of Encore beside other tools, and whether the figures show it (pure).

use std::collections::BTreeMap;

use crate::sample::{Figures, Sample, Spread};
use crate::tools::redis_benchmark;

/// Encore's name in the samples.
pub const ENCORE: &str = "Encore";

/// Client CPU of an operation, at most, as a share of that of the best tool of YCSB's family.
const OF_YCSB: f64 = 0.5;

/// Client CPU of an operation, at most, as a share of that of the cheapest variant of pgbench.
const OF_PGBENCH: f64 = 1.25;

/// The runs of each tool with one workload and one T.
type Runs<'a> = BTreeMap<&'a str, Vec<Figures>>;

/// A goal: its words, and what speaks against it in the runs of a point. None if no peer was
/// measured there; an empty text if nothing speaks against it.
type Goal = (String, fn(&Runs) -> Option<String>);

/// A line for each goal for which there are peers.
pub fn lines(samples: &[Sample]) -> Vec<String> {
    let mut points: Vec<((&str, u32), Runs)> = Vec::new();
    for sample in samples {
        let point = (&*sample.case, sample.threads);
        let at = points.iter().position(|(other, _)| *other == point).unwrap_or_else(|| {
            points.push((point, Runs::new()));
            points.len() - 1
        });
        points[at].1.entry(&*sample.tool).or_default().push(sample.figures);
    }
    let goals: [Goal; 4] = [
        ("operations/s no lower than the best peer's, within the spread".into(), slower),
        (format!("client CPU an operation at most {OF_YCSB} times that of the best peer of YCSB's family"), above_ycsb),
        (format!("client CPU an operation at most {OF_PGBENCH} times pgbench's"), above_pgbench),
        ("p99 no higher than the best peer's".into(), later),
    ];
    goals.iter().filter_map(|(words, against)| line(words, *against, &points)).collect()
}

fn line(words: &str, against: fn(&Runs) -> Option<String>, points: &[((&str, u32), Runs)]) -> Option<String> {
    let judged: Vec<_> = points.iter().filter_map(|(point, runs)| Some((point, against(runs)?))).collect();
    let missed: Vec<String> = judged
        .iter()
        .filter(|(_, why)| !why.is_empty())
        .map(|((case, threads), why)| format!("{} T={threads} ({why})", case.split(':').next().unwrap_or(case)))
        .collect();
    let met = judged.len() - missed.len();
    match judged.len() {
        0 => None,
        all if met == all => Some(format!("{words}: met in all {all} cases")),
        all => Some(format!("{words}: met in {met} of {all} cases; missed in {}", missed.join(", "))),
    }
}

fn spread(figures: &[Figures], figure: fn(&Figures) -> Option<f64>) -> Option<Spread> {
    Spread::of(figures.iter().filter_map(figure))
}

/// Encore's spread and, of the peers with these names, the one with the lowest median.
fn beside_lowest<'a>(
    runs: &'a Runs,
    is_peer: fn(&str) -> bool,
    figure: fn(&Figures) -> Option<f64>,
) -> Option<(Spread, &'a str, Spread)> {
    let encore = spread(runs.get(ENCORE)?, figure)?;
    let peers = runs.iter().filter(|(tool, _)| **tool != ENCORE && is_peer(tool));
    let spreads = peers.filter_map(|(tool, figures)| Some((*tool, spread(figures, figure)?)));
    let (tool, best) = spreads.min_by(|(_, a), (_, b)| a.median.total_cmp(&b.median))?;
    Some((encore, tool, best))
}

/// A client that skips its answers only shows what a request costs at least.
fn reads_answers(tool: &str) -> bool {
    tool != redis_benchmark::NAME
}

fn slower(runs: &Runs) -> Option<String> {
    // The lowest time an operation is the highest throughput.
    let figure = |figures: &Figures| Some(1.0 / figures.operations_per_s.max(1e-9));
    let (encore, tool, best) = beside_lowest(runs, reads_answers, figure)?;
    Some(if encore.lowest <= best.highest {
        String::new()
    } else {
        format!("{:.0} beside {:.0} of {tool}", 1.0 / encore.median, 1.0 / best.median)
    })
}

/// Medians are compared: only throughput is granted the spread.
fn later(runs: &Runs) -> Option<String> {
    let (encore, tool, best) = beside_lowest(runs, reads_answers, |figures| figures.p99_us)?;
    Some(if encore.median <= best.median {
        String::new()
    } else {
        format!("{:.0} µs beside {:.0} µs of {tool}", encore.median, best.median)
    })
}

fn above_ycsb(runs: &Runs) -> Option<String> {
    costlier(runs, |tool| tool.to_lowercase().contains("ycsb"), OF_YCSB)
}

fn above_pgbench(runs: &Runs) -> Option<String> {
    costlier(runs, |tool| tool.starts_with("pgbench"), OF_PGBENCH)
}

fn costlier(runs: &Runs, is_peer: fn(&str) -> bool, most: f64) -> Option<String> {
    let (encore, _, best) = beside_lowest(runs, is_peer, |figures| Some(figures.client_cpu_s_per_million))?;
    let share = encore.median / best.median;
    Some(if share <= most { String::new() } else { format!("{share:.2} times") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(threads: u32, tool: &str, per_s: f64, cpu: f64, p99: f64) -> Sample {
        let figures =
            Figures { operations_per_s: per_s, client_cpu_s_per_million: cpu, p99_us: Some(p99), ..Figures::default() };
        Sample { case: "A: reads, updates".into(), threads, tool: tool.into(), figures }
    }

    fn check(samples: &[Sample], expect: &[&str]) {
        let lines = lines(samples);
        let ends: Vec<&str> = lines.iter().filter_map(|line| line.split_once(": ")).map(|(_, end)| end).collect();
        assert_eq!(ends, expect, "{lines:?}");
    }

    #[test]
    fn a_faster_and_cheaper_client_meets_all_goals() {
        let all = "met in all 1 cases";
        check(&[sample(1, ENCORE, 9.0, 1.0, 5.0), sample(1, "go-ycsb", 8.0, 2.0, 5.0)], &[all, all, all]);
    }

    #[test]
    fn a_goal_that_is_missed_says_where_and_by_how_much() {
        let samples = [
            sample(1, ENCORE, 9.0, 1.0, 5.0),
            sample(1, "go-ycsb", 8.0, 2.0, 6.0),
            sample(64, ENCORE, 90.0, 1.5, 7.0),
            sample(64, "go-ycsb", 80.0, 2.0, 6.0),
            sample(64, "pgbench", 95.0, 1.1, 9.0),
            sample(64, "pgbench, uniform", 100.0, 1.0, 9.0),
        ];
        check(
            &samples,
            &[
                "met in 1 of 2 cases; missed in A T=64 (90 beside 100 of pgbench, uniform)",
                "met in 1 of 2 cases; missed in A T=64 (0.75 times)",
                "met in 0 of 1 cases; missed in A T=64 (1.50 times)",
                "met in 1 of 2 cases; missed in A T=64 (7 µs beside 6 µs of go-ycsb)",
            ],
        );
    }

    #[test]
    fn only_the_throughput_of_rounds_that_overlap_is_equal() {
        let rounds = |tool, figures: [(f64, f64); 2]| figures.map(|(per_s, p99)| sample(1, tool, per_s, 1.0, p99));
        let mut samples = rounds(ENCORE, [(7.0, 8.0), (10.0, 5.0)]).to_vec();
        samples.extend(rounds("go-ycsb", [(9.0, 6.0), (11.0, 4.0)]));
        let missed = |why: &str| format!("met in 0 of 1 cases; missed in A T=1 ({why})");
        let (cpu, p99) = (missed("1.00 times"), missed("6 µs beside 5 µs of go-ycsb"));
        check(&samples, &["met in all 1 cases", &cpu, &p99]);
    }

    #[test]
    fn a_client_that_skips_its_answers_is_no_peer() {
        check(&[sample(1, ENCORE, 9.0, 1.0, 5.0), sample(1, redis_benchmark::NAME, 99.0, 0.1, 1.0)], &[]);
    }

    #[test]
    fn without_peers_there_is_no_goal() {
        check(&[sample(1, ENCORE, 9.0, 1.0, 5.0)], &[]);
    }
}
