//! The members of a replica set: waits until all of them have what the primary has.

use mongodb::Client;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::options::{Acknowledgment, WriteConcern};

use super::{MongoDb, marker};
use crate::stores::{StoreError, patience};

/// The members with data that a client sees in `hello`: those that can become the primary, and those
/// that cannot.
pub fn of_set(hello: &Document) -> Vec<String> {
    let named = |list| hello.get_array(list).into_iter().flatten().filter_map(Bson::as_str);
    named("hosts").chain(named("passives")).map(str::to_string).collect()
}

/// See the module. A single server, and a cluster behind a router, are not asked.
pub async fn await_all(store: &MongoDb, client: &Client) -> Result<(), StoreError> {
    let hello = store.in_time(client.database("admin").run_command(doc! { "hello": 1 })).await?;
    let members = of_set(&hello);
    if members.is_empty() {
        return Ok(());
    }
    let most = patience(store.timeout);
    // A little less than the time of the client, so that the server can say how it went.
    let concern =
        WriteConcern::builder().w(Acknowledgment::Nodes(members.len() as u32)).w_timeout(most * 9 / 10).build();
    let touched = store.in_time(async { Ok(marker::touch(&client.database(&store.database), concern).await) }).await?;
    match touched {
        Ok(()) => Ok(()),
        Err(error) if is_late(&error) => Err(store.failed(format!(
            "one of the replica set's members did not get the load within {} ms: {}; are all of {} running (rs.status())?",
            (most * 9 / 10).as_millis(),
            super::fate::words(&error),
            members.join(", ")
        ))),
        Err(error) => Err(store.driver_failed(error)),
    }
}

fn is_late(error: &Error) -> bool {
    matches!(&*error.kind, ErrorKind::Write(WriteFailure::WriteConcernError(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_those_with_data() {
        let hello = doc! { "hosts": ["a:1", "b:2"], "passives": ["c:3"], "arbiters": ["d:4"] };
        assert_eq!(of_set(&hello), ["a:1", "b:2", "c:3"]);
        assert!(of_set(&doc! { "msg": "isdbgrid" }).is_empty());
    }
}
