//! How to generate.

use std::sync::atomic::AtomicBool;

/// How to generate. No option changes what is generated.
#[derive(Default)]
pub struct GenerateOptions<'a> {
    /// How many threads work on fragments; 0 stands for the number of processors.
    pub threads: usize,
    /// A callback with the number of sessions done so far. Any of the threads may call it.
    pub progress: Option<&'a (dyn Fn(u64) + Sync)>,
    /// Ends the generation with
    /// [`GenerateError::Interrupted`](super::error::GenerateError::Interrupted) once it is true.
    pub interrupted: Option<&'a AtomicBool>,
}
