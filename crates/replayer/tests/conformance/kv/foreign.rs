//! Records as other tools load them: YCSB's JDBC, MongoDB, Redis and memcached bindings, go-ycsb's SQL.

use std::io::{Read, Write};
use std::path::Path;

use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, doc};
use sqlx::{AssertSqlSafe, Connection, Executor, MySqlConnection, PgConnection, SqliteConnection};

use super::subjects::memcached_url;

/// A value of another tool: text that is none of Encore's.
const VALUE: &str = "+5<#!2 $ a value of another tool, 40 long";

/// A store that other tools load.
pub struct Foreign {
    /// Its URL.
    pub url: String,
    /// Kept alive as long as the store.
    server: Option<servers::Server>,
    cluster: Option<servers::RedisCluster>,
}

/// A store of each kind, with databases of this name that are empty or not there.
pub fn all(name: &str, folder: &Path) -> Vec<Foreign> {
    let own = |kind| servers::Server::start(kind, servers::Options::default());
    let file = folder.join(format!("{name}.db"));
    std::fs::write(&file, "").expect("an empty file");
    let mut all = vec![Foreign { url: format!("sqlite:{}", file.display()), server: None, cluster: None }];
    let shared = [servers::postgres().map(|one| one.url(name)), servers::mysql().map(|one| one.url(name))];
    for url in shared.into_iter().flatten() {
        let (at, database) = url.split('?').next().unwrap_or(&url).rsplit_once('/').expect("a database");
        let home = if url.starts_with("postgres") { "postgres" } else { "mysql" };
        sql(&format!("{at}/{home}"), &[format!("CREATE DATABASE {database}")]);
        all.push(Foreign { url, server: None, cluster: None });
    }
    all.extend(servers::mongodb().map(|one| Foreign { url: one.url(name), server: None, cluster: None }));
    all.extend(own(servers::Kind::Redis).map(|one| Foreign { url: one.url("3"), server: Some(one), cluster: None }));
    all.extend(servers::RedisCluster::start().map(|one| Foreign { url: one.url(), server: None, cluster: Some(one) }));
    let memcached = own(servers::Kind::Memcached);
    all.extend(memcached.map(|one| Foreign { url: memcached_url(&one), server: Some(one), cluster: None }));
    all
}

impl Foreign {
    fn is(&self, scheme: &str) -> bool {
        self.url.starts_with(scheme)
    }

    /// Whether it serves scans.
    pub fn has_scans(&self) -> bool {
        !self.is("memcached")
    }

    /// Whether it can count its records. memcached cannot.
    pub fn counts_exactly(&self) -> bool {
        !self.is("memcached")
    }

    /// Loads records with these keys and as many fields.
    pub fn fill(&self, keys: &[String], fields: u32) {
        let fields = || (0..fields).map(|field| format!("field{field}"));
        if self.is("redis") {
            self.redis(keys.iter().enumerate().flat_map(|(number, key)| {
                let mut set = redis::cmd("HSET").arg(key).to_owned();
                for field in fields() {
                    set.arg(field).arg(VALUE);
                }
                [set, redis::cmd("ZADD").arg("_indices").arg(number).arg(key).to_owned()]
            }));
        } else if self.is("mongodb") {
            let value = || Binary { subtype: BinarySubtype::Generic, bytes: VALUE.as_bytes().to_vec() };
            let record = |key: &String| {
                std::iter::once(("_id".to_string(), key.into())).chain(fields().map(|field| (field, value().into())))
            };
            let documents: Vec<Document> = keys.iter().map(|key| record(key).collect()).collect();
            self.mongodb(async |records| records.insert_many(&documents).await.map(drop).expect("documents"));
        } else if self.is("memcached") {
            let pairs: Vec<String> = fields().map(|field| format!("\"{field}\":\"{VALUE}\"")).collect();
            let item = format!("{{{}}}", pairs.join(","));
            for key in keys {
                self.memcached(&format!("set usertable-{key} 0 0 {}\r\n{item}\r\n", item.len()), "STORED");
            }
        } else {
            let columns: String = fields().map(|field| format!(", {} TEXT", field.to_uppercase())).collect();
            let values: String = fields().map(|_| format!(", '{VALUE}'")).collect();
            let create = format!("CREATE TABLE usertable (YCSB_KEY VARCHAR(255) PRIMARY KEY{columns})");
            let inserts = keys.iter().map(|key| format!("INSERT INTO usertable VALUES ('{key}'{values})"));
            sql(&self.url, &std::iter::once(create).chain(inserts).collect::<Vec<_>>());
        }
    }

    /// Removes Encore's marker.
    pub fn unmark(&self) {
        match () {
            () if self.is("redis") => {
                self.redis(["encore:held", "encore:keys"].map(|key| redis::cmd("DEL").arg(key).to_owned()));
            }
            () if self.is("mongodb") => self.mongodb(async |records| {
                let state = records.client().database(&records.namespace().db).collection::<Document>("encore_state");
                state.drop().await.expect("a collection");
            }),
            () if self.is("memcached") => self.memcached("delete encore-held\r\n", "DELETED"),
            () => sql(&self.url, &["DROP TABLE encore_state".to_string()]),
        }
    }

    /// Removes field 1 of the record with a key, which has no other fields than 0 to 3.
    pub fn remove_field(&self, key: &str) {
        match () {
            () if self.is("redis") => self.redis([redis::cmd("HDEL").arg(key).arg("field1").to_owned()]),
            () if self.is("mongodb") => self.mongodb(async |records| {
                let change = doc! { "$unset": { "field1": 1 } };
                assert_eq!(records.update_one(doc! { "_id": key }, change).await.expect(key).modified_count, 1);
            }),
            () if self.is("memcached") => {
                let item = format!("{{\"field0\":\"{VALUE}\",\"field2\":\"{VALUE}\",\"field3\":\"{VALUE}\"}}");
                self.memcached(&format!("set usertable-{key} 0 0 {}\r\n{item}\r\n", item.len()), "STORED");
            }
            () => sql(&self.url, &[format!("UPDATE usertable SET FIELD1 = NULL WHERE YCSB_KEY = '{key}'")]),
        }
    }

    /// Limits field 2 to 50 characters. Returns false if the store has no such limits.
    pub fn narrow(&self) -> bool {
        let change = match () {
            () if self.is("postgres") => "ALTER COLUMN FIELD2 TYPE VARCHAR(50)",
            () if self.is("mysql") || self.is("mariadb") => "MODIFY FIELD2 VARCHAR(50)",
            () => return false,
        };
        sql(&self.url, &[format!("ALTER TABLE usertable {change}")]);
        true
    }

    /// Removes the record with a key.
    pub fn remove(&self, key: &str) {
        match () {
            () if self.is("redis") => self.redis([redis::cmd("DEL").arg(key).to_owned()]),
            () if self.is("mongodb") => self.mongodb(async |records| {
                assert_eq!(records.delete_one(doc! { "_id": key }).await.expect(key).deleted_count, 1);
            }),
            () if self.is("memcached") => self.memcached(&format!("delete usertable-{key}\r\n"), "DELETED"),
            () => sql(&self.url, &[format!("DELETE FROM usertable WHERE YCSB_KEY = '{key}'")]),
        }
    }

    fn redis(&self, commands: impl IntoIterator<Item = redis::Cmd>) {
        async fn send(mut link: impl redis::aio::ConnectionLike, commands: impl IntoIterator<Item = redis::Cmd>) {
            for command in commands {
                command.exec_async(&mut link).await.expect("an answer");
            }
        }
        run(async {
            match &self.cluster {
                Some(cluster) => {
                    let seed = format!("redis://{}", cluster.nodes()[0].address());
                    let client = redis::cluster::ClusterClient::new([seed]).expect("a URL");
                    send(client.get_async_connection().await.expect("a connection"), commands).await;
                }
                None => {
                    let client = redis::Client::open(self.url.as_str()).expect("a URL");
                    send(client.get_multiplexed_async_connection().await.expect("a connection"), commands).await;
                }
            }
        });
    }

    fn mongodb(&self, work: impl AsyncFnOnce(mongodb::Collection<Document>)) {
        run(async {
            let client = mongodb::Client::with_uri_str(&self.url).await.expect("a URL");
            work(client.default_database().expect("a database").collection("usertable")).await;
        });
    }

    fn memcached(&self, request: &str, answer: &str) {
        let address = self.server.as_ref().expect("a server").address();
        let mut stream = std::net::TcpStream::connect(address).expect("a connection");
        stream.write_all(request.as_bytes()).expect("a request is sent");
        let mut bytes = vec![0; answer.len() + 2];
        stream.read_exact(&mut bytes).expect("an answer");
        assert_eq!(String::from_utf8_lossy(&bytes).trim_end(), answer);
    }
}

fn run<X>(future: impl Future<Output = X>) -> X {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(future)
}

/// Executes statements, through whichever driver.
fn sql(url: &str, statements: &[String]) {
    let url = url.split('?').next().unwrap_or(url);
    let statements = statements.iter().map(|text| AssertSqlSafe(text.clone()));
    macro_rules! execute {
        ($connection:ty) => {{
            let mut client = <$connection>::connect(url).await.expect(url);
            for statement in statements {
                client.execute(statement).await.expect(url);
            }
            client.close().await.expect(url);
        }};
    }
    run(async {
        match url.split(':').next() {
            Some("sqlite") => execute!(SqliteConnection),
            Some("mysql" | "mariadb") => execute!(MySqlConnection),
            _ => execute!(PgConnection),
        }
    });
}
