//! Metrics of consistency that no single read shows: what reads and writes prove together.

pub mod isolation;
