//! The metrics of all registers of an experiment: distributions, counts, and the registers that are
//! farthest from linearizable.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use schemas::verdict::Freshness;
use serde::Serialize;

use super::gamma::{Step, proof};
use super::guarantees::Guarantees;
use super::k_atomicity::K;
use super::measure::Measured;
use crate::freshness::FreshnessSummary;
use crate::validate::ItemRead;

/// Which register it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Register {
    /// The fragment.
    pub fragment: i64,
    /// The item, such as `field`.
    pub item: String,
    /// Whose item it is, such as the number of the record.
    pub owner: i64,
    /// Which of the owner's items it is, such as the number of the field.
    pub element: Option<i64>,
}

/// A register that is not linearizable.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Broken {
    /// Which one.
    #[serde(flatten)]
    pub register: Register,
    /// Its Γ, in nanoseconds.
    pub gamma_ns: i64,
    /// Its Δ; null if a read ended before its write started.
    pub delta_ns: Option<i64>,
    /// Its k.
    pub k: K,
    /// Its writes, its reads, and those of them that are stale.
    pub writes: u64,
    /// Its reads.
    pub reads: u64,
    /// Those of them that are stale.
    pub stale_reads: u64,
    /// The operations that prove that it is not linearizable.
    pub proof: Vec<Step>,
}

/// A distribution of times or counts. Percentiles have three digits.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Spread {
    /// How many there are.
    pub count: u64,
    /// How many are above 0.
    pub above_zero: u64,
    /// The median.
    pub p50: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The greatest one.
    pub max: u64,
}

/// Numbers of which a [`Spread`] is wanted.
struct Numbers {
    histogram: Histogram<u64>,
    above_zero: u64,
    max: u64,
}

impl Numbers {
    fn new() -> Numbers {
        let histogram = Histogram::new(3).unwrap_or_else(|e| unreachable!("three digits are allowed: {e}"));
        Numbers { histogram, above_zero: 0, max: 0 }
    }

    fn add(&mut self, number: u64) {
        // The histogram grows as it must.
        self.histogram.saturating_record(number);
        self.above_zero += u64::from(number > 0);
        self.max = self.max.max(number);
    }

    fn spread(&self) -> Spread {
        // A percentile is the upper end of a range of numbers.
        let at = |percentile| self.histogram.value_at_percentile(percentile).min(self.max);
        let count = self.histogram.len();
        Spread { count, above_zero: self.above_zero, p50: at(50.0), p95: at(95.0), max: self.max }
    }
}

/// Γ of the values that ended in a slice of time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GammaSlice {
    /// The beginning of the slice, in seconds from the start of the experiment.
    pub from_s: f64,
    /// Γ in nanoseconds.
    pub gamma_ns: Spread,
}

/// The consistency of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConsistencyFigures {
    /// Registers that were written.
    pub registers: u64,
    /// Those of them that are linearizable.
    pub linearizable: u64,
    /// Registers by k: 1, 2, and more than 2.
    pub k: [u64; 3],
    /// Registers of which a read ended before its write started. Their Δ is not defined.
    pub from_the_future: u64,
    /// Writes of these registers, and of unknown fate among them.
    pub writes: u64,
    /// Writes of unknown fate.
    pub unknown_writes: u64,
    /// Reads of these registers whose value is known.
    pub reads: u64,
    /// Reads of which nothing is concluded, since no write of the register wrote what they saw.
    pub unattributed_reads: u64,
    /// Stale reads.
    pub stale_reads: u64,
    /// Γ of the registers, in nanoseconds.
    pub gamma_ns: Spread,
    /// Γ of the values.
    pub value_gamma_ns: Spread,
    /// Δ of the registers.
    pub delta_ns: Spread,
    /// k-staleness of the reads.
    pub k_staleness: Spread,
    /// t-staleness of the reads, in nanoseconds.
    pub t_staleness_ns: Spread,
    /// t-visibility of the writes, in nanoseconds.
    pub t_visibility_ns: Spread,
    /// Fresh reads by the time since the last write.
    pub freshness: Vec<Freshness>,
    /// Session guarantees of threads.
    pub by_thread: Guarantees,
    /// Session guarantees of actors.
    pub by_actor: Guarantees,
    /// Γ of the values over time.
    pub over_time: Vec<GammaSlice>,
    /// The registers with the greatest Γ.
    pub worst: Vec<Broken>,
}

/// Collects the metrics of registers, one after the other.
pub struct Summary {
    figures: ConsistencyFigures,
    gamma: Numbers,
    value_gamma: Numbers,
    delta: Numbers,
    k_staleness: Numbers,
    t_staleness: Numbers,
    t_visibility: Numbers,
    freshness: FreshnessSummary,
    slice_ns: i64,
    slices: BTreeMap<i64, Numbers>,
    most: usize,
}

impl Summary {
    /// An empty summary. `slice_ns` is the length of a slice of time, and it keeps the `most` registers that
    /// are farthest from linearizable.
    pub fn new(slice_ns: i64, most: usize) -> Summary {
        let spread = Spread::default();
        let figures = ConsistencyFigures {
            registers: 0,
            linearizable: 0,
            k: [0; 3],
            from_the_future: 0,
            writes: 0,
            unknown_writes: 0,
            reads: 0,
            unattributed_reads: 0,
            stale_reads: 0,
            gamma_ns: spread,
            value_gamma_ns: spread,
            delta_ns: spread,
            k_staleness: spread,
            t_staleness_ns: spread,
            t_visibility_ns: spread,
            freshness: Vec::new(),
            by_thread: Guarantees::default(),
            by_actor: Guarantees::default(),
            over_time: Vec::new(),
            worst: Vec::new(),
        };
        Summary {
            figures,
            gamma: Numbers::new(),
            value_gamma: Numbers::new(),
            delta: Numbers::new(),
            k_staleness: Numbers::new(),
            t_staleness: Numbers::new(),
            t_visibility: Numbers::new(),
            freshness: FreshnessSummary::default(),
            slice_ns: slice_ns.max(1),
            slices: BTreeMap::new(),
            most,
        }
    }

    /// Adds a register. Times are not below 0.
    pub fn add(&mut self, register: &Register, measured: &Measured) {
        let figures = &mut self.figures;
        let history = &measured.history;
        figures.registers += 1;
        figures.linearizable += u64::from(measured.gamma.is_linearizable());
        figures.k[measured.k as usize] += 1;
        figures.writes += history.writes.len() as u64;
        figures.unknown_writes +=
            history.writes.iter().filter(|write| write.at.end == crate::validate::FOREVER).count() as u64;
        figures.reads += history.reads.len() as u64;
        figures.unattributed_reads += history.unattributed;
        figures.by_thread.merge(&measured.by_thread);
        figures.by_actor.merge(&measured.by_actor);
        self.gamma.add(measured.gamma.item().unsigned_abs());
        match measured.delta_ns {
            Some(delta) => self.delta.add(delta.unsigned_abs()),
            None => figures.from_the_future += 1,
        }
        for (cluster, gamma) in measured.clusters.iter().zip(&measured.gamma.values) {
            let last = cluster.last_start();
            // The initial value without a read says nothing.
            if last < 0 {
                continue;
            }
            self.value_gamma.add(gamma.unsigned_abs());
            let slice = last / self.slice_ns;
            self.slices.entry(slice).or_insert_with(Numbers::new).add(gamma.unsigned_abs());
        }
        for read in &measured.reads {
            self.k_staleness.add(read.k);
            self.t_staleness.add(read.t_ns.unsigned_abs());
            if let Some(age_ns) = read.age_ns {
                self.freshness.add(&ItemRead { age_ns, is_fresh: read.k == 0 });
            }
        }
        measured.visibility_ns.iter().for_each(|visible| self.t_visibility.add(visible.unsigned_abs()));
        let stale = measured.stale_reads();
        figures.stale_reads += stale;
        self.keep_worst(register, measured, stale);
    }

    fn keep_worst(&mut self, register: &Register, measured: &Measured, stale_reads: u64) {
        let Some(conflict) = measured.gamma.conflict else { return };
        let (gamma_ns, worst) = (measured.gamma.item(), &mut self.figures.worst);
        let at = worst.partition_point(|other| other.gamma_ns >= gamma_ns);
        if at >= self.most {
            return;
        }
        let history = &measured.history;
        let broken = Broken {
            register: register.clone(),
            gamma_ns,
            delta_ns: measured.delta_ns,
            k: measured.k,
            writes: history.writes.len() as u64,
            reads: history.reads.len() as u64,
            stale_reads,
            proof: proof(history, &measured.clusters, conflict),
        };
        worst.insert(at, broken);
        worst.truncate(self.most);
    }

    /// The figures of the registers so far.
    pub fn figures(&self) -> ConsistencyFigures {
        let from_s = |slice: i64| slice as f64 * self.slice_ns as f64 / 1e9;
        let slice =
            |(slice, numbers): (&i64, &Numbers)| GammaSlice { from_s: from_s(*slice), gamma_ns: numbers.spread() };
        ConsistencyFigures {
            gamma_ns: self.gamma.spread(),
            value_gamma_ns: self.value_gamma.spread(),
            delta_ns: self.delta.spread(),
            k_staleness: self.k_staleness.spread(),
            t_staleness_ns: self.t_staleness.spread(),
            t_visibility_ns: self.t_visibility.spread(),
            freshness: self.freshness.figures(),
            over_time: self.slices.iter().map(slice).collect(),
            ..self.figures.clone()
        }
    }
}
