//! A rate over time: how many sessions are due until a time, and when the n-th one is due.
//!
//! A profile is a sequence of segments in which the rate changes linearly. The number of arrivals in
//! a segment is then a quadratic function of time, which a closed formula inverts. It uses only
//! operations whose results IEEE 754 defines to the bit.

use super::expression::Expression;

/// The latest due time of a session, in seconds: 2^40 µs, some 12.7 days.
pub const DUE_S_MAX: f64 = super::DUE_US_MAX as f64 / 1e6;

/// The greatest rate, in sessions a second.
pub const RATE_MAX: f64 = 1e9;

/// An expression is evaluated so often a second. Between two evaluations its rate is linear.
const EVALUATIONS_PER_S: f64 = 32.0;

/// A stretch of time in which the rate changes linearly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Segment {
    /// Its start, in seconds.
    pub(super) start_s: f64,
    /// Its length, in seconds; infinite for the last segment of a profile that ends.
    pub(super) length_s: f64,
    /// The rate at its start, in sessions a second.
    pub(super) from: f64,
    /// The rate at its end, in sessions a second.
    pub(super) to: f64,
}

impl Segment {
    fn end_s(&self) -> f64 {
        self.start_s + self.length_s
    }

    fn slope(&self) -> f64 {
        if self.from == self.to { 0.0 } else { (self.to - self.from) / self.length_s }
    }

    /// The rate so many seconds after its start.
    fn rate(&self, after_s: f64) -> f64 {
        self.from + self.slope() * after_s.min(self.length_s)
    }

    /// How many sessions are due in its first seconds.
    fn arrivals_until(&self, after_s: f64) -> f64 {
        after_s * (self.from + self.slope() * after_s / 2.0)
    }

    /// How many sessions are due in it.
    fn arrivals(&self) -> f64 {
        match self.length_s.is_finite() {
            true => self.length_s * (self.from + self.to) / 2.0,
            false if self.from > 0.0 => f64::INFINITY,
            false => 0.0,
        }
    }

    /// How many seconds after its start so many of its sessions are due: the root of
    /// `from * x + slope * x^2 / 2 = arrivals`, in the form that loses no digits.
    fn seconds_until(&self, arrivals: f64) -> f64 {
        if arrivals <= 0.0 {
            return 0.0;
        }
        let root = libm::sqrt((self.from * self.from + 2.0 * self.slope() * arrivals).max(0.0));
        (2.0 * arrivals / (self.from + root)).min(self.length_s)
    }
}

/// What follows the last segment.
#[derive(Debug, Clone)]
enum Then {
    /// This rate, for ever.
    Rate(f64),
    /// The segments again, for ever.
    Again,
    /// There are no segments; they are made from an expression as they are needed.
    Expression(Box<Expression>),
}

/// The rate of arrivals over time, in sessions a second.
#[derive(Debug, Clone)]
pub struct Profile {
    segments: Vec<Segment>,
    then: Then,
}

/// Why a session is never due.
#[derive(Debug, Clone, PartialEq)]
pub enum NeverDue {
    /// So few sessions are due until [`DUE_S_MAX`].
    Beyond {
        /// How many.
        arrivals: f64,
    },
    /// The expression gives no rate at a time.
    NoRate {
        /// The time, in seconds.
        at_s: f64,
        /// Its value there.
        value: f64,
        /// What is wrong with the value.
        fault: &'static str,
    },
}

/// What is wrong with a rate; None if nothing is.
pub(super) fn fault(rate: f64) -> Option<&'static str> {
    match rate {
        rate if rate.is_nan() => Some("is not a number"),
        rate if rate.is_infinite() => Some("is infinite"),
        rate if rate < 0.0 => Some("is negative"),
        rate if rate > RATE_MAX => Some("is above 1,000,000,000"),
        _ => None,
    }
}

impl Profile {
    /// Always the same rate.
    pub(super) fn constant(rate: f64) -> Profile {
        Profile { segments: Vec::new(), then: Then::Rate(rate) }
    }

    /// The rate that an expression gives.
    pub(super) fn of_expression(expression: Expression) -> Profile {
        match expression.constant() {
            Some(rate) => Profile::constant(rate),
            None => Profile { segments: Vec::new(), then: Then::Expression(Box::new(expression)) },
        }
    }

    /// These segments, then `last` for ever.
    pub(super) fn of_segments(segments: Vec<Segment>, last: f64) -> Profile {
        Profile { segments, then: Then::Rate(last) }
    }

    /// These segments again and again. There is at least one of positive length.
    pub(super) fn repeated(segments: Vec<Segment>) -> Profile {
        Profile { segments, then: Then::Again }
    }

    /// Its length until it repeats or keeps its last rate, in seconds.
    fn length_s(&self) -> f64 {
        self.segments.last().map_or(0.0, Segment::end_s)
    }

    fn segment(&self, index: u64) -> Segment {
        let count = self.segments.len() as u64;
        match &self.then {
            Then::Expression(expression) => {
                let node = |index: u64| expression.at(index as f64 / EVALUATIONS_PER_S);
                let start_s = index as f64 / EVALUATIONS_PER_S;
                Segment { start_s, length_s: 1.0 / EVALUATIONS_PER_S, from: node(index), to: node(index + 1) }
            }
            Then::Again => {
                let segment = self.segments[(index % count) as usize];
                Segment { start_s: (index / count) as f64 * self.length_s() + segment.start_s, ..segment }
            }
            Then::Rate(rate) => self.segments.get(index as usize).copied().unwrap_or(Segment {
                start_s: self.length_s(),
                length_s: f64::INFINITY,
                from: *rate,
                to: *rate,
            }),
        }
    }

    /// The rate at a time in seconds, in sessions a second. It is not a number where an expression has
    /// no value.
    pub fn rate_at(&self, t_s: f64) -> f64 {
        let t_s = t_s.max(0.0);
        let among = |t_s: f64| {
            let index = self.segments.partition_point(|segment| segment.end_s() <= t_s);
            self.segment(index as u64)
        };
        let (segment, t_s) = match &self.then {
            Then::Expression(_) => (self.segment((t_s * EVALUATIONS_PER_S) as u64), t_s),
            Then::Rate(_) => (among(t_s), t_s),
            Then::Again => {
                let within = t_s - libm::floor(t_s / self.length_s()) * self.length_s();
                (among(within), within)
            }
        };
        segment.rate(t_s - segment.start_s)
    }

    /// How many sessions are due until a time in seconds, on average.
    pub fn arrivals_until(&self, t_s: f64) -> f64 {
        self.arrivals_until_each(&[t_s])[0]
    }

    /// The same for several times in one pass. The times are finite and do not decrease.
    pub fn arrivals_until_each(&self, times_s: &[f64]) -> Vec<f64> {
        let mut walk = Walk::new(self);
        let until = |t_s: &f64| {
            let t_s = t_s.max(0.0);
            while walk.segment.end_s() <= t_s {
                walk.advance();
            }
            walk.before + walk.segment.arrivals_until(t_s - walk.segment.start_s)
        };
        times_s.iter().map(until).collect()
    }

    /// The mean rate of the first seconds, in sessions a second; at 0, the rate there.
    pub fn mean_rate(&self, seconds: f64) -> f64 {
        if seconds > 0.0 { self.arrivals_until(seconds) / seconds } else { self.rate_at(0.0) }
    }

    /// The greatest rate of the first seconds, in sessions a second.
    pub fn greatest_rate(&self, seconds: f64) -> f64 {
        let (mut walk, mut greatest) = (Walk::new(self), 0.0f64);
        loop {
            let last = walk.segment.rate((seconds - walk.segment.start_s).max(0.0));
            greatest = greatest.max(walk.segment.from).max(last);
            if walk.segment.end_s() >= seconds {
                return greatest;
            }
            walk.advance();
        }
    }

    /// Finds due times, one after the other.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor { walk: Walk::new(self), latest_s: 0.0 }
    }

    /// When so many sessions are due, in seconds.
    pub fn time_of(&self, arrivals: f64) -> Result<f64, NeverDue> {
        self.cursor().time_of(arrivals)
    }
}

/// The segments of a profile in order.
#[derive(Debug)]
struct Walk<'a> {
    profile: &'a Profile,
    index: u64,
    segment: Segment,
    /// How many sessions are due before the segment.
    before: f64,
}

impl<'a> Walk<'a> {
    fn new(profile: &'a Profile) -> Walk<'a> {
        Walk { profile, index: 0, segment: profile.segment(0), before: 0.0 }
    }

    fn advance(&mut self) {
        self.before += self.segment.arrivals();
        self.index += 1;
        self.segment = self.profile.segment(self.index);
    }

    /// Refuses a segment whose ends are no rates.
    fn check(&self) -> Result<(), NeverDue> {
        let Segment { start_s, length_s, from, to } = self.segment;
        let wrong = |at_s: f64, value: f64| fault(value).map(|fault| NeverDue::NoRate { at_s, value, fault });
        match wrong(start_s, from).or_else(|| wrong(start_s + length_s, to)) {
            Some(wrong) => Err(wrong),
            None => Ok(()),
        }
    }
}

/// Finds due times, one after the other.
#[derive(Debug)]
pub struct Cursor<'a> {
    walk: Walk<'a>,
    latest_s: f64,
}

impl Cursor<'_> {
    /// When so many sessions are due, in seconds. The number must not decrease from call to call. The
    /// result never does.
    pub fn time_of(&mut self, arrivals: f64) -> Result<f64, NeverDue> {
        loop {
            self.walk.check()?;
            let (segment, before) = (self.walk.segment, self.walk.before);
            let within = arrivals - before;
            if within <= segment.arrivals() {
                let time_s = segment.start_s + segment.seconds_until(within);
                // Rounding may put the start of a segment before the end of the one before it.
                self.latest_s = self.latest_s.max(time_s);
                return match self.latest_s <= DUE_S_MAX {
                    true => Ok(self.latest_s),
                    false => Err(NeverDue::Beyond { arrivals: self.walk.profile.arrivals_until(DUE_S_MAX) }),
                };
            }
            if segment.end_s() > DUE_S_MAX {
                let until = if segment.length_s.is_finite() { DUE_S_MAX - segment.start_s } else { 0.0 };
                return Err(NeverDue::Beyond { arrivals: before + segment.arrivals_until(until) });
            }
            self.walk.advance();
        }
    }
}
