//! Replays a trace set against a data store and logs every operation.
//!
//! The replayer makes no decisions: it draws no random numbers, and does not act on what it
//! reads. It hands sessions out in trace order to T threads, each a task with its own connection.
//! It logs when each operation started and ended, and what it saw.
//!
//! ```text
//!  feed (thread) ──▶ dispatch ──▶ worker: T tasks ──▶ log (thread) ──▶ .arrows
//!  reads Parquet     next session  one current-thread    encodes, writes
//!                    (pure)        runtime
//! ```
//!
//! Everything between `feed` and `log` belongs to one operating-system thread. So the path of an
//! operation has no lock, no allocation and no system call of its own. Several workers share no
//! state: they have disjoint fragments.
//!
//! ```
//! use replayer::{any_store, experiment::{Control, Experiment}};
//! # fn example(plan: schemas::plan::Plan) -> Result<(), Box<dyn std::error::Error>> {
//! let store = any_store::open("memory:")?;
//! let experiment = Experiment::prepare(plan, "runs/a/experiments/0001-T4".into())?;
//! store.load(experiment.source(), &|_, _| {})?;
//! let report = store.run(&experiment, &Control::default(), &mut |_| {})?;
//! println!("{} operations", report.ok);
//! # Ok(())
//! # }
//! ```

pub mod any_store;
pub mod cli;
pub mod clock;
pub mod dispatch;
pub mod experiment;
pub mod feed;
pub mod log;
pub mod recording;
mod run;
pub mod service;
pub mod source;
pub mod stores;
mod worker;
