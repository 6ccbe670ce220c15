//! Key-value workloads as pgbench's scripts, with the statements that Encore prepares.

use replayer::stores::postgres::PostgresServer;
use replayer::stores::relational::engine::Engine;
use replayer::stores::relational::kv::TABLE;
use replayer::stores::relational::kv::statements::Statements;

use super::pgbench::{Draw, Script};

/// Fields of a record.
const FIELDS: u32 = 10;

/// Bytes of a field.
const FIELD_BYTES: usize = 100;

/// A key of YCSB: the hash of the record's number. pgbench has the same hash.
const KEY: &str = "\\set key abs(hash_fnv1a(:record, 0))\n";

/// The key as the server makes it: pgbench has no texts.
const KEY_TEXT: &str = "('user' || :key)";

/// Reads of all fields; with updates, as many updates of one field.
pub fn scripts(has_updates: bool, records: u64, draw: Draw) -> Vec<Script> {
    let statements = Statements::new(FIELDS, &PostgresServer::DIALECT);
    let start = format!("\\set record {}\n{KEY}", draw.of(records));
    let all = (1 << FIELDS) - 1;
    let read = statements.read(all).as_str().replace("$1", KEY_TEXT);
    let mut scripts = vec![Script::new("read", format!("{start}{read};"), FIELDS)];
    if has_updates {
        let value = format!("'{}'", "v".repeat(FIELD_BYTES));
        scripts.extend((0..FIELDS).map(|field| {
            let update = statements.update(1 << field).as_str().replace("$1", &value).replace("$2", KEY_TEXT);
            Script::new(&format!("update{field}"), format!("{start}{update};"), 1)
        }));
    }
    scripts
}

/// A script that fails if the keys of a table are others than those of the scripts.
pub fn check(records: u64) -> String {
    let start = format!("\\set record {}\n{KEY}", Draw::Uniform.of(records));
    format!("{start}SELECT 1 / count(*) FROM {TABLE} WHERE YCSB_KEY = {KEY_TEXT};")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_have_the_statements_of_the_replayer_with_keys_made_by_the_server() {
        let texts = |has_updates| {
            let scripts = scripts(has_updates, 100, Draw::Uniform);
            scripts.into_iter().map(|script| script.text).collect::<Vec<_>>()
        };
        let all = texts(true);
        assert_eq!((all.len(), texts(false).len()), (11, 1));
        let start = "\\set record random(0, 99)\n\\set key abs(hash_fnv1a(:record, 0))\n";
        assert!(all[0].starts_with(&format!("{start}SELECT FIELD0, FIELD1,")), "{}", all[0]);
        assert!(all[0].ends_with("FIELD9 FROM usertable WHERE YCSB_KEY = ('user' || :key);"), "{}", all[0]);
        let value = "v".repeat(100);
        let update = format!("{start}UPDATE usertable SET FIELD3 = '{value}' WHERE YCSB_KEY = ('user' || :key);");
        assert_eq!(all[4], update);
    }
}
