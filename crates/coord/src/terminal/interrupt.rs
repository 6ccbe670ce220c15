//! Ctrl-C, requests to terminate and the end of the terminal, as an event that async code can
//! wait for.
//!
//! The first interrupt asks the running experiment to end early. The second one also gives up the
//! operations in flight. The third one ends the coordinator at once; its local replayers then end
//! by themselves, because their stdin closes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use super::live;

/// Whether an interrupt has arrived. All clones see the same state.
#[derive(Clone)]
pub struct Interrupt {
    come: Arc<AtomicBool>,
    urgent: Arc<AtomicBool>,
    /// Whether the next interrupt ends the coordinator at once.
    at_once: Arc<AtomicBool>,
    changes: watch::Receiver<()>,
}

impl Interrupt {
    /// Listens from now on; needs a running tokio runtime.
    pub fn listen() -> std::io::Result<Interrupt> {
        let (sender, changes) = watch::channel(());
        let (come, urgent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (first, second) = (come.clone(), urgent.clone());
        let at_once = Arc::new(AtomicBool::new(false));
        let leaves = at_once.clone();
        let leave_if_due = move || {
            if leaves.load(Ordering::Relaxed) {
                std::process::exit(schemas::program::INTERRUPTED.into());
            }
        };
        let mut signals = Signals::new()?;
        tokio::spawn(async move {
            signals.next().await;
            leave_if_due();
            first.store(true, Ordering::Relaxed);
            sender.send_replace(());
            live::say_above("interrupted: waiting for operations in flight; press Ctrl-C again to abandon them");
            signals.next().await;
            leave_if_due();
            second.store(true, Ordering::Relaxed);
            live::say_above("interrupted again: operations in flight are abandoned (outcome unknown)");
            signals.next().await;
            std::process::exit(schemas::program::INTERRUPTED.into());
        });
        Ok(Interrupt { come, urgent, at_once, changes })
    }

    /// From now on the next interrupt ends the coordinator at once: all results are on disk, and
    /// the work in progress can be repeated.
    pub fn end_at_once(&self) {
        self.at_once.store(true, Ordering::Relaxed);
    }

    /// Whether an interrupt has arrived.
    pub fn has_come(&self) -> bool {
        self.flag().load(Ordering::Relaxed)
    }

    /// Whether a second interrupt has arrived: operations in flight are to be given up.
    pub fn is_urgent(&self) -> bool {
        self.urgent.load(Ordering::Relaxed)
    }

    /// The same as a flag, for code that checks it now and then.
    pub fn flag(&self) -> &AtomicBool {
        &self.come
    }

    /// Waits for an interrupt.
    pub async fn wait(&mut self) {
        while !self.has_come() {
            if self.changes.changed().await.is_err() {
                // The listener is gone, so no interrupt will arrive.
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// The end of the terminal; none if the coordinator is to outlive the terminal.
    hangup: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        let hangup = !schemas::terminal::hangup_is_ignored();
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: hangup.then(|| signal(SignalKind::hangup())).transpose()?,
        })
    }

    async fn next(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = hangup => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        Ok(Signals)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
