//! Why a server could not be started.

use std::path::{Path, PathBuf};

use crate::Kind;

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A program of the server is not on this machine.
    #[error("no {name} server ({programs}) on this machine", name = .0.name(), programs = .1)]
    Missing(Kind, &'static str),
    /// This program starts no replicas of this kind of server.
    #[error("{name} servers of this program have no replicas", name = .0.name())]
    Unreplicated(Kind),
    /// Another program listens on the port that was asked for.
    #[error("port {port} for {name} is taken", name = .kind.name())]
    PortTaken {
        /// The server's kind.
        kind: Kind,
        /// The port that was asked for.
        port: u16,
    },
    /// The server's folder or its keeper could not be created.
    #[error("{name} in {folder}: {cause}", name = .kind.name(), folder = .folder.display())]
    Folder {
        /// The server's kind.
        kind: Kind,
        /// The folder that was, or should have been, the server's.
        folder: PathBuf,
        /// What went wrong.
        cause: std::io::Error,
    },
    /// The server, or the program that creates its data folder, failed.
    #[error("{name} {reason}; the end of its log:\n{log}", name = .kind.name())]
    Failed {
        /// The server's kind.
        kind: Kind,
        /// What happened, after the server's name.
        reason: String,
        /// The last lines that the server wrote.
        log: String,
    },
}

impl StartError {
    /// An error of the operating system about a server's folder or its keeper.
    pub(crate) fn at(kind: Kind, folder: &Path, cause: std::io::Error) -> StartError {
        StartError::Folder { kind, folder: folder.to_path_buf(), cause }
    }
}
