//! The `social` family: physical designs, their tables, and the statements of the eleven actions on them.

pub mod actions;
pub mod audit;
pub mod design;
pub mod rows;
mod serve;
pub mod statements;
pub mod tables;
pub mod touched;
