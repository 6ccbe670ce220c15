//! `encore deck`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// `encore deck`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "\
Examples:
  encore deck                                   the runs in the folder runs
  encore deck results --no-open                 print the URL only
  encore deck --listen 127.0.0.1:9000           on this port
  ssh -L 9000:127.0.0.1:9000 HOST encore deck --no-open --listen 127.0.0.1:9000

The page configures, starts, watches, stops, resumes and compares runs, and asks
SQL. Runs are processes of their own: they go on when the deck ends. The URL has
a key, without which the deck answers nobody. Set environment variables for
passwords before the deck starts, and write ${VARIABLE} in store URLs.")]
pub struct DeckArgs {
    /// Folder of all runs; it is created when the first run starts
    #[arg(value_name = "DIR", default_value = "runs")]
    pub folder: PathBuf,
    /// Loopback address and port to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Do not open the page in a browser
    #[arg(long)]
    pub no_open: bool,
}
