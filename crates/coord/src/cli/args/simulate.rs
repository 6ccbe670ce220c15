//! `encore simulate`.

use clap::{Args, ValueEnum};
use schemas::sla::Sla;

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
  encore simulate --curve mmc                    the highest arrival rate of queues
  encore simulate --curve mmc --servers 8,32 --service-rate 500 --sla \"99% < 20ms\"

A formula gives the throughput for each number of threads T; the search is that
of `encore rate`. No store is used.

With --curve mmc, the store is an M/M/c queue with Poisson arrivals, and the
search is that of `encore rate --by rate`. The highest rate that keeps the SLA is
known by formula. Each experiment draws its share of responses in time from the
binomial distribution.")]
pub struct SimulateArgs {
    /// The form of throughput over T, or a queue
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Curve::Quadratic, hide_possible_values = true,
          help = "quadratic, square-root, saturating or mmc")]
    pub curve: Curve,
    /// The peaks of the curve, in operations a second [default: 500 to 100000000]
    #[arg(long, visible_alias = "peak", value_name = "N,N...", value_delimiter = ',')]
    pub peaks: Vec<f64>,
    /// Standard deviation of experiments with the same T, in percent of their mean [default: 0]
    #[arg(long, value_name = "PERCENT")]
    pub noise: Option<f64>,
    /// Seed of all chance
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The SLA is missed with more threads than this [default: never for quadratic, else twice the peak]
    #[arg(long, value_name = "T")]
    pub sla_until: Option<u32>,
    /// Stop dividing an interval that is narrower than this percentage of the load [default: 5]
    #[arg(long, value_name = "PERCENT")]
    pub resolution: Option<f64>,
    /// The number of threads to begin with [default: 1]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..))]
    pub first_threads: Option<u32>,
    /// The highest number of threads to try [default: 1000000000]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub max_threads: Option<u32>,
    /// Also run the paper's own search, doubling and hill climbing
    #[arg(long)]
    pub compare: bool,
    /// mmc: numbers of servers, one store each [default: 1,4,16,64,256]
    #[arg(long, value_name = "C,C...", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub servers: Vec<u32>,
    /// mmc: sessions per second that one server completes [default: 100]
    #[arg(long, value_name = "N")]
    pub service_rate: Option<f64>,
    /// mmc: the SLA, of which only the response times count [default: "95% < 100ms"]
    #[arg(long, value_name = "SLA")]
    pub sla: Option<Sla>,
    /// mmc: duration of each experiment in seconds [default: 1.5]
    #[arg(long, value_name = "SECONDS")]
    pub search_s: Option<f64>,
    /// mmc: the arrival rate to begin with, in sessions per second [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub first_rate: Option<u32>,
    /// mmc: the highest arrival rate to try, in sessions per second [default: 1000000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub max_rate: Option<u32>,
    /// Print one JSON object instead of the table
    #[arg(long)]
    pub json: bool,
}

/// The values of `--curve`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Curve {
    /// T - T^2 / (4 PEAK): bg-2013's model, PEAK at T = 2 PEAK
    Quadratic,
    /// sqrt(T PEAK / 2): PEAK at T = 2 PEAK, where the SLA ends by default
    SquareRoot,
    /// PEAK (1 - exp(-T / PEAK)): 86% of PEAK at T = 2 PEAK, where the SLA ends by default
    Saturating,
    /// An M/M/c queue: Poisson arrivals, c servers, exponential service times
    Mmc,
}

impl Curve {
    /// The form of throughput over T; none for a queue.
    pub fn form(self) -> Option<Form> {
        match self {
            Curve::Quadratic => Some(Form::Quadratic),
            Curve::SquareRoot => Some(Form::SquareRoot),
            Curve::Saturating => Some(Form::Saturating),
            Curve::Mmc => None,
        }
    }
}
