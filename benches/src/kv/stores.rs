//! The stores, and where each tool finds its table in them.

use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use servers::{Kind, Options, Server, StartError};

use crate::sample::Figures;
use crate::tools::go_ycsb::Binding;

/// A store that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StoreName {
    /// PostgreSQL
    Postgres,
    /// MariaDB
    Mariadb,
    /// MongoDB
    Mongodb,
    /// Redis
    Redis,
    /// SQLite
    Sqlite,
}

impl StoreName {
    /// All of them.
    pub const ALL: [StoreName; 5] =
        [StoreName::Postgres, StoreName::Mariadb, StoreName::Mongodb, StoreName::Redis, StoreName::Sqlite];

    /// The value of the flag.
    pub fn flag(self) -> &'static str {
        match self {
            StoreName::Postgres => "postgres",
            StoreName::Mariadb => "mariadb",
            StoreName::Mongodb => "mongodb",
            StoreName::Redis => "redis",
            StoreName::Sqlite => "sqlite",
        }
    }

    /// The name in the report.
    pub fn name(self) -> &'static str {
        self.kind().map_or("SQLite", Kind::name)
    }

    /// The group in the report.
    pub fn group(self) -> String {
        format!("Key-value workloads on {}", self.name())
    }

    fn kind(self) -> Option<Kind> {
        match self {
            StoreName::Postgres => Some(Kind::Postgres),
            StoreName::Mariadb => Some(Kind::Mysql),
            StoreName::Mongodb => Some(Kind::Mongodb),
            StoreName::Redis => Some(Kind::Redis),
            StoreName::Sqlite => None,
        }
    }

    /// How the server is started.
    pub fn settings(self) -> &'static str {
        match self {
            StoreName::Postgres => "its own defaults, except max_connections=500; every commit is on disk",
            StoreName::Mariadb => {
                "its own defaults, except max_connections=500 and character_set_server=utf8mb4; every commit is on disk"
            }
            StoreName::Mongodb => "its own defaults, as a replica set of one member",
            StoreName::Redis => {
                "its own defaults, except that it writes no snapshots (save \"\") and has 256 databases"
            }
            StoreName::Sqlite => {
                "in the tool's process; journal_mode=wal, synchronous=normal for all tools, which is what go-ycsb's \
                 driver sets"
            }
        }
    }

    /// go-ycsb's own settings for the store that matter, which are its defaults.
    pub fn go_ycsb_settings(self) -> &'static str {
        match self {
            StoreName::Postgres => "binding pg; batch.size=1, prepared statements, autocommit; scans without ORDER BY",
            StoreName::Mariadb => {
                "binding mysql; batch.size=1, prepared statements, autocommit; scans without ORDER BY"
            }
            StoreName::Mongodb => "binding mongodb; batch.size=1; at most 100 connections, the driver's default",
            StoreName::Redis => {
                "binding redis, redis.datatype=hash; batch.size=1; at most 10 connections a processor, the driver's \
                 default; no scans, so no workload E"
            }
            StoreName::Sqlite => {
                "binding sqlite, with the system's library; batch.size=1, sqlite.maxopenconns=1, sqlite.cache=shared"
            }
        }
    }

    /// Starts the server, for which SQLite needs only a folder.
    pub fn start<'a>(self, folder: &'a Path) -> Result<Place<'a>, StartError> {
        // Redis writes nothing to disk unless it is asked to; the others write every commit.
        let options = Options { durable: self != StoreName::Redis, folder: Some(folder), ..Options::default() };
        let server = self.kind().map(|kind| Server::try_start(kind, options)).transpose()?;
        Ok(Place { store: self, server, folder })
    }
}

/// A running store.
pub struct Place<'a> {
    store: StoreName,
    server: Option<Server>,
    folder: &'a Path,
}

impl Place<'_> {
    /// The URL of the tables that Encore loads for a tool.
    pub fn url(&self, tool: &str) -> String {
        match &self.server {
            Some(server) => server.url(tool),
            // go-ycsb's driver syncs at checkpoints only, and has no property to change that.
            None => format!("sqlite:{}?synchronous=normal", self.folder.join(format!("{tool}.db")).display()),
        }
    }

    fn server(&self) -> anyhow::Result<&Server> {
        self.server.as_ref().with_context(|| format!("{} has no server", self.store.name()))
    }

    /// The server's `HOST:PORT`.
    pub fn address(&self) -> anyhow::Result<String> {
        Ok(self.server()?.address().to_string())
    }

    /// Where go-ycsb has its table.
    pub fn binding(&self) -> anyhow::Result<Binding> {
        Ok(match self.store {
            StoreName::Postgres => Binding { name: "pg", place: account("pg", &self.server()?.url("encore"))? },
            StoreName::Mariadb => Binding { name: "mysql", place: account("mysql", &self.server()?.url("encore"))? },
            // go-ycsb takes the database `ycsb`, whatever the URL says.
            StoreName::Mongodb => {
                Binding { name: "mongodb", place: vec![format!("mongodb.url={}", self.server()?.url("ycsb"))] }
            }
            // Encore has database 0.
            StoreName::Redis => {
                let address = format!("redis.addr={}", self.server()?.address());
                Binding { name: "redis", place: vec![address, "redis.db=1".into()] }
            }
            StoreName::Sqlite => {
                let path = self.folder.join("go-ycsb.db");
                Binding { name: "sqlite", place: vec![format!("sqlite.db={}", path.display())] }
            }
        })
    }

    /// Figures of a run, with what the server used in that time.
    pub fn beside(&self, run: impl FnOnce() -> anyhow::Result<Figures>) -> anyhow::Result<Figures> {
        match &self.server {
            Some(server) => Figures::beside(server, run),
            None => run(),
        }
    }
}

/// The properties of a binding that takes the parts of a URL: `postgres://USER:PASSWORD@HOST:PORT/NAME`.
fn account(binding: &str, url: &str) -> anyhow::Result<Vec<String>> {
    let parts = || {
        let (_, rest) = url.split_once("://")?;
        let (login, rest) = rest.split_once('@')?;
        let (address, database) = rest.split_once('/')?;
        Some((login.split_once(':')?, address.split_once(':')?, database.split('?').next()?))
    };
    let ((user, password), (host, port), database) =
        parts().with_context(|| format!("{url} is not SCHEME://USER:PASSWORD@HOST:PORT/DATABASE"))?;
    let parts = [("host", host), ("port", port), ("user", user), ("password", password), ("db", database)];
    Ok(parts.map(|(name, value)| format!("{binding}.{name}={value}")).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_url_become_properties() {
        let parts = account("pg", "postgres://me:hush@127.0.0.1:7/encore?x=1").unwrap();
        assert_eq!(parts, ["pg.host=127.0.0.1", "pg.port=7", "pg.user=me", "pg.password=hush", "pg.db=encore"]);
        assert!(account("pg", "postgres://127.0.0.1:7/encore").is_err());
    }

    /// go-ycsb's driver sets `synchronous=NORMAL`, and a server has one setting for all tools.
    #[test]
    fn tools_on_sqlite_are_equally_durable() {
        let place = StoreName::Sqlite.start(Path::new("/x")).unwrap();
        assert_eq!(place.url("kv"), "sqlite:/x/kv.db?synchronous=normal");
        assert_eq!(place.binding().unwrap().place, ["sqlite.db=/x/go-ycsb.db"]);
    }

    #[test]
    fn every_store_is_in_the_list_by_the_value_of_its_flag() {
        assert_eq!(StoreName::value_variants(), StoreName::ALL);
        for store in StoreName::ALL {
            assert_eq!(store.to_possible_value().unwrap().get_name(), store.flag());
        }
    }
}
