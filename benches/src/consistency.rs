//! Measures what the consistency metrics cost: operations a second for linearizability and Γ, for all metrics, and
//! what each metric adds; and the memory of a long run whose rows are made as they are needed.
//!
//! A **tape** of a million operations is made once. It is played again and again, with later times and values, in the
//! order in which an analysis meets the rows: writes by their start, reads once nothing that starts later can overlap
//! them. The first read of a register in a tape that sees its state at the beginning sees the last write of the tape
//! before.

use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use analyzer::consistency::history::Clients;
use analyzer::consistency::measure::Which;
use analyzer::consistency::summary::ConsistencySummary;
use analyzer::consistency::windows::{WINDOW, Windows};
use analyzer::timeline::Measured;
use analyzer::validate::{Interval, Item};
use anyhow::Context;
use schemas::verdict::ConsistencyFigures;
use serde::Serialize;

use crate::machine::Machine;

/// Operations of a tape.
const TAPE: usize = 1_000_000;

/// Reads of stores that are wrong see a value that is so many writes behind, at most.
const BEHIND: u64 = 20;

const REGISTERS: [u32; 3] = [1, 1_000, 1_000_000];
const CLIENTS: [u32; 3] = [1, 64, 1_000];
const STALE_PERCENT: [u64; 2] = [0, 5];

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

#[derive(Clone, Copy)]
struct Row {
    register: u32,
    client: u32,
    is_write: bool,
    /// What it writes or sees; 0 is what was there when the tape began.
    value: i64,
    start: i64,
    end: i64,
}

/// The rows of a tape, and what it leaves.
struct Tape {
    rows: Vec<Row>,
    last: Vec<i64>,
    lasts_ns: i64,
}

impl Tape {
    /// Half of the operations are writes, which take effect in the middle. Each client runs one after the other.
    fn new(registers: u32, clients: u32, stale_percent: u64) -> Tape {
        let mut dice = Dice(7);
        let mut free = vec![0i64; clients as usize];
        let mut rows: Vec<Row> = (0..TAPE)
            .map(|index| {
                let client = index % clients as usize;
                let start = free[client] + dice.below(1_000) as i64;
                let end = start + 50_000 + dice.below(500_000) as i64;
                free[client] = end + 1;
                let register = dice.below(u64::from(registers)) as u32;
                Row { register, client: client as u32, is_write: dice.below(2) == 0, value: 0, start, end }
            })
            .collect();
        rows.sort_unstable_by_key(|row| row.start + (row.end - row.start) / 2);
        let mut values: Vec<Vec<i64>> = vec![vec![0]; registers as usize];
        for (row, value) in rows.iter_mut().zip(1..) {
            let written = &mut values[row.register as usize];
            if row.is_write {
                row.value = value;
                written.push(value);
            } else {
                let is_stale = dice.below(100) < stale_percent;
                let back = if is_stale { 1 + dice.below(BEHIND) as usize } else { 0 };
                row.value = written[written.len().saturating_sub(1 + back)];
            }
        }
        let last = values.iter().map(|written| written.last().copied().unwrap_or(0)).collect();
        let lasts_ns = rows.iter().map(|row| row.end).max().unwrap_or(0) + 1;
        Tape { rows: in_order_of_analysis(rows), last, lasts_ns }
    }

    /// Plays so many operations.
    fn play(&self, operations: usize, mut take: impl FnMut(&Row)) {
        for (round, from) in (0..).zip((0..operations).step_by(TAPE)) {
            let (later_ns, later) = (round * self.lasts_ns, round * TAPE as i64);
            for row in &self.rows[..TAPE.min(operations - from)] {
                let value = match row.value {
                    0 if round > 0 && self.last[row.register as usize] > 0 => {
                        self.last[row.register as usize] + later - TAPE as i64
                    }
                    0 => 0,
                    value => value + later,
                };
                take(&Row { value, start: row.start + later_ns, end: row.end + later_ns, ..*row });
            }
        }
    }

    /// Plays them through the metrics. Returns their figures, and the seconds that it took without what playing
    /// alone takes.
    fn measure(&self, operations: usize, which: Which) -> (ConsistencyFigures, f64) {
        let began = Instant::now();
        self.play(operations, |row| _ = std::hint::black_box(*row));
        let alone = began.elapsed();
        let lasts_ns = self.lasts_ns as u64 * operations.div_ceil(TAPE) as u64;
        let measured = Measured { from_ns: 0, elapsed_ns: lasts_ns, counted_ns: lasts_ns, planned_ns: None };
        let mut windows = Windows::new(0, ConsistencySummary::new(measured, None), None, WINDOW).with(which);
        let began = Instant::now();
        self.play(operations, |row| {
            let (item, at) = (Item::new(u64::from(row.register), 0), Interval { start: row.start, end: row.end });
            let by = Clients { thread: row.client, actor: u64::from(row.client) / 2 };
            match row.is_write {
                true => windows.write(item, row.value, at, by),
                false => windows.read(item, row.value, at, by),
            }
            windows.settle();
        });
        let figures = windows.finish().figures().unwrap_or_default();
        (figures, (began.elapsed().saturating_sub(alone)).as_secs_f64())
    }
}

/// Writes when they start, reads when the first row starts that cannot overlap them and none waits before them.
fn in_order_of_analysis(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_unstable_by_key(|row| row.start);
    let mut waiting = std::collections::VecDeque::new();
    let mut ordered = Vec::with_capacity(rows.len());
    for row in rows {
        while let Some(read) = waiting.pop_front_if(|read: &mut Row| read.end < row.start) {
            ordered.push(read);
        }
        if row.is_write { ordered.push(row) } else { waiting.push_back(row) }
    }
    ordered.extend(waiting);
    ordered
}

/// A row of the report.
#[derive(Serialize)]
struct Speed {
    registers: u32,
    clients: u32,
    stale_percent: u64,
    gamma_per_s: f64,
    all_per_s: f64,
    stale_reads: u64,
    linearizable: u64,
}

/// What a metric adds.
#[derive(Serialize)]
struct Cost {
    metric: &'static str,
    registers: u32,
    ns: f64,
}

/// A long run.
#[derive(Serialize)]
struct Long {
    operations: usize,
    registers: u32,
    clients: u32,
    per_s: f64,
    memory_mib: u64,
}

#[derive(Serialize)]
struct Results {
    machine: Machine,
    operations: usize,
    speeds: Vec<Speed>,
    costs: Vec<Cost>,
    long: Vec<Long>,
}

/// Measures everything, and writes FILE.md and FILE.json.
pub fn main(operations: usize, long: usize, output: &Path) -> anyhow::Result<()> {
    let mut results =
        Results { machine: Machine::current(), operations, speeds: Vec::new(), costs: Vec::new(), long: Vec::new() };
    // First, while the process has held nothing else.
    for registers in [1_000, 1_000_000] {
        let tape = Tape::new(registers, 64, 5);
        let before = memory_kib("VmRSS")?;
        std::fs::write("/proc/self/clear_refs", "5").context("/proc/self/clear_refs")?;
        let (_, seconds) = tape.measure(long, Which::ALL);
        let memory_mib = memory_kib("VmHWM")?.saturating_sub(before) / 1024;
        results.long.push(Long { operations: long, registers, clients: 64, per_s: long as f64 / seconds, memory_mib });
        println!(
            "{long} operations of {registers} registers: {:.2} M/s, {memory_mib} MiB",
            long as f64 / seconds / 1e6
        );
    }
    for registers in REGISTERS {
        for clients in CLIENTS {
            for stale_percent in STALE_PERCENT {
                let tape = Tape::new(registers, clients, stale_percent);
                let (_, gamma_s) = tape.measure(operations, Which::GAMMA);
                let (figures, all_s) = tape.measure(operations, Which::ALL);
                let per_s = |seconds: f64| operations as f64 / seconds;
                let (linearizable, stale_reads) = (figures.linearizable, figures.stale_reads);
                let (gamma_per_s, all_per_s) = (per_s(gamma_s), per_s(all_s));
                let is_right = linearizable == figures.registers && stale_reads == 0;
                anyhow::ensure!(is_right == (stale_percent == 0), "{linearizable} of {} registers", figures.registers);
                println!(
                    "{registers} registers, {clients} clients, {stale_percent}% stale: {:.2} M/s, {:.2} M/s",
                    gamma_per_s / 1e6,
                    all_per_s / 1e6
                );
                let speed =
                    Speed { registers, clients, stale_percent, gamma_per_s, all_per_s, stale_reads, linearizable };
                results.speeds.push(speed);
            }
        }
    }
    for registers in REGISTERS {
        let tape = Tape::new(registers, 64, 5);
        let ns = |which| tape.measure(operations, which).1 * 1e9 / operations as f64;
        let gamma = ns(Which::GAMMA);
        results.costs.push(Cost { metric: "linearizability and Γ", registers, ns: gamma });
        for (metric, which) in [
            ("Δ and k", Which { order: true, ..Which::GAMMA }),
            ("k- and t-staleness, freshness", Which { staleness: true, ..Which::GAMMA }),
            ("t-visibility", Which { visibility: true, ..Which::GAMMA }),
            ("session guarantees", Which { guarantees: true, ..Which::GAMMA }),
        ] {
            results.costs.push(Cost { metric, registers, ns: ns(which) - gamma });
        }
    }
    let (markdown, json) = (output.with_extension("md"), output.with_extension("json"));
    std::fs::write(&markdown, text(&results)).with_context(|| markdown.display().to_string())?;
    std::fs::write(&json, serde_json::to_string_pretty(&results)? + "\n").with_context(|| json.display().to_string())
}

fn text(results: &Results) -> String {
    let mut out = format!(
        "# Consistency metrics\n\n`benches/run consistency`, on {}. One core. Half of the operations are writes; stale reads \
         are up to {BEHIND} writes behind.\n\n## Operations a second\n\n{} operations in memory each.\n\n\
         | registers | clients | stale reads | linearizability and Γ, M/s | all metrics, M/s |\n|---:|---:|---:|---:|---:|\n",
        results.machine, results.operations
    );
    for Speed { registers, clients, stale_percent, gamma_per_s, all_per_s, .. } in &results.speeds {
        let (gamma, all) = (gamma_per_s / 1e6, all_per_s / 1e6);
        let _ = writeln!(out, "| {registers} | {clients} | {stale_percent}% | {gamma:.2} | {all:.2} |");
    }
    out += "\n## What each metric costs\n\nNanoseconds an operation, with 64 clients and 5% stale reads. The first line \
            includes the sort by register; the others are what a metric adds.\n\n| metric |";
    REGISTERS.iter().for_each(|registers| _ = write!(out, " {registers} registers |"));
    out += "\n|---|---:|---:|---:|\n";
    let metrics: Vec<&str> =
        results.costs.iter().filter(|cost| cost.registers == REGISTERS[0]).map(|cost| cost.metric).collect();
    for metric in metrics {
        let _ = write!(out, "| {metric} |");
        for cost in results.costs.iter().filter(|cost| cost.metric == metric) {
            let _ = write!(out, " {:.0} |", cost.ns);
        }
        out.push('\n');
    }
    out += "\n## Memory\n\nRows are made as they are needed, and not stored. All metrics, 5% stale reads. Memory is the most \
            that the metrics held.\n\n| operations | registers | clients | M/s | MiB |\n|---:|---:|---:|---:|---:|\n";
    for Long { operations, registers, clients, per_s, memory_mib } in &results.long {
        let _ = writeln!(out, "| {operations} | {registers} | {clients} | {:.2} | {memory_mib} |", per_s / 1e6);
    }
    out
}

/// A line of what the kernel says of this process, in KiB.
fn memory_kib(line: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("/proc/self/status")?;
    let value = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
    let kib = value.and_then(|value| value.trim().trim_end_matches(" kB").parse().ok());
    kib.with_context(|| format!("/proc/self/status has no {line}"))
}
