//! The settings in effect, as the server itself reports them, and what they promise.

use std::collections::{BTreeMap, BTreeSet};

use redis::aio::MultiplexedConnection;

use super::Redis;
use super::nodes::Nodes;
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

/// See the module. Where the nodes of a cluster differ, a setting has the values of all of them.
pub async fn settings(store: &Redis, nodes: &mut Nodes) -> Result<BTreeMap<String, String>, StoreError> {
    let mut servers = Vec::with_capacity(nodes.count());
    for node in nodes.all() {
        servers.push(Server::ask(store, node).await?);
    }
    let mut settings = BTreeMap::new();
    for name in SETTINGS {
        let values = servers.iter().filter_map(|server| server.setting(name));
        if let Some(values) = joined(values) {
            settings.insert(name.to_string(), values);
        }
    }
    settings.extend(store.design().map(|(name, value)| (name.to_string(), value)));
    let mut say = |name: &str, value: String| settings.insert(name.to_string(), value);
    let versions: Vec<String> = servers.iter().map(Server::version).collect();
    say("version", joined(versions.iter().map(String::as_str)).unwrap_or_default());
    say("role", joined(servers.iter().map(|server| server.fact("role"))).unwrap_or_default());
    say("mode", joined(servers.iter().map(|server| server.fact("redis_mode"))).unwrap_or_default());
    say("primaries", servers.len().to_string());
    say("connected_replicas", replicas(&servers));
    if let Some(count) = nodes.replicas() {
        say("cluster_replicas", count.to_string());
    }
    say("durability", weakest(servers.iter().map(Server::durability), &DURABILITIES));
    let isolation = weakest(servers.iter().map(Server::isolation), &ISOLATIONS);
    let isolation = if nodes.replicas().is_some() { remark(&isolation, "scans are not atomic") } else { isolation };
    let connected = servers.iter().filter_map(|server| server.fact("connected_slaves").parse().ok()).max();
    say("isolation", with_replica(isolation, store, connected));
    if let Some(replica) = &store.replica {
        say("replica", replica.to_string());
    }
    let wait = store.wait.map_or("none".to_string(), |wait| format!("{} within {} ms", wait.replicas, wait.most_ms));
    say("wait", wait);
    Ok(settings)
}

/// Promises, the weakest first.
const DURABILITIES: [&str; 4] =
    [promise::NONE, promise::AT_CHECKPOINTS, promise::WITHIN_A_SECOND, promise::EVERY_COMMIT];
const ISOLATIONS: [&str; 2] = [promise::NONE, promise::LINEARIZABLE];

/// What all nodes promise: the weakest, and of equal ones the one with the most remarks.
fn weakest(promises: impl Iterator<Item = String>, order: &[&str]) -> String {
    let rank = |text: &String| {
        let promise = text.split(": ").next().unwrap_or(text);
        (order.iter().position(|known| *known == promise), std::cmp::Reverse(text.len()))
    };
    promises.min_by_key(rank).unwrap_or_else(|| promise::NONE.to_string())
}

/// What reads can see if they come from the replica, where the primary has so many.
fn with_replica(isolation: String, store: &Redis, connected: Option<u32>) -> String {
    match (&store.replica, store.wait, connected) {
        (None, ..) => isolation,
        (Some(_), Some(wait), Some(connected)) if wait.replicas >= connected => {
            remark(&isolation, "reads outside of transactions come from a replica that has every acknowledged write")
        }
        (Some(_), ..) => {
            let lag = "reads outside of transactions come from a replica that may lag behind it";
            format!("{}: {isolation} on the primary; {lag}", promise::STALE)
        }
    }
}

/// A promise with one more remark.
fn remark(promise: &str, more: &str) -> String {
    let mark = if promise.contains(':') { ';' } else { ':' };
    format!("{promise}{mark} {more}")
}

/// The different ones among the values of the nodes; None if no node has one.
fn joined<'a>(values: impl Iterator<Item = &'a str>) -> Option<String> {
    let values: BTreeSet<&str> = values.collect();
    (!values.is_empty()).then(|| values.into_iter().collect::<Vec<_>>().join(" or "))
}

/// How many replicas follow all nodes together.
fn replicas(servers: &[Server]) -> String {
    let counts = servers.iter().map(|server| server.fact("connected_slaves").parse::<u64>().ok());
    counts.sum::<Option<u64>>().map_or("unknown".to_string(), |count| count.to_string())
}

/// What the nodes have counted that tells of records gone.
pub async fn counts(store: &Redis, nodes: &mut Nodes) -> Result<BTreeMap<String, u64>, StoreError> {
    let mut counts = BTreeMap::new();
    for node in nodes.all() {
        let info = info(store, node, &["stats"]).await?;
        for name in ["evicted_keys", "expired_keys"] {
            if let Some(count) = info.get(name).and_then(|count| count.parse::<u64>().ok()) {
                *counts.entry(format!("redis_{name}")).or_default() += count;
            }
        }
    }
    Ok(counts)
}

/// What INFO says, by name.
pub async fn info(
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
    async fn ask(store: &Redis, connection: &mut MultiplexedConnection) -> Result<Server, StoreError> {
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
        Ok(Server { info, config })
    }

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

    #[test]
    fn nodes_promise_what_the_weakest_does() {
        let of = |promises: &[&str]| weakest(promises.iter().map(|text| text.to_string()), &DURABILITIES);
        assert_eq!(of(&["every commit", "within a second"]), "within a second");
        assert_eq!(of(&["none: the server does not tell", "every commit"]), "none: the server does not tell");
        assert_eq!(of(&["none", "none: keys"]), "none: keys");
        assert_eq!(remark("linearizable", "x"), "linearizable: x");
        assert_eq!(remark("linearizable: y", "x"), "linearizable: y; x");
        assert_eq!(joined(["b", "a", "b"].into_iter()).as_deref(), Some("a or b"));
        assert_eq!(joined([].into_iter()), None);
    }
}
