//! The settings in effect, as the nodes themselves report them, and what they promise.

use std::collections::{BTreeMap, BTreeSet};

use scylla::client::session::Session;
use scylla::statement::Statement;

use super::level::meet;
use super::schema::{self, RECORDS, row};
use super::{Cassandra, Conditions, nodes};
use crate::stores::{StoreError, promise};

/// The nodes' settings that decide durability and speed.
const SETTINGS: [&str; 6] = [
    "commitlog_sync",
    "commitlog_sync_period",
    "commitlog_sync_group_window",
    "concurrent_reads",
    "concurrent_writes",
    "memtable_heap_space",
];

/// See the module. Where the nodes of a cluster differ, a setting has the values of all of them.
pub async fn settings(store: &Cassandra, session: &Session) -> Result<BTreeMap<String, String>, StoreError> {
    let addresses = nodes::addresses(session);
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for address in &addresses {
        let on_the_node = |text: &str| {
            let mut statement = Statement::new(text);
            statement.set_load_balancing_policy(Some(nodes::only(*address)));
            statement
        };
        let version = on_the_node("SELECT release_version FROM system.local");
        if let Some((version,)) = row::<(String,)>(store, session, version, ()).await? {
            found.entry("version".into()).or_default().insert(format!("Cassandra {version}"));
        }
        for name in SETTINGS {
            let ask = on_the_node("SELECT value FROM system_views.settings WHERE name = ?");
            // A user may not be allowed to ask, and other servers do not have the table.
            if let Ok(Some((Some(value),))) = row::<(Option<String>,)>(store, session, ask, (name,)).await {
                found.entry(name.into()).or_default().insert(value);
            }
        }
    }
    let joined = |values: &BTreeSet<String>| values.iter().cloned().collect::<Vec<_>>().join(" or ");
    let mut settings: BTreeMap<String, String> =
        found.iter().map(|(name, values)| (name.clone(), joined(values))).collect();
    let mut say = |name: &str, value: String| settings.insert(name.to_string(), value);
    say("nodes", addresses.len().to_string());
    say("read_level", store.read_level.name().to_string());
    say("write_level", store.write_level.name().to_string());
    say("coordinator", store.coordinator.in_words());
    say("conditions", if store.conditions == Conditions::Lwt { "lwt" } else { "none" }.to_string());
    say("connections_per_node", store.connections_per_node.to_string());
    let keyspace = Keyspace::ask(store, session).await?;
    say("replication", keyspace.replication.clone());
    for (name, value) in &keyspace.options {
        say(name, value.clone());
    }
    let durability = match store.write_level.replicas(keyspace.factor) {
        0 => format!("{}: at ANY a write may be a note on its coordinator alone", promise::NONE),
        _ => durability(&found, keyspace.is_durable),
    };
    say("durability", durability);
    say("isolation", isolation(store, &keyspace));
    Ok(settings)
}

/// What the schema says.
struct Keyspace {
    replication: String,
    factor: u32,
    is_durable: bool,
    options: Vec<(&'static str, String)>,
}

impl Keyspace {
    async fn ask(store: &Cassandra, session: &Session) -> Result<Keyspace, StoreError> {
        let name = &store.place.keyspace;
        let replication = schema::replication(store, session).await?.unwrap_or_default();
        let replication: BTreeMap<String, String> = replication.into_iter().collect();
        let replication: Vec<String> = replication.into_iter().map(|(name, value)| format!("{name} {value}")).collect();
        let durable = "SELECT durable_writes FROM system_schema.keyspaces WHERE keyspace_name = ?";
        let durable = row::<(bool,)>(store, session, durable, (name,)).await?;
        let options = "SELECT read_repair, speculative_retry FROM system_schema.tables WHERE keyspace_name = ? AND \
                       table_name = ?";
        let options = row::<(Option<String>, Option<String>)>(store, session, options, (name, RECORDS)).await;
        let (read_repair, speculative_retry) = options.ok().flatten().unwrap_or_default();
        let named = [("read_repair", read_repair), ("speculative_retry", speculative_retry)];
        Ok(Keyspace {
            replication: replication.join(", "),
            factor: schema::replication_factor(store, session).await?.unwrap_or(1),
            is_durable: durable.is_none_or(|(durable,)| durable),
            options: named.into_iter().filter_map(|(name, value)| Some((name, value?))).collect(),
        })
    }

    fn repairs_reads(&self) -> bool {
        self.options.iter().any(|(name, value)| *name == "read_repair" && value.eq_ignore_ascii_case("blocking"))
    }
}

/// What a crash of all machines loses.
fn durability(found: &BTreeMap<String, BTreeSet<String>>, is_durable: bool) -> String {
    let values = |name: &str| found.get(name).into_iter().flatten().map(String::as_str).collect::<Vec<_>>();
    let sync = values("commitlog_sync");
    match () {
        _ if !is_durable => format!("{}: durable_writes of the keyspace is false", promise::NONE),
        _ if sync.is_empty() => format!("{}: the server does not tell", promise::NONE),
        _ if sync.iter().all(|value| ["batch", "group"].contains(value)) => promise::EVERY_COMMIT.to_string(),
        _ => {
            let periods = values("commitlog_sync_period");
            let longest = periods.iter().filter_map(|period| milliseconds(period)).max();
            match longest {
                Some(ms) if ms <= 1_000 => promise::WITHIN_A_SECOND.to_string(),
                Some(ms) => format!("{}: the commit log goes to disk every {ms} ms", promise::AT_CHECKPOINTS),
                None => format!("{}: the commit log goes to disk from time to time", promise::AT_CHECKPOINTS),
            }
        }
    }
}

/// A time such as 10000ms or 10s; a number alone is milliseconds.
fn milliseconds(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
    let number: u64 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "" | "ms" => Some(number),
        "s" => Some(number * 1_000),
        "m" => Some(number * 60_000),
        _ => None,
    }
}

fn isolation(store: &Cassandra, keyspace: &Keyspace) -> String {
    let (read, write) = (store.read_level, store.write_level);
    match () {
        _ if !meet(read, write, keyspace.factor) => {
            format!("{}: reads at {} may miss writes at {}", promise::NONE, read.name(), write.name())
        }
        _ if keyspace.factor > 1 && !keyspace.repairs_reads() => {
            format!("{}: without read repair a later read may see an older value", promise::NONE)
        }
        _ => format!("{}: each record by itself; scans are not atomic", promise::LINEARIZABLE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::url::StoreUrl;

    #[test]
    fn durability_follows_from_the_commit_log() {
        let check = |facts: &[(&str, &str)], expect: &str| {
            let found = facts.iter().map(|(name, value)| (name.to_string(), BTreeSet::from([value.to_string()])));
            let said = durability(&found.collect(), true);
            assert!(said.starts_with(expect), "{facts:?}: {said}");
        };
        check(&[("commitlog_sync", "batch")], promise::EVERY_COMMIT);
        check(&[("commitlog_sync", "group")], promise::EVERY_COMMIT);
        check(&[("commitlog_sync", "periodic"), ("commitlog_sync_period", "500ms")], promise::WITHIN_A_SECOND);
        let usual = [("commitlog_sync", "periodic"), ("commitlog_sync_period", "10000ms")];
        check(&usual, "at checkpoints: the commit log goes to disk every 10000 ms");
        check(&[("commitlog_sync", "periodic")], promise::AT_CHECKPOINTS);
        check(&[], "none: the server does not tell");
        assert!(durability(&BTreeMap::new(), false).contains("durable_writes"));
    }

    #[test]
    fn isolation_follows_from_levels_copies_and_read_repair() {
        let check = |levels: &str, factor: u32, repair: &str, expect: &str| {
            let url = format!("cassandra://h/k?{levels}");
            let store = Cassandra::open(StoreUrl::parse(&url).unwrap()).unwrap();
            let options = vec![("read_repair", repair.to_string())];
            let keyspace = Keyspace { replication: String::new(), factor, is_durable: true, options };
            let said = isolation(&store, &keyspace);
            assert!(said.starts_with(expect), "{url}: {said}");
        };
        check("", 3, "BLOCKING", "linearizable: each record by itself");
        check("", 3, "NONE", "none: without read repair");
        check("", 1, "NONE", "linearizable");
        check("read_level=ONE", 3, "BLOCKING", "none: reads at ONE may miss writes at QUORUM");
        check("read_level=ONE&write_level=ALL", 3, "BLOCKING", "linearizable");
        check("read_level=ONE&write_level=ONE", 1, "BLOCKING", "linearizable");
    }
}
