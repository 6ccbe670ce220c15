//! The coordinator: runs experiments on replayers and searches a store's ratings.
//!
//! ```text
//!  args ──▶ resolve ──▶ rate ──▶ campaign ──▶ fleet ──▶ replayer processes (gRPC)
//!  typed    checked      │        numbers,      one
//!                        │        run folder    experiment ──▶ analyzer ──▶ verdict
//!                     settle (how long an experiment of the search has to be)
//!                        ▼
//!                     search (pure: results by T ──▶ next T, or the rating)
//! ```
//!
//! The search knows no store and no clock, so a formula can stand for a store:
//!
//! ```
//! use coord::search::{Limits, Next, Probe, Results, soar};
//! use schemas::verdict::Ruling;
//!
//! let limits = Limits { first_threads: 1, max_threads: 64, resolution: 0.0, noise: 0.0 };
//! let mut results = Results::new();
//! let found = loop {
//!     match soar::next(&results, &limits) {
//!         Next::Done(found) => break found,
//!         Next::Probe { threads } => {
//!             let t = threads as f64;
//!             results.add(threads, Probe { throughput_per_s: t * (50.0 - t), ruling: Ruling::Pass });
//!         }
//!     }
//! };
//! assert_eq!(found.threads, 25);
//! ```

pub mod args;
pub mod bg_files;
pub mod campaign;
mod certs;
pub mod cli;
mod collect;
pub mod compare;
mod environment;
pub mod failure;
pub mod fleet;
pub mod interrupt;
mod live;
mod monitor;
pub mod rate;
pub mod render;
pub mod resolve;
mod resume;
pub mod search;
pub mod simulate;
pub mod single;
pub mod standing;
mod tools;
pub mod trace_set;
