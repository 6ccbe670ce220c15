//! Ctrl-C, requests to terminate and the end of the terminal, as something that async code can wait for.
//!
//! The first one asks the running experiment to end early, the second one to give up the
//! operations in flight as well; a third one ends the coordinator at once. Replayers end by
//! themselves then, as their stdin closes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// Tells whether an interrupt has come. Clones see the same one.
#[derive(Clone)]
pub struct Interrupt {
    come: Arc<AtomicBool>,
    urgent: Arc<AtomicBool>,
    changes: watch::Receiver<()>,
}

impl Interrupt {
    /// Listens from now on; needs a running tokio runtime.
    pub fn listen() -> std::io::Result<Interrupt> {
        let (sender, changes) = watch::channel(());
        let (come, urgent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (first, second) = (come.clone(), urgent.clone());
        let mut signals = Signals::new()?;
        tokio::spawn(async move {
            signals.next().await;
            first.store(true, Ordering::Relaxed);
            sender.send_replace(());
            anstream::eprintln!(
                "\ninterrupted: waiting for the operations in flight; press Ctrl-C again to give them up"
            );
            signals.next().await;
            second.store(true, Ordering::Relaxed);
            anstream::eprintln!("\ninterrupted again: operations in flight end with an unknown fate");
            signals.next().await;
            std::process::exit(130);
        });
        Ok(Interrupt { come, urgent, changes })
    }

    /// Whether it has come.
    pub fn has_come(&self) -> bool {
        self.flag().load(Ordering::Relaxed)
    }

    /// Whether it has come twice: what is in flight is to be given up.
    pub fn is_urgent(&self) -> bool {
        self.urgent.load(Ordering::Relaxed)
    }

    /// The same as a flag, for work that looks at one now and then.
    pub fn flag(&self) -> &AtomicBool {
        &self.come
    }

    /// Waits for it.
    pub async fn wait(&mut self) {
        while !self.has_come() {
            if self.changes.changed().await.is_err() {
                // The listener is gone, so none will come.
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    /// The end of the terminal; none where the coordinator is to outlive it.
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
