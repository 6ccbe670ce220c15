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
  encore certs certs --host lab1                certificates of your own, then:
  encore deck --listen 0.0.0.0:9000 --host lab1 --certs certs

The page configures, starts, watches, stops, resumes and compares runs, and asks
SQL. Runs are processes of their own: they go on when the deck ends. The URL has
a key, without which the deck answers nobody. Set environment variables for
passwords before the deck starts, and write ${VARIABLE} in store URLs.")]
pub struct DeckArgs {
    /// Folder of all runs; it is created when the first run starts
    #[arg(value_name = "DIR", default_value = "runs")]
    pub folder: PathBuf,
    /// Address and port to listen on; port 0 picks a free port; other addresses than those of
    /// loopback need --certs
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Folder with deck.pem and deck.key, made by `encore certs` or by your authority: use TLS
    #[arg(long, value_name = "DIR")]
    pub certs: Option<PathBuf>,
    /// Name or address by which browsers reach the deck; requests under other names are refused;
    /// may be repeated [default: the address of --listen]
    #[arg(long = "host", value_name = "HOST", requires = "certs")]
    pub hosts: Vec<String>,
    /// File with a secret of at least 16 characters that opens the deck; the page asks for it
    /// [default: a new key in the URL at each start]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Do not open the page in a browser
    #[arg(long)]
    pub no_open: bool,
}
