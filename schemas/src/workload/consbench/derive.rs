//! What follows from the tests of a specification: sessions, mix and arrivals; which tests are refused, and
//! why.

use std::collections::BTreeMap;

use super::{Consbench, Length, Tests};
use crate::arrivals::{Arrivals, DUE_US_MAX, Rate, Spacing};
use crate::spec::{Spec, Wrong};
use crate::words::thousands;

/// The kinds of sessions.
pub(super) const READ: &str = "read";
pub(super) const WRITE: &str = "update";

/// The most reads of a burst.
const READS_MAX: u32 = 1_000_000;

/// The most replicas.
const REPLICAS_MAX: u32 = 1_000;

/// Without a key: within how long each replica is read, and how many clients a fragment has.
const RESOLUTION: Length = Length::of_us(10_000);
const READERS_EACH: u32 = 32;

/// How many reads, each of a random one of so many replicas, read all of them with this probability at
/// least. By the union bound: the probability that one is missed is at most r (1 - 1/r)^n.
pub(super) fn reads_for(replicas: u32, coverage: f64) -> u64 {
    if replicas == 1 {
        return 1;
    }
    let replicas = f64::from(replicas);
    let reads = libm::log(replicas / (1.0 - coverage)) / -libm::log1p(-1.0 / replicas);
    reads.ceil().max(1.0) as u64
}

fn wrong<X>(key: &str, message: impl Into<String>) -> Result<X, Wrong> {
    Err(Wrong::new(format!("consbench.{key}"), message))
}

impl Consbench {
    /// Fills in what a user may leave out, here and in what every specification has.
    pub(super) fn provide(&mut self, common: &mut Spec) -> Result<(), Wrong> {
        self.check_model()?;
        self.check_every_fragment_tests(common)?;
        self.fill_in_reads()?;
        self.readers.get_or_insert(READERS_EACH.saturating_mul(common.fragments));
        self.fill_in_interval(common)?;
        let tests = self.known_tests()?;
        match self.tests.take() {
            Some(count) => common.sessions = check_count(count, tests, common)?,
            None if common.sessions == 0 => return wrong("tests", "is missing; give the number of writes"),
            None => {}
        }
        let (mix, arrivals) = (mix(tests), arrivals(tests, common.fragments));
        if common.mix.is_empty() {
            common.mix = mix;
        }
        common.arrivals.get_or_insert(arrivals);
        Ok(())
    }

    /// Refuses tests from which no trace set can be generated, and a mix or arrivals that are not theirs.
    pub(super) fn check(&self, common: &Spec) -> Result<(), Wrong> {
        self.check_model()?;
        let tests = self.known_tests()?;
        if self.tests.is_some() || self.duration.is_some() || self.resolution.is_some() {
            return wrong("tests", "tests, duration and resolution are only possible in the file of a specification");
        }
        if tests.readers < common.fragments {
            let message = format!("{} is less than fragments ({}); use more", tests.readers, common.fragments);
            return wrong("readers", message);
        }
        if !common.fragment_weights.is_empty() {
            let message =
                "all fragments of consbench do as many tests; remove it, or use more fragments than replayers";
            return Err(Wrong::new("fragment_weights", message));
        }
        if common.mix != mix(tests) {
            let message = format!("follows from [consbench] ({WRITE} = 1, {READ} = {}); remove it", tests.reads);
            return Err(Wrong::new("mix", message));
        }
        if !common.arrivals.as_ref().is_some_and(|found| are_alike(found, &arrivals(tests, common.fragments))) {
            return Err(Wrong::new("arrivals", "the due times follow from [consbench]; remove it"));
        }
        Ok(())
    }

    /// The tests in numbers; the error names the key that is missing.
    pub(super) fn known_tests(&self) -> Result<Tests, Wrong> {
        let missing = |key: &str| Wrong::new(format!("consbench.{key}"), "is missing");
        let (burst_us, interval) = (self.burst.us(), self.interval.ok_or_else(|| missing("interval"))?);
        let reads = self.reads.ok_or_else(|| missing("reads"))?;
        if reads == 0 || reads > READS_MAX || u64::from(reads) > burst_us {
            let most = burst_us.min(READS_MAX.into());
            let message =
                format!("{reads} is not between 1 and {}, one in a microsecond of the burst", thousands(most));
            return wrong("reads", message);
        }
        if interval < self.burst {
            let message = format!(
                "{} is longer than the time between two writes of a fragment ({interval}); use a shorter burst, a longer \
                 interval or duration, fewer tests, or more fragments",
                self.burst
            );
            return wrong("burst", message);
        }
        let readers = self.readers.ok_or_else(|| missing("readers"))?;
        Ok(Tests { interval_us: interval.us(), burst_us, reads, readers })
    }

    fn check_model(&self) -> Result<(), Wrong> {
        if self.replicas == 0 || self.replicas > REPLICAS_MAX {
            return wrong(
                "replicas",
                format!("{} is not between 1 and {}", self.replicas, thousands(REPLICAS_MAX.into())),
            );
        }
        if !(self.coverage > 0.0 && self.coverage < 1.0) {
            return wrong("coverage", format!("{} is not more than 0 and less than 1", self.coverage));
        }
        Ok(())
    }

    fn check_every_fragment_tests(&self, common: &Spec) -> Result<(), Wrong> {
        match self.tests.filter(|count| *count < u64::from(common.fragments.max(1))) {
            None => Ok(()),
            Some(count) => {
                let fragments = common.fragments.max(1);
                wrong("tests", format!("{count} is less than fragments ({fragments}); every fragment needs a test"))
            }
        }
    }

    /// The number of reads, from the resolution.
    fn fill_in_reads(&mut self) -> Result<(), Wrong> {
        match (self.reads, self.resolution.take()) {
            (Some(_), None) => {}
            (Some(_), Some(_)) => return wrong("reads", "reads and resolution exclude each other; remove one"),
            (None, resolution) => {
                let resolution = resolution.unwrap_or(RESOLUTION.min(self.burst));
                if resolution > self.burst {
                    let message = format!("{resolution} is longer than consbench.burst ({})", self.burst);
                    return wrong("resolution", message);
                }
                let each = reads_for(self.replicas, self.coverage);
                let reads = (u128::from(each) * u128::from(self.burst.us())).div_ceil(resolution.us().into());
                if reads > u128::from(READS_MAX.min(self.burst.us().try_into().unwrap_or(u32::MAX))) {
                    let message = format!(
                        "{resolution} needs {reads} reads in a burst of {}, and a burst has at most one in a microsecond and \
                         {} in all; use a longer resolution or a shorter burst",
                        self.burst,
                        thousands(READS_MAX.into())
                    );
                    return wrong("resolution", message);
                }
                self.reads = Some(reads as u32);
            }
        }
        Ok(())
    }

    /// The interval, from the duration of all tests.
    fn fill_in_interval(&mut self, common: &Spec) -> Result<(), Wrong> {
        match (self.interval, self.duration.take()) {
            (Some(_), None) => {}
            (Some(_), Some(_)) => return wrong("duration", "duration and interval exclude each other; remove one"),
            (None, None) => self.interval = Some(Length::of_us(self.burst.us() / 4 + self.burst.us())),
            (None, Some(duration)) => {
                let Some(count) = self.tests.filter(|count| *count > 0) else {
                    return wrong("duration", "needs consbench.tests; give both, or consbench.interval instead");
                };
                let us = u128::from(duration.us()) * u128::from(common.fragments) / u128::from(count);
                self.interval = Some(Length::of_us(us.try_into().unwrap_or(u64::MAX)));
            }
        }
        Ok(())
    }
}

/// The sessions of so many tests.
fn check_count(count: u64, tests: Tests, common: &Spec) -> Result<u64, Wrong> {
    if common.sessions > 0 {
        return wrong("tests", "tests and sessions exclude each other; remove one");
    }
    let each = count.div_ceil(common.fragments.max(1).into());
    if u128::from(each) * u128::from(tests.interval_us) > u128::from(DUE_US_MAX) {
        let message = format!(
            "{} tests take longer than 2^40 µs (12.7 days), the longest time that a trace can take; use fewer tests or a \
             shorter interval",
            thousands(count)
        );
        return wrong("tests", message);
    }
    match count.checked_mul(tests.sessions()) {
        Some(sessions) => Ok(sessions),
        None => wrong("tests", format!("{} are too many", thousands(count))),
    }
}

fn mix(tests: Tests) -> BTreeMap<String, f64> {
    [(READ.to_string(), f64::from(tests.reads)), (WRITE.to_string(), 1.0)].into()
}

/// The mean rate of sessions. It tells a run that it is an open loop; the due times are the tests'.
fn arrivals(tests: Tests, fragments: u32) -> Arrivals {
    let per_s = tests.sessions() as f64 * f64::from(fragments) * 1e6 / tests.interval_us as f64;
    Arrivals {
        rate: Some(Rate::Constant(per_s)),
        file: None,
        repeat: false,
        spacing: Spacing::Even,
        resolution_us: 1,
        points: Vec::new(),
        pieces: Vec::new(),
    }
}

/// Whether both say the same. A document may have lost the last digit of a rate.
fn are_alike(found: &Arrivals, own: &Arrivals) -> bool {
    let rate = |arrivals: &Arrivals| match arrivals.rate {
        Some(Rate::Constant(rate)) => rate,
        _ => 0.0,
    };
    let same = Arrivals { rate: found.rate.clone(), ..own.clone() };
    *found == same && (rate(found) / rate(own) - 1.0).abs() < 1e-9
}

#[cfg(test)]
mod tests {
    use super::super::ConsbenchWorkload;
    use super::*;
    use crate::spec::SpecOf;

    fn parse(tests: &str, more: &str) -> Result<SpecOf<ConsbenchWorkload>, String> {
        let text = format!(
            "name = 't'\nfamily = 'consbench'\nfragments = 2\n{more}\n[data]\nrecords = 10\n[consbench]\n{tests}\n"
        );
        SpecOf::parse(&text, "t.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn the_keys_of_the_paper_give_sessions_due_times_and_mix() {
        let spec =
            parse("replicas = 3\nduration = '60s'\ntests = 120\nburst = '500ms'\nresolution = '5ms'", "").unwrap();
        // 15 reads read each of three replicas with 99%: 3 (2/3)^15 is 0.7%, and 3 (2/3)^14 is 1.03%.
        let tests = spec.own.consbench.tests();
        assert_eq!((tests.reads, tests.interval_us, tests.burst_us, tests.readers), (1_500, 1_000_000, 500_000, 64));
        assert_eq!(spec.own.consbench.resolution_us(), 5_000.0);
        assert_eq!(spec.common.sessions, 120 * 1_501);
        let Some(Rate::Constant(rate)) = spec.common.arrivals.as_ref().unwrap().rate else { panic!("{spec:?}") };
        assert_eq!((rate, spec.common.mix["read"], spec.common.mix["update"]), (3_002.0, 1_500.0, 1.0));
        // It is written out and read again as the same.
        let whole = spec.whole();
        let again = Spec::parse(&whole.to_toml().unwrap(), "u.toml").unwrap();
        assert_eq!(again, whole);
        assert_eq!(again.workload_id(), Spec { sessions: 5, ..whole.clone() }.workload_id());
        let json: Spec = serde_json::from_str(&serde_json::to_string(&whole).unwrap()).unwrap();
        json.check("json").unwrap();
    }

    #[test]
    fn what_is_left_out_has_defaults() {
        let spec = parse("tests = 2\nburst = '100ms'", "").unwrap();
        let tests = spec.own.consbench.tests();
        assert_eq!((tests.reads, tests.interval_us, tests.readers), (150, 125_000, 64));
        let spec = parse("burst = '1ms'\nreads = 5\ninterval = '1ms'", "sessions = 12").unwrap();
        assert_eq!((spec.own.consbench.tests().reads, spec.common.sessions), (5, 12));
        assert_eq!(parse("tests = 2\nburst = '2ms'", "").unwrap().own.consbench.tests().reads, 15);
    }

    #[test]
    fn more_replicas_need_more_reads() {
        let missed =
            |replicas: u32, reads: u64| f64::from(replicas) * libm::pow(1.0 - 1.0 / f64::from(replicas), reads as f64);
        for (replicas, coverage) in [(2, 0.5), (3, 0.99), (3, 0.999), (5, 0.99), (100, 0.9)] {
            let reads = reads_for(replicas, coverage);
            assert!(missed(replicas, reads) <= 1.0 - coverage + 1e-12, "{replicas}, {coverage}: {reads}");
            assert!(missed(replicas, reads - 1) > 1.0 - coverage, "{replicas}, {coverage}: {reads}");
        }
        assert_eq!(reads_for(1, 0.99), 1);
    }

    #[test]
    fn tests_that_cannot_be_done_are_refused_by_key() {
        let good = "tests = 10\nburst = '100ms'\n";
        for (tests, more, expect) in [
            ("burst = '1s'\ntests = 0", "", "consbench.tests: 0 is less than fragments (2)"),
            ("burst = '1s'\ntests = 1", "", "consbench.tests: 1 is less than fragments (2)"),
            ("burst = '1s'", "", "consbench.tests: is missing; give the number of writes"),
            ("burst = '1s'", "inter_arrival_time.mean_us = 5", "consbench.tests: is missing"),
            (good, "inter_arrival_time.mean_us = 5", "inter_arrival_time: arrivals and inter_arrival_time exclude"),
            (good, "sessions = 7", "consbench.tests: tests and sessions exclude each other"),
            ("tests = 5", "", "missing field `burst`"),
            ("tests = 5\nburst = 5", "", "a time with its unit in quotes, such as \"200ms\""),
            ("tests = 5\nburst = '0s'", "", "is not a time above 0"),
            ("tests = 5\nburst = '1.5us'", "", "is not a whole number of microseconds"),
            (
                "tests = 600\nduration = '60s'\nburst = '201ms'",
                "",
                "consbench.burst: 201ms is longer than the time between two writes of a fragment (200ms)",
            ),
            ("tests = 5\ninterval = '9ms'\nburst = '10ms'", "", "consbench.burst: 10ms is longer"),
            ("tests = 5\ninterval = '1s'\nduration = '1s'\nburst = '10ms'", "", "consbench.duration: duration and"),
            ("duration = '1s'\nburst = '10ms'", "sessions = 9", "consbench.duration: needs consbench.tests"),
            (&*format!("{good}replicas = 0"), "", "consbench.replicas: 0 is not between 1 and 1,000"),
            (&*format!("{good}coverage = 1"), "", "consbench.coverage: 1 is not more than 0 and less than 1"),
            (&*format!("{good}resolution = '101ms'"), "", "consbench.resolution: 101ms is longer than consbench.burst"),
            (&*format!("{good}resolution = '2us'"), "", "consbench.resolution: 2us needs 750000 reads"),
            (&*format!("{good}resolution = '2ms'\nreads = 9"), "", "consbench.reads: reads and resolution exclude"),
            (&*format!("{good}reads = 0"), "", "consbench.reads: 0 is not between 1 and 100,000"),
            (&*format!("{good}reads = 100001"), "", "consbench.reads: 100001 is not between"),
            (&*format!("{good}readers = 1"), "", "consbench.readers: 1 is less than fragments (2)"),
            (&*format!("{good}reader = 1"), "", "unknown field `reader`"),
            (good, "fragment_weights = [1, 2]", "fragment_weights: all fragments of consbench"),
            (
                &*format!("{good}[mix]\nread = 1"),
                "",
                "mix: follows from [consbench] (update = 1, read = 150); remove it",
            ),
            (&*format!("{good}[arrivals]\nrate = 7"), "", "arrivals: the due times follow from [consbench]; remove it"),
            (&*format!("{good}[access]\nclients = 7"), "", "access: unknown key; a workload of the family consbench"),
            (
                "tests = 99999999\nburst = '1h'\nresolution = '1h'",
                "",
                "consbench.tests: 99,999,999 tests take longer than",
            ),
        ] {
            let error = parse(tests, more).err().unwrap_or_else(|| panic!("{tests} {more} is accepted"));
            assert!(error.contains(expect), "{tests} {more}: {error}");
        }
    }
}
