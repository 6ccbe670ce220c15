//! Open loop: hands sessions out when they are due.

use schemas::vocabulary::Vocabulary;

use super::{Dispatcher, Next, Session};

/// A thread that asks for a session in an open loop, by the experiment's clock.
#[derive(Debug, Clone, Copy)]
pub struct Asking {
    /// The present time.
    pub now_ns: i64,
    /// When the thread ended its last operation.
    pub freed_ns: i64,
    /// When another thread, which has no session, ended its last operation. None if there is no
    /// other.
    pub other_freed_ns: Option<i64>,
}

impl<V: Vocabulary> Dispatcher<V> {
    /// In an open loop: writes the session that is due first over the thread's last one, if it is due
    /// and not for another thread. A session that waited aside goes first.
    pub fn hand_out_due(&mut self, session: &mut Session<V>, asking: Asking) -> Next {
        self.hand_out_from(session, |this, session| {
            let (due_ns, index) = this.first_due()?;
            if due_ns > asking.now_ns {
                return Err(Next::NotDue(due_ns));
            }
            if due_ns < asking.freed_ns && asking.other_freed_ns.is_some_and(|freed_ns| freed_ns <= due_ns) {
                return Err(Next::ForOther);
            }
            this.take_first_due();
            this.fragments[index].take(index, session);
            (session.due_ns, session.was_aside) = (Some(due_ns), false);
            Ok(())
        })
    }

    /// When the next session is due, and its fragment. The error is the answer to a thread if that is
    /// not known, or there is no further session.
    #[inline]
    fn first_due(&mut self) -> Result<(i64, usize), Next> {
        let due = self.due.as_mut().ok_or(Next::Finished)?;
        while let Some(index) = due.unknown() {
            let fragment = &self.fragments[index];
            if fragment.next_session >= fragment.part_end {
                due.forget();
            } else if fragment.at < fragment.chunk.len() {
                let due_us = fragment.chunk.due_us(fragment.at);
                due.learn(fragment.part_begin, fragment.chunk.session(fragment.at), due_us);
            } else if fragment.exhausted {
                // One fragment without sessions ends the experiment, as in a closed loop.
                return Err(Next::Finished);
            } else {
                return Err(Next::NeedsChunk(index));
            }
        }
        due.first().ok_or(Next::Finished)
    }

    #[inline]
    fn take_first_due(&mut self) {
        if let Some(due) = &mut self.due {
            due.take();
        }
    }

    /// Whether a session that waited aside can be handed out.
    #[inline]
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes back a session that was handed out and has not been started.
    pub fn take_back(&mut self, session: &Session<V>) {
        self.ready.push_front(session.clone());
    }

    /// How many sessions wait aside, or could be handed out after that.
    pub fn waiting(&self) -> u64 {
        (self.aside.len() + self.ready.len()) as u64
    }

    /// Skips the next session of the trace if it is due before `until_ns` (open loop only). To count
    /// what was left at the end: nothing can be handed out afterwards. [`Next::NotDue`] and
    /// [`Next::Finished`] mean that there is no further one.
    pub fn skip_due(&mut self, until_ns: i64) -> Next {
        match self.first_due() {
            Ok((due_ns, _)) if due_ns >= until_ns => Next::NotDue(due_ns),
            Ok((_, index)) => {
                self.take_first_due();
                self.fragments[index].take(index, &mut Session::default());
                Next::Session
            }
            Err(next) => next,
        }
    }
}
