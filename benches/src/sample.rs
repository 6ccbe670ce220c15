//! The result of one run of one tool.

use std::fmt;

use serde::{Deserialize, Serialize};
use servers::Server;

use crate::measure::{Used, server_cpu_s};

/// A run of a tool: where it belongs in a table, and its figures.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sample {
    /// The case within the table.
    pub case: String,
    /// T: threads, clients or connections, by the tool's own name.
    pub threads: u32,
    /// The tool.
    pub tool: String,
    /// The measured figures.
    pub figures: Figures,
}

/// Figures; `None` for those that a tool does not report.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Operations that succeeded, by the tool's own count. Reports do not have it.
    #[serde(skip)]
    pub operations: f64,
    /// Operations per second, by the tool's own count.
    pub operations_per_s: f64,
    /// CPU seconds of the tool's process for each million operations, from its start to its end.
    pub client_cpu_s_per_million: f64,
    /// CPU seconds of the server's processes in that time, for each million operations.
    pub server_cpu_s_per_million: Option<f64>,
    /// The tool's peak resident memory.
    pub memory_mib: f64,
    /// Mean response time.
    pub mean_us: Option<f64>,
    /// Half of the response times are no longer than this.
    pub p50_us: Option<f64>,
    /// 99% of the response times are no longer than this.
    pub p99_us: Option<f64>,
    /// Operations that failed, by the tool's own count.
    pub errors: Option<f64>,
}

/// A figure's name in the tables, its getter, and its number of decimals.
pub type Column = (&'static str, fn(&Figures) -> Option<f64>, usize);

impl Figures {
    /// The figures that every tool has: its own throughput, and what its process used for this many
    /// operations.
    pub fn of(used: &Used, operations: f64, operations_per_s: f64) -> Figures {
        Figures {
            operations,
            operations_per_s,
            client_cpu_s_per_million: used.cpu_s / (operations / 1e6),
            memory_mib: used.memory_bytes as f64 / 1_048_576.0,
            ..Figures::default()
        }
    }

    /// The figures of a run, with what the server used in that time.
    pub fn beside(server: &Server, run: impl FnOnce() -> anyhow::Result<Figures>) -> anyhow::Result<Figures> {
        let before_s = server_cpu_s(&server.processes());
        let figures = run()?;
        let used_s = server_cpu_s(&server.processes()) - before_s;
        Ok(Figures { server_cpu_s_per_million: Some(used_s / (figures.operations / 1e6)), ..figures })
    }

    /// Operations per CPU second of the tool.
    pub fn operations_per_cpu_s(&self) -> f64 {
        1e6 / self.client_cpu_s_per_million.max(1e-9)
    }

    /// The columns of the tables.
    pub const COLUMNS: [Column; 9] = [
        ("operations/s", |f| Some(f.operations_per_s), 0),
        ("per CPU second", |f| Some(f.operations_per_cpu_s()), 0),
        ("client CPU s/M", |f| Some(f.client_cpu_s_per_million), 2),
        ("server CPU s/M", |f| f.server_cpu_s_per_million, 2),
        ("mean µs", |f| f.mean_us, 1),
        ("p50 µs", |f| f.p50_us, 1),
        ("p99 µs", |f| f.p99_us, 1),
        ("memory MiB", |f| Some(f.memory_mib), 0),
        ("errors", |f| f.errors, 0),
    ];
}

/// The figures in brief, for the progress.
impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} operations/s, {:.2} CPU s/M", self.operations_per_s, self.client_cpu_s_per_million)
    }
}

/// The median of some figures, and the lowest and highest.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Half of the figures are no higher than this.
    pub median: f64,
    /// The lowest.
    pub lowest: f64,
    /// The highest.
    pub highest: f64,
}

impl Spread {
    /// The spread of the figures of several runs; `None` without figures.
    pub fn of(figures: impl Iterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = figures.collect();
        sorted.sort_by(f64::total_cmp);
        let (lowest, highest) = (*sorted.first()?, *sorted.last()?);
        let upper = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 { sorted[upper] } else { (sorted[upper - 1] + sorted[upper]) / 2.0 };
        Some(Spread { median, lowest, highest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_middle_and_the_ends() {
        let spread = |figures: &[f64]| Spread::of(figures.iter().copied());
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some(Spread { median: 2.0, lowest: 1.0, highest: 3.0 }));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 3.0]), Some(Spread { median: 2.5, lowest: 1.0, highest: 4.0 }));
    }
}
