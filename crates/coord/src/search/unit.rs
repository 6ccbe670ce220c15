//! What the loads of a search count.

/// The unit of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// Threads (T): a closed loop.
    #[default]
    Threads,
    /// Sessions that arrive in a second: an open loop.
    SessionsPerS,
}

impl Unit {
    /// A load as texts name it: `T=64`, `500 sessions/s`.
    pub fn named(self, load: u32) -> String {
        match self {
            Unit::Threads => format!("T={load}"),
            Unit::SessionsPerS => format!("{load} sessions/s"),
        }
    }

    /// Loads from the first to the highest: `T = 1 to 256`, `100 to 5000 sessions/s`.
    pub fn range(self, first: u32, max: u32) -> String {
        match self {
            Unit::Threads => format!("T = {first} to {max}"),
            Unit::SessionsPerS => format!("{first} to {max} sessions/s"),
        }
    }

    /// What a load is, in full.
    pub fn quantity(self) -> &'static str {
        match self {
            Unit::Threads => "number of threads",
            Unit::SessionsPerS => "arrival rate",
        }
    }

    /// What a load is, in a word.
    pub fn brief(self) -> &'static str {
        match self {
            Unit::Threads => "T",
            Unit::SessionsPerS => "rate",
        }
    }

    /// What the interval around the highest load that keeps the SLA was computed from.
    pub(super) fn border(self) -> &'static str {
        match self {
            Unit::Threads => "from the last T that passed to the T before the first that failed",
            Unit::SessionsPerS => "from the last rate that passed to the first that failed",
        }
    }
}
