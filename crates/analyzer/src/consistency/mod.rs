//! Consistency of registers, from the log alone: how stale reads were, by how much a history is
//! not linearizable, and which session guarantees held.
//!
//! Each metric is a pure function over the history of one register ([`history::History`]), in a file of its
//! own. `measure` puts them together for a register, `windows` for all registers of a fragment in one pass, and
//! `summary` is what merges with other fragments. `crate::registers` says which operations are those of
//! registers.
//!
//! Nothing is concluded from what the log does not prove. Failed operations are left out. A write of unknown
//! fate may take effect at any time, or never. Reads of the warm-up and of the drained part are left out,
//! writes are not. A value that no write of the history wrote is left out too, unless it is the initial
//! one or that of a session before the experiment: both count as initial, written before everything.

pub mod availability;
#[cfg(test)]
mod brute;
pub mod delta;
pub mod gamma;
pub mod guarantees;
pub mod history;
pub mod isolation;
pub mod k_atomicity;
pub mod measure;
pub mod staleness;
pub mod summary;
pub mod windows;
