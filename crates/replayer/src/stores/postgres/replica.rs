//! The streaming replica that answers reads (`replica=HOST:PORT`): whether it is one, how far it has come,
//! what it promises.
//!
//! A commit on the primary reaches the replica later, unless the session has `synchronous_commit=remote_apply`
//! and the primary's `synchronous_standby_names` names the replica.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Connection, Row};

use super::Postgres;
use crate::stores::relational::contents::MARKER;
use crate::stores::relational::engine::Client;
use crate::stores::relational::state::sql;
use crate::stores::url::Address;
use crate::stores::{StoreError, patience, promise};

/// The parameter of the URL.
pub const PARAMETER: &str = "replica";

/// The time between two looks at how far the replica has come.
const PAUSE: Duration = Duration::from_millis(5);

/// What the replica and its primary say of themselves.
struct Standing {
    in_recovery: bool,
    system: String,
    delay: Duration,
}

impl Standing {
    async fn ask(client: &mut PgConnection) -> Result<Standing, sqlx::Error> {
        let question = "SELECT pg_is_in_recovery(), (SELECT system_identifier::text FROM pg_control_system()), \
                        (SELECT setting::bigint FROM pg_settings WHERE name = 'recovery_min_apply_delay')";
        let row = sqlx::query(question).fetch_one(client).await?;
        let delay: i64 = row.try_get(2)?;
        Ok(Standing {
            in_recovery: row.try_get(0)?,
            system: row.try_get(1)?,
            delay: Duration::from_millis(delay.unsigned_abs()),
        })
    }
}

/// Connections to the primary and to its replica, for questions about the replica.
struct Pair<'a> {
    store: &'a Postgres,
    address: &'a Address,
    primary: PgConnection,
    replica: PgConnection,
}

impl<'a> Pair<'a> {
    /// None if the URL names no replica. An error if it does not answer.
    async fn open(store: &'a Postgres) -> Result<Option<Pair<'a>>, StoreError> {
        let Some((address, server)) = &store.engine().replica else { return Ok(None) };
        // Another database than that of the URL, which a load drops.
        let primary = super::load::keeper(store).await?;
        let mut replica = Err(store.failed("no connection"));
        for database in ["postgres", "template1"] {
            let options = server.options.clone().database(database);
            replica = store.in_time(PgConnection::connect_with(&options)).await;
            if replica.is_ok() {
                break;
            }
        }
        let replica = replica.map_err(|error| of_replica(address, error))?;
        Ok(Some(Pair { store, address, primary, replica }))
    }

    /// Refuses a server that is no replica of the primary. Returns how late it applies commits.
    async fn check(&mut self) -> Result<Duration, StoreError> {
        let store = self.store;
        let primary = store.in_time(Standing::ask(&mut self.primary)).await?;
        let asked = store.in_time(Standing::ask(&mut self.replica)).await;
        let replica = asked.map_err(|error| of_replica(self.address, error))?;
        let address = self.address;
        let refused = match () {
            _ if primary.in_recovery => {
                "names a server that is a replica itself, which takes no writes; write the primary's address before \
                 the database, and the replica's into replica="
                    .to_string()
            }
            _ if !replica.in_recovery => {
                format!("parameter {PARAMETER}: {address} is no replica, since it takes writes; name a standby server")
            }
            _ if primary.system != replica.system => {
                format!("parameter {PARAMETER}: {address} is a replica of another server; name one of this server's")
            }
            _ => return Ok(replica.delay),
        };
        Err(store.misused(refused))
    }

    async fn close(self) -> Result<(), StoreError> {
        self.store.in_time(self.primary.close()).await?;
        self.store.in_time(self.replica.close()).await
    }
}

/// An error about the replica.
fn of_replica(address: &Address, error: StoreError) -> StoreError {
    StoreError { message: format!("the replica {address}: {}", error.message), ..error }
}

/// Refuses a replica that does not answer, or is none of the primary's.
pub async fn check(store: &Postgres) -> Result<(), StoreError> {
    match Pair::open(store).await? {
        Some(mut pair) => {
            pair.check().await?;
            pair.close().await
        }
        None => Ok(()),
    }
}

/// Waits until the replica has applied all that the primary has committed so far. An error if it stops on
/// the way.
pub async fn await_caught_up(store: &Postgres) -> Result<(), StoreError> {
    let Some(mut pair) = Pair::open(store).await? else { return Ok(()) };
    let delay = pair.check().await?;
    let most = patience(store.engine().timeout) + delay;
    let target = flushed(store).await?;
    let mut moved = (String::new(), Instant::now());
    loop {
        let question = "SELECT coalesce(pg_last_wal_replay_lsn()::text, ''),
                               coalesce(pg_wal_lsn_diff($1::pg_lsn, pg_last_wal_replay_lsn())::bigint, 1)";
        let ask = sqlx::query(question).bind(target.as_str()).fetch_one(&mut pair.replica);
        let row = store.in_time(ask).await.map_err(|error| of_replica(pair.address, error))?;
        let read = |row: PgRow| Ok::<(String, i64), sqlx::Error>((row.try_get(0)?, row.try_get(1)?));
        let (place, behind) = read(row).map_err(|error| store.driver_failed(error))?;
        if behind <= 0 {
            return pair.close().await;
        }
        if place != moved.0 {
            moved = (place, Instant::now());
        } else if moved.1.elapsed() > most {
            let waited_ms = most.as_millis();
            return Err(store.failed(format!(
                "the replica {}: has applied nothing for {waited_ms} ms, {behind} bytes behind the primary; is it still \
                 connected to the primary (pg_stat_replication)?",
                pair.address
            )));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Has all commits so far written to the primary's log, also those of `synchronous_commit=off`, and returns
/// their end.
async fn flushed(store: &Postgres) -> Result<String, StoreError> {
    let mut client = store.client().await?;
    let asked = store.in_time(async {
        // Several workers do this at the same time, and must not wait for the replica here.
        client
            .run(sql(format!(
                "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit TO local; \
                 UPDATE {MARKER} SET state = state; COMMIT"
            )))
            .await?;
        let row = sqlx::query("SELECT pg_current_wal_lsn()::text").fetch_one(&mut client).await?;
        row.try_get::<String, _>(0)
    });
    let place = asked.await?;
    store.in_time(client.disconnect()).await?;
    Ok(place)
}

/// What the replica changes in the settings of the store.
pub async fn add_settings(store: &Postgres, settings: &mut BTreeMap<String, String>) -> Result<(), StoreError> {
    let Some(mut pair) = Pair::open(store).await? else { return Ok(()) };
    let delay = pair.check().await?;
    let question = "SELECT coalesce(string_agg(DISTINCT coalesce(sync_state, 'unknown'), ' or '), 'unknown') \
                    FROM pg_stat_replication";
    let row = store.in_time(sqlx::query(question).fetch_one(&mut pair.primary)).await?;
    let sync_state: String = row.try_get(0).map_err(|error| store.driver_failed(error))?;
    let waits = settings.get("synchronous_commit").is_some_and(|commit| commit == "remote_apply");
    let level = settings.get("isolation").cloned().unwrap_or_default();
    let isolation = match waits && sync_state == "sync" {
        true => {
            format!("{level}: reads outside of transactions come from a replica that has every acknowledged commit")
        }
        false => format!(
            "{}: {level} on the primary; reads outside of transactions come from a replica that may lag behind it",
            promise::STALE
        ),
    };
    let said = [
        ("isolation", isolation),
        (PARAMETER, pair.address.to_string()),
        ("replica_sync_state", sync_state),
        ("replica_recovery_min_apply_delay", format!("{}ms", delay.as_millis())),
    ];
    settings.extend(said.map(|(name, value)| (name.to_string(), value)));
    pair.close().await
}
