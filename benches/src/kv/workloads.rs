//! YCSB's workloads, as each tool states them.

use clap::ValueEnum;

use crate::tools::pgbench::{Draw, Script};
use crate::tools::pgbench_kv;

/// A workload. All have records of 10 fields of 100 bytes, and choose them by YCSB's Zipfian
/// distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Half reads, half updates
    A,
    /// Reads only
    C,
    /// Scans of up to 100 records, and 5% inserts
    E,
    /// Half reads, half read-modify-writes
    F,
}

impl Workload {
    /// All of them.
    pub const ALL: [Workload; 4] = [Workload::A, Workload::C, Workload::E, Workload::F];

    /// The value of the flag.
    pub fn letter(self) -> &'static str {
        match self {
            Workload::A => "a",
            Workload::C => "c",
            Workload::E => "e",
            Workload::F => "f",
        }
    }

    /// The case in the table.
    pub fn case(self) -> &'static str {
        match self {
            Workload::A => "A: reads, updates",
            Workload::C => "C: reads",
            Workload::E => "E: scans, inserts",
            Workload::F => "F: reads, read-modify-writes",
        }
    }

    /// Encore's ready specification.
    pub fn spec(self) -> &'static str {
        match self {
            Workload::A => include_str!("../../../traces/ycsb-a.toml"),
            Workload::C => include_str!("../../../traces/ycsb-c.toml"),
            Workload::E => include_str!("../../../traces/ycsb-e.toml"),
            Workload::F => include_str!("../../../traces/ycsb-f.toml"),
        }
    }

    /// The properties of YCSB's own file.
    pub fn properties(self) -> &'static [&'static str] {
        const NONE: [&str; 3] = ["insertproportion=0", "scanproportion=0", "requestdistribution=zipfian"];
        match self {
            Workload::A => &["workload=core", "readproportion=0.5", "updateproportion=0.5", NONE[0], NONE[1], NONE[2]],
            Workload::C => &["workload=core", "readproportion=1", "updateproportion=0", NONE[0], NONE[1], NONE[2]],
            Workload::E => &[
                "workload=core",
                "readproportion=0",
                "updateproportion=0",
                "scanproportion=0.95",
                "insertproportion=0.05",
                "maxscanlength=100",
                "scanlengthdistribution=uniform",
                "requestdistribution=zipfian",
            ],
            Workload::F => &[
                "workload=core",
                "readproportion=0.5",
                "updateproportion=0",
                "readmodifywriteproportion=0.5",
                NONE[0],
                NONE[1],
                NONE[2],
            ],
        }
    }

    /// How many operations reach the store for each that the workload draws: a read-modify-write is
    /// a read and an update.
    pub fn operations_each(self) -> f64 {
        if self == Workload::F { 1.5 } else { 1.0 }
    }

    /// Sessions of a trace set for each second of its runs: more than these stores perform.
    pub fn sessions_per_s(self) -> u64 {
        if self == Workload::E { 20_000 } else { 100_000 }
    }

    /// The workload as scripts for pgbench; None if it takes no part.
    pub fn scripts(self, records: u64, draw: Draw) -> Option<Vec<Script>> {
        match self {
            Workload::A => Some(pgbench_kv::scripts(true, records, draw)),
            Workload::C => Some(pgbench_kv::scripts(false, records, draw)),
            Workload::E | Workload::F => None,
        }
    }
}
