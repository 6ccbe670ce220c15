//! Replays a trace set against a data store and logs every operation.
//!
//! The replayer makes no decisions of its own: no random number, no look at
//! what it read. It hands sessions out in trace order to T threads, each a task
//! with its own connection, and writes down when each operation started and
//! ended, and what it saw.
//!
//! ```text
//!  feed (thread) ──▶ dispatch ──▶ worker: T tasks ──▶ log (thread) ──▶ .arrows
//!  reads Parquet     who is next   one current-thread    encodes, writes
//!                    (pure)        runtime
//! ```
//!
//! Everything between `feed` and `log` belongs to one operating-system thread,
//! so that the path of an operation knows no lock, no allocation and no system
//! call of its own. Several workers share no state: they have disjoint
//! fragments.
//!
//! ```
//! use replayer::{experiment::{Control, Experiment}, stores};
//! # fn example(plan: schemas::plan::Plan) -> Result<(), Box<dyn std::error::Error>> {
//! let store = stores::open("memory:")?;
//! let experiment = Experiment::prepare(plan, "runs/a/experiments/0001-T4".into())?;
//! store.load(experiment.source(), &|_, _| {})?;
//! let report = store.run(&experiment, &Control::default(), &mut |_| {})?;
//! println!("{} operations", report.ok);
//! # Ok(())
//! # }
//! ```

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
