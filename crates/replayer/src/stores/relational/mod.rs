//! What every relational store has in common: the physical designs that a URL
//! can choose, their tables, and the statements of the eleven actions on them.
//!
//! ```text
//!  URL ──▶ Design ──▶ tables, indexes      (creation)
//!                 ├─▶ rows                 (the data set, as rows of these tables)
//!                 ├─▶ Statements           (the eleven actions)
//!                 └─▶ audit                (row counts, digest, what must agree)
//! ```
//!
//! All of it is text and values, made once for a connection or a load. A store
//! adds its [`Dialect`], and how it connects, loads in bulk, binds a
//! [`Value`](rows::Value) and an [`Argument`](statements::Argument), and tells a
//! write that was rolled back from one whose fate nobody knows.

pub mod audit;
pub mod design;
pub mod rows;
pub mod statements;
pub mod tables;

/// How a relational store says what all of them can say.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// The type of ids and counts, 64 bits.
    pub integer: &'static str,
    /// The type of texts.
    pub text: &'static str,
    /// The type of images.
    pub bytes: &'static str,
    /// What follows the definition of a table that is little more than its key.
    pub narrow_table: &'static str,
    /// The parameter of a statement that is bound n-th, from 1.
    pub parameter: fn(usize) -> String,
}
