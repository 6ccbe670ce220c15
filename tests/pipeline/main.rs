//! Tests of the whole pipeline, from spec to rating.
//!
//! Commands of users go through the real program. Tests that need hundreds of runs call the tools
//! as libraries.

mod bad_input;
mod bad_rows;
mod bucket;
mod caches;
mod cassandra;
mod charts;
mod closing_reads;
mod conditions;
mod consbench;
mod consistency;
mod deck;
mod digests;
mod economy;
mod faults;
mod fleet;
mod gates;
mod interrupted;
mod isolation;
mod kept;
mod key_value;
mod key_value_runs;
mod killed;
mod lies;
mod logs;
mod objects;
mod open_loop;
mod physical;
mod published;
mod rating;
mod refused;
mod replays;
mod replicas;
mod reports;
mod servers_as_typed;
mod session_kinds;
mod sessions;
mod shared_store;
mod stall;
mod statements;
mod support;
mod tables;
mod toy;
mod tpcc;
mod truth;
mod whole;
mod widths;
