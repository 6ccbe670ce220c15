//! Checks whether a replayer's report can be true. The report comes from another machine, so
//! impossible values must not be added up or trusted.

use crate::plan::{FragmentPlan, Plan};
use crate::run::{EndReason, FragmentPosition, ReplayReport};

/// A hundred years: no experiment lasts that long.
const LONGEST_NS: u64 = 100 * 365 * 86_400 * 1_000_000_000;

/// No count of single events reaches this number.
const MOST: u64 = 1 << 53;

impl ReplayReport {
    /// Checks the report of an experiment of this plan; the error names the impossible value.
    pub fn check(&self, plan: &Plan) -> Result<(), String> {
        let shares = [
            ("worker_cpu_share", Some(self.worker_cpu_share)),
            ("dispatch_lag_ns_mean", Some(self.dispatch_lag_ns_mean)),
            ("run_delay_share", self.run_delay_share),
            ("sessions_in_flight", Some(self.sessions_in_flight)),
        ];
        for (name, value) in shares {
            if value.is_some_and(|value| !value.is_finite() || value < 0.0) {
                return Err(format!("{name} is {}", value.unwrap_or_default()));
            }
        }
        let times = [
            ("warmup_ns", self.warmup_ns),
            ("elapsed_ns", self.elapsed_ns),
            ("counted_ns", self.counted_ns),
            ("dispatch_lag_ns_p99", self.dispatch_lag_ns_p99),
            ("dispatch_lag_ns_max", self.dispatch_lag_ns_max),
            ("log_stall_ns", self.log_stall_ns),
            ("trace_stall_ns", self.trace_stall_ns),
        ];
        let counts = [
            ("warmup_operations", self.warmup_operations),
            ("drained_operations", self.drained_operations),
            ("sessions", self.sessions),
            ("ok", self.ok),
            ("failed", self.failed),
            ("unknown", self.unknown),
            ("skipped", self.skipped),
            ("aborted", self.aborted),
            ("of_transactions", self.of_transactions),
            ("writes_not_ok", self.writes_not_ok),
        ];
        if let Some((name, value)) = self.store_counters.iter().find(|(_, value)| **value > MOST) {
            return Err(format!("the store's counter {name:?} is {value}"));
        }
        for (values, most) in [(&times[..], LONGEST_NS), (&counts[..], MOST)] {
            if let Some((name, value)) = values.iter().find(|(_, value)| *value > most) {
                return Err(format!("{name} is {value}"));
            }
        }
        // This is the sum over all threads.
        if self.idle_ns > LONGEST_NS {
            return Err(format!("idle_ns is {}", self.idle_ns));
        }
        if let EndReason::TraceExhausted { sessions_needed } = self.end
            && sessions_needed > MOST
        {
            return Err(format!("sessions_needed is {sessions_needed}"));
        }
        self.pacing.as_ref().map_or(Ok(()), |pacing| pacing.check(MOST))?;
        if self.ok_counted > self.ok {
            return Err(format!("ok_counted is {}, more than ok ({})", self.ok_counted, self.ok));
        }
        self.positions.iter().try_for_each(|position| check_position(position, plan))?;
        let repeated = |at: usize| self.positions[..at].iter().any(|p| p.fragment == self.positions[at].fragment);
        match (0..self.positions.len()).find(|at| repeated(*at)) {
            Some(at) => Err(format!("fragment {} has two positions", self.positions[at].fragment)),
            None => Ok(()),
        }
    }
}

fn check_position(position: &FragmentPosition, plan: &Plan) -> Result<(), String> {
    let FragmentPosition { fragment, next_session, given_back } = position;
    let own = |planned: &&FragmentPlan| planned.fragment == *fragment;
    let Some(planned) = plan.fragments.iter().find(own) else {
        return Err(format!("it has a position of fragment {fragment}, which is not in its plan"));
    };
    if !(planned.first_session..=MOST).contains(next_session) {
        let first = planned.first_session;
        return Err(format!("fragment {fragment} is at session {next_session}, but its first session is {first}"));
    }
    let in_order = given_back.is_sorted_by(|a, b| a < b) && given_back.last().is_none_or(|last| last < next_session);
    if !in_order {
        return Err(format!(
            "given_back of fragment {fragment} is not in ascending order below session {next_session}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Limit;

    fn plan() -> Plan {
        let fragment =
            |fragment| FragmentPlan { fragment, first_session: 10, given_back: Vec::new(), warmup_sessions: 0 };
        Plan {
            format_version: crate::RUN_FORMAT_VERSION,
            experiment: 1,
            trace: "a.trace".into(),
            trace_id: String::new(),
            store: "null:".into(),
            threads: 2,
            workers: 1,
            limit: Limit::WholeTrace,
            fragments: vec![fragment(1), fragment(3)],
            unique_actors: true,
            closing_read: None,
            open_loop: None,
            target_per_s: None,
            threads_over_time: Vec::new(),
            transactions: Default::default(),
        }
    }

    fn check(change: fn(&mut ReplayReport), expect: &str) {
        let at = |fragment, next_session, given_back: &[u64]| FragmentPosition {
            fragment,
            next_session,
            given_back: given_back.to_vec(),
        };
        let positions = vec![at(1, 50, &[12, 14]), at(3, 10, &[])];
        let mut report = ReplayReport { ok: 100, ok_counted: 90, elapsed_ns: 5, positions, ..ReplayReport::default() };
        assert_eq!(report.check(&plan()), Ok(()));
        change(&mut report);
        let wrong = report.check(&plan()).unwrap_err();
        assert!(wrong.contains(expect), "{wrong}");
    }

    #[test]
    fn what_cannot_be_is_named() {
        check(|r| r.worker_cpu_share = f64::NAN, "worker_cpu_share is NaN");
        check(|r| r.dispatch_lag_ns_mean = -1.0, "dispatch_lag_ns_mean is -1");
        check(|r| r.run_delay_share = Some(f64::INFINITY), "run_delay_share is inf");
        check(|r| r.elapsed_ns = u64::MAX, "elapsed_ns is");
        check(|r| r.ok = u64::MAX, "ok is");
        check(|r| r.ok_counted = 101, "ok_counted is 101");
        check(|r| r.positions[0].fragment = 2, "fragment 2, which is not in its plan");
        check(|r| r.positions[0].fragment = 3, "two positions");
        check(|r| r.positions[0].next_session = 9, "is at session 9, but its first session is 10");
        check(|r| r.positions[0].given_back = vec![14, 12], "not in ascending order");
        check(|r| r.positions[0].given_back = vec![50], "not in ascending order");
    }
}
