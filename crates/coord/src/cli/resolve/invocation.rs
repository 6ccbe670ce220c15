//! The call of the program.

use std::collections::BTreeMap;
use std::time::SystemTime;

/// The call of the program, against which its arguments are resolved.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The current time.
    pub now: SystemTime,
    /// The command line, for `run.json`.
    pub command: Vec<String>,
    /// The environment variables whose names and values are valid text, for the URLs of stores.
    pub variables: BTreeMap<String, String>,
}

impl Invocation {
    /// The call of this process.
    pub fn current(command: Vec<String>) -> Invocation {
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Invocation { now: SystemTime::now(), command, variables: variables.collect() }
    }
}
