//! The faults of a proxy, and when they occur.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::link::Link;

/// What the proxy does with a piece that a client sends.
#[derive(Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is forwarded.
    Forwarded,
    /// It is forwarded; its reply is not.
    Unanswered,
    /// Half of it is forwarded.
    Halved,
}

/// Counts a sequence, and hits every k-th element.
#[derive(Debug, Default)]
pub struct Every {
    period: u64,
    seen: u64,
}

impl Every {
    /// Counts from 0 again, with another period; 0 stands for never.
    pub fn restart(&mut self, period: u64) {
        *self = Every { period, seen: 0 };
    }

    /// Whether the next element is a k-th one.
    fn next(&mut self) -> bool {
        self.seen += 1;
        self.period > 0 && self.seen.is_multiple_of(self.period)
    }
}

/// The faults that the test has asked for.
#[derive(Debug, Default)]
pub struct Settings {
    pub closed: bool,
    pub refuse: bool,
    pub hold: bool,
    pub delay: Duration,
    pub lose_next_reply: bool,
    pub lost_replies: Every,
    pub lost_requests: Every,
    /// Pieces that clients have sent.
    pub requests: u64,
    links: Vec<Weak<Link>>,
}

impl Settings {
    /// Decides the fate of the next piece that a client sends.
    pub fn next_fate(&mut self) -> Fate {
        self.requests += 1;
        // Both count every piece, whichever of them hits.
        let (halved, unanswered) = (self.lost_requests.next(), self.lost_replies.next());
        if halved {
            Fate::Halved
        } else if unanswered || std::mem::take(&mut self.lose_next_reply) {
            Fate::Unanswered
        } else {
            Fate::Forwarded
        }
    }
}

/// The state that all threads of a proxy share.
#[derive(Debug, Default)]
pub struct Faults {
    settings: Mutex<Settings>,
    changed: Condvar,
    cuts: AtomicU64,
}

impl Faults {
    /// The faults that the test has asked for, to read or change them.
    pub fn settings(&self) -> MutexGuard<'_, Settings> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the threads that wait for a change.
    pub fn wake(&self) {
        // The lock is needed: without it, a thread between its check and its wait would miss the change.
        let _settings = self.settings();
        self.changed.notify_all();
    }

    /// Waits while everything is held. Returns false when the connection has been closed.
    pub fn may_pass(&self, link: &Link) -> bool {
        let wait = |settings: &mut Settings| settings.hold && !link.is_closed();
        let _settings = self.changed.wait_while(self.settings(), wait).unwrap_or_else(PoisonError::into_inner);
        !link.is_closed()
    }

    /// Cuts a connection, and counts it.
    pub fn cut(&self, link: &Link) {
        if link.cut(|| self.cuts.fetch_add(1, Ordering::SeqCst) % 2 == 1) {
            self.wake();
        }
    }

    /// How many connections were cut.
    pub fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::SeqCst)
    }

    /// Records a connection, so that it can be cut later.
    pub fn add(&self, link: &Arc<Link>) {
        let mut settings = self.settings();
        settings.links.retain(|link| link.strong_count() > 0);
        settings.links.push(Arc::downgrade(link));
        if settings.closed {
            link.close();
        }
    }

    /// The current connections.
    pub fn links(&self) -> Vec<Arc<Link>> {
        self.settings().links.iter().filter_map(Weak::upgrade).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kth_piece_from_the_last_setting_on() {
        let mut settings = Settings::default();
        let mut fates = |change: &dyn Fn(&mut Settings)| {
            change(&mut settings);
            (0..6).map(|_| settings.next_fate()).map(|fate| format!("{fate:?}").remove(0)).collect::<String>()
        };
        assert_eq!(fates(&|_| {}), "FFFFFF");
        assert_eq!(fates(&|settings| settings.lost_replies.restart(3)), "FFUFFU");
        assert_eq!(fates(&|settings| settings.lost_requests.restart(2)), "FHUHFH");
        assert_eq!(fates(&|settings| settings.lost_replies.restart(0)), "FHFHFH");
        assert_eq!(fates(&|settings| settings.lost_requests.restart(0)), "FFFFFF");
        assert_eq!(fates(&|settings| settings.lose_next_reply = true), "UFFFFF");
        assert_eq!(settings.requests, 36);
    }
}
