//! Real database servers on loopback, for tests and for trying Encore out.
//!
//! [`postgres`], [`mysql`], [`mongodb`] and [`memcached`] give one server of a
//! kind for the whole test process, started at first use. [`Server::start`] gives
//! a server of one's own, to be killed, restarted or paused. [`Proxy`] stands
//! between a client and a server, and cuts, delays or holds what passes.
//!
//! Where an environment variable names a server of the user's
//! (`ENCORE_TEST_POSTGRES_URL`, `ENCORE_TEST_MYSQL_URL`,
//! `ENCORE_TEST_MONGODB_URL`, and HOST:PORT in `ENCORE_TEST_MEMCACHED`), the
//! shared server is that one. Where a server's programs are not on the machine,
//! there is none, and a line on standard error says so; with
//! `ENCORE_TEST_SERVERS=required` that is a panic. Servers are started on Linux
//! alone.
//!
//! Whatever is started here ends, and its folder goes, when the process that
//! started it ends, for whatever reason: a small shell process, the *keeper*,
//! sees to it (`keeper.sh`).
//!
//! ```no_run
//! use servers::{Kind, Options, Proxy, Server};
//!
//! // The shared one, in a database of the test's own:
//! let Some(shared) = servers::postgres() else { return };
//! println!("{}", shared.url("encore"));
//!
//! // One that is made to fail:
//! let options = Options { arguments: &["-c", "max_connections=12"], ..Options::default() };
//! let Some(server) = Server::start(Kind::Postgres, options) else { return };
//! let proxy = Proxy::start(&server.address());
//! println!("{}", server.url_through(&proxy, "encore"));
//! proxy.cut_replies_every(7);
//! server.kill();
//! server.restart();
//! ```

mod engines;
mod error;
mod foreign;
mod keeper;
mod machine;
mod ports;
mod processes;
pub mod proxy;
mod server;
mod shared;

pub use engines::Kind;
pub use error::StartError;
pub use proxy::Proxy;
pub use server::{Options, Server};
pub use shared::{memcached, mongodb, mysql, postgres};
