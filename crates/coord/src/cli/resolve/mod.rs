//! Resolves the command line: fills in defaults, looks up files, and checks everything before
//! anything runs.

mod compare;
mod fleet;
mod invocation;
mod rate;
mod resume;
mod run;
mod setting;
mod simulate;

pub use compare::comparison;
pub use fleet::fleet;
pub use invocation::Invocation;
pub use rate::rating;
pub use resume::resumed;
pub use run::single;
pub(super) use setting::QUICKSTART;
pub use simulate::{Simulated, simulation};

#[cfg(test)]
mod tests;
