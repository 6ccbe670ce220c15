//! The flags of all commands that work on a store.

use std::path::PathBuf;

use clap::Args;

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
