//! `encore simulate`.

use crate::cli::args::SimulateArgs;
use crate::failure::Failure;
use crate::search::{FIGURE_13, Limits, NOISE, RESOLUTION};
use crate::simulate::by_rate::{Queue, RateSetup};
use crate::simulate::{Form, Setup, Store};

/// The highest load of a search that costs nothing.
const MAX_LOAD: u32 = 1_000_000_000;

/// The first arrival rate, as in `encore rate`.
const FIRST_RATE: u32 = 100;

/// The numbers of servers, unless `--servers` is given.
const SERVERS: [u32; 5] = [1, 4, 16, 64, 256];

/// What to simulate.
#[derive(Debug, Clone, PartialEq)]
pub enum Simulated {
    /// A rating by threads.
    Threads(Setup),
    /// A rating by arrival rate.
    Rate(RateSetup),
}

/// Resolves `encore simulate`. Refuses the flags of the other rating.
pub fn simulation(args: &SimulateArgs) -> Result<Simulated, Failure> {
    let of_threads = [
        ("--peaks", !args.peaks.is_empty()),
        ("--noise", args.noise.is_some()),
        ("--sla-until", args.sla_until.is_some()),
        ("--first-threads", args.first_threads.is_some()),
        ("--max-threads", args.max_threads.is_some()),
        ("--compare", args.compare),
    ];
    let of_rate = [
        ("--servers", !args.servers.is_empty()),
        ("--service-rate", args.service_rate.is_some()),
        ("--sla", args.sla.is_some()),
        ("--search-s", args.search_s.is_some()),
        ("--first-rate", args.first_rate.is_some()),
        ("--max-rate", args.max_rate.is_some()),
    ];
    let given = |flags: &[(&'static str, bool)]| flags.iter().find(|(_, is_given)| *is_given).map(|(flag, _)| *flag);
    match args.curve.form() {
        Some(form) => match given(&of_rate) {
            Some(flag) => Err(Failure::usage(format!("{flag} is for a queue; add --curve mmc, or remove it"))),
            None => by_threads(form, args).map(Simulated::Threads),
        },
        None => match given(&of_threads) {
            Some(flag) => Err(Failure::usage(format!(
                "{flag} is for a rating by threads, and --curve mmc is rated by arrival rate; remove one of the two"
            ))),
            None => by_rate(args).map(Simulated::Rate),
        },
    }
}

fn by_threads(form: Form, args: &SimulateArgs) -> Result<Setup, Failure> {
    let first = args.first_threads.unwrap_or(1);
    let limits = limits(args, ("--first-threads", first), ("--max-threads", args.max_threads.unwrap_or(MAX_LOAD)))?;
    let noise = percent("noise", args.noise.unwrap_or(0.0), 50.0)?;
    let peaks = if args.peaks.is_empty() { &FIGURE_13[..] } else { &args.peaks };
    if let Some(peak) = peaks.iter().find(|peak| !(**peak >= 1.0 && **peak <= 1e9)) {
        return Err(Failure::usage(format!("--peaks {peak} is not a throughput from 1 to 1,000,000,000 operations/s")));
    }
    let store = |peak_per_s: &f64| {
        let ends_at = match form {
            Form::Quadratic => None,
            Form::SquareRoot | Form::Saturating => Some((2.0 * peak_per_s).round() as u32),
        };
        let sla_until = args.sla_until.or(ends_at);
        Store { form, peak_per_s: *peak_per_s, sla_until, noise, seed: args.seed }
    };
    Ok(Setup { limits, stores: peaks.iter().map(store).collect(), with_doubling: args.compare })
}

fn by_rate(args: &SimulateArgs) -> Result<RateSetup, Failure> {
    let max = args.max_rate.unwrap_or(MAX_LOAD);
    let first = args.first_rate.unwrap_or(FIRST_RATE.min(max));
    let limits = limits(args, ("--first-rate", first), ("--max-rate", max))?;
    let service_per_s = positive("--service-rate", args.service_rate.unwrap_or(100.0), 1e6, "sessions per second")?;
    let search_s = positive("--search-s", args.search_s.unwrap_or(1.5), 86_400.0, "seconds")?;
    let servers = if args.servers.is_empty() { &SERVERS[..] } else { &args.servers };
    let queues = servers.iter().map(|servers| Queue { servers: *servers, service_per_s }).collect();
    Ok(RateSetup { limits, queues, sla: args.sla.unwrap_or_default(), search_s, seed: args.seed })
}

/// The limits of a search from the first load to the highest one, each with its flag.
fn limits(args: &SimulateArgs, first: (&str, u32), max: (&str, u32)) -> Result<Limits, Failure> {
    if first.1 > max.1 {
        return Err(Failure::usage(format!("{} {} is above {} {}", first.0, first.1, max.0, max.1)));
    }
    let resolution = args.resolution.map_or(Ok(RESOLUTION), |value| percent("resolution", value, 50.0))?;
    Ok(Limits { first_load: first.1, max_load: max.1, resolution, noise: NOISE })
}

fn percent(flag: &str, value: f64, most: f64) -> Result<f64, Failure> {
    match value >= 0.0 && value <= most {
        true => Ok(value / 100.0),
        false => Err(Failure::usage(format!("--{flag} {value} is not a percentage from 0 to {most}"))),
    }
}

fn positive(flag: &str, value: f64, most: f64, unit: &str) -> Result<f64, Failure> {
    match value > 0.0 && value <= most {
        true => Ok(value),
        false => {
            Err(Failure::usage(format!("{flag} {value} is out of range; use more than 0 and at most {most} {unit}")))
        }
    }
}
