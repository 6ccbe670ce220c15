//! How fast a plan starts sessions: in an open loop by due times, in a closed loop by a target or by
//! the number of threads over time.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::arrivals::RATE_MAX;
use crate::sla::nanoseconds;

/// Open loop: each session has a due time, which stands whether or not the store keeps up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenLoop {
    /// When sessions are due.
    pub due: Due,
    /// What happens to a session if all threads are busy at its due time.
    #[serde(default)]
    pub overload: Overload,
}

/// When sessions are due, counted from the beginning of their part of the experiment. In the
/// warm-up, sessions that an earlier experiment gave back are due at once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Due {
    /// As the trace says: `(due_us − from_us) / factor`.
    Trace {
        /// The load time at which the measured part begins, in µs: the least due time of the first
        /// measured session of each fragment.
        from_us: u64,
        /// The load time at which the warm-up begins, in µs.
        warmup_from_us: u64,
        /// How many times as fast as the trace says; above 0.
        factor: f64,
    },
    /// Evenly spaced: session i of fragment f, whose share of all sessions is w, is due after
    /// `(i − first + (f + 0.5) / F) / (w · per_s)` seconds. F is the number of fragments of the trace
    /// set, `first` the fragment's first session of the part.
    Even {
        /// Sessions a second over all fragments of the trace set; above 0.
        per_s: f64,
    },
}

/// What happens to a session if all threads are busy at its due time. In the warm-up it is always
/// [`Overload::Queue`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overload {
    /// It waits for a thread. Its response time counts from its due time.
    #[default]
    Queue,
    /// It does not start. Its operations are logged as skipped, and counted.
    Skip,
    /// The experiment ends early, and does not pass.
    Stop,
}

impl Overload {
    /// The names of all choices, as a user writes them.
    pub const NAMES: [&str; 3] = ["queue", "skip", "stop"];
}

impl FromStr for Overload {
    type Err = String;

    fn from_str(text: &str) -> Result<Overload, String> {
        match text {
            "queue" => Ok(Overload::Queue),
            "skip" => Ok(Overload::Skip),
            "stop" => Ok(Overload::Stop),
            _ => Err(format!("{text:?} is not a choice; use queue, skip or stop")),
        }
    }
}

impl fmt::Display for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Overload::NAMES[*self as usize])
    }
}

/// How many threads work from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadsFrom {
    /// Seconds from the beginning of the measured part.
    pub from_s: f64,
    /// Threads that work; the others rest.
    pub threads: u32,
}

/// The number of threads over time, as a user writes it.
///
/// ```
/// use schemas::pace::ThreadsOverTime;
/// let schedule: ThreadsOverTime = "0s:10,30s:100,60s:10".parse().unwrap();
/// assert_eq!((schedule.0[1].from_s, schedule.0[1].threads), (30.0, 100));
/// assert_eq!(schedule.to_string(), "0s:10,30s:100,60s:10");
/// assert!("30s:10".parse::<ThreadsOverTime>().unwrap_err().contains("0s"));
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadsOverTime(pub Vec<ThreadsFrom>);

impl FromStr for ThreadsOverTime {
    type Err = String;

    fn from_str(text: &str) -> Result<ThreadsOverTime, String> {
        let steps: Vec<ThreadsFrom> = text.split(',').map(threads_from).collect::<Result<_, _>>()?;
        check_schedule(&steps, u32::MAX)?;
        Ok(ThreadsOverTime(steps))
    }
}

impl fmt::Display for ThreadsOverTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.0.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            write!(f, "{comma}{}s:{}", step.from_s, step.threads)?;
        }
        Ok(())
    }
}

/// One step: `30s:100`.
fn threads_from(step: &str) -> Result<ThreadsFrom, String> {
    let wrong = || format!("{step:?} is not a time and a number of threads; write steps like 0s:10,30s:100");
    let (from, threads) = step.trim().split_once(':').ok_or_else(wrong)?;
    let threads = threads.trim().parse().map_err(|_| wrong())?;
    let is_zero = from.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse() == Ok(0.0);
    let from_s = if is_zero { 0.0 } else { nanoseconds(from)? as f64 / 1e9 };
    Ok(ThreadsFrom { from_s, threads })
}

/// Refuses a schedule that does not begin at 0, is not in order, or wants no thread or more than
/// there are.
pub(crate) fn check_schedule(steps: &[ThreadsFrom], threads: u32) -> Result<(), String> {
    if steps.first().is_some_and(|step| step.from_s != 0.0) {
        return Err(format!("the first step begins at {} s; begin with one at 0s", steps[0].from_s));
    }
    if let Some(pair) = steps.windows(2).find(|pair| !pair[1].from_s.is_finite() || pair[1].from_s <= pair[0].from_s) {
        let (before, after) = (pair[0].from_s, pair[1].from_s);
        return Err(format!("the step at {after} s follows the one at {before} s; write the steps in order of time"));
    }
    match steps.iter().find(|step| !(1..=threads).contains(&step.threads)) {
        Some(ThreadsFrom { from_s, threads: 0 }) => {
            Err(format!("the step at {from_s} s has no thread; use at least 1, or shorten the experiment"))
        }
        Some(ThreadsFrom { from_s, threads: wanted }) => Err(format!(
            "the step at {from_s} s has {wanted} threads, and --threads is {threads}; raise --threads to the largest step"
        )),
        None => Ok(()),
    }
}

/// The keys of a plan that say how fast sessions start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Pace {
    /// [`Plan::open_loop`](crate::plan::Plan::open_loop).
    pub open_loop: Option<OpenLoop>,
    /// [`Plan::target_per_s`](crate::plan::Plan::target_per_s).
    pub target_per_s: Option<f64>,
    /// [`Plan::threads_over_time`](crate::plan::Plan::threads_over_time).
    pub threads_over_time: Vec<ThreadsFrom>,
}

impl Pace {
    /// Checks the keys by themselves, of a plan with `threads` threads; the error names the key.
    pub fn check(&self, threads: u32) -> Result<(), String> {
        let (per_s, factor) = match self.open_loop.map(|open| open.due) {
            Some(Due::Even { per_s }) => (Some(per_s), None),
            Some(Due::Trace { factor, .. }) => (None, Some(factor)),
            None => (None, None),
        };
        check_rate("open_loop: per_s", per_s)?;
        positive("open_loop: factor", factor)?;
        check_rate("target_per_s", self.target_per_s)?;
        check_schedule(&self.threads_over_time, threads).map_err(|why| format!("threads_over_time: {why}"))?;
        let is_closed_only = self.target_per_s.is_some() || !self.threads_over_time.is_empty();
        match self.open_loop.is_some() && is_closed_only {
            true => Err("open_loop excludes target_per_s and threads_over_time, which are for a closed loop".into()),
            false => Ok(()),
        }
    }
}

/// Refuses a rate that is not above 0, or greater than that of a specification may be.
pub(crate) fn check_rate(flag: &str, per_s: Option<f64>) -> Result<(), String> {
    positive(flag, per_s)?;
    match per_s.filter(|per_s| *per_s > RATE_MAX) {
        Some(per_s) => Err(format!("{flag} is {per_s}, which is too high; use at most 1000000000 sessions a second")),
        None => Ok(()),
    }
}

/// Refuses a rate or factor that is not above 0, or endless.
pub(crate) fn positive(flag: &str, value: Option<f64>) -> Result<(), String> {
    match value {
        Some(value) if !(value.is_finite() && value > 0.0) => {
            Err(format!("{flag} is {value}; use a finite number above 0"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_that_cannot_be_are_refused() {
        let check = |text: &str, expect: &str| {
            let why = text.parse::<ThreadsOverTime>().unwrap_err();
            assert!(why.contains(expect), "{text}: {why}");
        };
        check("", "0s:10,30s:100");
        check("0s", "\"0s\" is not a time and a number");
        check("0s:x", "\"0s:x\" is not a time and a number");
        check("0s:1,30:2", "\"30\" is not a time with its unit");
        check("5s:1", "begins at 5 s");
        check("0s:1,5s:2,5s:3", "the step at 5 s follows the one at 5 s");
        check("0s:0", "no thread");
    }

    #[test]
    fn plans_say_an_open_loop_as_before_or_not_at_all() {
        let open =
            OpenLoop { due: Due::Trace { from_us: 7, warmup_from_us: 3, factor: 1.5 }, overload: Overload::default() };
        let text = serde_json::to_string(&open).unwrap();
        assert_eq!(text, r#"{"due":{"trace":{"from_us":7,"warmup_from_us":3,"factor":1.5}},"overload":"queue"}"#);
        assert_eq!(serde_json::from_str::<OpenLoop>(&text).unwrap(), open);
        let even: OpenLoop = serde_json::from_str(r#"{"due":{"even":{"per_s":20}},"overload":"skip"}"#).unwrap();
        assert_eq!(even, OpenLoop { due: Due::Even { per_s: 20.0 }, overload: Overload::Skip });
        for (name, overload) in Overload::NAMES.iter().zip([Overload::Queue, Overload::Skip, Overload::Stop]) {
            assert_eq!((name.parse(), overload.to_string().as_str()), (Ok(overload), *name));
        }
    }
}
