//! `FinalResult.csv` and `Results.csv`: a rating in the column order of the two files that BG's
//! coordinator writes (bg-rating, "Rating Output"), for users who have scripts for them.
//!
//! Neither file has a header line: every line is data. Numbers have no thousands separators and a
//! point before decimals; times of day are UTC.
//!
//! `FinalResult.csv` has one line per experiment, in the order in which they ran:
//!
//! | # | BG's name | here |
//! |---|---|---|
//! | 1 | currentTime | start of the experiment after the store was loaded, `yyyy/mm/dd hh:mm:ss` |
//! | 2 | time | from then to the verdict, with warm-up and validation, in milliseconds as BG's coordinator writes it |
//! | 3 | Objective | `SoAR`, `Socialites`, or `SoAR and Socialites` for an experiment that serves both |
//! | 4 | SLA Latency | β in seconds |
//! | 5 | SLA Confidence | α in percent |
//! | 6 | numClients | replayers |
//! | 7 | ThreadCount | T over all replayers |
//! | 8 | Throughput | sessions a second, no-operations included |
//! | 9 | ActThroughput | actions a second |
//! | 10 | totalStaleness | unpredictable reads in percent |
//! | 11 | TotalClientsSucceeded | replayers that kept the SLA; 0 in a void experiment |
//!
//! BG rates one objective at a time. Here the two ratings share the experiments of their
//! searches, and often the final one. A shared experiment is one line whose objective names both.
//!
//! `Results.csv` has one line per replayer of each experiment, in the same order: numClients
//! lines per experiment. A line has the replayer's threads, its unpredictable reads in percent,
//! its actions per second, and its operations within β in percent.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use schemas::files::{self, FileError};
use schemas::run::{Purpose, RunFolder};
use schemas::sla::Sla;
use schemas::verdict::{ReplayerFigures, Ruling, Verdict};

use super::rating::Wanted;
use crate::run::trial::Trial;

/// Writes both files with all experiments so far.
pub fn write(run: &RunFolder, sla: &Sla, wanted: Wanted, trials: &[Trial]) -> Result<(), FileError> {
    files::write_atomically(&run.bg_final_result(), final_result(sla, wanted, trials).as_bytes())?;
    files::write_atomically(&run.bg_results(), results(trials).as_bytes())
}

/// The figures of each replayer of an experiment. With a single replayer they are those of the
/// experiment.
fn clients(trial: &Trial) -> Vec<ReplayerFigures> {
    let Verdict { threads, figures, replayers, reasons, .. } = &trial.verdict;
    if !replayers.is_empty() {
        return replayers.clone();
    }
    vec![ReplayerFigures {
        name: String::new(),
        threads: *threads,
        throughput_per_s: figures.throughput_per_s,
        within_beta_percent: figures.within_beta_percent,
        unpredictable_percent: figures.unpredictable_percent,
        missed: reasons.clone(),
    }]
}

/// The text of `FinalResult.csv`.
fn final_result(sla: &Sla, wanted: Wanted, trials: &[Trial]) -> String {
    let mut out = String::new();
    for trial in trials {
        let (verdict, clients) = (&trial.verdict, clients(trial));
        let objective = match &trial.purpose {
            Purpose::Final(objective) => objective,
            Purpose::Search | Purpose::Single => wanted.name(),
        };
        let kept = clients.iter().filter(|client| client.missed.is_empty()).count();
        let succeeded = if verdict.ruling == Ruling::Void { 0 } else { kept };
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "{},{},{objective},{},{},{},{},{},{},{},{succeeded}",
            time_of_day(trial.started_unix_s),
            (trial.took_s * 1000.0).round(),
            sla.beta_ns as f64 / 1e9,
            sla.alpha_percent,
            clients.len(),
            verdict.threads,
            verdict.figures.sessions_per_s,
            verdict.figures.throughput_per_s,
            verdict.figures.unpredictable_percent,
        );
    }
    out
}

/// The text of `Results.csv`.
fn results(trials: &[Trial]) -> String {
    let mut out = String::new();
    for client in trials.iter().flat_map(clients) {
        let ReplayerFigures { threads, unpredictable_percent, throughput_per_s, within_beta_percent, .. } = client;
        let _ = writeln!(out, "{threads},{unpredictable_percent},{throughput_per_s},{within_beta_percent}");
    }
    out
}

/// The time in BG's notation, which contains no comma.
fn time_of_day(unix_s: u64) -> String {
    let time = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(unix_s)).to_string();
    time.trim_end_matches('Z').replace('-', "/").replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::testing::trial;

    /// Four experiments of a rating, with figures that cannot be confused.
    fn trials() -> Vec<Trial> {
        let of = |number: u32, threads, ruling, purpose| {
            let mut trial = trial(number, threads, 1000.5 * number as f64, ruling, purpose);
            trial.started_unix_s = 1_800_000_000 + number as u64;
            trial.verdict.figures.sessions_per_s = 200.25 * number as f64;
            trial
        };
        let mut void = of(2, 64, Ruling::Void, Purpose::Search);
        (void.report, void.took_s, void.verdict.figures) = (None, 0.0, Default::default());
        vec![
            of(1, 8, Ruling::Pass, Purpose::Search),
            void,
            of(3, 8, Ruling::Pass, Purpose::Final("SoAR and Socialites".into())),
            of(4, 16, Ruling::Fail, Purpose::Final("Socialites".into())),
        ]
    }

    #[test]
    fn columns_stand_in_the_order_of_bgs_files() {
        let sla = "99% < 250ms, 0.1% unpredictable, 10s".parse().unwrap();
        assert_eq!(
            final_result(&sla, Wanted::Both, &trials()),
            "2027/01/15 08:00:01,12500,SoAR and Socialites,0.25,99,1,8,200.25,1000.5,0.0001,1\n\
             2027/01/15 08:00:02,0,SoAR and Socialites,0.25,99,1,64,0,0,0,0\n\
             2027/01/15 08:00:03,12500,SoAR and Socialites,0.25,99,1,8,600.75,3001.5,0.0001,1\n\
             2027/01/15 08:00:04,12500,Socialites,0.25,99,1,16,801,4002,0.0001,0\n"
        );
        assert_eq!(
            results(&trials()),
            "8,0.0001,1000.5,99.9995\n64,0,0,0\n8,0.0001,3001.5,99.9995\n16,0.0001,4002,99.9995\n"
        );
        let soar_alone = final_result(&sla, Wanted::Soar, &trials()[..1]);
        assert!(soar_alone.contains(",12500,SoAR,0.25,"), "{soar_alone}");
    }

    #[test]
    fn each_replayer_has_its_line() {
        let mut several = trial(1, 12, 3000.0, Ruling::Fail, Purpose::Search);
        several.verdict.replayers = [(8, vec![]), (4, vec!["90% within 100ms, needs 95%".to_string()])]
            .map(|(threads, missed)| ReplayerFigures {
                name: format!("load{threads}:7070"),
                threads,
                throughput_per_s: 250.0 * f64::from(threads),
                within_beta_percent: 99.0,
                unpredictable_percent: 0.5,
                missed,
            })
            .to_vec();
        assert_eq!(results(std::slice::from_ref(&several)), "8,0.5,2000,99\n4,0.5,1000,99\n");
        let line = |trial: &Trial| final_result(&Sla::default(), Wanted::Both, std::slice::from_ref(trial));
        assert!(line(&several).contains(",95,2,12,") && line(&several).ends_with(",1\n"), "{}", line(&several));
        several.verdict.ruling = Ruling::Void;
        assert!(line(&several).ends_with(",0\n"), "{}", line(&several));
    }

    #[test]
    fn both_files_are_written_whole_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::new(folder.path());
        for count in [1, 4] {
            write(&run, &Sla::default(), Wanted::Both, &trials()[..count]).unwrap();
            for file in [run.bg_final_result(), run.bg_results()] {
                assert_eq!(std::fs::read_to_string(file).unwrap().lines().count(), count);
            }
        }
    }
}
