//! Key-value workloads through Encore and through other tools, one store after another.
//!
//! Each workload has a server of its own, with the server's defaults, in which each tool has its own
//! table with the same number of records of the same size. Tools take turns in each round.

mod goals;
mod run;
mod stores;
mod workloads;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::machine::Machine;
use crate::report::{Report, Section};
use crate::table;
use run::Bench;
use stores::StoreName;
use workloads::Workload;

/// What is measured, and for how long.
#[derive(Args)]
pub struct Arguments {
    /// Measure only this store; repeat the flag for more stores [default: all stores]
    #[arg(long, value_enum, value_name = "STORE")]
    only: Vec<StoreName>,
    /// Measure only this workload of YCSB; separate several with commas
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Workload::ALL)]
    workload: Vec<Workload>,
    /// Number of threads; separate several with commas
    #[arg(long, value_name = "T", value_delimiter = ',', default_values_t = [1, 16, 64, 256],
          value_parser = clap::value_parser!(u32).range(1..=450))]
    threads: Vec<u32>,
    /// Duration of each of Encore's runs in seconds; go-ycsb then performs as many operations
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Number of rounds; each round measures every tool once
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Keep what the report has of these stores, and measure only what is missing
    #[arg(long)]
    resume: bool,
    /// Path of the report, without .md and .json
    #[arg(long, short = 'o', value_name = "FILE", default_value = "benches/results")]
    output: PathBuf,
}

impl Arguments {
    /// The command that measures a store.
    fn command(&self, store: StoreName) -> String {
        let workloads: Vec<&str> = self.workload.iter().map(|workload| workload.letter()).collect();
        let threads: Vec<String> = self.threads.iter().map(u32::to_string).collect();
        format!(
            "benches/run kv --only {} --workload {} --threads {} --seconds {} --rounds {}",
            store.flag(),
            workloads.join(","),
            threads.join(","),
            self.seconds,
            self.rounds
        )
    }

    /// The section of a store, with its former results if they are to be kept.
    fn section(&self, store: StoreName, report: &Report, machine: &Machine) -> anyhow::Result<Section> {
        let mut section = Section::new(&store.group(), machine, &self.command(store));
        let Some(former) = report.section(&section.group).filter(|_| self.resume) else { return Ok(section) };
        anyhow::ensure!(
            former.machine == *machine,
            "{}: {} was measured on {}, not on this machine ({machine}); remove --resume, or choose another file with -o",
            self.output.with_extension("json").display(),
            former.group,
            former.machine
        );
        let duration = format!(" --seconds {} ", self.seconds);
        anyhow::ensure!(
            former.command.contains(&duration),
            "{}: {} was measured with other durations ({}); give the same --seconds, or remove --resume",
            self.output.with_extension("json").display(),
            former.group,
            former.command
        );
        section.tools = former.tools.clone();
        section.samples = former.samples.clone();
        Ok(section)
    }
}

/// Measures all stores, and writes the report after each run.
pub fn main(arguments: &Arguments, peers: &Path, folder: &Path) -> anyhow::Result<()> {
    let machine = Machine::current();
    let mut report = Report::read(&arguments.output)?;
    let stores = if arguments.only.is_empty() { StoreName::ALL.to_vec() } else { arguments.only.clone() };
    for store in stores {
        let section = arguments.section(store, &report, &machine)?;
        let mut bench = Bench::new(arguments, store, peers, folder, section, &mut report);
        let done = bench.run();
        let failure = done.as_ref().err().map(|error| format!("{error:#}"));
        bench.keep(failure)?;
        done?;
    }
    print!("{}", table::markdown(&report));
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::sample::{Figures, Sample};

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(words: &str) -> Arguments {
        Cli::parse_from(std::iter::once("kv").chain(words.split_whitespace())).arguments
    }

    #[test]
    fn the_command_of_a_section_measures_it_again() {
        let words = "--only redis --workload a,e --threads 1,16 --seconds 7 --rounds 2";
        let command = arguments(words).command(StoreName::Redis);
        assert_eq!(command, format!("benches/run kv {words}"));
        let all = arguments("").command(StoreName::Mariadb);
        assert_eq!(
            all,
            "benches/run kv --only mariadb --workload a,c,e,f --threads 1,16,64,256 --seconds 5 --rounds 3"
        );
    }

    #[test]
    fn resume_keeps_results_of_the_same_machine_and_duration() {
        let machine = Machine::current();
        let mut report = Report::default();
        let (first, store) = (arguments("--workload a"), StoreName::Redis);
        let mut former = first.section(store, &report, &machine).unwrap();
        former.samples.push(Sample {
            case: "A".into(),
            threads: 1,
            tool: "Encore".into(),
            figures: Figures::default(),
        });
        report.put(former);
        let kept = |words: &str, machine: &Machine| {
            arguments(words).section(store, &report, machine).map(|section| section.samples.len())
        };
        assert_eq!(kept("--resume --workload c", &machine).unwrap(), 1);
        assert_eq!(kept("--workload c", &machine).unwrap(), 0);
        let refused = kept("--resume --seconds 6", &machine).unwrap_err().to_string();
        assert!(refused.contains("other durations") && refused.contains("give the same --seconds"), "{refused}");
        let other = Machine { cores: 99, ..machine.clone() };
        let refused = kept("--resume", &other).unwrap_err().to_string();
        assert!(refused.contains("not on this machine"), "{refused}");
    }
}
