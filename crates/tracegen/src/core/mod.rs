//! What the generators of all families share: random numbers, the mix of kinds of sessions, waiting
//! times, and the files of a trace set. It knows no family.

pub mod alias;
mod arrivals;
pub mod chance;
pub mod counts;
pub(crate) mod delays;
pub mod digest;
pub mod error;
mod fragment;
pub mod generate;
pub mod generator;
pub(crate) mod maps;
pub mod mix;
pub mod options;
pub mod output;
pub mod parts;
mod rate_chart;
pub mod recorder;
pub mod room;
pub mod show;
pub(crate) mod target;
pub mod weights;
pub mod zipfian;
