//! The settings in effect, as the server itself reports them, and what they promise.

use std::collections::BTreeMap;

use redis::aio::MultiplexedConnection;

use super::Redis;
use crate::stores::{StoreError, promise};

/// The server's settings that decide durability and speed.
const SETTINGS: [&str; 8] = [
    "appendonly",
    "appendfsync",
    "save",
    "maxmemory",
    "maxmemory-policy",
    "io-threads",
    "min-replicas-to-write",
    "hash-max-listpack-value",
];

/// See the module.
pub async fn settings(
    store: &Redis,
    connection: &mut MultiplexedConnection,
) -> Result<BTreeMap<String, String>, StoreError> {
    let info = info(store, connection, &["server", "replication"]).await?;
    let mut config = BTreeMap::new();
    for name in SETTINGS {
        // A user may not be allowed to ask, and a managed server may not have the command.
        let question = redis::cmd("CONFIG").arg("GET").arg(name).to_owned();
        let asked = store.in_time(async { Ok(question.query_async::<Vec<String>>(connection).await) }).await?;
        if let Ok([name, value]) = asked.as_deref() {
            config.insert(name.clone(), value.clone());
        }
    }
    let server = Server { info, config };
    let mut settings = server.config.clone();
    settings.extend(store.design().map(|(name, value)| (name.to_string(), value)));
    let mut say = |name: &str, value: String| settings.insert(name.to_string(), value);
    say("version", server.version());
    say("role", server.fact("role").to_string());
    say("connected_replicas", server.fact("connected_slaves").to_string());
    say("durability", server.durability());
    say("isolation", server.isolation());
    Ok(settings)
}

/// What the server has counted that tells of records gone.
pub async fn counts(
    store: &Redis,
    connection: &mut MultiplexedConnection,
) -> Result<BTreeMap<String, u64>, StoreError> {
    let info = info(store, connection, &["stats"]).await?;
    let count = |name: &str| Some((format!("redis_{name}"), info.get(name)?.parse().ok()?));
    Ok(["evicted_keys", "expired_keys"].into_iter().filter_map(count).collect())
}

/// What INFO says, by name.
async fn info(
    store: &Redis,
    connection: &mut MultiplexedConnection,
    sections: &[&str],
) -> Result<BTreeMap<String, String>, StoreError> {
    let mut facts = BTreeMap::new();
    for section in sections {
        let question = redis::cmd("INFO").arg(section).to_owned();
        let text: String = store.in_time(question.query_async(connection)).await?;
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        facts.extend(lines.map(|(name, value)| (name.to_string(), value.trim_end().to_string())));
    }
    Ok(facts)
}

/// What the server said.
#[derive(Debug, Default)]
struct Server {
    info: BTreeMap<String, String>,
    config: BTreeMap<String, String>,
}

impl Server {
    fn fact(&self, name: &str) -> &str {
        self.info.get(name).map_or("unknown", String::as_str)
    }

    fn setting(&self, name: &str) -> Option<&str> {
        self.config.get(name).map(String::as_str)
    }

    fn version(&self) -> String {
        match self.info.get("valkey_version") {
            Some(version) => format!("Valkey {version}"),
            None => format!("Redis {}", self.fact("redis_version")),
        }
    }

    fn durability(&self) -> String {
        let said = match (self.setting("appendonly"), self.setting("appendfsync"), self.setting("save")) {
            (Some("yes"), Some("always"), _) => promise::EVERY_COMMIT.to_string(),
            (Some("yes"), Some("everysec"), _) => promise::WITHIN_A_SECOND.to_string(),
            (Some("yes"), ..) => {
                format!("{}: the operating system decides when it writes the append-only file", promise::AT_CHECKPOINTS)
            }
            (Some(_), _, Some(save)) if !save.is_empty() => promise::AT_CHECKPOINTS.to_string(),
            (Some(_), ..) => promise::NONE.to_string(),
            (None, ..) => format!("{}: the server does not tell", promise::NONE),
        };
        let evicts = self.setting("maxmemory").is_some_and(|bytes| bytes != "0")
            && self.setting("maxmemory-policy").is_some_and(|policy| policy != "noeviction");
        match (evicts, said.contains(':')) {
            (false, _) => said,
            (true, false) => format!("{said}: except for keys that are evicted"),
            (true, true) => format!("{said}; keys may be evicted"),
        }
    }

    fn isolation(&self) -> String {
        // One thread runs all commands and scripts, one after the other.
        match (self.fact("role"), self.fact("connected_slaves")) {
            ("master", "0") => promise::LINEARIZABLE.to_string(),
            ("master", _) => format!("{}: until a failover, which may lose writes", promise::LINEARIZABLE),
            _ => format!("{}: a replica may return stale data", promise::NONE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(config: &[(&str, &str)]) -> Server {
        let config = config.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Server { info: BTreeMap::from([("role".into(), "master".into())]), config }
    }

    #[test]
    fn durability_follows_from_file_and_snapshots() {
        let check = |config: &[(&str, &str)], expect: &str| {
            let found = server(config).durability();
            assert_eq!(found.split(": ").next(), Some(expect), "{config:?}: {found}");
        };
        check(&[("appendonly", "yes"), ("appendfsync", "always")], promise::EVERY_COMMIT);
        check(&[("appendonly", "yes"), ("appendfsync", "everysec")], promise::WITHIN_A_SECOND);
        check(&[("appendonly", "yes"), ("appendfsync", "no")], promise::AT_CHECKPOINTS);
        check(&[("appendonly", "no"), ("save", "3600 1")], promise::AT_CHECKPOINTS);
        check(&[("appendonly", "no"), ("save", "")], promise::NONE);
        check(&[], promise::NONE);
        let evicting = [("appendonly", "no"), ("save", ""), ("maxmemory", "9"), ("maxmemory-policy", "allkeys-lru")];
        assert!(server(&evicting).durability().contains("evicted"));
    }

    #[test]
    fn isolation_depends_on_the_role() {
        let of = |role: &str, replicas: &str| {
            let info = [("role", role), ("connected_slaves", replicas)];
            let info = info.map(|(name, value)| (name.to_string(), value.to_string()));
            Server { info: info.into(), ..Server::default() }.isolation()
        };
        assert_eq!(of("master", "0"), promise::LINEARIZABLE);
        assert!(of("master", "2").starts_with("linearizable: until a failover"));
        assert!(of("slave", "0").starts_with("none: "));
    }
}
