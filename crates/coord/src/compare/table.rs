//! The results of a comparison as rows and columns with marks. The text, the Markdown and the
//! chart all show these.

use schemas::comparison::{Cell, ComparisonDocument, Concern, Measure, Measurement, Outcome, Question, Wanted};
use schemas::verdict::{ConditionFigures, Rating, Ruling};

use crate::terminal::{percent, thousands};

/// Which number of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// A rating in operations a second.
    Soar,
    /// A rating in threads.
    Socialites,
    /// A rating in sessions a second.
    Rate,
    /// The share of unpredictable reads in an experiment.
    Unpredictable,
    /// The share of its operations that succeeded within β.
    WithinBeta,
    /// Its operations a second.
    Throughput,
    /// The 95th percentile of its response times, in milliseconds.
    ResponseTime,
    /// The 95th percentile of Γ, in milliseconds.
    Gamma,
    /// How far the sum of all money was off, a transaction.
    AnomalyScore,
    /// Committed sessions of the kind that the benchmark is known by, a minute.
    PerMinute,
    /// How many of the conditions that the data keep do not hold.
    Conditions,
    /// The 95th percentile of its response times in an open loop.
    Response,
    /// The 95th percentile of its service times in an open loop.
    Service,
}

impl Metric {
    /// The numbers that follow those of [`Metric::of`] if a cell is an open loop. A stall shows in full
    /// in the first, and not in the second.
    pub const OF_OPEN_LOOPS: [Metric; 2] = [Metric::Response, Metric::Service];

    /// The numbers that follow those of [`Metric::of`] if a cell has them: those of benchmarks that are known by
    /// a figure of their own, and of data that keep conditions.
    pub const OF_BENCHMARKS: [Metric; 2] = [Metric::PerMinute, Metric::Conditions];

    /// Its name with its unit.
    pub fn title(self) -> &'static str {
        match self {
            Metric::Soar => "SoAR (operations/s)",
            Metric::Socialites => "Socialites (threads)",
            Metric::Rate => "Arrival rate (sessions/s)",
            Metric::Unpredictable => "Unpredictable reads (%)",
            Metric::WithinBeta => "Share within the response time (%)",
            Metric::Throughput => "Throughput (operations/s)",
            Metric::ResponseTime => "Response time, 95th percentile (ms)",
            Metric::Gamma => "Γ, 95th percentile (ms)",
            Metric::AnomalyScore => "Anomaly score (money off, a transaction)",
            Metric::PerMinute => "Committed sessions a minute, of the kind that the benchmark counts",
            Metric::Conditions => "Conditions that do not hold after the experiment",
            Metric::Response => "Response time from the due time, p95 (ms)",
            Metric::Service => "Service time, p95 (ms)",
        }
    }

    /// Its name, and its unit as it follows a number. The text of a share has its unit.
    pub fn name_and_unit(self) -> (&'static str, &'static str) {
        match self {
            Metric::Soar => ("SoAR", " operations/s"),
            Metric::Socialites => ("Socialites", " threads"),
            Metric::Rate => ("arrival rate", " sessions/s"),
            Metric::Unpredictable => ("share of unpredictable reads", ""),
            Metric::WithinBeta => ("share of operations within the response time", ""),
            Metric::Throughput => ("throughput", " operations/s"),
            Metric::ResponseTime => ("95th percentile of the response time", " ms"),
            Metric::Gamma => ("95th percentile of Γ", " ms"),
            Metric::AnomalyScore => ("anomaly score", ""),
            Metric::PerMinute => ("counted sessions", " a minute"),
            Metric::Conditions => ("number of conditions that do not hold", ""),
            Metric::Response => ("response time p95", " ms"),
            Metric::Service => ("service time p95", " ms"),
        }
    }

    /// The numbers that a comparison shows, the main one first.
    pub fn of(question: Question) -> &'static [Metric] {
        use Metric::{
            AnomalyScore, Conditions, Gamma, PerMinute, Rate, ResponseTime, Soar, Socialites, Throughput,
            Unpredictable, WithinBeta,
        };
        match question {
            Question::Rate(Wanted::Both) => &[Soar, Socialites],
            Question::Rate(Wanted::Soar) => &[Soar],
            Question::Rate(Wanted::Socialites) => &[Socialites],
            Question::Rate(Wanted::Rate) => &[Rate],
            Question::Measure(Measure::Unpredictable) => &[Unpredictable, WithinBeta, Throughput],
            Question::Measure(Measure::WithinBeta) => &[WithinBeta, Unpredictable, Throughput],
            Question::Measure(Measure::Throughput) => &[Throughput, WithinBeta, Unpredictable],
            Question::Measure(Measure::ResponseTime) => &[ResponseTime, WithinBeta, Unpredictable, Throughput],
            Question::Measure(Measure::Gamma) => &[Gamma, ResponseTime, WithinBeta, Throughput],
            Question::Measure(Measure::AnomalyScore) => &[AnomalyScore, Throughput],
            Question::Measure(Measure::PerMinute) => &[PerMinute, Conditions, ResponseTime, Throughput],
        }
    }

    /// Whether it is a share of all, in percent.
    pub fn is_share(self) -> bool {
        matches!(self, Metric::Unpredictable | Metric::WithinBeta)
    }

    fn rating(self, cell: &Cell) -> Option<&Rating> {
        match (&cell.outcome, self) {
            (Outcome::Rated { soar, .. }, Metric::Soar) => soar.as_ref(),
            (Outcome::Rated { socialites, .. }, Metric::Socialites) => socialites.as_ref(),
            (Outcome::Rated { rate, .. }, Metric::Rate) => rate.as_ref(),
            _ => None,
        }
    }

    /// None if the experiment has no such number.
    fn measured(self, measured: &Measurement) -> Option<f64> {
        let is_empty = measured.reads == 0 && measured.throughput_per_s == 0.0;
        match self {
            _ if is_empty => None,
            Metric::Unpredictable => measured.unpredictable_percent(),
            Metric::WithinBeta => Some(measured.within_beta_percent),
            Metric::Throughput => Some(measured.throughput_per_s),
            Metric::ResponseTime => measured.p95_ns.map(|ns| ns as f64 / 1e6),
            Metric::Gamma => measured.gamma_p95_ns.map(|ns| ns as f64 / 1e6),
            Metric::AnomalyScore => measured.anomaly_score,
            Metric::PerMinute => measured.headline.as_ref().map(|counted| counted.per_minute),
            Metric::Conditions => measured.conditions.as_ref().filter(|found| found.is_checked()).map(broken),
            Metric::Response => measured.response_ns_p95.map(|ns| ns as f64 / 1e6),
            Metric::Service => measured.service_ns_p95.map(|ns| ns as f64 / 1e6),
            Metric::Soar | Metric::Socialites | Metric::Rate => None,
        }
    }
}

/// How many conditions do not hold.
fn broken(found: &ConditionFigures) -> f64 {
    found.broken.len() as f64
}

/// What a reader has to know about a number. The sign is beside the number, its meaning below the
/// table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// It is clearly the highest of its row.
    Best,
    /// The search ended at its upper limit.
    AtLeast,
    /// No final experiment confirmed it.
    Unconfirmed,
    /// It rests on a void experiment, or comes from one.
    Void,
    /// The experiment missed the SLA.
    Missed,
    /// No number of threads, or no arrival rate, kept the SLA.
    Zero,
    /// Every experiment was void.
    Unmeasured,
    /// The cell ended with an error.
    Failed,
    /// The cell has not been done yet.
    Missing,
    /// The store does not promise the same as another one of the table.
    Unequal,
}

impl Mark {
    /// The sign beside the number.
    pub fn sign(self) -> &'static str {
        match self {
            Mark::Best => "*",
            Mark::AtLeast => "≥",
            Mark::Unconfirmed => "?",
            Mark::Void => "void",
            Mark::Missed => "†",
            Mark::Zero => "(0)",
            Mark::Unmeasured => "(void)",
            Mark::Failed => "failed",
            Mark::Missing => "-",
            Mark::Unequal => "!",
        }
    }

    /// What it means, in an answer to this question.
    pub fn meaning(self, question: Question) -> &'static str {
        let by_rate = question == Question::Rate(Wanted::Rate);
        match self {
            Mark::Best => "highest of its row; no other interval overlaps",
            Mark::AtLeast if by_rate => "at least: the search ended at its highest arrival rate",
            Mark::Zero if by_rate => "no arrival rate kept the SLA",
            Mark::AtLeast => "at least: the search ended at its highest number of threads",
            Mark::Unconfirmed => "not confirmed by a final experiment",
            Mark::Void => "based on an invalid experiment",
            Mark::Missed => "missed the SLA",
            Mark::Zero => "no number of threads kept the SLA",
            Mark::Unmeasured => "nothing could be measured: every experiment was void",
            Mark::Failed => "ended with an error",
            Mark::Missing => "not done yet",
            Mark::Unequal => "durability or isolation differs from another store's",
        }
    }
}

/// One number of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What it is.
    pub metric: Metric,
    /// The number; none when there is none.
    pub value: Option<f64>,
    /// The ends of its interval; the number itself if it has no interval.
    pub interval: (f64, f64),
    /// What a reader has to know about it.
    pub marks: Vec<Mark>,
}

impl Entry {
    fn of(cell: &Cell, metric: Metric) -> Entry {
        if let Outcome::Measured(measured) = &cell.outcome {
            return Entry::measured(measured, metric);
        }
        let Some(rating) = metric.rating(cell) else {
            let is_failed = matches!(cell.outcome, Outcome::Failed(_));
            let marks = vec![if is_failed { Mark::Failed } else { Mark::Missing }];
            return Entry { metric, value: None, interval: (0.0, 0.0), marks };
        };
        if rating.unmeasured {
            return Entry { metric, value: None, interval: (0.0, 0.0), marks: vec![Mark::Unmeasured] };
        }
        let mut marks = Vec::new();
        if rating.value <= 0.0 {
            marks.push(Mark::Zero);
        } else if rating.confirmed_by.is_none() {
            marks.push(Mark::Unconfirmed);
        }
        if rating.at_least {
            marks.push(Mark::AtLeast);
        }
        if rating.rests_on_void.is_some() {
            marks.push(Mark::Void);
        }
        let interval = rating.interval.as_ref().map_or((rating.value, rating.value), |i| (i.low, i.high));
        Entry { metric, value: Some(rating.value), interval, marks }
    }

    fn measured(measured: &Measurement, metric: Metric) -> Entry {
        let value = metric.measured(measured);
        let marks = match measured.ruling {
            Ruling::Pass => Vec::new(),
            Ruling::Fail => vec![Mark::Missed],
            Ruling::Void => vec![Mark::Void],
        };
        Entry { metric, value, interval: (value.unwrap_or(0.0), value.unwrap_or(0.0)), marks }
    }

    /// Whether it has a mark.
    pub fn has(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }

    /// The interval around the number; none where there is none.
    pub fn interval_text(&self) -> Option<String> {
        self.bounds().map(|(low, high)| format!("{} to {}", whole(low), whole(high)))
    }

    /// The ends of the interval around the number; none where there is none.
    pub fn bounds(&self) -> Option<(f64, f64)> {
        let (low, high) = self.interval;
        (low < high).then_some((low, high))
    }

    /// The number with its marks.
    pub fn text(&self) -> String {
        if self.value.is_none() && self.has(Mark::Void) {
            return "void".to_string();
        }
        let mut out = self.number();
        for (mark, sign) in [(Mark::Unconfirmed, "?"), (Mark::Void, " void"), (Mark::Missed, " †"), (Mark::Best, " *")]
        {
            if self.has(mark) {
                out.push_str(sign);
            }
        }
        out
    }

    /// The number, as a lower bound if it is one.
    pub fn number(&self) -> String {
        let number = match self.value {
            _ if self.has(Mark::Failed) => "failed".to_string(),
            None if self.has(Mark::Missing) => "-".to_string(),
            None if self.has(Mark::Unmeasured) => Mark::Unmeasured.sign().to_string(),
            None if self.metric == Metric::AnomalyScore => "no sum".to_string(),
            None if Metric::OF_OPEN_LOOPS.contains(&self.metric) => "closed loop".to_string(),
            None if self.metric == Metric::PerMinute => "not counted".to_string(),
            None if self.metric == Metric::Conditions => "not checked".to_string(),
            None if self.metric == Metric::Gamma => "no writes".to_string(),
            None if self.metric == Metric::ResponseTime => "no answers".to_string(),
            None => "no reads".to_string(),
            Some(score) if self.metric == Metric::AnomalyScore => score_text(score),
            Some(share) if self.metric.is_share() => percent(share),
            Some(ms) if Metric::OF_OPEN_LOOPS.contains(&self.metric) => format!("{ms:.2}"),
            Some(ms) if matches!(self.metric, Metric::ResponseTime | Metric::Gamma) && ms < 9.95 => format!("{ms:.2}"),
            Some(_) if self.has(Mark::Zero) => "(0)".to_string(),
            Some(value) => whole(value),
        };
        if self.has(Mark::AtLeast) { format!("≥ {number}") } else { number }
    }
}

/// A score with two digits.
fn score_text(score: f64) -> String {
    if score == 0.0 { "0".to_string() } else { format!("{score:.1e}") }
}

/// A whole number; below ten it may have one decimal.
fn whole(value: f64) -> String {
    match value < 9.95 && value.fract() != 0.0 {
        true => format!("{value:.1}"),
        false => thousands(value.round() as u64),
    }
}

/// One number of every cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Which number.
    pub metric: Metric,
    /// The stores, each with a mark if it does not promise the same as another.
    pub stores: Vec<String>,
    /// The points, each with one entry per store.
    pub rows: Vec<(String, Vec<Entry>)>,
    /// Whether the numbers are ratings; otherwise they are single measurements.
    pub is_rated: bool,
}

impl Table {
    /// The table of a number.
    pub fn new(document: &ComparisonDocument, metric: Metric) -> Table {
        let stores = &document.plan.stores;
        let is_rated = matches!(document.plan.question(), Question::Rate(_));
        let mut rows = Vec::new();
        for cells in document.cells.chunks(stores.len().max(1)) {
            let mut entries: Vec<Entry> = cells.iter().map(|cell| Entry::of(cell, metric)).collect();
            // A single measurement has no interval, so no value is clearly the best.
            if is_rated {
                mark_best(&mut entries);
            }
            let point = cells.first().map_or(String::new(), |cell| cell.point.clone());
            rows.push((point, entries));
        }
        Table { metric, stores: stores.iter().map(|store| label(document, &store.label)).collect(), rows, is_rated }
    }

    /// The marks that occur, in the order of their explanations.
    pub fn marks(&self) -> Vec<Mark> {
        let mut marks: Vec<Mark> =
            self.rows.iter().flat_map(|(_, row)| row.iter().flat_map(|e| e.marks.clone())).collect();
        if self.stores.iter().any(|store| store.ends_with(" !")) {
            marks.push(Mark::Unequal);
        }
        marks.sort();
        marks.dedup();
        marks
    }
}

/// Marks the highest value above 0 if the row has several, if every rating in it says something
/// about its store, and if the highest is clear.
fn mark_best(row: &mut [Entry]) {
    let rated = || row.iter().enumerate().filter_map(|(index, entry)| Some((index, entry.value?)));
    let Some((best, value)) = rated().max_by(|a, b| a.1.total_cmp(&b.1)) else { return };
    let low = row[best].interval.0;
    // A rating that is "at least" so high may be the highest itself.
    let is_below = |entry: &Entry| entry.interval.1 < low && !entry.has(Mark::AtLeast);
    let is_clear = rated().all(|(index, _)| index == best || is_below(&row[index]));
    let is_silent = |entry: &Entry| entry.has(Mark::Void) || entry.has(Mark::Unmeasured);
    if value > 0.0 && rated().count() > 1 && is_clear && !row.iter().any(is_silent) {
        row[best].marks.push(Mark::Best);
    }
}

/// A store's label, with a mark if the store does not promise the same as another.
pub fn label(document: &ComparisonDocument, store: &str) -> String {
    if unequal_stores(document).contains(&store) { format!("{store} !") } else { store.to_string() }
}

/// The stores whose durability or isolation differs from another's: if any two differ, all whose
/// settings are known.
fn unequal_stores(document: &ComparisonDocument) -> Vec<&str> {
    let is_promise = |concern| matches!(concern, Concern::Durability | Concern::Isolation);
    if !document.differences.iter().any(|difference| is_promise(difference.concern)) {
        return Vec::new();
    }
    let known = document.cells.iter().filter(|cell| !cell.store_settings.is_empty());
    known.map(|cell| cell.store.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use schemas::comparison::Counted;
    use schemas::verdict::BrokenCondition;

    use super::*;

    #[test]
    fn the_best_is_marked_only_where_it_is_clear() {
        let check = |row: &[(f64, f64, f64, &[Mark])], expect: Option<usize>| {
            let entry = |(value, low, high, marks): &(f64, f64, f64, &[Mark])| Entry {
                metric: Metric::Soar,
                value: Some(*value),
                interval: (*low, *high),
                marks: marks.to_vec(),
            };
            let mut row: Vec<Entry> = row.iter().map(entry).collect();
            mark_best(&mut row);
            let marked: Vec<usize> = (0..row.len()).filter(|index| row[*index].has(Mark::Best)).collect();
            assert_eq!(marked, expect.into_iter().collect::<Vec<_>>());
        };
        check(&[(100.0, 90.0, 110.0, &[]), (120.0, 111.0, 130.0, &[])], Some(1));
        check(&[(100.0, 90.0, 112.0, &[]), (120.0, 111.0, 130.0, &[])], None);
        check(&[(100.0, 100.0, 100.0, &[]), (100.0, 100.0, 100.0, &[])], None);
        check(&[(10.0, 10.0, 10.0, &[Mark::Void]), (120.0, 111.0, 130.0, &[])], None);
        check(&[(0.0, 0.0, 0.0, &[Mark::Zero]), (1.0, 1.0, 1.0, &[])], Some(1));
        check(&[(0.0, 0.0, 0.0, &[Mark::Zero]), (0.0, 0.0, 0.0, &[Mark::Zero])], None);
        check(&[(5.0, 5.0, 5.0, &[])], None);
        check(&[(0.0, 0.0, 0.0, &[Mark::Unmeasured]), (1.0, 1.0, 1.0, &[])], None);
        check(&[(100.0, 99.0, 101.0, &[Mark::AtLeast]), (120.0, 111.0, 130.0, &[])], None);
        check(&[(120.0, 111.0, 130.0, &[Mark::AtLeast]), (100.0, 99.0, 101.0, &[])], Some(0));
    }

    #[test]
    fn what_was_measured_is_a_share_or_a_number_with_its_ruling() {
        let check = |metric, (throughput_per_s, reads, unpredictable_reads), ruling, expect: &str| {
            let measured = Measurement {
                threads: 4,
                throughput_per_s,
                within_beta_percent: 99.99999,
                p95_ns: (throughput_per_s > 2000.0).then_some(1_234_567),
                gamma_p95_ns: (throughput_per_s > 2000.0).then_some(0),
                reads,
                unpredictable_reads,
                anomaly_score: None,
                headline: (reads == 10).then(|| Counted { name: "tpmC".into(), per_minute: 6_592.4 }),
                conditions: (reads > 0).then(|| ConditionFigures {
                    checked: if reads == 12 { 0 } else { 12 },
                    broken: vec![BrokenCondition::default(); unpredictable_reads as usize],
                    missing: (reads == 11).then(|| "no answer".to_string()),
                    ..ConditionFigures::default()
                }),
                response_ns_p95: Some(1_250_000_000),
                service_ns_p95: (reads > 10).then_some(980_000),
                ruling,
                reasons: Vec::new(),
                transactions: None,
                by_operation: Default::default(),
            };
            assert_eq!(Entry::measured(&measured, metric).text(), expect);
        };
        check(Metric::Unpredictable, (1234.5, 100_000, 13), Ruling::Pass, "0.013%");
        check(Metric::Unpredictable, (1234.5, 100_000, 0), Ruling::Pass, "0%");
        check(Metric::Unpredictable, (1234.5, 10, 1), Ruling::Fail, "10% †");
        check(Metric::Unpredictable, (1234.5, 10, 1), Ruling::Void, "10% void");
        check(Metric::Unpredictable, (1234.5, 0, 0), Ruling::Pass, "no reads");
        check(Metric::WithinBeta, (1234.5, 0, 0), Ruling::Pass, "99.999%");
        check(Metric::Throughput, (1234.5, 10, 1), Ruling::Void, "1,235 void");
        // Nothing ran, so there is no throughput, not even 0.
        check(Metric::Throughput, (0.0, 0, 0), Ruling::Void, "void");
        check(Metric::AnomalyScore, (1234.5, 10, 0), Ruling::Pass, "no sum");
        check(Metric::ResponseTime, (2345.6, 10, 0), Ruling::Fail, "1.23 †");
        check(Metric::ResponseTime, (1234.5, 10, 0), Ruling::Pass, "no answers");
        check(Metric::Gamma, (2345.6, 10, 0), Ruling::Pass, "0.00");
        check(Metric::Gamma, (1234.5, 10, 0), Ruling::Pass, "no writes");
        check(Metric::Unpredictable, (0.0, 0, 0), Ruling::Void, "void");
        check(Metric::Response, (1234.5, 100_000, 0), Ruling::Fail, "1250.00 †");
        check(Metric::Service, (1234.5, 100_000, 0), Ruling::Fail, "0.98 †");
        check(Metric::Service, (1234.5, 10, 0), Ruling::Pass, "closed loop");
        check(Metric::PerMinute, (1234.5, 10, 0), Ruling::Pass, "6,592");
        check(Metric::PerMinute, (1234.5, 11, 0), Ruling::Pass, "not counted");
        check(Metric::Conditions, (1234.5, 10, 0), Ruling::Pass, "0");
        check(Metric::Conditions, (1234.5, 10, 3), Ruling::Fail, "3 †");
        check(Metric::Conditions, (1234.5, 11, 0), Ruling::Pass, "not checked");
        check(Metric::Conditions, (1234.5, 12, 0), Ruling::Pass, "not checked");
        check(Metric::Conditions, (1234.5, 0, 0), Ruling::Pass, "not checked");
    }
}
