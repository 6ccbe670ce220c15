//! The keys of a database.

use schemas::workload::kv::Keys;

use super::nodes::Nodes;
use super::{HELD, INDEX, Redis};
use crate::stores::StoreError;

/// YCSB's index, which it makes when it works on the records that Encore has loaded.
pub const INDEX_OF_YCSB: &str = "_indices";

/// How many keys the server looks at in one step.
const STEP: usize = 2_000;

/// The keys of all records in a database, sorted. Refuses a database with a key that is neither a
/// record's nor Encore's.
pub async fn of_records(store: &Redis, nodes: &mut Nodes, keys: &Keys) -> Result<Vec<String>, StoreError> {
    let mut found = Vec::new();
    for node in nodes.all() {
        let mut cursor = 0u64;
        loop {
            let scan = redis::cmd("SCAN").arg(cursor).arg("COUNT").arg(STEP).to_owned();
            let (next, some): (u64, Vec<Vec<u8>>) = store.in_time(scan.query_async(node)).await?;
            for key in some {
                match String::from_utf8(key) {
                    Ok(key) if keys.parse(&key).is_some() => found.push(key),
                    Ok(key) if [HELD, INDEX, INDEX_OF_YCSB].contains(&key.as_str()) => {}
                    Ok(key) => return Err(foreign(store, &key)),
                    Err(key) => return Err(foreign(store, &String::from_utf8_lossy(key.as_bytes()))),
                }
            }
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
    }
    // The server may name a key twice.
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn foreign(store: &Redis, key: &str) -> StoreError {
    let message = format!("contains the key {key:?}, which Encore has not made; remove it, or choose another database");
    StoreError::usage(&store.url, message)
}
