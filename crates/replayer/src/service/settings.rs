//! The settings of a replayer that serves.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::access::Access;
use super::paths::Shares;

/// The settings of a replayer that serves.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where it keeps the trace sets that coordinators send, and the logs of experiments.
    pub work: PathBuf,
    /// Other folders where a coordinator may have it read and write.
    pub shares: Shares,
    /// Whether the files of stores must lie in `work` or a share, as all other files must. Not so
    /// for a coordinator's own replayer, which may do what the user may.
    pub confines_stores: bool,
    /// The most bytes of a trace set that a coordinator sends.
    pub trace_bytes_max: u64,
    /// Which clients may call it.
    pub access: Access,
}
