//! A store as an M/M/c queue: sessions arrive as a Poisson process, each of c servers works on one at
//! a time, service times are exponential, and who comes first is served first. Its response times
//! have a closed form, so the highest arrival rate that keeps an SLA is known.

/// An M/M/c queue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queue {
    /// c, at least 1.
    pub servers: u32,
    /// How many sessions one server completes in a second, when it never waits.
    pub service_per_s: f64,
}

/// After so many halvings an interval of doubles has no width left.
const HALVINGS: u32 = 200;

impl Queue {
    /// The arrival rate from which on the queue grows without end, in sessions a second.
    pub fn capacity_per_s(&self) -> f64 {
        f64::from(self.servers) * self.service_per_s
    }

    /// The probability that a session has to wait for a server at this arrival rate: Erlang's C
    /// formula, by the recursion of his B formula, which neither overflows nor cancels.
    pub fn waiting_share(&self, rate_per_s: f64) -> f64 {
        let offered = rate_per_s / self.service_per_s;
        let servers = f64::from(self.servers);
        if offered >= servers {
            return 1.0;
        }
        let lost = (1..=self.servers).fold(1.0, |lost, n| offered * lost / (f64::from(n) + offered * lost));
        servers * lost / (servers - offered * (1.0 - lost))
    }

    /// The probability that a response takes at most this long, in seconds. It is 0 from the capacity
    /// on, where the queue has no steady state.
    pub fn share_within(&self, seconds: f64, rate_per_s: f64) -> f64 {
        if rate_per_s >= self.capacity_per_s() {
            return 0.0;
        }
        // A session that waits does so for an exponential time with this rate.
        let drain = self.capacity_per_s() - rate_per_s;
        let waits = self.waiting_share(rate_per_s);
        let beyond = (1.0 - waits) * (-self.service_per_s * seconds).exp()
            + waits * beyond_both(self.service_per_s, drain, seconds);
        (1.0 - beyond).clamp(0.0, 1.0)
    }

    /// The highest arrival rate at which this share of all responses takes at most this long; 0 if
    /// the service alone takes too long. The share falls with the rate, so bisection finds it.
    pub fn highest_rate(&self, share: f64, seconds: f64) -> f64 {
        let (mut low, mut high) = (0.0, self.capacity_per_s());
        if self.share_within(seconds, low) < share {
            return 0.0;
        }
        for _ in 0..HALVINGS {
            let middle = low + (high - low) / 2.0;
            if self.share_within(seconds, middle) >= share {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The probability that the sum of two exponential times with these rates exceeds this time. The
/// usual quotient cancels if the rates are nearly equal; this form does not.
fn beyond_both(one: f64, other: f64, seconds: f64) -> f64 {
    let (slow, fast) = (one.min(other), one.max(other));
    let difference = (fast - slow) * seconds;
    // (1 - exp(-x)) / x, which is 1 at 0.
    let growth = if difference > 0.0 { -(-difference).exp_m1() / difference } else { 1.0 };
    (-fast * seconds).exp() + fast * seconds * (-slow * seconds).exp() * growth
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::noise;

    const fn queue(servers: u32) -> Queue {
        Queue { servers, service_per_s: 100.0 }
    }

    /// Serves this many sessions in the order of their arrival, and returns the share whose response
    /// took at most this long.
    fn simulated(queue: Queue, rate_per_s: f64, seconds: f64, sessions: u64) -> f64 {
        let exponential = |stream: u32, session: u64, per_s: f64| -noise::uniform(7, stream, session).ln() / per_s;
        let mut free_s = vec![0.0f64; queue.servers as usize];
        let (mut now_s, mut within) = (0.0, 0u64);
        for session in 0..sessions {
            now_s += exponential(1, session, rate_per_s);
            let first = (0..free_s.len()).min_by(|a, b| free_s[*a].total_cmp(&free_s[*b])).unwrap();
            free_s[first] = free_s[first].max(now_s) + exponential(2, session, queue.service_per_s);
            within += u64::from(free_s[first] - now_s <= seconds);
        }
        within as f64 / sessions as f64
    }

    /// The formula against the brute force of a discrete-event simulation.
    #[test]
    fn the_formula_agrees_with_served_sessions() {
        for (servers, load, seconds) in
            [(1, 0.5, 0.02), (1, 0.8, 0.1), (2, 0.7, 0.03), (4, 0.9, 0.05), (16, 0.9, 0.02), (16, 0.5, 0.01)]
        {
            let queue = queue(servers);
            let rate_per_s = load * queue.capacity_per_s();
            let (formula, served) =
                (queue.share_within(seconds, rate_per_s), simulated(queue, rate_per_s, seconds, 400_000));
            assert!((formula - served).abs() < 0.01, "c = {servers} at {load}: {formula} by formula, {served} served");
        }
    }

    /// With one server the response is exponential; with servers to spare it is the service alone.
    #[test]
    fn the_ends_are_known() {
        let one = queue(1);
        assert!((one.waiting_share(60.0) - 0.6).abs() < 1e-12);
        assert!((one.share_within(0.05, 60.0) - (1.0 - (-2.0f64).exp())).abs() < 1e-12);
        // The drain of the queue is as fast as the service: the quotient would be 0 / 0.
        let equal = queue(2).share_within(0.03, 100.0);
        let near = queue(2).share_within(0.03, 100.0 + 1e-9);
        assert!((equal - near).abs() < 1e-9, "{equal} and {near}");
        let many = queue(100_000).share_within(0.01, 100.0);
        assert!((many - (1.0 - (-1.0f64).exp())).abs() < 1e-12);
        assert_eq!((one.share_within(1.0, 100.0), one.waiting_share(100.0)), (0.0, 1.0));
    }

    #[test]
    fn the_highest_rate_just_keeps_the_share() {
        for (servers, share) in [(1, 0.95), (4, 0.5), (16, 0.99), (1000, 0.999)] {
            let (queue, seconds) = (queue(servers), 0.1);
            let rate = queue.highest_rate(share, seconds);
            assert!(rate > 0.0 && rate < queue.capacity_per_s());
            assert!((queue.share_within(seconds, rate) - share).abs() < 1e-9, "c = {servers}");
            assert!(queue.share_within(seconds, rate * 1.001) < share);
        }
        // One server: P(R <= t) = 1 - exp(-(service - rate) t).
        let expect = 100.0 + (0.05f64).ln() / 0.1;
        assert!((queue(1).highest_rate(0.95, 0.1) - expect).abs() < 1e-6);
        assert_eq!(queue(9).highest_rate(0.95, 0.01), 0.0, "the service alone exceeds 10 ms in 37% of cases");
    }
}
