//! `encore simulate`.

use clap::Args;

use crate::simulate::Form;

/// `encore simulate`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  encore simulate                                the SoARs of bg-2013 Figure 13
  encore simulate --compare                      also run the paper's search
  encore simulate --noise 2 --seed 7             a store with noisy results
  encore simulate --peaks 5000 --sla-until 3000  the SLA ends before the peak
  encore simulate --curve square-root --json

A formula gives the throughput for each number of threads T; the search is that
of `encore rate`. No store is used.")]
pub struct SimulateArgs {
    /// The form of throughput over T
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Form::Quadratic, hide_possible_values = true,
          help = "quadratic, square-root or saturating")]
    pub curve: Form,
    /// The peaks of the curve, in operations a second [default: 500 to 100000000]
    #[arg(long, visible_alias = "peak", value_name = "N,N...", value_delimiter = ',')]
    pub peaks: Vec<f64>,
    /// Standard deviation of experiments with the same T, in percent of their mean
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub noise: f64,
    /// Seed of the noise
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The SLA is missed with more threads than this [default: never for quadratic, else twice the peak]
    #[arg(long, value_name = "T")]
    pub sla_until: Option<u32>,
    /// Stop dividing an interval that is narrower than this percentage of T [default: 5]
    #[arg(long, value_name = "PERCENT")]
    pub resolution: Option<f64>,
    /// The number of threads to begin with
    #[arg(long, value_name = "T", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub first_threads: u32,
    /// The highest number of threads to try
    #[arg(long, value_name = "T", default_value_t = 1_000_000_000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub max_threads: u32,
    /// Also run the paper's own search, doubling and hill climbing
    #[arg(long)]
    pub compare: bool,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
}
