//! Tests of the whole pipeline, from spec to rating.
//!
//! What a user types goes through the real program; where hundreds of runs are
//! needed, the tools are called as libraries.

mod bad_input;
mod caches;
mod digests;
mod faults;
mod fleet;
mod interrupted;
mod killed;
mod lies;
mod rating;
mod replays;
mod reports;
mod servers_as_typed;
mod sessions;
mod stall;
mod support;
mod truth;
mod whole;
