//! The exhaustive search, for checking the others: every T from 1 until the
//! first that fails (bg-2013 section G).

use super::{Found, Limits, Lookup, Missing, Next, Results, advance};

/// The SoAR by trying every T.
pub fn soar(results: &Results, limits: &Limits) -> Next {
    advance(results, |mut lookup| {
        let last = last_pass(&mut lookup, limits)?;
        let mut best = (0, 0.0);
        for threads in 1..=last {
            let probe = lookup.at(threads)?;
            if probe.throughput_per_s > best.1 {
                best = (threads, probe.throughput_per_s);
            }
        }
        Ok::<Found, Missing>(lookup.found(best.0, limits))
    })
}

/// The Socialites rating by trying every T.
pub fn socialites(results: &Results, limits: &Limits) -> Next {
    advance(results, |mut lookup| {
        let last = last_pass(&mut lookup, limits)?;
        Ok(lookup.found(last, limits))
    })
}

/// The last T before the first that fails; 0 when the first one does.
fn last_pass(lookup: &mut Lookup, limits: &Limits) -> Result<u32, Missing> {
    for threads in 1..=limits.max_threads {
        if !lookup.at(threads)?.passed() {
            return Ok(threads - 1);
        }
    }
    Ok(limits.max_threads)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Curve, LIMITS, drive};
    use super::*;

    #[test]
    fn tries_every_t_until_the_first_fail() {
        let curve = Curve::new(|t| t * (60.0 - t)).failing_from(41);
        let (found, probes) = drive(soar, &curve, &LIMITS);
        assert_eq!((found.threads, probes), (30, 41));
        let (found, probes) = drive(socialites, &curve, &LIMITS);
        assert_eq!((found.threads, found.at_least, probes), (40, false, 41));
        let (found, probes) = drive(socialites, &Curve::passing_until(999), &LIMITS);
        assert_eq!((found.threads, found.at_least, probes), (256, true, 256));
    }
}
