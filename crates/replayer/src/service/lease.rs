//! Leases: a replayer belongs to one coordinator at a time, and for a limited time.

use std::time::{Duration, Instant};

/// The shortest and the longest lease that is granted.
const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(600);

/// The lease that is in force, if any.
#[derive(Debug, Default)]
pub struct Leases {
    held: Option<Held>,
    /// The coordinator of the last lease, whose experiment may still be ending after the lease.
    last: String,
}

#[derive(Debug)]
struct Held {
    id: String,
    coordinator: String,
    length: Duration,
    until: Instant,
}

impl Leases {
    /// Grants a lease named `id`, unless another one is in force; the error names its coordinator.
    pub fn grant(&mut self, now: Instant, id: String, coordinator: String, length: Duration) -> Result<(), String> {
        self.has_run_out(now);
        if let Some(held) = &self.held {
            let left = held.until.saturating_duration_since(now).as_secs() + 1;
            return Err(format!(
                "this replayer is in use by {}; retry when that coordinator has ended, or in {left} s if it is gone",
                held.coordinator
            ));
        }
        let length = length.clamp(SHORTEST, LONGEST);
        self.last.clone_from(&coordinator);
        self.held = Some(Held { id, coordinator, length, until: now + length });
        Ok(())
    }

    /// Renews the lease `id` for a call. The error says why the call is refused.
    pub fn renew(&mut self, now: Instant, id: &str) -> Result<(), String> {
        self.has_run_out(now);
        match &mut self.held {
            Some(held) if held.id == id => {
                held.until = now + held.length;
                Ok(())
            }
            Some(held) => {
                Err(format!("the lease has expired, and this replayer is now in use by {}", held.coordinator))
            }
            None => Err("the lease has expired, or this replayer was restarted; connect again".to_string()),
        }
    }

    /// Ends the lease that is in force.
    pub fn end(&mut self) {
        self.held = None;
    }

    /// Whether no lease is in force. Ends a lease that has run out.
    pub fn has_run_out(&mut self, now: Instant) -> bool {
        if self.held.as_ref().is_some_and(|held| held.until <= now) {
            self.held = None;
        }
        self.held.is_none()
    }

    /// The coordinator that holds the lease, or held it last.
    pub fn coordinator(&self) -> &str {
        &self.last
    }
}

/// A random name that cannot be guessed.
pub fn unguessable() -> std::io::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|e| std::io::Error::other(e.to_string()))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replayer_belongs_to_one_until_it_is_given_back_or_forgotten() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let second = Duration::from_secs(1);
        let mut leases = Leases::default();
        assert!(leases.renew(at(0), "a").is_err());
        leases.grant(at(0), "a".into(), "first".into(), second).unwrap();
        let refused = leases.grant(at(900), "b".into(), "second".into(), second).unwrap_err();
        assert!(refused.contains("in use by first"), "{refused}");
        // A call in time keeps it.
        leases.renew(at(900), "a").unwrap();
        assert!(!leases.has_run_out(at(1899)));
        assert!(leases.renew(at(1899), "b").unwrap_err().contains("in use by first"));
        // A call that comes too late has lost the lease.
        assert!(leases.renew(at(1900), "a").unwrap_err().contains("connect again"));
        leases.grant(at(1900), "b".into(), "second".into(), second).unwrap();
        assert!(leases.renew(at(1900), "a").unwrap_err().contains("in use by second"));
        leases.end();
        leases.grant(at(1901), "c".into(), "third".into(), Duration::ZERO).unwrap();
        assert_eq!(leases.coordinator(), "third");
        // A lease of no length lasts for the shortest time, not for none.
        leases.renew(at(1902), "c").unwrap();
    }

    #[test]
    fn names_differ() {
        let (a, b) = (unguessable().unwrap(), unguessable().unwrap());
        assert!(a != b && a.len() == 32, "{a} {b}");
    }
}
