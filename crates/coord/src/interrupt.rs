//! Ctrl-C and requests to terminate, as something that async code can wait for.
//!
//! The first one asks the running experiment to end early; a second one ends
//! the coordinator at once. Replayers end by themselves then, as their stdin closes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// Tells whether an interrupt has come. Clones see the same one.
#[derive(Clone)]
pub struct Interrupt {
    come: Arc<AtomicBool>,
    changes: watch::Receiver<()>,
}

impl Interrupt {
    /// Listens from now on; needs a running tokio runtime.
    pub fn listen() -> std::io::Result<Interrupt> {
        let (sender, changes) = watch::channel(());
        let come = Arc::new(AtomicBool::new(false));
        let flag = come.clone();
        let mut signals = Signals::new()?;
        tokio::spawn(async move {
            signals.next().await;
            flag.store(true, Ordering::Relaxed);
            sender.send_replace(());
            signals.next().await;
            std::process::exit(3);
        });
        Ok(Interrupt { come, changes })
    }

    /// Whether it has come.
    pub fn has_come(&self) -> bool {
        self.flag().load(Ordering::Relaxed)
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
}

#[cfg(unix)]
impl Signals {
    fn new() -> std::io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
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
