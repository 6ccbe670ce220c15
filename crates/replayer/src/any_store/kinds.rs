//! The table of all stores.

use schemas::social::Social;
use schemas::vocabulary::kv::Kv;
use schemas::vocabulary::sql::Sql;

use super::{Kind, Opened};
use crate::stores::casql::Casql;
use crate::stores::cassandra::Cassandra;
use crate::stores::memcached::{self, Memcached};
use crate::stores::memory::Memory;
use crate::stores::mongodb::MongoDb;
use crate::stores::mysql::{MySql, MySqlServer};
use crate::stores::null::Null;
use crate::stores::postgres::{Postgres, PostgresServer};
use crate::stores::redis::Redis;
use crate::stores::sqlite::{Sqlite, SqliteFile};

/// Every kind of store.
pub(super) const KINDS: [Kind; 12] = [
    Kind {
        schemes: &["sqlite"],
        example: "sqlite:PATH",
        open: |url| Ok(Opened::new(Sqlite::open(url)?).serving::<Social>().serving::<Kv>().serving::<Sql>().boxed()),
    },
    Kind {
        schemes: &["postgres", "postgresql"],
        example: "postgres://HOST/DATABASE",
        open: |url| Ok(Opened::new(Postgres::open(url)?).serving::<Social>().serving::<Kv>().serving::<Sql>().boxed()),
    },
    Kind {
        schemes: &["mysql", "mariadb"],
        example: "mysql://HOST/DATABASE",
        open: |url| Ok(Opened::new(MySql::open(url)?).serving::<Social>().serving::<Kv>().serving::<Sql>().boxed()),
    },
    Kind {
        schemes: &["mongodb", "mongodb+srv"],
        example: "mongodb://HOST/DATABASE",
        open: |url| Ok(Opened::new(MongoDb::open(url)?).serving::<Social>().serving::<Kv>().serving::<Sql>().boxed()),
    },
    Kind {
        schemes: &["redis", "rediss"],
        example: "redis://HOST:6379/0",
        open: |url| Ok(Opened::new(Redis::open(url)?).serving::<Kv>().boxed()),
    },
    Kind {
        schemes: &[memcached::SCHEME],
        example: "memcached://HOST:11211",
        open: |url| Ok(Opened::new(Memcached::open(url)?).serving::<Kv>().boxed()),
    },
    Kind {
        schemes: &["cassandra"],
        example: "cassandra://HOST/KEYSPACE",
        open: |url| Ok(Opened::new(Cassandra::open(url)?).serving::<Kv>().serving::<Sql>().boxed()),
    },
    Kind {
        schemes: &["casql+sqlite"],
        example: "casql+sqlite:PATH?memcached=HOST:11211",
        open: |url| Ok(Opened::new(Casql::<SqliteFile>::open(url)?).serving::<Social>().boxed()),
    },
    Kind {
        schemes: &["casql+postgres", "casql+postgresql"],
        example: "casql+postgres://HOST/DATABASE?memcached=HOST:11211",
        open: |url| Ok(Opened::new(Casql::<PostgresServer>::open(url)?).serving::<Social>().boxed()),
    },
    Kind {
        schemes: &["casql+mysql", "casql+mariadb"],
        example: "casql+mysql://HOST/DATABASE?memcached=HOST:11211",
        open: |url| Ok(Opened::new(Casql::<MySqlServer>::open(url)?).serving::<Social>().boxed()),
    },
    Kind {
        schemes: &["memory"],
        example: "memory:",
        open: |url| Ok(Opened::new(Memory::open(url)?).serving::<Social>().serving::<Kv>().boxed()),
    },
    Kind {
        schemes: &["null"],
        example: "null:",
        open: |url| Ok(Opened::new(Null::open(url)?).serving::<Social>().serving::<Kv>().serving::<Sql>().boxed()),
    },
];
