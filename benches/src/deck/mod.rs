//! Measures what the deck costs: the throughput of a run with and without viewers, and the time until a browser paints
//! a page, with many runs in the folder and with a large one.

mod running;
mod viewers;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use browser::{Browser, Page};
use schemas::run::{ReplayReport, RunFolder};
use schemas::words::thousands;
use serde::Serialize;

use self::running::Deck;
use self::viewers::Viewer;
use crate::machine::Machine;
use crate::measure;

/// YCSB's records, which are only updated here: `null:` answers no read as it should, and the analysis of many
/// unpredictable reads takes minutes.
const SPEC: &str = include_str!("../../../traces/ycsb-a.toml");
const UPDATES: [&str; 2] = ["--set=mix.read=0", "--set=mix.update=100"];

/// A viewer may cost a run so much of its throughput.
const COST_PERCENT_MAX: f64 = 1.0;

/// A page must be painted after so long.
const PAINTED_MS_MAX: f64 = 1000.0;

/// T of all runs.
const THREADS: u32 = 64;

/// How often is looked whether an experiment is over.
const AGAIN: Duration = Duration::from_millis(50);

/// A feed of so many bytes has figures of some seconds.
const FEED_BYTES: u64 = 2_000;

/// Sessions of a small run.
const SMALL: u64 = 2_000;

/// What is measured.
pub struct Measured {
    /// How often everything is measured.
    pub rounds: u32,
    /// Sessions of a run whose throughput is measured. The run ends with its experiment.
    pub operations: u64,
    /// Runs in the folder of the deck.
    pub runs: u32,
    /// Sessions of the large run.
    pub large: u64,
    /// Path of the report, without `.md` and `.json`.
    pub output: PathBuf,
}

/// A figure in each round.
#[derive(Debug, Clone, Serialize)]
struct Line {
    what: String,
    each: Vec<f64>,
}

impl Line {
    fn median(&self) -> f64 {
        let mut sorted = self.each.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() % 2 {
            0 => sorted.get(middle.wrapping_sub(1)).zip(sorted.get(middle)).map_or(f64::NAN, |(a, b)| (a + b) / 2.0),
            _ => sorted[middle],
        }
    }
}

impl Line {
    /// The interval that has the median of all such rounds with 95% confidence, whatever their distribution: between two
    /// of the values, which the binomial distribution says. None for fewer than six rounds.
    fn interval(&self) -> Option<(f64, f64)> {
        let mut sorted = self.each.clone();
        sorted.sort_by(f64::total_cmp);
        let all = sorted.len();
        // The chance that no more than so many values are below the median.
        let mut chance = 0.5f64.powi(all as i32);
        let (mut sum, mut below) = (chance, 0);
        while sum <= 0.025 {
            below += 1;
            chance *= (all + 1 - below) as f64 / below as f64;
            sum += chance;
        }
        let low = below.checked_sub(1)?;
        Some((sorted[low], sorted[all - 1 - low]))
    }
}

/// Measures everything and writes the report.
pub fn main(wanted: &Measured, folder: &Path) -> anyhow::Result<()> {
    let place = Place::new(folder)?;
    let costs = costs(wanted, &place)?;
    let paints = paints(wanted, &place)?;
    write(wanted, &costs, &paints)
}

/// The program, and a folder for its runs.
struct Place {
    program: PathBuf,
    folder: PathBuf,
}

impl Place {
    fn new(folder: &Path) -> anyhow::Result<Place> {
        let program = std::env::current_exe()?.with_file_name("encore");
        anyhow::ensure!(
            program.is_file(),
            "{} is missing; start the benches with benches/run, which builds it",
            program.display()
        );
        fs::write(folder.join("updates.toml"), SPEC)?;
        Ok(Place { program, folder: folder.to_path_buf() })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(&self.folder);
        command
    }

    fn trace(&self, name: &str, sessions: u64) -> anyhow::Result<()> {
        let (set, out) = (format!("--sessions={sessions}"), format!("--output={name}"));
        let words = [&["trace", "gen", "updates.toml", &set, &out][..], &UPDATES].concat();
        measure::run(&mut self.command(&words))?;
        Ok(())
    }

    /// The command of a run of all sessions of a trace set against `null:`.
    fn replay(&self, trace: &str, name: &str, sessions: u64) -> Command {
        let (trace, name) = (format!("--trace={trace}"), format!("--name={name}"));
        let (threads, sessions) = (format!("--threads={THREADS}"), format!("--sessions={sessions}"));
        let how = ["--store=null:", "--no-closing-read", "--quiet"];
        self.command(&[&["run", &trace, &name, &threads, &sessions][..], &how].concat())
    }

    /// The command of a run that does not end while pages are painted.
    fn endless(&self, name: &str) -> Command {
        let store = "--store=memory:?latency_us=500";
        let how = ["--threads=4", "--duration=30m", "--rate=400", "--no-closing-read", "--quiet"];
        self.command(&[&["run", "updates.toml", store, &format!("--name={name}")][..], &how, &UPDATES].concat())
    }

    /// Such a run. What it would rate does not matter here.
    fn run(&self, trace: &str, name: &str, sessions: u64) -> anyhow::Result<()> {
        measure::run_to(&mut self.replay(trace, name, sessions), &[0, 1, 3])?;
        Ok(())
    }

    /// The operations a second of such a run. It is killed when its experiment is over: nobody asks for its analysis,
    /// which takes much longer.
    fn throughput_per_s(&self, name: &str, sessions: u64) -> anyhow::Result<f64> {
        let mut command = self.replay("measured.trace", name, sessions);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().context("cannot start the run")?;
        let folder = RunFolder::new(self.folder.join("runs").join(name));
        let report = folder.experiment(1, THREADS).report();
        while !report.exists() {
            if let Some(status) = child.try_wait()? {
                bail!("the run ended before its experiment: {status}");
            }
            std::thread::sleep(AGAIN);
        }
        child.kill()?;
        child.wait()?;
        let report: ReplayReport = schemas::files::read_json(&report)?;
        fs::remove_dir_all(folder.root())?;
        Ok(report.ok as f64 / (report.elapsed_ns as f64 / 1e9))
    }
}

/// What the viewers cost, by case.
struct Costs {
    throughputs_per_s: Vec<Line>,
    /// Processor time of the deck in milliseconds for each second of the run.
    deck_ms_per_s: Vec<Line>,
}

/// Measures without a viewer, with one, and with a browser on the same machine. The three take turns.
fn costs(wanted: &Measured, place: &Place) -> anyhow::Result<Costs> {
    place.trace("measured.trace", wanted.operations)?;
    let deck = Deck::start(place)?;
    let browser = Browser::start();
    let mut cases = vec![Viewer::None, Viewer::Reader];
    cases.extend(browser.is_some().then_some(Viewer::Browser));
    let none = || cases.iter().map(|case| Line { what: case.to_string(), each: Vec::new() }).collect::<Vec<_>>();
    let mut costs = Costs { throughputs_per_s: none(), deck_ms_per_s: none() };
    // The first run reads the trace set from the disk, the others from memory: it counts for none of them.
    place.throughput_per_s("warm", wanted.operations)?;
    for round in 0..wanted.rounds {
        for turn in 0..cases.len() {
            // Each case comes first equally often.
            let order = (turn + round as usize) % cases.len();
            let name = format!("round-{round}-{order}");
            let watching = cases[order].watch(&deck, browser.as_ref(), &name, place)?;
            let before = measure::server_cpu_s(&[deck.process()]);
            let per_s = watching.during(|| place.throughput_per_s(&name, wanted.operations))?;
            let used_s = measure::server_cpu_s(&[deck.process()]) - before;
            eprintln!("[{}/{}] {}: {per_s:.0} operations/s", round + 1, wanted.rounds, cases[order]);
            costs.throughputs_per_s[order].each.push(per_s);
            costs.deck_ms_per_s[order].each.push(1e3 * used_s * per_s / wanted.operations as f64);
        }
    }
    Ok(costs)
}

/// Milliseconds from the request of a page to its first contents on the screen.
fn paints(wanted: &Measured, place: &Place) -> anyhow::Result<Vec<Line>> {
    let Some(browser) = Browser::start() else {
        eprintln!("benches: skipped the pages: no browser is here");
        return Ok(Vec::new());
    };
    place.trace("small.trace", SMALL)?;
    place.run("small.trace", "run-0", SMALL)?;
    for copy in 1..wanted.runs {
        copied(&place.folder.join("runs/run-0"), &place.folder.join(format!("runs/run-{copy}")))?;
    }
    place.trace("large.trace", wanted.large)?;
    place.run("large.trace", "large", wanted.large)?;
    let deck = Deck::start(place)?;
    let page = browser.open(&deck.url("/"));
    let pages = [
        (format!("the front page, with {} runs in the folder", wanted.runs + 1), "/"),
        (format!("the page of a run of {} operations", thousands(wanted.large)), "/runs/large"),
        ("the report of that run".to_string(), "/files/large/report.html"),
        ("the form of a rating".to_string(), "/new?kind=rate"),
        ("SQL on that run".to_string(), "/runs/large?show=sql"),
        ("the comparison of two runs".to_string(), "/compare?run=run-0&run=run-1&page=1"),
        ("a run that is live".to_string(), "/runs/live?show=live"),
    ];
    let mut live = place.endless("live").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let feed = place.folder.join("runs/live/live.jsonl");
    while fs::metadata(&feed).map_or(0, |feed| feed.len()) < FEED_BYTES {
        anyhow::ensure!(live.try_wait()?.is_none(), "the live run ended before it had figures");
        std::thread::sleep(AGAIN);
    }
    let measured = painted(wanted, &deck, &page, &pages);
    live.kill()?;
    live.wait()?;
    measured
}

/// The same of these pages.
fn painted(wanted: &Measured, deck: &Deck, page: &Page<'_>, pages: &[(String, &str)]) -> anyhow::Result<Vec<Line>> {
    let mut lines = Vec::new();
    for (what, path) in pages {
        let mut each = Vec::new();
        for _ in 0..wanted.rounds {
            page.go(&deck.url_without_key(path));
            page.wait_for("performance.getEntriesByName('first-contentful-paint').length > 0");
            let script = "performance.getEntriesByName('first-contentful-paint')[0].startTime";
            each.push(page.evaluate::<f64>(script));
        }
        eprintln!("{what}: {each:.0?} ms");
        lines.push(Line { what: what.clone(), each });
    }
    Ok(lines)
}

/// Copies a folder with everything in it.
fn copied(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, target) = {
            let entry = entry?;
            let target = to.join(entry.file_name());
            (entry, target)
        };
        match entry.file_type()?.is_dir() {
            true => copied(&entry.path(), &target)?,
            false => _ = fs::copy(entry.path(), target)?,
        }
    }
    Ok(())
}

/// How much less a case has than the first one, in percent, in each round: the two runs are neighbours.
fn costs_percent(base: &Line, case: &Line) -> Line {
    let each = base.each.iter().zip(&case.each).map(|(base, case)| 100.0 * (1.0 - case / base)).collect();
    Line { what: case.what.clone(), each }
}

fn write(wanted: &Measured, costs: &Costs, paints: &[Line]) -> anyhow::Result<()> {
    let Measured { rounds, operations, runs, large, output } = wanted;
    let machine = Machine::current();
    let mut text = format!(
        "# The deck\n\n`benches/run deck --rounds {rounds} --operations {operations} --runs {runs} --large {large}`, on \
         {machine}\n\n## What viewers cost a run\n\n`null:`, T = {THREADS}, {} updates of YCSB's records, every operation \
         logged. The cases take turns. The cost is the median over the rounds, and the interval has the \
         median of all such rounds with 95% confidence. The deck's time is that of its process, in \
         milliseconds of a processor for each second of the run.\n\n\
         | viewers | operations/s | in each round | cost | 95% | in each round | the deck's time, ms/s |\n\
         |---|---:|---|---:|---|---|---:|\n",
        thousands(*operations)
    );
    let round = |value: f64| thousands(value.max(0.0).round() as u64);
    let listed = |line: &Line| line.each.iter().map(|value| round(*value)).collect::<Vec<_>>().join(" ");
    let throughputs = &costs.throughputs_per_s;
    let base = throughputs.first();
    for (line, time) in throughputs.iter().zip(&costs.deck_ms_per_s) {
        let lost = base.filter(|base| base.what != line.what).map(|base| costs_percent(base, line));
        let cost = lost.as_ref().map_or(String::new(), |lost| format!("{:.2}%", lost.median()));
        let interval = lost.as_ref().and_then(Line::interval);
        let interval = interval.map_or(String::new(), |(low, high)| format!("{low:.2}% to {high:.2}%"));
        let each = lost.map_or(Vec::new(), |lost| lost.each.iter().map(|cost| format!("{cost:.1}%")).collect());
        let (median, each) = (round(line.median()), each.join(" "));
        let time = time.median();
        writeln!(text, "| {} | {median} | {} | {cost} | {interval} | {each} | {time:.1} |", line.what, listed(line))?;
    }
    if let [base, reader, ..] = &throughputs[..] {
        let cost = costs_percent(base, reader);
        let word = match cost.interval() {
            Some((_, high)) if high <= COST_PERCENT_MAX => "met",
            Some((low, _)) if low > COST_PERCENT_MAX => "missed",
            _ => "the rounds differ by more than that, so the throughput does not tell; the deck's time does",
        };
        writeln!(
            text,
            "\nGoal: a viewer costs at most {COST_PERCENT_MAX}%: {word}; the median is {:.2}%.",
            cost.median()
        )?;
    }
    if let [none, reader, ..] = &costs.deck_ms_per_s[..] {
        let more = (reader.median() - none.median()) / 10.0 / machine.cores as f64;
        writeln!(text, "\nThe deck takes {more:.2}% of the processors' time more with a viewer than without.")?;
    }
    text += "\n## First paint\n\nHeadless Chromium on the same machine; from the request to the first contents on the \
             screen, in milliseconds.\n\n| page | median | in each round |\n|---|---:|---|\n";
    for line in paints {
        writeln!(text, "| {} | {} | {} |", line.what, round(line.median()), listed(line))?;
    }
    if !paints.is_empty() {
        let is_met = paints.iter().all(|line| line.median() <= PAINTED_MS_MAX);
        let word = if is_met { "met" } else { "missed" };
        writeln!(text, "\nGoal: every page in at most {PAINTED_MS_MAX:.0} ms: {word}.")?;
    }
    let json = serde_json::json!({
        "machine": machine, "rounds": rounds, "operations": operations, "runs": runs, "large": large,
        "throughput_per_s": throughputs, "deck_ms_per_s": costs.deck_ms_per_s, "first_paint_ms": paints,
    });
    for (extension, text) in [("md", text), ("json", serde_json::to_string_pretty(&json)? + "\n")] {
        schemas::files::write_atomically(&output.with_extension(extension), text.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_that_of_neighbours() {
        let line = |each: &[f64]| Line { what: String::new(), each: each.to_vec() };
        // The machine became twice as fast in between; no round says that a viewer costs more than a percent.
        let (base, case) = (line(&[100.0, 100.0, 200.0]), line(&[99.5, 99.0, 198.0]));
        assert!((costs_percent(&base, &case).median() - 1.0).abs() < 1e-9);
        assert_eq!(line(&[3.0, 1.0]).median(), 2.0);
        assert_eq!(line(&[3.0, 1.0, 9.0]).median(), 3.0);
        assert!(line(&[]).median().is_nan());
        let each: Vec<f64> = (1..=9).map(f64::from).collect();
        // Of nine values the median is below the second or above the eighth in 2 · 10 of 512 cases.
        assert_eq!(line(&each).interval(), Some((2.0, 8.0)));
        assert_eq!(line(&each[..6]).interval(), Some((1.0, 6.0)));
        assert_eq!(line(&each[..5]).interval(), None);
    }
}
