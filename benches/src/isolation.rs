//! Operations a second and memory of the check of isolation, for histories of ten million transactions that are
//! consistent or not. Each is checked in a process of its own, by one thread.
//!
//! A history is made while it is checked, so the memory is that of the check. What making it takes is measured
//! first, without a check, and subtracted.

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use analyzer::consistency::isolation::{Act, Checker, Event, Fate, Item, Limits, Transaction};
use clap::ValueEnum;
use schemas::anomalies::{Anomalies, Class};
use schemas::words::thousands;
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::measure;

/// Operations a second and core that the check has to reach.
const GOAL_PER_S: f64 = 2_000_000.0;

/// Reads and writes of a transaction: of two items, which are both read and overwritten.
const EVENTS: usize = 4;
/// Transactions that run at the same time.
const THREADS: u64 = 64;
/// The room of a transaction's ids: its session times this.
const IDS: i64 = 1 << 12;

/// What the transactions of a history see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// What the last transaction wrote: serializable.
    Consistent,
    /// One of four sees what was overwritten already: lost updates and skews.
    Stale,
    /// The same on a thousand items, so that cycles join.
    Crowded,
    /// Values of later transactions, on four items.
    Cyclic,
}

impl Case {
    fn items(self) -> usize {
        match self {
            Case::Consistent | Case::Stale => 100_000,
            Case::Crowded => 1_000,
            Case::Cyclic => 4,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Case::Consistent => "consistent",
            Case::Stale => "inconsistent: a quarter sees overwritten values",
            Case::Crowded => "the same on 1,000 items",
            Case::Cyclic => "inconsistent: reads of later values, on 4 items",
        }
    }
}

/// Calls `each` with the transactions of a history.
fn history(case: Case, transactions: u64, mut each: impl FnMut(&Transaction, &[Event])) {
    // The last two versions of each item.
    let items = case.items();
    let mut versions = vec![[0i64; 2]; items];
    let mut chance = 1u64;
    let mut below = |limit: u64| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) % limit
    };
    for session in 0..transactions {
        let start_ns = session as i64 * 1000;
        let end_ns = start_ns + (THREADS as i64 - 1) * 1000;
        let first = below(items as u64) as usize;
        let second = (first + 1 + below(items as u64 - 1) as usize) % items;
        let mut seen = [first, second].map(|item| versions[item][0]);
        match case {
            Case::Stale | Case::Crowded if below(4) == 0 => seen[0] = versions[first][1],
            // The next transaction writes it, if it takes the same item.
            Case::Cyclic if seen[0] != 0 => seen[0] += IDS,
            _ => {}
        }
        let written = [1, 2].map(|step| session as i64 * IDS + step);
        for (item, written) in [first, second].into_iter().zip(written) {
            versions[item] = [written, versions[item][0]];
        }
        let event = |item: usize, act, version, step: u16| {
            let start_ns = start_ns + i64::from(step) * 100;
            Event { item: Item::new(item as u64, 0), version, start_ns, end_ns: start_ns + 90, step, act }
        };
        let events: [Event; EVENTS] = [
            event(first, Act::Read, seen[0], 1),
            event(second, Act::Read, seen[1], 2),
            event(first, Act::Write, written[0], 3),
            event(second, Act::Write, written[1], 4),
        ];
        let thread = (session % THREADS) as u32;
        let fate = Fate::Committed;
        each(&Transaction { session, txn: 0, try_number: 0, thread, start_ns, end_ns, fate }, &events);
    }
}

/// What a process found and how long it took.
#[derive(Debug, Serialize, Deserialize)]
struct Checked {
    making_s: f64,
    seconds: f64,
    found: Anomalies,
}

/// Checks a history, and prints what was found as JSON: the main function of a process of its own.
pub fn check(case: Case, transactions: u64) -> anyhow::Result<()> {
    let began = Instant::now();
    history(case, transactions, |transaction, events| {
        black_box((transaction, events));
    });
    let making_s = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let mut checker = Checker::new(0, Limits::default());
    history(case, transactions, |transaction, events| {
        checker.advance(transaction.start_ns);
        checker.add(transaction, events);
    });
    let mut found = checker.finish();
    let seconds = began.elapsed().as_secs_f64();
    found.per_second.clear();
    println!("{}", serde_json::to_string(&Checked { making_s, seconds, found })?);
    Ok(())
}

/// A line of the report: the median of the rounds.
#[derive(Debug, Serialize)]
struct Line {
    case: &'static str,
    transactions: u64,
    operations: u64,
    per_s: f64,
    per_s_each: Vec<f64>,
    memory_bytes: u64,
    anomalies: u64,
    shows: &'static str,
}

fn measured(case: Case, transactions: u64, rounds: u32) -> anyhow::Result<Line> {
    let name = case.to_possible_value().map(|value| value.get_name().to_string()).unwrap_or_default();
    let (mut per_s_each, mut memory_bytes, mut last) = (Vec::new(), 0, None);
    for _ in 0..rounds {
        let mut command = Command::new(std::env::current_exe()?);
        let used = measure::run(command.args(["isolated", &name, &transactions.to_string()]))?;
        let Checked { making_s, seconds, found } = serde_json::from_str(&used.output)?;
        per_s_each.push(found.operations as f64 / (seconds - making_s).max(1e-9));
        memory_bytes = used.memory_bytes.max(memory_bytes);
        last = Some(found);
    }
    let mut sorted = per_s_each.clone();
    sorted.sort_by(f64::total_cmp);
    let (per_s, found) = (sorted[sorted.len() / 2], last.unwrap_or_default());
    let anomalies = Class::ALL.into_iter().map(|class| found.count(class)).sum();
    let shows = found.strongest().map_or("none", schemas::isolation::Isolation::name);
    let line = Line {
        case: case.words(),
        transactions,
        operations: found.operations,
        per_s,
        per_s_each,
        memory_bytes,
        anomalies,
        shows,
    };
    eprintln!("{}: {} operations/s, {} MiB", line.case, thousands(per_s as u64), memory_bytes >> 20);
    Ok(line)
}

/// Measures all histories, and writes the report.
pub fn main(transactions: u64, rounds: u32, output: &Path) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for case in Case::value_variants() {
        lines.push(measured(*case, transactions, rounds)?);
    }
    let machine = Machine::current();
    let mut text = format!(
        "# The check of isolation\n\n`benches/run isolation --transactions {transactions} --rounds {rounds}`, on {machine}\n\n\
         One thread. A transaction reads two items and overwrites both. The time does not contain that of making the \
         history. Memory is the peak of the process.\n\n\
         | history | transactions | M operations/s | in each round | memory MiB | anomalies | shows |\n\
         |---|---:|---:|---:|---:|---:|---|\n"
    );
    for line in &lines {
        let each: Vec<String> = line.per_s_each.iter().map(|per_s| format!("{:.2}", per_s / 1e6)).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {} | {} | {} | {} |",
            line.case,
            thousands(line.transactions),
            line.per_s / 1e6,
            each.join(", "),
            line.memory_bytes >> 20,
            thousands(line.anomalies),
            line.shows
        );
    }
    let is_met = lines.iter().all(|line| line.per_s >= GOAL_PER_S);
    let _ = writeln!(
        text,
        "\nGoal: at least {} operations a second and core, for every history: {}.",
        thousands(GOAL_PER_S as u64),
        if is_met { "met" } else { "missed" }
    );
    let json = serde_json::json!({ "machine": machine, "rounds": rounds, "goal_per_s": GOAL_PER_S, "lines": lines });
    for (extension, text) in [("md", text), ("json", serde_json::to_string_pretty(&json)? + "\n")] {
        schemas::files::write_atomically(&output.with_extension(extension), text.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use schemas::isolation::Isolation;

    use super::*;

    #[test]
    fn histories_are_what_they_are_called() {
        let found = |case| {
            let mut checker = Checker::new(0, Limits::default());
            history(case, 5_000, |transaction, events| checker.add(transaction, events));
            checker.finish()
        };
        assert_eq!(found(Case::Consistent).strongest(), Some(Isolation::StrictSerializable));
        assert!(found(Case::Crowded).count(Class::LostUpdate) > 100);
    }
}
