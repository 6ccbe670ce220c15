//! `encore simulate`.

use crate::cli::args::SimulateArgs;
use crate::failure::Failure;
use crate::search::{FIGURE_13, Limits, NOISE, RESOLUTION};
use crate::simulate::{Form, Setup, Store};

/// Resolves `encore simulate`.
pub fn simulation(args: &SimulateArgs) -> Result<Setup, Failure> {
    if args.first_threads > args.max_threads {
        let (first, max) = (args.first_threads, args.max_threads);
        return Err(Failure::usage(format!("--first-threads {first} is above --max-threads {max}")));
    }
    let percent = |flag: &str, value: f64, most: f64| {
        let is_known = value >= 0.0 && value <= most;
        let wrong = || Failure::usage(format!("--{flag} {value} is not a percentage from 0 to {most}"));
        if is_known { Ok(value / 100.0) } else { Err(wrong()) }
    };
    let noise = percent("noise", args.noise, 50.0)?;
    let resolution = args.resolution.map_or(Ok(RESOLUTION), |value| percent("resolution", value, 50.0))?;
    let (first_threads, max_threads) = (args.first_threads, args.max_threads);
    let limits = Limits { first_threads, max_threads, resolution, noise: NOISE };
    let peaks = if args.peaks.is_empty() { &FIGURE_13[..] } else { &args.peaks };
    if let Some(peak) = peaks.iter().find(|peak| !(**peak >= 1.0 && **peak <= 1e9)) {
        return Err(Failure::usage(format!("--peaks {peak} is not a throughput from 1 to 1,000,000,000 operations/s")));
    }
    let store = |peak_per_s: &f64| {
        let ends_at = match args.curve {
            Form::Quadratic => None,
            Form::SquareRoot | Form::Saturating => Some((2.0 * peak_per_s).round() as u32),
        };
        let sla_until = args.sla_until.or(ends_at);
        Store { form: args.curve, peak_per_s: *peak_per_s, sla_until, noise, seed: args.seed }
    };
    Ok(Setup { limits, stores: peaks.iter().map(store).collect(), with_doubling: args.compare })
}
