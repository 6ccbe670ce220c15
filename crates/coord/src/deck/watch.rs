//! Runs that are being watched. The feed of a run is read once a second for all of its viewers together, and only
//! while there is one. Each viewer gets the latest picture: one that is slow misses pictures, and holds up nobody.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use schemas::run::{LiveEvent, LiveFigures, LiveLine, LiveVerdict, RunDocument, RunFolder};
use tokio::sync::watch;

use super::folder::{self, Name, State};
use super::server::Deck;
use super::{Setup, jobs, pages};

/// How often the feed is read.
const EVERY: Duration = Duration::from_secs(1);

/// The most points of a chart; above that every second one is left out.
const POINTS_MAX: usize = 600;

/// A picture of a run, for its viewers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Frame {
    /// It grows with each new picture, also after the deck was started again.
    pub(super) id: u64,
    /// The live part of the page.
    pub(super) html: String,
    /// Whether the run has ended, so that no other picture follows.
    pub(super) is_last: bool,
}

/// All watched runs.
#[derive(Default)]
pub(super) struct Watches {
    watched: Mutex<HashMap<Name, watch::Receiver<Arc<Frame>>>>,
    has_been_used: AtomicBool,
}

impl Watches {
    /// Whether a browser has opened the live page of a run.
    pub(super) fn has_been_used(&self) -> bool {
        self.has_been_used.load(Ordering::Relaxed)
    }

    /// Whether a live page is open now.
    pub(super) fn is_used(&self) -> bool {
        !self.watched.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The pictures of a run.
    pub(super) fn subscribe(self: &Arc<Self>, deck: &Arc<Deck>, name: &Name) -> watch::Receiver<Arc<Frame>> {
        self.has_been_used.store(true, Ordering::Relaxed);
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(frames) = watched.get(name) {
            return frames.clone();
        }
        let (sender, frames) = watch::channel(Arc::new(Frame::default()));
        watched.insert(name.clone(), frames.clone());
        tokio::spawn(self.clone().follow(deck.clone(), name.clone(), sender));
        frames
    }

    async fn follow(self: Arc<Self>, deck: Arc<Deck>, name: Name, sender: watch::Sender<Arc<Frame>>) {
        let mut live = Live::new(deck.setup.folder.clone(), name.clone());
        loop {
            let (mut own, deck) = (live, deck.clone());
            // Files are read, and charts drawn, beside the connections.
            let drawn = tokio::task::spawn_blocking(move || {
                let frame = own.frame(&deck.setup);
                (own, frame)
            });
            // A picture that cannot be made ends the watch; the browser asks again.
            let Ok((own, frame)) = drawn.await else { break };
            live = own;
            let is_last = frame.is_last;
            if *sender.borrow().as_ref() != frame {
                sender.send_replace(Arc::new(frame));
            }
            if is_last {
                break;
            }
            tokio::time::sleep(EVERY).await;
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            // One receiver is that of the table.
            if sender.receiver_count() <= 1 {
                watched.remove(&name);
                return;
            }
        }
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).remove(&name);
    }
}

/// A run as its feed has shown it so far.
pub(super) struct Live {
    runs: PathBuf,
    pub(super) name: Name,
    /// How much of the feed was read.
    offset: u64,
    rest: Vec<u8>,
    /// What the last line said.
    pub(super) last: Option<LiveLine>,
    /// The figures of the experiment that ran last, over time.
    pub(super) points: Vec<LiveFigures>,
    of_experiment: u32,
    /// The experiments that have ended.
    pub(super) ended: Vec<(u32, String, LiveVerdict)>,
    /// The run itself, once it has begun.
    pub(super) document: Option<RunDocument>,
    /// How it stands.
    pub(super) state: Option<State>,
    /// The end of what its command has printed, if the deck has started it.
    pub(super) output: Option<String>,
    /// Whether its process was asked to stop since the page was opened, or before.
    pub(super) is_stopping: bool,
    /// The bytes of a trace set that is generated, so far.
    pub(super) written_bytes: u64,
}

impl Live {
    pub(super) fn new(runs: PathBuf, name: Name) -> Live {
        Live {
            runs,
            name,
            offset: 0,
            rest: Vec::new(),
            last: None,
            points: Vec::new(),
            of_experiment: 0,
            ended: Vec::new(),
            document: None,
            state: None,
            output: None,
            is_stopping: false,
            written_bytes: 0,
        }
    }

    /// Reads what is new, and draws the picture.
    pub(super) fn frame(&mut self, setup: &Setup) -> Frame {
        let run = RunFolder::new(self.name.folder(&self.runs));
        // Before the feed: what the last line of the feed says is then not missed.
        self.document = run.read_document().ok();
        // Before the run of this process begins, its folder is not there, or an earlier attempt's.
        let is_own = setup.works_on(&self.name);
        let state = |document: &RunDocument| if is_own { State::Running } else { folder::run_state(&run, document) };
        self.state = self.document.as_ref().map(state);
        self.is_stopping = jobs::is_stopping(&self.runs, &self.name, is_own);
        self.output = jobs::output(&self.runs, &self.name);
        // A feed that cannot be read shows nothing new.
        let _ = self.read(&run.live());
        let printed = self.output.as_ref().map_or(0, |output| output.len() as u64);
        let is_trace_set = self.name.is_trace_set();
        if is_trace_set {
            // It grows, also when a file is renamed.
            self.written_bytes = folder::trace_bytes_under_way(&self.runs).max(self.written_bytes);
        }
        let is_running = match (&self.state, &self.output) {
            _ if is_trace_set => jobs::process(&self.runs, &self.name).is_some(),
            (Some(state), _) => *state == State::Running,
            (None, Some(output)) => !jobs::has_ended(output),
            (None, None) => is_own,
        };
        let id = (self.offset + self.written_bytes) * 4 + printed * 2 + u64::from(!is_running);
        Frame { id, html: pages::live::picture(self).into_string(), is_last: !is_running }
    }

    fn read(&mut self, path: &Path) -> std::io::Result<()> {
        let mut file = File::open(path)?;
        if file.metadata()?.len() < self.offset {
            // The run was made anew under the same name.
            *self = Live {
                document: self.document.take(),
                state: self.state.take(),
                output: self.output.take(),
                ..Live::new(std::mem::take(&mut self.runs), self.name.clone())
            };
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let read = file.read_to_end(&mut self.rest)?;
        self.offset += read as u64;
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let lines: Vec<u8> = self.rest.drain(..=end).collect();
        for line in lines.split(|byte| *byte == b'\n') {
            // A line of another version is left out.
            if let Ok(line) = serde_json::from_slice::<LiveLine>(line) {
                self.take(line);
            }
        }
        Ok(())
    }

    fn take(&mut self, line: LiveLine) {
        match &line.event {
            LiveEvent::Running(figures) => {
                let has_begun_anew = self.points.last().is_some_and(|last| last.elapsed_s > figures.elapsed_s);
                if line.experiment != self.of_experiment || has_begun_anew {
                    self.points.clear();
                    self.of_experiment = line.experiment;
                }
                if self.points.len() >= POINTS_MAX {
                    let mut index = 0;
                    self.points.retain(|_| {
                        index += 1;
                        index % 2 == 0
                    });
                }
                self.points.push(figures.clone());
            }
            LiveEvent::Ended(verdict) => self.ended.push((line.experiment, line.load.clone(), verdict.clone())),
            _ => {}
        }
        self.last = Some(line);
    }
}
