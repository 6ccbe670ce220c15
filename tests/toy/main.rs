//! Encore with a family of its own: counters, which sessions raise and look at.
//!
//! It shows what a family needs, layer by layer: [`workload`] (schemas), [`generator`] (tracegen),
//! [`store`] (replayer), [`truth`] (analyzer). A family of Encore itself is the same files, each in
//! its crate, and a line in each crate's list instead of the lines below.

mod generator;
mod store;
mod truth;
mod workload;

use std::process::ExitCode;

fn main() -> ExitCode {
    schemas::workload::add::<workload::Counters>();
    tracegen::add::<generator::Counters>();
    replayer::any_store::add(store::KIND);
    analyzer::add::<truth::Counters>();
    coord::cli::main(std::env::args_os())
}
