//! The feed of a run, `live.jsonl`: a line for each stage of an experiment, and about one a second while it runs.
//! Whoever watches reads the file, so no viewer can hold up the coordinator.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use schemas::run::{LiveEvent, LiveFigures, LiveLine, LiveReplayer, LiveVerdict, Purpose};
use schemas::verdict::Verdict;

use super::{Board, Wanted};
use crate::terminal::{Announced, Progress, Stage};

/// How often a line is written at most. Replayers report twice a second, so this gives one a second.
const INTERVAL: Duration = Duration::from_millis(900);

/// The feed of one experiment.
pub struct Feed {
    /// None once it could not be written: a full disk ends the feed, not the experiment.
    file: Option<File>,
    board: Option<Arc<Board>>,
    line: LiveLine,
    beta_ns: u64,
    wanted: Option<Wanted>,
    shown: Progress,
    written: Option<Instant>,
}

impl Feed {
    /// Continues the feed of a run with an experiment. `beta_ns` is the limit of the SLA.
    pub fn new(path: &Path, announced: &Announced, beta_ns: u64, board: Option<Arc<Board>>) -> Feed {
        let file = OpenOptions::new().create(true).append(true).open(path).ok();
        let Announced { number, load, why, planned_s } = announced;
        if let Some(board) = &board {
            board.begin(*number, load);
        }
        let line = LiveLine {
            unix_ms: 0,
            experiment: *number,
            load: load.clone(),
            why: why.clone(),
            planned_s: *planned_s,
            event: LiveEvent::Collecting,
        };
        Feed { file, board, line, beta_ns, wanted: None, shown: Progress::default(), written: None }
    }

    /// From now on the lines have the load that is wanted too.
    pub fn wants(&mut self, wanted: Option<Wanted>) {
        self.wanted = wanted;
    }

    /// Shows a stage, if it is time for a line.
    pub fn stage(&mut self, stage: &Stage) {
        if let (Some(board), Stage::Running { whole, each }) = (&self.board, stage) {
            board.running(whole, each);
        }
        let is_due = self.written.is_none_or(|written| written.elapsed() >= INTERVAL);
        let event = match stage {
            Stage::Collecting => LiveEvent::Collecting,
            // The terminal says it.
            Stage::Loaded { .. } => return,
            _ if !is_due => return,
            Stage::Sending { bytes, bytes_total } => LiveEvent::Sending { done: *bytes, total: *bytes_total },
            Stage::Loading { rows, rows_total } => LiveEvent::Loading { done: *rows, total: *rows_total },
            Stage::Closing { items, items_total } => LiveEvent::Closing { done: *items, total: *items_total },
            Stage::Running { whole, each } => LiveEvent::Running(self.figures(whole, each)),
        };
        self.write(event);
    }

    /// Shows that the log is being validated.
    pub fn validating(&mut self) {
        self.write(LiveEvent::Validating);
    }

    /// Shows the verdict.
    pub fn ended(
        &mut self,
        purpose: &Purpose,
        verdict: &Verdict,
        counters: Option<&std::collections::BTreeMap<String, u64>>,
    ) {
        if let Some(board) = &self.board {
            board.ended(verdict);
        }
        let figures = &verdict.figures;
        self.write(LiveEvent::Ended(LiveVerdict {
            threads: verdict.threads,
            rate_per_s: verdict.rate_per_s,
            is_final: matches!(purpose, Purpose::Final(_)),
            ruling: verdict.ruling,
            reasons: verdict.reasons.clone(),
            throughput_per_s: figures.throughput_per_s,
            p95_ns: figures.overall.p95_ns,
            within_percent: figures.within_beta_percent,
            unpredictable_reads: figures.unpredictable_reads,
            unpredictable_percent: figures.unpredictable_percent,
            store_counters: counters.cloned().unwrap_or_default(),
        }));
    }

    /// The figures since the last line.
    fn figures(&mut self, whole: &Progress, each: &[(String, Arc<Progress>)]) -> LiveFigures {
        if whole.is_warmup != self.shown.is_warmup || whole.elapsed_ns < self.shown.elapsed_ns {
            self.shown = Progress { is_warmup: whole.is_warmup, ..Progress::default() };
        }
        let elapsed_s = whole.elapsed_ns as f64 / 1e9;
        let interval_s = (whole.elapsed_ns - self.shown.elapsed_ns).max(1) as f64 / 1e9;
        let times = whole.response_times.since(&self.shown.response_times).unwrap_or_default();
        let service = whole.service_times.as_ref().and_then(|now| match &self.shown.service_times {
            Some(shown) => now.since(shown),
            None => Some(now.clone()),
        });
        let ok = whole.ok.saturating_sub(self.shown.ok);
        let ended = ok + whole.errors.saturating_sub(self.shown.errors);
        let within = times.histogram().count_between(0, self.beta_ns);
        let figures = LiveFigures {
            is_warmup: whole.is_warmup,
            elapsed_s,
            ok_per_s: ok as f64 / interval_s,
            wanted_per_s: match &self.wanted {
                Some(wanted) if !whole.is_warmup => wanted.at((elapsed_s - interval_s / 2.0).max(0.0)),
                _ => None,
            },
            errors: whole.errors,
            aborted: whole.aborted,
            p50_ns: times.percentile_ns(50.0),
            p95_ns: times.percentile_ns(95.0),
            p99_ns: times.percentile_ns(99.0),
            max_ns: times.max_ns(),
            service_p99_ns: service.map(|service| service.percentile_ns(99.0)),
            within_percent: (ended > 0).then(|| within.min(ended) as f64 * 100.0 / ended as f64),
            replayers: each.iter().map(replayer).collect(),
            store_counters: whole.store_counters.clone(),
        };
        self.shown = whole.clone();
        figures
    }

    fn write(&mut self, event: LiveEvent) {
        let Some(file) = &mut self.file else { return };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        (self.line.unix_ms, self.line.event) = (now.as_millis() as u64, event);
        self.written = Some(Instant::now());
        let Ok(mut text) = serde_json::to_string(&self.line) else { return };
        text.push('\n');
        // In one call, so that a reader sees whole lines.
        if file.write_all(text.as_bytes()).is_err() {
            self.file = None;
        }
    }
}

fn replayer((name, progress): &(String, Arc<Progress>)) -> LiveReplayer {
    let elapsed_s = progress.elapsed_ns.max(1) as f64 / 1e9;
    LiveReplayer {
        name: name.clone(),
        ok_per_s: progress.ok as f64 / elapsed_s,
        p99_ns: progress.response_times.percentile_ns(99.0),
        cpus_used: progress.cpus_used,
        lag_ns_max: progress.dispatch_lag_ns_max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &Path) -> Vec<LiveLine> {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn announced() -> Announced {
        Announced { number: 3, load: "T=8".into(), why: "search".into(), planned_s: Some(1.5) }
    }

    #[test]
    fn a_line_has_the_figures_since_the_last_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.jsonl");
        let mut feed = Feed::new(&path, &announced(), 1_000_000, None);
        feed.wants(Some(Wanted::Even(300.0)));
        let mut progress = Progress { elapsed_ns: 1_000_000_000, ok: 100, ..Progress::default() };
        (0..100).for_each(|_| progress.response_times.record(10_000));
        let each = vec![("a".to_string(), Arc::new(progress.clone()))];
        let show = |feed: &mut Feed, progress: &Progress| {
            feed.written = None;
            feed.stage(&Stage::Running { whole: Box::new(progress.clone()), each: each.clone() });
        };
        show(&mut feed, &progress);
        (0..50).for_each(|_| progress.response_times.record(5_000_000));
        (progress.elapsed_ns, progress.ok, progress.errors) = (2_000_000_000, 150, 50);
        show(&mut feed, &progress);
        // Too early for another line.
        feed.stage(&Stage::Running { whole: Box::new(progress.clone()), each: each.clone() });
        let figures: Vec<LiveFigures> = lines(&path)
            .into_iter()
            .map(|line| match line.event {
                LiveEvent::Running(figures) => figures,
                other => panic!("{other:?}"),
            })
            .collect();
        let shown = figures.iter().map(|f| (f.ok_per_s, f.within_percent, f.wanted_per_s, f.errors, f.p99_ns / 1000));
        let expect = [(100.0, Some(100.0), Some(300.0), 0, 10), (50.0, Some(0.0), Some(300.0), 50, 5001)];
        assert_eq!(shown.collect::<Vec<_>>(), expect);
        assert_eq!(figures[0].replayers[0].name, "a");
    }

    /// A feed that cannot be written says nothing, and the experiment goes on.
    #[test]
    fn a_feed_without_a_file_disturbs_nobody() {
        let mut feed = Feed::new(Path::new("/dev/full"), &announced(), 1, None);
        feed.stage(&Stage::Loading { rows: 1, rows_total: 2 });
        assert!(feed.file.is_none());
        feed.validating();
        Feed::new(Path::new("/nowhere/live.jsonl"), &announced(), 1, None).validating();
    }
}
