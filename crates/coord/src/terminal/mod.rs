//! What the user sees and presses: the header, a row for each experiment, the live display, and
//! Ctrl-C. It prints verdicts and reports, and knows no campaign.

mod experiment_table;
mod header;
mod interrupt;
mod live;
mod monitor;
mod progress;
mod ruling;
mod sketch;
mod voice;

pub use analyzer::{operations, ratings, sla_in_words, thousands};

pub use experiment_table::ExperimentTable;
pub use header::{Header, busy_at_most};
pub use interrupt::Interrupt;
pub use live::{Announced, Live, be_quiet};
pub use monitor::Monitor;
pub use progress::{Progress, Stage};
pub use ruling::{measured, percent};
pub use sketch::sketch;
pub use voice::{Voice, all_was_said};

#[cfg(test)]
pub mod testing;

#[cfg(test)]
mod tests;
