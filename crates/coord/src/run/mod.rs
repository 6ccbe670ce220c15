//! A run: its folder, its trace set and its experiments, one after the other.

pub mod campaign;
pub mod collect;
pub mod lock;
pub mod resume;
pub mod runtime;
pub mod setting;
pub mod single;
pub mod standing;
#[cfg(test)]
pub mod testing;
pub mod tools;
pub mod trace_set;
pub mod trial;
