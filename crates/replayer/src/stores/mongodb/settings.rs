//! The settings in effect, as the server itself reports them, and what they promise.

use std::collections::BTreeMap;

use mongodb::bson::{Bson, Document, doc};
use mongodb::error::Error;
use mongodb::options::{Acknowledgment, ReadConcernLevel, ReadPreference, WriteConcern};
use mongodb::{Client, Database};

use super::MongoDb;
use super::members::of_set;
use crate::stores::{StoreError, patience, promise};

/// See the module.
pub async fn settings(store: &MongoDb, client: &Client) -> Result<BTreeMap<String, String>, StoreError> {
    let admin = client.database("admin");
    let build = store.in_time(admin.run_command(doc! { "buildInfo": 1 })).await?;
    let hello = store.in_time(admin.run_command(doc! { "hello": 1 })).await?;
    let server = Server {
        status: ask(store, &admin, doc! { "serverStatus": 1 }).await,
        concerns: ask(store, &admin, doc! { "getDefaultRWConcern": 1 }).await,
        set: ask(store, &admin, doc! { "replSetGetConfig": 1 }).await,
        commit_interval: ask(store, &admin, doc! { "getParameter": 1, "journalCommitInterval": 1 }).await,
        hello,
    };
    let write_concern = server.write_concern(store.connection.write_concern.clone());
    let read_concern = server.read_concern(store.connection.read_concern.clone().map(|concern| concern.level));
    let read_preference = store.read_preference();
    let mut settings = BTreeMap::new();
    let mut say = |name: &str, value: String| settings.insert(name.to_string(), value);
    say("version", format!("MongoDB {}", build.get_str("version").unwrap_or("of unknown version")));
    say("write_concern", in_words(&write_concern));
    say("read_concern", text_of(&read_concern));
    say("read_preference", name_of(&read_preference).into());
    say("causal_sessions", if store.causal { "on" } else { "off" }.into());
    say("retry_writes", store.connection.retry_writes.unwrap_or(false).to_string());
    say("retry_reads", store.connection.retry_reads.unwrap_or(false).to_string());
    for (name, value) in server.facts() {
        say(name, value);
    }
    say("durability", server.durability(&write_concern).into());
    say("isolation", isolation(&read_concern, &read_preference, store.causal));
    Ok(settings)
}

/// The server's answer, if it gives one: a user may not be allowed to ask, and a single server
/// has no replica set.
async fn ask(store: &MongoDb, admin: &Database, command: Document) -> Option<Document> {
    tokio::time::timeout(patience(store.timeout), admin.run_command(command))
        .await
        .ok()
        .and_then(Result::<_, Error>::ok)
}

/// Whether a server's `hello` is neither of a replica set nor of a cluster.
pub fn is_single_server(hello: &Document) -> bool {
    !hello.contains_key("setName") && hello.get_str("msg").ok() != Some("isdbgrid")
}

/// What the server said.
#[derive(Debug, Default)]
struct Server {
    hello: Document,
    status: Option<Document>,
    concerns: Option<Document>,
    set: Option<Document>,
    commit_interval: Option<Document>,
}

impl Server {
    fn storage_engine(&self) -> Option<&str> {
        self.status.as_ref()?.get_document("storageEngine").ok()?.get_str("name").ok()
    }

    fn is_alone(&self) -> bool {
        is_single_server(&self.hello)
    }

    /// Whether a write that a majority has acknowledged is in the journals of that majority.
    fn has_journal_majority(&self) -> bool {
        let config = self.set.as_ref().and_then(|set| set.get_document("config").ok());
        let set = config.and_then(|config| config.get_bool("writeConcernMajorityJournalDefault").ok());
        // If the user may not ask a replica set or cluster, its default is assumed.
        !self.is_alone() && set.unwrap_or(true)
    }

    /// The URL's write concern, with its gaps filled by the server's default.
    fn write_concern(&self, asked: Option<WriteConcern>) -> WriteConcern {
        let mut concern = asked.unwrap_or_default();
        if concern.w.is_none() {
            let default = self.concerns.as_ref().and_then(|all| all.get_document("defaultWriteConcern").ok());
            concern.w = Some(match default.and_then(|default| default.get("w")) {
                Some(Bson::String(w)) => Acknowledgment::from(w.as_str()),
                Some(Bson::Int32(nodes)) => Acknowledgment::Nodes(nodes.unsigned_abs()),
                Some(Bson::Int64(nodes)) => Acknowledgment::Nodes(nodes.unsigned_abs() as u32),
                _ => Acknowledgment::Nodes(1),
            });
        }
        concern
    }

    fn read_concern(&self, asked: Option<ReadConcernLevel>) -> ReadConcernLevel {
        let default = self.concerns.as_ref().and_then(|all| all.get_document("defaultReadConcern").ok());
        let default = default.and_then(|default| default.get_str("level").ok());
        asked.unwrap_or(match default {
            Some("majority") => ReadConcernLevel::Majority,
            Some("available") => ReadConcernLevel::Available,
            _ => ReadConcernLevel::Local,
        })
    }

    /// The other settings that decide durability and speed.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = vec![];
        let mut say = |name, value: Option<String>| facts.extend(value.map(|value| (name, value)));
        say("storage_engine", self.storage_engine().map(String::from));
        let cache = self.status.as_ref().and_then(|status| status.get_document("wiredTiger").ok());
        let cache = cache.and_then(|engine| engine.get_document("cache").ok());
        let cache = cache.and_then(|cache| cache.get("maximum bytes configured"));
        say("cache_bytes", cache.map(Bson::to_string));
        let interval = self.commit_interval.as_ref().and_then(|answer| answer.get("journalCommitInterval"));
        let interval = interval.map(Bson::to_string);
        say("journal_commit_interval_ms", interval.map(|ms| if ms == "0" { "100".into() } else { ms }));
        say("replica_set", self.hello.get_str("setName").ok().map(String::from));
        let members = of_set(&self.hello).join(", ");
        say("replica_set_members", Some(members).filter(|members| !members.is_empty()));
        if self.hello.contains_key("setName") {
            say("write_concern_majority_journal_default", Some(self.has_journal_majority().to_string()));
        }
        facts
    }

    fn durability(&self, concern: &WriteConcern) -> &'static str {
        // A replica set keeps several copies in memory; none of them survives a crash of all machines.
        let is_in_memory = self.storage_engine() == Some("inMemory");
        let is_journaled = match (&concern.journal, &concern.w) {
            (Some(journal), _) => *journal,
            (None, Some(Acknowledgment::Majority)) => self.has_journal_majority(),
            (None, _) => false,
        };
        match () {
            _ if is_in_memory || concern.w == Some(Acknowledgment::Nodes(0)) => promise::NONE,
            _ if is_journaled => promise::EVERY_COMMIT,
            // The journal goes to disk ten times a second.
            _ => promise::WITHIN_A_SECOND,
        }
    }
}

fn in_words(concern: &WriteConcern) -> String {
    let w = match &concern.w {
        Some(Acknowledgment::Nodes(nodes)) => nodes.to_string(),
        Some(Acknowledgment::Custom(name)) => name.clone(),
        _ => "majority".to_string(),
    };
    let journal = concern.journal.map(|journal| format!(", journal={journal}")).unwrap_or_default();
    let timeout = concern.w_timeout.map(|timeout| format!(", wTimeoutMS={}", timeout.as_millis())).unwrap_or_default();
    format!("w={w}{journal}{timeout}")
}

fn text_of(level: &ReadConcernLevel) -> String {
    match level {
        ReadConcernLevel::Local => "local",
        ReadConcernLevel::Majority => "majority",
        ReadConcernLevel::Linearizable => "linearizable",
        ReadConcernLevel::Available => "available",
        ReadConcernLevel::Snapshot => "snapshot",
        ReadConcernLevel::Custom(name) => name,
        _ => "unknown",
    }
    .to_string()
}

fn name_of(preference: &ReadPreference) -> &'static str {
    match preference {
        ReadPreference::Primary => "primary",
        ReadPreference::Secondary { .. } => "secondary",
        ReadPreference::PrimaryPreferred { .. } => "primaryPreferred",
        ReadPreference::SecondaryPreferred { .. } => "secondaryPreferred",
        ReadPreference::Nearest { .. } => "nearest",
        _ => "unknown",
    }
}

/// What a read can see of others' writes.
fn isolation(level: &ReadConcernLevel, preference: &ReadPreference, causal: bool) -> String {
    let mut remarks = vec![];
    let word = match level {
        // As the manual says: of one document, on the primary.
        ReadConcernLevel::Linearizable => promise::LINEARIZABLE,
        ReadConcernLevel::Majority => promise::READ_COMMITTED,
        ReadConcernLevel::Snapshot => {
            remarks.push("each read sees one state");
            promise::READ_COMMITTED
        }
        _ => {
            remarks.push("reads may return data that a failover rolls back");
            promise::READ_UNCOMMITTED
        }
    };
    if causal {
        remarks.push("a thread sees its own writes, and nothing older than what it has read");
    }
    remarks.push("writes are atomic per document");
    match preference {
        ReadPreference::Primary => format!("{word}: {}", remarks.join("; ")),
        _ => {
            remarks.insert(0, "secondaries may lag behind the primary");
            format!("{}: {word}; {}", promise::STALE, remarks.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(journal_default: bool) -> Server {
        Server {
            hello: doc! { "setName": "rs0" },
            status: Some(doc! { "storageEngine": { "name": "wiredTiger" } }),
            concerns: Some(doc! { "defaultWriteConcern": { "w": "majority" } }),
            set: Some(doc! { "config": { "writeConcernMajorityJournalDefault": journal_default } }),
            commit_interval: None,
        }
    }

    fn journaled(w: impl Into<Acknowledgment>, journal: impl Into<Option<bool>>) -> WriteConcern {
        WriteConcern::builder().w(w.into()).journal(journal.into()).build()
    }

    #[test]
    fn durability_follows_from_journal_and_majority() {
        let check = |concern: WriteConcern, expect: &str| assert_eq!(server(true).durability(&concern), expect);
        check(journaled("majority", None), promise::EVERY_COMMIT);
        check(journaled("majority", false), promise::WITHIN_A_SECOND);
        check(journaled(1, None), promise::WITHIN_A_SECOND);
        check(journaled(1, true), promise::EVERY_COMMIT);
        check(journaled(0, None), promise::NONE);
        let majority = journaled("majority", None);
        assert_eq!(server(false).durability(&majority), promise::WITHIN_A_SECOND);
        let single = Server { hello: doc! {}, ..server(true) };
        assert_eq!(single.durability(&majority), promise::WITHIN_A_SECOND);
        let in_memory = Server { status: Some(doc! { "storageEngine": { "name": "inMemory" } }), ..server(true) };
        assert_eq!(in_memory.durability(&majority), promise::NONE);
    }

    #[test]
    fn what_the_url_does_not_say_the_server_decides() {
        let server = server(true);
        assert_eq!(in_words(&server.write_concern(None)), "w=majority");
        let journal = WriteConcern::builder().journal(true).build();
        assert_eq!(in_words(&server.write_concern(Some(journal))), "w=majority, journal=true");
        assert_eq!(in_words(&server.write_concern(Some(journaled(2, None)))), "w=2");
        assert_eq!(in_words(&Server::default().write_concern(None)), "w=1");
    }

    #[test]
    fn isolation_names_what_reads_may_see() {
        let check = |level, preference, expect: &[&str]| {
            let found = isolation(&level, &preference, false);
            assert!(found.starts_with(expect[0]) && expect.iter().all(|words| found.contains(words)), "{found}");
        };
        let primary = ReadPreference::Primary;
        check(ReadConcernLevel::Local, primary.clone(), &["read uncommitted: ", "atomic per document"]);
        check(ReadConcernLevel::Majority, primary.clone(), &["read committed: "]);
        check(ReadConcernLevel::Linearizable, primary, &["linearizable: "]);
        let secondary = ReadPreference::Secondary { options: Default::default() };
        check(ReadConcernLevel::Majority, secondary.clone(), &["stale reads: read committed; ", "secondaries"]);
        let causal = isolation(&ReadConcernLevel::Majority, &secondary, true);
        assert!(causal.contains("sees its own writes"), "{causal}");
    }
}
