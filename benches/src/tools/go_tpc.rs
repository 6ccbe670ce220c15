//! go-tpc: its TPC-C against PostgreSQL and MariaDB.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::on_path;
use crate::measure::{self, Used};

/// Its version; `go-tpc/go.mod` names the same.
pub const VERSION: &str = "go-tpc 1.0.12";

/// The package of the program.
const PACKAGE: &str = "github.com/pingcap/go-tpc/cmd/go-tpc";

/// How many threads load the tables.
const LOADERS: u32 = 4;

/// The program.
pub struct GoTpc(PathBuf);

/// What go-tpc has to know of a store.
pub struct Place {
    /// The driver's name.
    pub driver: &'static str,
    /// The address of the server.
    pub port: u16,
    /// User, password and database.
    pub user: String,
    pub password: String,
    pub database: String,
    /// How many warehouses there are.
    pub warehouses: u32,
}

/// What a run has counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counted {
    /// Committed new orders a minute.
    pub tpmc: f64,
    /// 90th percentile of new orders, in milliseconds.
    pub p90_ms: f64,
    /// Transactions of all kinds that ended well.
    pub transactions: f64,
    /// Those that failed.
    pub failed: f64,
}

impl Place {
    /// From a URL such as `postgres://user:password@127.0.0.1:1234/name`.
    pub fn of(url: &str, driver: &'static str, warehouses: u32) -> anyhow::Result<Place> {
        let parts = || {
            let (user, rest) = url.split_once("://")?.1.split_once(':')?;
            let (password, rest) = rest.split_once('@')?;
            let (address, database) = rest.split_once('/')?;
            let port = address.rsplit_once(':')?.1.parse().ok()?;
            Some((user.to_string(), password.to_string(), database.to_string(), port))
        };
        let (user, password, database, port) = parts().with_context(|| format!("{url} has an unknown form"))?;
        Ok(Place { driver, port, user, password, database, warehouses })
    }
}

impl GoTpc {
    /// Builds it once, with Go's own compiler.
    pub fn find(peers: &Path) -> anyhow::Result<GoTpc> {
        let folder = peers.join("go-tpc-1.0.12");
        let program = folder.join("go-tpc");
        if !program.is_file() {
            let go = on_path("go").context("go is not installed")?;
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join("go.mod"), include_str!("../../go-tpc/go.mod"))?;
            let mut build = Command::new(go);
            build.current_dir(&folder).args(["build", "-mod=mod", "-o", "go-tpc", PACKAGE]);
            measure::run(&mut build)?;
        }
        Ok(GoTpc(program))
    }

    /// Creates the tables and loads them. The conditions are checked by [`GoTpc::check`].
    pub fn prepare(&self, place: &Place) -> anyhow::Result<Used> {
        self.start("prepare", place, &["--no-check", "-T", &LOADERS.to_string()])
    }

    /// Checks its consistency conditions.
    pub fn check(&self, place: &Place) -> anyhow::Result<Used> {
        self.start("check", place, &["--check-all"])
    }

    /// Runs for some seconds.
    pub fn run(&self, place: &Place, threads: u32, seconds: u32) -> anyhow::Result<(Used, Counted)> {
        let numbers = [threads.to_string(), format!("{seconds}s")];
        let used = self.start("run", place, &["--ignore-error", "-T", &numbers[0], "--time", &numbers[1]])?;
        let counted = counted(&used.output).with_context(|| format!("go-tpc has no summary:\n{}", used.output))?;
        Ok((used, counted))
    }

    fn start(&self, verb: &str, place: &Place, arguments: &[&str]) -> anyhow::Result<Used> {
        let mut command = Command::new(&self.0);
        command.args(["tpcc", verb, "--driver", place.driver, "--host", "127.0.0.1", "--interval", "1h"]);
        command.args(["--port", &place.port.to_string(), "--user", &place.user, "--password", &place.password]);
        command.args(["--db", &place.database, "--warehouses", &place.warehouses.to_string()]);
        if place.driver == "postgres" {
            command.args(["--conn-params", "sslmode=disable"]);
        }
        measure::run(command.args(arguments))
    }
}

/// Reads the summary: `[Summary] NEW_ORDER - Takes(s): 5.0, Count: 819, TPM: 9921.4, …, 90th(ms): 18.9, …`.
fn counted(output: &str) -> Option<Counted> {
    let mut out = Counted { tpmc: 0.0, p90_ms: 0.0, transactions: 0.0, failed: 0.0 };
    let mut is_there = false;
    for line in output.lines().filter_map(|line| line.trim().strip_prefix("[Summary] ")) {
        let (name, columns) = line.split_once(" - ")?;
        let of = |wanted: &str| {
            let mut columns = columns.split(", ").filter_map(|column| column.split_once(": "));
            columns.find(|(name, _)| *name == wanted)?.1.trim().parse::<f64>().ok()
        };
        match name {
            _ if name.ends_with("_ERR") => out.failed += of("Count")?,
            "NEW_ORDER" => {
                is_there = true;
                (out.tpmc, out.p90_ms) = (of("TPM")?, of("90th(ms)")?);
                out.transactions += of("Count")?;
            }
            _ => out.transactions += of("Count")?,
        }
    }
    is_there.then_some(out)
}

#[cfg(test)]
mod tests {
    use super::{Counted, counted};

    #[test]
    fn a_summary_is_read_by_rows() {
        let output = "Finished\n\
            [Summary] DELIVERY - Takes(s): 4.9, Count: 64, TPM: 780.6, 90th(ms): 37.7, Max(ms): 71.3\n\
            [Summary] NEW_ORDER - Takes(s): 5.0, Count: 819, TPM: 9921.4, Avg(ms): 12.6, 90th(ms): 18.9, 95th(ms): 29.4\n\
            [Summary] NEW_ORDER_ERR - Takes(s): 5.0, Count: 3, TPM: 9.4, 90th(ms): 18.9\n\
            tpmC: 9921.1, tpmTotal: 21346.0, efficiency: 77147.0%\n";
        let expect = Counted { tpmc: 9921.4, p90_ms: 18.9, transactions: 883.0, failed: 3.0 };
        assert_eq!(counted(output), Some(expect));
        assert_eq!(counted("Finished\n"), None);
    }
}
