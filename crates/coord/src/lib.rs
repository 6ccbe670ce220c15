//! The coordinator: runs experiments on replayers and searches a store's ratings.
//!
//! ```text
//!  cli ───────────────▶ rate ──▶ run ──────────▶ fleet ──▶ replayer processes (gRPC)
//!  args    resolve       │       campaign:        one
//!  typed ─▶ checked      │       run folder       experiment ──▶ analyzer ──▶ verdict
//!                     lengths (how long an experiment of the search has to be)
//!                        ▼
//!                     search (pure: results by load ──▶ next load, or the rating)
//! ```
//!
//! A module uses only modules that stand before it in this list: `failure` and `search`; `terminal`;
//! `live`; `fleet` and `simulate`; `run`; `rate`; `compare`; `deck`; `cli`.
//!
//! The search knows no store and no clock, so a formula can stand for a store:
//!
//! ```
//! use coord::search::{Limits, Next, Probe, Results, soar};
//! use schemas::verdict::Ruling;
//!
//! let limits = Limits { first_load: 1, max_load: 64, resolution: 0.0, noise: 0.0 };
//! let mut results = Results::new();
//! let found = loop {
//!     match soar::next(&results, &limits) {
//!         Next::Done(found) => break found,
//!         Next::Probe { load } => {
//!             let t = load as f64;
//!             results.add(load, Probe { throughput_per_s: t * (50.0 - t), ruling: Ruling::Pass });
//!         }
//!     }
//! };
//! assert_eq!(found.load, 25);
//! ```

pub mod cli;
pub mod compare;
pub mod deck;
pub mod failure;
pub mod fleet;
pub mod live;
pub mod rate;
pub mod run;
pub mod search;
pub mod simulate;
pub mod terminal;
