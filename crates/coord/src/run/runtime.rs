//! The runtime on which calls to replayers run, and Ctrl-C.

use tokio::runtime::{Builder, Runtime};

use crate::failure::Failure;
use crate::terminal::Interrupt;

/// Starts the coordinator's runtime.
pub fn start() -> Result<Runtime, Failure> {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|e| Failure::tool(format!("cannot start the coordinator's runtime: {e}")))
}

/// Listens for Ctrl-C from now on.
pub fn listen(runtime: &Runtime) -> Result<Interrupt, Failure> {
    runtime.block_on(async { Interrupt::listen() }).map_err(|e| Failure::tool(format!("cannot listen for Ctrl-C: {e}")))
}
