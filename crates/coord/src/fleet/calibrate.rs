//! Measures the weight of each replayer: how much it does in a second against a store that
//! answers at once. All replayers run at the same time, since those that share a machine share it
//! in the experiments too.

use schemas::run::ReplayReport;

use super::order::Order;
use super::{Fleet, phases};
use crate::failure::Failure;
use crate::terminal::Interrupt;

impl Fleet {
    /// Runs the order, and sets the weight of each replayer to its rate as a share of the fastest
    /// one's.
    pub async fn calibrate(&mut self, order: &Order<'_>, interrupt: &mut Interrupt) -> Result<(), Failure> {
        let mut team = self.team(order);
        let taking_part: Vec<usize> = team.iter().map(phases::Participant::index).collect();
        let mut unwatched = |_| ();
        tokio::select! {
            made = phases::make_ready(&mut team, order, &mut unwatched) => made?,
            () = interrupt.wait() => return Err(Failure::Interrupted { run: None }),
        }
        let (_, mut faults) = phases::run(&mut team, order, interrupt, &mut unwatched).await?;
        let (reports, unreported) = phases::reports(&mut team).await;
        faults.extend(unreported);
        if !faults.is_empty() {
            return Err(Failure::tool(format!("the calibration failed: {}", faults.join("; "))));
        }
        let rates: Vec<f64> = reports.iter().map(|report| report.as_ref().map_or(0.0, rate)).collect();
        let measured: Vec<(usize, f64)> = taking_part.into_iter().zip(weights(&rates)).collect();
        for (index, weight) in with_unmeasured(&measured, self.replayers.len()).into_iter().enumerate() {
            self.replayers[index].weight = weight;
        }
        Ok(())
    }
}

/// Operations per second. The count alone would be wrong, since a fast replayer may reach the end
/// of a short trace before its time is over.
fn rate(report: &ReplayReport) -> f64 {
    report.ok as f64 / report.elapsed_ns.max(1) as f64 * 1e9
}

/// Each rate as a share of the highest, to a hundredth. No weight is 0.
fn weights(rates: &[f64]) -> Vec<f64> {
    let highest = rates.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    rates.iter().map(|rate| (rate / highest * 100.0).round().max(1.0) / 100.0).collect()
}

/// The weights of all replayers. Those that had no fragment get the lowest weight measured, so
/// that they do not displace a measured one.
fn with_unmeasured(measured: &[(usize, f64)], replayers: usize) -> Vec<f64> {
    let lowest = measured.iter().map(|(_, weight)| *weight).fold(1.0, f64::min);
    let mut all = vec![lowest; replayers];
    measured.iter().for_each(|(index, weight)| all[*index] = *weight);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unmeasured_replayer_gets_the_lowest_weight() {
        assert_eq!(with_unmeasured(&[(0, 1.0), (1, 0.6)], 3), [1.0, 0.6, 0.6]);
        assert_eq!(with_unmeasured(&[(1, 1.0), (0, 0.2)], 2), [0.2, 1.0]);
    }

    #[test]
    fn weights_are_beside_the_fastest() {
        assert_eq!(weights(&[2_000_000.0, 1_004_000.0, 10.0, 0.0]), [1.0, 0.5, 0.01, 0.01]);
        assert_eq!(weights(&[0.0]), [0.01]);
    }
}
