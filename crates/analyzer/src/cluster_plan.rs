//! What many operations take on many hosts, from what a task and an operation cost on one: `encore analyze
//! plan-cluster`. Pure: measured costs in, hosts, hours and bytes out.

use std::fmt;

use schemas::words::{plural, thousands};
use serde::{Deserialize, Serialize};

use crate::tables::new_table;

/// What `benches/run cluster` has measured, on the machine that it names.
pub const MEASURED: &str = include_str!("../../../benches/cluster.json");

/// What a step costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Processor seconds of a task, whatever it has to do.
    pub task_s: f64,
    /// Processor nanoseconds of an operation.
    pub operation_ns: f64,
    /// Bytes that are written for an operation.
    pub operation_bytes: f64,
}

impl Cost {
    /// Processor seconds of so many operations in so many tasks.
    pub fn cpu_s(&self, operations: u64, tasks: u64) -> f64 {
        self.task_s * tasks as f64 + self.operation_ns * operations as f64 / 1e9
    }

    fn bytes(&self, operations: u64) -> f64 {
        self.operation_bytes * operations as f64
    }
}

/// The costs of all steps, as the report of the bench has them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Costs {
    #[serde(rename = "generate fragments")]
    generate: Cost,
    #[serde(rename = "replay on memory:")]
    replay: Cost,
    #[serde(rename = "analyze fragments")]
    analyze: Cost,
    merge: Cost,
    #[serde(rename = "percentiles over all rows, SQL")]
    query: Cost,
    /// What they were measured on.
    #[serde(skip)]
    processor: String,
}

/// The report of the bench, as far as it is needed here.
#[derive(Debug, Deserialize)]
struct Report {
    costs: Costs,
    machine: Machine,
}

/// The machine of the bench.
#[derive(Debug, Deserialize)]
struct Machine {
    processor: String,
}

impl Costs {
    /// The costs in a report of `benches/run cluster`.
    pub fn read(report: &str) -> Result<Costs, serde_json::Error> {
        let Report { costs, machine } = serde_json::from_str(report)?;
        Ok(Costs { processor: machine.processor, ..costs })
    }
}

/// What is planned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wanted {
    /// Operations.
    pub operations: u64,
    /// Processors of a host.
    pub cores: u32,
    /// How long a step may take, in seconds.
    pub within_s: f64,
}

/// A step of the plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// What it does.
    pub name: &'static str,
    /// Processor time of all hosts.
    pub cpu_s: f64,
    /// Hosts.
    pub hosts: u64,
    /// How long it takes on these.
    pub seconds: f64,
    /// Bytes that it reads.
    pub reads_bytes: f64,
    /// Bytes that it writes.
    pub writes_bytes: f64,
}

/// What the operations take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// Operations.
    pub operations: u64,
    /// Processors of a host.
    pub cores: u32,
    /// How many fragments keep all processors of the largest step busy.
    pub fragments: u64,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// What remains in storage: trace, logs and sealed tables.
    pub stored_bytes: f64,
    /// What tasks on all processors of a host hold on its disk at once: their parts of the trace, the log and the tables.
    pub scratch_bytes: f64,
    /// The processor that the costs were measured on.
    pub measured_on: String,
}

/// Plans the steps of a run. Fragments share nothing, so a step takes its processor time, divided by the processors.
pub fn plan(costs: &Costs, wanted: &Wanted) -> Plan {
    let Wanted { operations, cores, within_s } = *wanted;
    let hosts = |cpu_s: f64| (cpu_s / (within_s * f64::from(cores))).ceil().max(1.0) as u64;
    let busiest = costs.generate.operation_ns.max(costs.analyze.operation_ns) * operations as f64 / 1e9;
    let fragments = hosts(busiest) * u64::from(cores);
    let (trace, log, sealed) =
        (costs.generate.bytes(operations), costs.replay.bytes(operations), costs.analyze.bytes(operations));
    let spread = |name, cost: &Cost, reads_bytes, writes_bytes| {
        let cpu_s = cost.cpu_s(operations, fragments);
        let hosts = hosts(cpu_s);
        Step { name, cpu_s, hosts, seconds: cpu_s / (hosts * u64::from(cores)) as f64, reads_bytes, writes_bytes }
    };
    let merge_s = costs.merge.task_s * fragments as f64 / MEASURED_FRAGMENTS;
    let merge = Step { name: "merge", cpu_s: merge_s, hosts: 1, seconds: merge_s, reads_bytes: 0.0, writes_bytes: 0.0 };
    let steps = vec![
        spread("generate", &costs.generate, 0.0, trace),
        spread("validate, summarize, seal", &costs.analyze, trace + log, sealed),
        merge,
        spread("percentiles of all rows", &costs.query, sealed, 0.0),
    ];
    let stored_bytes = trace + log + sealed;
    let scratch_bytes = stored_bytes * f64::from(cores) / fragments as f64;
    Plan { operations, cores, fragments, steps, stored_bytes, scratch_bytes, measured_on: costs.processor.clone() }
}

/// A merge in the bench is of so many summaries.
const MEASURED_FRAGMENTS: f64 = 16.0;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (operations, fragments) = (thousands(self.operations), thousands(self.fragments));
        let hosts = self.steps.iter().map(|step| step.hosts).max().unwrap_or(1);
        writeln!(
            f,
            "{operations} operations, hosts of {}: {} at most, {fragments} fragments or more, {} in storage",
            plural(self.cores.into(), "processor"),
            plural(hosts, "host"),
            bytes(self.stored_bytes)
        )?;
        let mut table = new_table(&["step", "processor time", "hosts", "takes", "reads", "writes"], 0);
        for step in &self.steps {
            table.add_row([
                step.name.to_string(),
                time(step.cpu_s),
                thousands(step.hosts),
                time(step.seconds),
                bytes(step.reads_bytes),
                bytes(step.writes_bytes),
            ]);
        }
        writeln!(f, "{table}")?;
        writeln!(f, "A host holds {} on its disk while its tasks run.", bytes(self.scratch_bytes))
    }
}

/// What plans do not say, for people.
pub fn notes(costs: &Costs) -> String {
    format!(
        "Times are those of processors, measured on {} with a light mix of social actions. They leave\n\
         out what the network, the object storage and the engine take (benches/cluster.md has Spark's). DuckDB computes the\n\
         percentiles of all rows; verdicts do not need them. To plan with your machine, use `benches/run cluster` and --measured.\n",
        costs.processor
    )
}

/// A time in the unit that suits it.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 60.0 => format!("{s:.1} s"),
        s if s < 3600.0 => format!("{:.1} min", s / 60.0),
        s if s < 48.0 * 3600.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}

/// A number of bytes in the unit that suits it.
fn bytes(bytes: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let unit = ((bytes.max(1.0).log10() / 3.0) as usize).min(units.len() - 1);
    if bytes < 1.0 { "–".into() } else { format!("{:.1} {}", bytes / 1000f64.powi(unit as i32), units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs() -> Costs {
        let cost = |task_s, operation_ns, operation_bytes| Cost { task_s, operation_ns, operation_bytes };
        Costs {
            generate: cost(0.5, 1_000.0, 10.0),
            replay: cost(0.0, 1_000.0, 30.0),
            analyze: cost(0.1, 2_000.0, 20.0),
            merge: cost(1.6, 0.0, 0.0),
            query: cost(0.0, 100.0, 0.0),
            processor: "P".into(),
        }
    }

    #[test]
    fn hosts_follow_from_processor_time() {
        let wanted = Wanted { operations: 1_000_000_000, cores: 10, within_s: 100.0 };
        let plan = plan(&costs(), &wanted);
        // 2,000 s of analysis are two hosts of ten processors for 100 s, so twenty fragments keep them busy.
        assert_eq!(plan.fragments, 20);
        let of = |name: &str| plan.steps.iter().find(|step| step.name == name).unwrap();
        let analysis = of("validate, summarize, seal");
        assert_eq!((analysis.cpu_s, analysis.hosts), (2_002.0, 3));
        assert!((analysis.seconds - 2_002.0 / 30.0).abs() < 1e-9);
        assert_eq!((analysis.reads_bytes, analysis.writes_bytes), (40e9, 20e9));
        assert_eq!((of("generate").cpu_s, of("generate").hosts), (1_010.0, 2));
        assert_eq!((of("merge").cpu_s, of("merge").hosts), (2.0, 1));
        assert_eq!(plan.stored_bytes, 60e9);
        // Ten of the twenty fragments at once.
        assert_eq!(plan.scratch_bytes, 30e9);
        let shown = plan.to_string();
        let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        1,000,000,000 operations, hosts of 10 processors: 3 hosts at most, 20 fragments or more, 60.0 GB in storage
         step                       processor time  hosts    takes    reads   writes
        ──────────────────────────────────────────────────────────────────────────────
         generate                         16.8 min      2   50.5 s        –  10.0 GB
         validate, summarize, seal        33.4 min      3  1.1 min  40.0 GB  20.0 GB
         merge                               2.0 s      1    2.0 s        –        –
         percentiles of all rows           1.7 min      1   10.0 s  20.0 GB        –
        A host holds 30.0 GB on its disk while its tasks run.
        ");
    }

    #[test]
    fn units_suit_their_numbers() {
        assert_eq!([12.34, 90.0, 7_200.0, 1e6].map(time), ["12.3 s", "1.5 min", "2.0 h", "11.6 days"]);
        assert_eq!([0.0, 12.0, 1_500.0, 2e12, 3e18].map(bytes), ["–", "12.0 B", "1.5 kB", "2.0 TB", "3000.0 PB"]);
    }

    /// The costs that the program has foresee the largest run of the report, which is ten times larger than the one
    /// that they are fitted to.
    #[test]
    fn the_costs_foresee_a_run_ten_times_larger() {
        #[derive(Deserialize)]
        struct Line {
            operations: u64,
            step: String,
            workers: u32,
            cpu_s: f64,
        }
        #[derive(Deserialize)]
        struct Lines {
            lines: Vec<Line>,
        }
        let costs = Costs::read(MEASURED).unwrap();
        let Lines { lines } = serde_json::from_str(MEASURED).unwrap();
        let largest = lines.iter().map(|line| line.operations).max().unwrap();
        assert_eq!(largest, 100_000_000);
        let fragments = MEASURED_FRAGMENTS as u64;
        let steps = [
            ("generate fragments", costs.generate, fragments, 0.15),
            ("replay on memory:", costs.replay, 1, 0.15),
            ("analyze fragments", costs.analyze, fragments, 0.15),
            ("percentiles over all rows, SQL", costs.query, 1, 0.15),
            // A tenth of a second more is more than half of it.
            ("merge", costs.merge, 1, 0.65),
        ];
        for (step, cost, tasks, bound) in steps {
            let own = lines.iter().find(|line| line.step == step && line.operations == largest && line.workers == 1);
            let (measured, foreseen) = (own.unwrap().cpu_s, cost.cpu_s(largest, tasks));
            assert!((foreseen / measured - 1.0).abs() < bound, "{step}: {foreseen} s foreseen, {measured} s measured");
        }
    }
}
