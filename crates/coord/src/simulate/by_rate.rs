//! The search for the highest arrival rate, with an M/M/c queue in place of a store. The true rating
//! is known, and each experiment has as much chance in it as a real one of its length.

use schemas::sla::{Sla, short_time};
use schemas::verdict::Ruling;
use serde_json::{Value, json};
use statrs::distribution::{Binomial, DiscreteCDF};

pub use super::mmc::Queue;
use super::show::{error, interval, lines, operations, share};
use super::{Driven, drive};
use crate::search::{Limits, Probe, noise, rate};
use crate::terminal::thousands;

/// What to simulate.
#[derive(Debug, Clone, PartialEq)]
pub struct RateSetup {
    /// The limits of the search.
    pub limits: Limits,
    /// The stores.
    pub queues: Vec<Queue>,
    /// The SLA, of which only α and β count: the stores never lie.
    pub sla: Sla,
    /// How long an experiment is, in seconds.
    pub search_s: f64,
    /// The seed of all chance.
    pub seed: u64,
}

/// What the search did with one store.
#[derive(Debug, Clone, PartialEq)]
pub struct RateCase {
    /// The store.
    pub queue: Queue,
    /// The highest rate that keeps the SLA, in sessions a second.
    pub true_per_s: f64,
    /// What the search did.
    pub rate: Driven,
}

/// A simulation: several stores, one SLA.
#[derive(Debug, Clone, PartialEq)]
pub struct RateSimulation {
    /// What was simulated.
    pub setup: RateSetup,
    /// One case per store.
    pub cases: Vec<RateCase>,
}

/// Runs the search with every store.
pub fn simulate(setup: RateSetup) -> RateSimulation {
    let case = |queue: &Queue| RateCase {
        queue: *queue,
        true_per_s: queue.highest_rate(setup.sla.alpha_percent / 100.0, seconds(setup.sla.beta_ns)),
        rate: drive(rate::next, |rate_per_s, sample| setup.experiment(queue, rate_per_s, sample), &setup.limits),
    };
    let cases = setup.queues.iter().map(case).collect();
    RateSimulation { setup, cases }
}

impl RateSetup {
    /// An experiment with an arrival rate that follows `sample` others with it. The number of
    /// responses within β is a draw from the binomial distribution. Responses of a real queue depend
    /// on each other, so real experiments of the same length differ more.
    fn experiment(&self, queue: &Queue, rate_per_s: u32, sample: usize) -> Probe {
        let sessions = (f64::from(rate_per_s) * self.search_s).round().max(1.0);
        let share = queue.share_within(seconds(self.sla.beta_ns), f64::from(rate_per_s));
        let within = binomial(share, sessions as u64, noise::uniform(self.seed, rate_per_s, sample as u64));
        let passes = within as f64 * 100.0 >= sessions * self.sla.alpha_percent;
        let ruling = if passes { Ruling::Pass } else { Ruling::Fail };
        Probe { throughput_per_s: f64::from(rate_per_s).min(queue.capacity_per_s()), ruling }
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The number of successes in n trials at which the cumulative distribution reaches `draw`.
fn binomial(share: f64, n: u64, draw: f64) -> u64 {
    // Without chance, and for a share that is none, the answer is the mean.
    let Ok(distribution) = Binomial::new(share, n) else { return 0 };
    if share <= 0.0 || share >= 1.0 {
        return if share > 0.0 { n } else { 0 };
    }
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if distribution.cdf(middle) >= draw {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The simulation as a table, and what its columns mean.
pub fn table(simulation: &RateSimulation) -> String {
    let mut table = comfy_table::Table::new();
    table.set_header(["servers", "capacity", "true", "found", "error", "interval", "unique", "visited"]);
    for RateCase { queue, true_per_s, rate } in &simulation.cases {
        let found = &rate.found;
        table.add_row([
            thousands(queue.servers.into()),
            operations(queue.capacity_per_s()),
            operations(*true_per_s),
            format!("{}{}", thousands(found.load.into()), if found.at_least { "+" } else { "" }),
            error(found.load.into(), *true_per_s),
            interval(&found.interval, operations),
            rate.unique.to_string(),
            rate.visited.to_string(),
        ]);
    }
    let RateSetup { sla, search_s, .. } = &simulation.setup;
    format!(
        "arrival rate (sessions/s), {}% within {}, experiments of {search_s} s\n{}\n\n\
         capacity: the rate from which on the queue grows without end\n\
         unique: experiments with different rates; visited: with repeats; +: the search ended at --max-rate",
        sla.alpha_percent,
        short_time(sla.beta_ns),
        lines(table)
    )
}

/// The simulation as JSON: its setup, and in `cases` each store with what the search did. Rates are
/// in sessions per second, shares are fractions of 1.
pub fn document(simulation: &RateSimulation) -> Value {
    let RateSetup { limits, sla, search_s, seed, .. } = &simulation.setup;
    json!({
        "limits": {
            "first_rate_per_s": limits.first_load,
            "max_rate_per_s": limits.max_load,
            "resolution_share": limits.resolution,
        },
        "sla": sla,
        "search_s": search_s,
        "seed": seed,
        "cases": simulation.cases.iter().map(of_case).collect::<Vec<_>>(),
    })
}

fn of_case(RateCase { queue, true_per_s, rate }: &RateCase) -> Value {
    let found = &rate.found;
    json!({
        "servers": queue.servers,
        "service_per_s": queue.service_per_s,
        "capacity_per_s": queue.capacity_per_s(),
        "true_rate_per_s": true_per_s,
        "rate_per_s": found.load,
        "error_share": share(found.load.into(), *true_per_s),
        "low": found.interval.low,
        "high": found.interval.high,
        "at_least": found.at_least,
        "unique_experiments": rate.unique,
        "visited_experiments": rate.visited,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{NOISE, RESOLUTION};

    fn setup(servers: &[u32], search_s: f64, seed: u64) -> RateSetup {
        let queues = servers.iter().map(|servers| Queue { servers: *servers, service_per_s: 100.0 }).collect();
        let limits = Limits { first_load: 100, max_load: 1_000_000, resolution: RESOLUTION, noise: NOISE };
        RateSetup { limits, queues, sla: "95% < 100ms".parse().unwrap(), search_s, seed }
    }

    /// With long experiments there is little chance left, and the search is as near as its resolution.
    #[test]
    fn the_search_finds_the_true_rate_within_its_resolution() {
        for seed in 0..20 {
            for case in simulate(setup(&[1, 3, 16, 64, 1000], 1_000.0, seed)).cases {
                let (found, truth) = (f64::from(case.rate.found.load), case.true_per_s);
                // One session a second is the finest step.
                let below = truth * RESOLUTION + 1.0;
                assert!(found >= truth - below && found <= truth * 1.005 + 1.0, "{found} of {truth}: {case:?}");
                assert!(case.rate.visited <= 30, "{case:?}");
            }
        }
    }

    /// Experiments of a search are short. Most ratings are still near.
    #[test]
    fn short_experiments_err_by_little() {
        let seeds = 200;
        let mut near = 0;
        for seed in 0..seeds {
            let case = &simulate(setup(&[16], 1.5, seed)).cases[0];
            near += u64::from((f64::from(case.rate.found.load) / case.true_per_s - 1.0).abs() <= 0.06);
        }
        assert!(near >= seeds * 9 / 10, "{near} of {seeds} are near");
    }

    #[test]
    fn binomial_draws_have_the_mean_and_the_spread_of_the_distribution() {
        let (share, n, draws) = (0.9, 400, 4_000);
        let drawn: Vec<f64> = (0..draws).map(|draw| binomial(share, n, noise::uniform(3, 1, draw)) as f64).collect();
        let mean = drawn.iter().sum::<f64>() / draws as f64;
        let variance = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws as f64;
        assert!((mean - 360.0).abs() < 0.5 && (variance - 36.0).abs() < 3.0, "{mean} and {variance}");
        assert_eq!((binomial(0.0, 9, 0.5), binomial(1.0, 9, 0.5), binomial(0.001, 3, 1e-9)), (0, 9, 0));
    }

    #[test]
    fn the_document_says_the_same_as_the_table() {
        let simulation = simulate(setup(&[4], 1.5, 1));
        let (document, table) = (document(&simulation), table(&simulation));
        let found = &document["cases"][0]["rate_per_s"];
        assert_eq!(*found, simulation.cases[0].rate.found.load);
        assert!(table.contains(&format!(" {found} ")) && table.contains("95% within 100ms"), "{table}");
    }
}
