//! The flags that say how fast sessions start. `encore run` has the same.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use schemas::pace::{Overload, ThreadsOverTime};
use schemas::pace_request::PaceRequest;

/// How fast sessions start.
#[allow(rustdoc::broken_intra_doc_links, reason = "these texts are the program's help: [arrivals] is a section")]
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct PaceArgs {
    /// Start N sessions a second at even intervals, whether or not the store keeps up (open loop)
    ///
    /// For trace sets without [arrivals]: those with [arrivals] have due times of their own, and are
    /// always replayed in an open loop (see --rate-factor). Without [arrivals] and --rate the replay is a
    /// closed loop: a thread starts its next session when the last one has ended.
    #[arg(long, value_name = "N", value_parser = above_zero)]
    pub rate: Option<f64>,
    /// Replay a trace set with [arrivals] F times as fast as it says (open loop); below 1 is slower
    /// [default: 1]
    #[arg(long, value_name = "F", value_parser = above_zero)]
    pub rate_factor: Option<f64>,
    /// What happens to a session if all threads are busy when it is due: it waits for a thread
    /// (queue), is logged as skipped (skip), or ends the experiment (stop); needs --rate or
    /// [arrivals] [default: queue]
    ///
    /// queue: its response time counts from its due time. skip: its operations miss the SLA. stop: the
    /// experiment does not pass.
    #[arg(long, value_name = "CHOICE", value_parser = PossibleValuesParser::new(Overload::NAMES).try_map(|name| name.parse::<Overload>()))]
    pub overload: Option<Overload>,
    /// Start at most N sessions a second over all threads, each thread at its own even pace (closed
    /// loop) [default: no limit]
    ///
    /// As YCSB's -target, but YCSB counts operations: they are the same if each session is one
    /// operation, as in YCSB's workloads A to E. With K operations a session, divide YCSB's number by
    /// K. `encore trace show` prints both numbers of a trace set. A thread that waits for a slow store sends nothing meanwhile, and response times do not
    /// include that. Use --rate to see how long users would wait.
    #[arg(long, value_name = "N", value_parser = above_zero)]
    pub target: Option<f64>,
    /// Let only so many of the threads work from each time on, e.g. 0s:10,30s:100,60s:10 (closed
    /// loop) [default: always all]
    ///
    /// The first step must begin at 0s, and no step may have more threads than --threads. Times count
    /// from the beginning of the measured part; a warm-up has the threads of the first step. Threads
    /// beyond the number end their session and rest.
    #[arg(long, value_name = "TIME:THREADS,...")]
    pub threads_over_time: Option<ThreadsOverTime>,
}

impl PaceArgs {
    /// What these flags ask for.
    pub fn request(&self) -> PaceRequest {
        PaceRequest {
            rate: self.rate,
            rate_factor: self.rate_factor,
            overload: self.overload,
            target: self.target,
            threads_over_time: self.threads_over_time.clone().unwrap_or_default(),
        }
    }
}

/// Parses a finite number above 0.
fn above_zero(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("use a finite number above 0".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        pace: PaceArgs,
    }

    fn parse(flags: &[&str]) -> Result<PaceArgs, String> {
        let only = Only::try_parse_from([&["only"], flags].concat());
        only.map(|only| only.pace).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_become_a_request() {
        assert_eq!(parse(&[]).unwrap().request(), PaceRequest::default());
        let request = parse(&["--rate-factor", "1.5", "--overload", "skip"]).unwrap().request();
        assert_eq!((request.rate_factor, request.overload), (Some(1.5), Some(Overload::Skip)));
        let request = parse(&["--target", "20", "--threads-over-time", "0s:1,500ms:2"]).unwrap().request();
        assert_eq!((request.target, request.threads_over_time.0[1].from_s), (Some(20.0), 0.5));
    }

    #[test]
    fn values_that_make_no_sense_are_refused_by_their_flag() {
        for (flag, value) in [
            ("--rate", "0"),
            ("--rate", "inf"),
            ("--rate", "-5"),
            ("--rate-factor", "NaN"),
            ("--target", "many"),
            ("--overload", "wait"),
            ("--threads-over-time", "10"),
        ] {
            let error = parse(&[&format!("{flag}={value}")]).unwrap_err();
            assert!(error.contains(flag) && error.contains(value), "{error}");
        }
    }
}
