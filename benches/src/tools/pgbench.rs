//! pgbench, with the same statements that Encore prepares.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use replayer::stores::postgres::PostgresServer;
use replayer::stores::relational::engine::Engine;
use replayer::stores::relational::social::design::Design;
use replayer::stores::relational::social::statements::{Argument, Call, Statement, Statements};
use schemas::social::{Action, Operation};

use super::{on_path, version};
use crate::measure;
use crate::sample::Figures;

/// Its settings besides the numbers, for the report.
pub const SETTINGS: &str = "-M prepared -j 1, random_zipfian(…, 1.001), or random(…), which is much cheaper; percentiles from a log of every tenth transaction";

/// The program, and a folder for scripts and logs.
pub struct Pgbench {
    program: PathBuf,
    folder: PathBuf,
}

/// A script: its text, how often it is drawn, and how many actions it performs.
pub struct Script {
    name: String,
    /// The text.
    pub text: String,
    weight: u32,
    actions: u32,
}

impl Script {
    /// A script of one action.
    pub fn new(name: &str, text: String, weight: u32) -> Script {
        Script { name: name.into(), text, weight, actions: 1 }
    }
}

/// A run.
pub struct Run<'a> {
    /// The database.
    pub url: &'a str,
    /// The scripts.
    pub scripts: &'a [Script],
    /// Clients.
    pub threads: u32,
    /// The duration in seconds.
    pub seconds: u32,
}

/// Scripts of Encore's statements, for a data set with this number of members.
pub struct Scripts {
    statements: Statements,
    members: u32,
    draw: Draw,
}

/// How pgbench draws members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    /// Zipfian, as in Encore's trace. This costs pgbench a lot of CPU time.
    Zipfian,
    /// As cheaply as possible, so that only the cost of the database client is left.
    Uniform,
}

impl Draw {
    /// The expression for a number below `count`.
    pub fn of(self, count: u64) -> String {
        match self {
            Draw::Zipfian => format!("random_zipfian(1, {count}, 1.001) - 1"),
            Draw::Uniform => format!("random(0, {})", count - 1),
        }
    }
}

impl Scripts {
    /// The scripts for a design.
    pub fn new(design: &Design, members: u32, draw: Draw) -> Scripts {
        Scripts { statements: Statements::new(design, &PostgresServer::DIALECT), members, draw }
    }

    /// One action on a drawn member.
    pub fn read(&self, name: &str, action: Action, weight: u32) -> Script {
        let statements = self.statements_of(action).join("\n");
        let draw = self.draw.of(self.members.into());
        let mut text = String::new();
        // A draw costs pgbench as much as a query, so a script has only the draws that it uses.
        for (variable, value) in [("target", draw.as_str()), ("me", draw.as_str()), ("top_k", "5")] {
            if statements.contains(&format!(":{variable}")) {
                text += &format!("\\set {variable} {value}\n");
            }
        }
        Script::new(name, text + &statements, weight)
    }

    /// Five writes that leave the data unchanged. pgbench does not know the members' friends, so
    /// each client works on pairs of ids that no member has.
    pub fn writes(&self, weight: u32) -> Script {
        let mut text = format!(
            "\\set n :n + 1\n\\set a {first} + :n * 1000 + :client_id\n\\set b :a + 1000000000\n",
            first = self.members
        );
        let turns = [
            (Action::InviteFriend, "a", "b"),
            (Action::AcceptFriendRequest, "b", "a"),
            (Action::ThawFriendship, "a", "b"),
            (Action::InviteFriend, "a", "b"),
            (Action::RejectFriendRequest, "b", "a"),
        ];
        for (action, me, target) in turns {
            text += &format!("\\set me :{me}\n\\set target :{target}\n{}\n", self.statements_of(action).join("\n"));
        }
        Script { name: "writes".into(), text, weight, actions: turns.len() as u32 }
    }

    fn statements_of(&self, action: Action) -> Vec<String> {
        match self.statements.of(&Operation { action, socialite: 0, target: 1, comment: None }) {
            Call::Read(read) => vec![spelled(&read.statement)],
            Call::Write([only]) => vec![spelled(&only.statement)],
            Call::Write(steps) => {
                let steps = steps.iter().map(|step| spelled(&step.statement));
                ["BEGIN;".to_string()].into_iter().chain(steps).chain(["COMMIT;".to_string()]).collect()
            }
        }
    }
}

/// A statement with pgbench's variables for its parameters.
fn spelled(statement: &Statement) -> String {
    let mut text = statement.sql().as_str().to_string();
    // Starts with the last parameter, so that $1 is not found in $10.
    for (place, argument) in statement.arguments().iter().enumerate().rev() {
        let name = match argument {
            Argument::Me => ":me",
            Argument::Target => ":target",
            Argument::TopK => ":top_k",
            Argument::Comment | Argument::Body => unreachable!("no script has comments"),
        };
        text = text.replace(&format!("${}", place + 1), name);
    }
    text + ";"
}

impl Pgbench {
    /// The program on PATH.
    pub fn find(folder: &Path) -> anyhow::Result<Pgbench> {
        let folder = folder.join("pgbench");
        std::fs::create_dir_all(&folder)?;
        Ok(Pgbench { program: on_path("pgbench").context("pgbench is not installed")?, folder })
    }

    /// Its version.
    pub fn version(&self) -> String {
        version(&self.program, &["--version"])
    }

    /// Creates and fills pgbench's own tables, of the smallest size.
    pub fn initialize(&self, url: &str) -> anyhow::Result<()> {
        measure::run(Command::new(&self.program).args(["-i", "-q", "-s", "1", url]))?;
        Ok(())
    }

    /// Runs a script some times. A statement that fails is an error.
    pub fn check(&self, url: &str, script: &str) -> anyhow::Result<()> {
        std::fs::write(self.folder.join("check.sql"), script)?;
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).args(["-n", "-M", "prepared", "-t", "20", "-f", "check.sql"]);
        let used = measure::run(command.arg(url)).context("pgbench does not find the records of its table")?;
        let is_whole = used.output.contains("number of transactions actually processed: 20/20");
        anyhow::ensure!(is_whole, "pgbench does not find the records of its table:\n{}", used.output);
        Ok(())
    }

    /// Runs the scripts, and reads the figures from pgbench's report and log.
    pub fn run(&self, run: &Run<'_>) -> anyhow::Result<Figures> {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).args(["-n", "-M", "prepared", "-j", "1", "-D", "n=0", "-l"]);
        command.args(["--sampling-rate=0.1", "--log-prefix=log"]);
        command.args(["-c", &run.threads.to_string(), "-T", &run.seconds.to_string()]);
        for script in run.scripts {
            let file = format!("{}.sql", script.name);
            std::fs::write(self.folder.join(&file), &script.text)?;
            command.arg("-f").arg(format!("{file}@{}", script.weight));
        }
        let used = measure::run(command.arg(run.url))?;
        let report = Report::parse(&used.output, run.scripts)
            .with_context(|| format!("pgbench's report is not as expected:\n{}", used.output))?;
        let mut times = self.take_log(run.scripts)?;
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times.get(((times.len() as f64 * share).ceil() as usize).saturating_sub(1)).copied();
        let all = Figures::of(&used, report.actions as f64, report.actions_per_s);
        Ok(Figures {
            mean_us: Some(run.threads as f64 / report.actions_per_s * 1e6),
            p50_us: at(0.5),
            p99_us: at(0.99),
            errors: report.failed,
            ..all
        })
    }

    /// Runs a script at a rate, and reads how late pgbench started each transaction from its log.
    pub fn paced(&self, url: &str, script: &str, per_s: u32, clients: u32, seconds: u32) -> anyhow::Result<Paced> {
        std::fs::write(self.folder.join("paced.sql"), script)?;
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).args(["-n", "-M", "prepared", "-j", "1", "-l", "--log-prefix=log"]);
        command.args(["-c", &clients.to_string(), "-T", &seconds.to_string(), "-R", &per_s.to_string()]);
        let used = measure::run(command.args(["-f", "paced.sql", url]))?;
        let mut lags_ns = Vec::new();
        for path in self.logs()? {
            for line in std::fs::read_to_string(&path)?.lines() {
                lags_ns.push(schedule_lag_ns(line).with_context(|| format!("{line:?} in pgbench's log has no lag"))?);
            }
            std::fs::remove_file(&path)?;
        }
        Ok(Paced { lags_ns, cpu_s: used.cpu_s })
    }

    /// The files of its log.
    fn logs(&self) -> anyhow::Result<Vec<PathBuf>> {
        let paths: Result<Vec<PathBuf>, _> =
            std::fs::read_dir(&self.folder)?.map(|entry| Ok::<_, std::io::Error>(entry?.path())).collect();
        let is_log = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log."));
        Ok(paths?.into_iter().filter(is_log).collect())
    }

    /// Reads the response times from the log, and removes it. A transaction of several actions
    /// counts as that many actions of equal length.
    fn take_log(&self, scripts: &[Script]) -> anyhow::Result<Vec<f64>> {
        let mut times = Vec::new();
        for path in self.logs()? {
            for line in std::fs::read_to_string(&path)?.lines() {
                let fields: Vec<&str> = line.split(' ').collect();
                let of = |field: usize| fields.get(field).and_then(|text| text.parse::<f64>().ok());
                let (Some(time_us), Some(script)) = (of(2), of(3)) else { anyhow::bail!("{line:?} in pgbench's log") };
                let actions = scripts.get(script as usize).map_or(1, |script| script.actions);
                times.extend((0..actions).map(|_| time_us / f64::from(actions)));
            }
            std::fs::remove_file(&path)?;
        }
        Ok(times)
    }
}

/// A run at a rate.
pub struct Paced {
    /// How late each transaction started, in nanoseconds.
    pub lags_ns: Vec<i64>,
    /// Processor time of pgbench.
    pub cpu_s: f64,
}

/// The schedule lag in a line of the log of a run with a rate: its last field, in microseconds.
fn schedule_lag_ns(line: &str) -> Option<i64> {
    let fields: Vec<&str> = line.split(' ').collect();
    let lag_us: i64 = fields.get(6)?.parse().ok()?;
    Some(lag_us * 1_000)
}

/// The report that pgbench prints at its end.
struct Report {
    actions: u64,
    actions_per_s: f64,
    /// Transactions that failed; versions before 15 do not count them.
    failed: Option<f64>,
}

impl Report {
    fn parse(text: &str, scripts: &[Script]) -> Option<Report> {
        let number = |line: &str, before: &str, after: &str| -> Option<f64> {
            let (_, rest) = line.split_once(before)?;
            rest.split(after).next()?.trim().parse().ok()
        };
        let tps = text.lines().find_map(|line| number(line, "tps = ", "(without"))?;
        let transactions: f64 =
            text.lines().find_map(|line| number(line, "number of transactions actually processed: ", "/"))?;
        let actions = match scripts {
            [only] => transactions * f64::from(only.actions),
            _ => {
                let each = text.lines().filter_map(|line| number(line, " - ", " transactions ("));
                let counts: Vec<f64> = each.collect();
                if counts.len() != scripts.len() {
                    return None;
                }
                counts.iter().zip(scripts).map(|(count, script)| count * f64::from(script.actions)).sum()
            }
        };
        let failed = text.lines().find_map(|line| number(line, "number of failed transactions: ", "("));
        Some(Report { actions: actions as u64, actions_per_s: tps * actions / transactions, failed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(name: &str, actions: u32) -> Script {
        Script { name: name.into(), text: String::new(), weight: 1, actions }
    }

    #[test]
    fn the_schedule_lag_is_the_seventh_field() {
        assert_eq!(schedule_lag_ns("0 199 2241 0 1175850568 995598 1020"), Some(1_020_000));
        assert_eq!(schedule_lag_ns("0 199 2241 0 1175850568 995598"), None);
    }

    #[test]
    fn actions_are_counted_over_all_scripts() {
        let text = "number of transactions actually processed: 1000\n\
                    number of failed transactions: 3 (0.300%)\n\
                    tps = 100.0 (without initial connection time)\n\
                    SQL script 1: a.sql\n - weight: 3 (targets 75.0% of total)\n\
                    \x20- 800 transactions (80.0% of total, tps = 80.0)\n\
                    SQL script 2: b.sql\n - 200 transactions (20.0% of total, tps = 20.0)\n";
        let report = Report::parse(text, &[script("a", 1), script("b", 5)]).unwrap();
        assert_eq!((report.actions, report.actions_per_s, report.failed), (1800, 180.0, Some(3.0)));
        let report = Report::parse(text, &[script("a", 1)]).unwrap();
        assert_eq!((report.actions, report.actions_per_s), (1000, 100.0));
        assert!(Report::parse("nothing", &[script("a", 1)]).is_none());
    }

    #[test]
    fn statements_are_those_of_the_replayer_with_names_for_parameters() {
        let scripts = Scripts::new(&crate::postgres::DESIGN, 100, Draw::Uniform);
        let text = scripts.writes(1).text;
        assert!(text.contains("INSERT INTO invitations (invitee, inviter) VALUES (:target, :me);"), "{text}");
        assert!(text.contains("BEGIN;") && text.contains("COMMIT;") && !text.contains('$'), "{text}");
        let text = scripts.read("view_profile", Action::ViewProfile, 1).text;
        assert!(text.starts_with("\\set target random(0, 99)\nSELECT"), "{text}");
    }
}
