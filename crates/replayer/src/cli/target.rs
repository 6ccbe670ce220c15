//! The flags of all commands that work on a store.

use std::path::{Path, PathBuf};

use clap::Args;
use storage::Place;

use crate::service::Misuse;
use crate::source::Source;

#[derive(Args)]
pub struct Target {
    /// The trace set's folder
    #[arg(long, value_name = "DIR")]
    pub trace: PathBuf,
    /// The store's URL
    #[arg(long, value_name = "URL")]
    pub store: String,
    /// Print one JSON object on stdout
    #[arg(long)]
    pub json: bool,
}

impl Target {
    /// The trace set, after every file of it was checked.
    pub fn source(&self) -> anyhow::Result<Source> {
        let instead = "fetch it with a tool of the store, or use `encore run`, which does so";
        check_local("--trace", &self.trace, instead)?;
        Ok(Source::verified(&self.trace)?)
    }
}

/// Refuses a place in object storage, since a replay works on folders of its machine.
pub fn check_local(flag: &str, place: &Path, instead: &str) -> Result<(), Misuse> {
    match Place::of(place) {
        Ok(Place::Local(_)) => Ok(()),
        _ => Err(Misuse(format!("{flag} {}: not a folder of this machine; {instead}", place.display()))),
    }
}
