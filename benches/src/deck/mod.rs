//! Measures what the deck costs: the throughput of a run with and without viewers, and the time until a browser paints
//! a page, with many runs in the folder and with a large one.

mod running;
mod viewers;

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use browser::Browser;
use schemas::verdict::Verdict;
use schemas::words::thousands;
use serde::Serialize;

use self::running::Deck;
use self::viewers::Viewer;
use crate::machine::Machine;
use crate::measure;

/// BG's actions, the mix of the quickstart.
const SPEC: &str = include_str!("../../../traces/quickstart.toml");

/// A viewer may cost a run so much of its throughput.
const COST_PERCENT_MAX: f64 = 1.0;

/// A page must be painted after so long.
const PAINTED_MS_MAX: f64 = 1000.0;

/// T of all runs.
const THREADS: u32 = 64;

/// What is measured.
pub struct Measured {
    /// How often everything is measured.
    pub rounds: u32,
    /// Sessions of a run whose throughput is measured.
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

/// Measures everything and writes the report.
pub fn main(wanted: &Measured, folder: &Path) -> anyhow::Result<()> {
    let place = Place::new(folder)?;
    let throughputs = throughputs(wanted, &place)?;
    let paints = paints(wanted, &place)?;
    write(wanted, &throughputs, &paints)
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
        fs::write(folder.join("quickstart.toml"), SPEC)?;
        Ok(Place { program, folder: folder.to_path_buf() })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(&self.folder);
        command
    }

    fn trace(&self, name: &str, sessions: u64) -> anyhow::Result<()> {
        let (set, out) = (format!("--sessions={sessions}"), format!("--output={name}"));
        measure::run(&mut self.command(&["trace", "gen", "quickstart.toml", &set, &out]))?;
        Ok(())
    }

    /// A run against `null:`, and its verdict. What it would rate does not matter here.
    fn run(&self, trace: &str, name: &str) -> anyhow::Result<Verdict> {
        let (trace, name) = (format!("--trace={trace}"), format!("--name={name}"));
        let threads = format!("--threads={THREADS}");
        let words = ["run", &trace, &name, &threads, "--store=null:", "--json", "--quiet"];
        let used = measure::run_to(&mut self.command(&words), &[0, 1, 3])?;
        serde_json::from_str(&used.output).context("the verdict of a run")
    }
}

/// Operations a second without a viewer, with one, and with a browser on the same machine. The three take turns.
fn throughputs(wanted: &Measured, place: &Place) -> anyhow::Result<Vec<Line>> {
    place.trace("measured.trace", wanted.operations)?;
    let deck = Deck::start(place)?;
    let browser = Browser::start();
    let mut cases = vec![Viewer::None, Viewer::Reader];
    cases.extend(browser.is_some().then_some(Viewer::Browser));
    let mut lines: Vec<Line> = cases.iter().map(|case| Line { what: case.to_string(), each: Vec::new() }).collect();
    for round in 0..wanted.rounds {
        for turn in 0..cases.len() {
            // Each case comes first equally often.
            let order = (turn + round as usize) % cases.len();
            let name = format!("round-{round}-{order}");
            let watching = cases[order].watch(&deck, browser.as_ref(), &name, place)?;
            let verdict = watching.during(|| place.run("measured.trace", &name))?;
            let per_s = verdict.figures.throughput_per_s;
            eprintln!("[{}/{}] {}: {per_s:.0} operations/s", round + 1, wanted.rounds, cases[order]);
            lines[order].each.push(per_s);
            fs::remove_dir_all(place.folder.join("runs").join(&name))?;
        }
    }
    Ok(lines)
}

/// Milliseconds from the request of a page to its first contents on the screen.
fn paints(wanted: &Measured, place: &Place) -> anyhow::Result<Vec<Line>> {
    let Some(browser) = Browser::start() else {
        eprintln!("benches: skipped the pages: no browser is here");
        return Ok(Vec::new());
    };
    place.trace("small.trace", 2_000)?;
    place.run("small.trace", "run-0")?;
    for copy in 1..wanted.runs {
        copied(&place.folder.join("runs/run-0"), &place.folder.join(format!("runs/run-{copy}")))?;
    }
    place.trace("large.trace", wanted.large)?;
    place.run("large.trace", "large")?;
    let deck = Deck::start(place)?;
    let page = browser.open(&deck.url("/"));
    let pages = [
        (format!("the front page, with {} runs in the folder", wanted.runs + 1), "/"),
        (format!("the page of a run of {} operations", thousands(wanted.large)), "/runs/large"),
        ("the report of that run".to_string(), "/files/large/report.html"),
        ("the form of a rating".to_string(), "/new?kind=rate"),
    ];
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
        lines.push(Line { what, each });
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

/// How much less a case has than the first one, in percent: the median over rounds, whose two runs are neighbours.
fn cost_percent(base: &Line, case: &Line) -> f64 {
    let each = base.each.iter().zip(&case.each).map(|(base, case)| 100.0 * (1.0 - case / base)).collect();
    Line { what: String::new(), each }.median()
}

fn write(wanted: &Measured, throughputs: &[Line], paints: &[Line]) -> anyhow::Result<()> {
    let Measured { rounds, operations, runs, large, output } = wanted;
    let machine = Machine::current();
    let mut text = format!(
        "# The deck\n\n`benches/run deck --rounds {rounds} --operations {operations} --runs {runs} --large {large}`, on \
         {machine}\n\n## What viewers cost a run\n\n`null:`, T = {THREADS}, BG's actions, {} sessions, every operation \
         logged. The cases take turns. The cost is the median over the rounds.\n\n\
         | viewers | operations/s | in each round | cost |\n|---|---:|---|---:|\n",
        thousands(*operations)
    );
    let round = |value: f64| thousands(value.max(0.0).round() as u64);
    let listed = |line: &Line| line.each.iter().map(|value| round(*value)).collect::<Vec<_>>().join(" ");
    let base = throughputs.first();
    for line in throughputs {
        let cost = base.filter(|base| base.what != line.what).map(|base| format!("{:.2}%", cost_percent(base, line)));
        let (cost, median) = (cost.unwrap_or_default(), round(line.median()));
        writeln!(text, "| {} | {median} | {} | {cost} |", line.what, listed(line))?;
    }
    if let [base, reader, ..] = throughputs {
        let cost = cost_percent(base, reader);
        let word = if cost <= COST_PERCENT_MAX { "met" } else { "missed" };
        writeln!(text, "\nGoal: a viewer costs at most {COST_PERCENT_MAX}%: {word}, {cost:.2}%.")?;
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
        "throughput_per_s": throughputs, "first_paint_ms": paints,
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
        assert!((cost_percent(&base, &case) - 1.0).abs() < 1e-9);
        assert_eq!(line(&[3.0, 1.0]).median(), 2.0);
        assert_eq!(line(&[3.0, 1.0, 9.0]).median(), 3.0);
        assert!(line(&[]).median().is_nan());
    }
}
