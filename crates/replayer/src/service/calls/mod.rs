//! What each call does, one file a subject. `Service` has admitted the call already.

pub mod closing;
pub mod experiment;
pub mod lease;
pub mod logs;
pub mod prepare;
pub mod start;
pub mod trace_set;
