//! Waiting times: between the operations of a session, and between sessions.

use schemas::spec::{Delay, DelayDistribution};

use super::chance::Stream;

/// The longest wait that fits the trace format, in microseconds: a good half hour.
const WAIT_US_MAX: f64 = i32::MAX as f64;

/// Draws waiting times for one purpose. They have a random stream of their own, so that longer
/// waits, or none, never change the operations.
pub(crate) struct Delays {
    delay: Delay,
    chance: Stream,
}

impl Delays {
    /// Draws waiting times from `chance`, which must be used for nothing else.
    pub(crate) fn new(delay: Delay, chance: Stream) -> Delays {
        Delays { delay, chance }
    }

    /// The next waiting time, in whole microseconds.
    pub(crate) fn draw_us(&mut self) -> u32 {
        let mean = self.delay.mean_us as f64;
        let wait = match self.delay.distribution {
            _ if self.delay.mean_us == 0 => return 0,
            DelayDistribution::Constant => mean,
            // 1 - unit lies in (0, 1]. `libm`, because the standard library's
            // logarithm may differ between platforms.
            DelayDistribution::Exponential => -mean * libm::log(1.0 - self.chance.unit()),
        };
        wait.round().min(WAIT_US_MAX) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays(mean_us: u32, distribution: DelayDistribution) -> Delays {
        Delays::new(Delay { mean_us, distribution }, Stream::new(1, "test", 0))
    }

    #[test]
    fn constant_waits_are_the_mean_and_fit_the_format() {
        for (mean, expect) in [(0, 0), (1, 1), (5_000, 5_000), (u32::MAX, i32::MAX as u32)] {
            assert_eq!(delays(mean, DelayDistribution::Constant).draw_us(), expect);
        }
        let mut longest = delays(u32::MAX, DelayDistribution::Exponential);
        assert!((0..1_000).all(|_| longest.draw_us() <= i32::MAX as u32));
    }

    /// The mean, and the share of waits above the mean (1/e), match the distribution.
    #[test]
    fn exponential_waits_are_exponential() {
        const DRAWS: usize = 200_000;
        let mut delays = delays(5_000, DelayDistribution::Exponential);
        let waits: Vec<u32> = (0..DRAWS).map(|_| delays.draw_us()).collect();
        let mean = waits.iter().map(|w| *w as f64).sum::<f64>() / DRAWS as f64;
        assert!((4_950.0..5_050.0).contains(&mean), "{mean}");
        let above = waits.iter().filter(|w| **w > 5_000).count() as f64 / DRAWS as f64;
        assert!((0.363..0.373).contains(&above), "{above}");
    }
}
