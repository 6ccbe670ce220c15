//! The writes and scans that the server does as scripts: each is atomic and one round trip.

use redis::{Cmd, RedisResult};

use super::INDEX;
use super::nodes::Nodes;

/// Who keeps the index of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// No index is kept, since no session scans.
    None,
    /// The scripts, together with the records.
    InScripts,
    /// Commands of their own, because the index may be on another node than a record.
    Apart,
}

/// A script, by its text and the name that the server has for it.
#[derive(Debug)]
pub struct Script {
    text: String,
    name: String,
}

impl Script {
    /// Makes a script known to all nodes. All of them give it the same name.
    async fn load(text: String, nodes: &mut Nodes) -> RedisResult<Script> {
        let mut name = String::new();
        for node in nodes.all() {
            name = load_command(&text).query_async(node).await?;
        }
        Ok(Script { text, name })
    }

    /// The command that makes the script known to a server that has forgotten it.
    pub fn load_command(&self) -> Cmd {
        load_command(&self.text)
    }

    /// The command that runs the script with this key; arguments may follow.
    pub fn call(&self, key: &str) -> Cmd {
        redis::cmd("EVALSHA").arg(&self.name).arg(1).arg(key).to_owned()
    }
}

fn load_command(text: &str) -> Cmd {
    redis::cmd("SCRIPT").arg("LOAD").arg(text).to_owned()
}

/// The scripts of an experiment. Each gets the key of a record, and names and values of fields. It
/// returns 1, or 0 if the record is there (insert), or not there (update and delete).
#[derive(Debug)]
pub struct Scripts {
    pub insert: Script,
    pub update: Script,
    /// Only if scripts keep the index: else the command DEL is enough.
    pub delete: Option<Script>,
    /// From a key on, this many records: each key, then the values of the fields named.
    pub scan: Script,
}

impl Scripts {
    /// Makes all scripts known to all nodes.
    pub async fn load(index: Index, ttl: Option<u32>, nodes: &mut Nodes) -> RedisResult<Scripts> {
        let index = index == Index::InScripts;
        let expire = ttl.map_or(String::new(), |seconds| format!("redis.call('EXPIRE', KEYS[1], {seconds})\n"));
        // The index first: a script that fails keeps what it has done, and only the index can be of
        // a wrong type here.
        let add = if index { format!("redis.call('ZADD', '{INDEX}', 0, KEYS[1])\n") } else { String::new() };
        let insert = format!(
            "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end\n\
             {add}redis.call('HSET', KEYS[1], unpack(ARGV))\n{expire}return 1"
        );
        let update = format!(
            "if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end\n\
             redis.call('HSET', KEYS[1], unpack(ARGV))\n{expire}return 1"
        );
        let delete = format!("redis.call('ZREM', '{INDEX}', KEYS[1])\nreturn redis.call('DEL', KEYS[1])");
        let scan = format!(
            "local found = {{}}\n\
             for _, key in ipairs(redis.call('ZRANGEBYLEX', '{INDEX}', '[' .. KEYS[1], '+', 'LIMIT', 0, ARGV[1])) do\n\
             found[#found + 1] = key\n\
             found[#found + 1] = redis.call('HMGET', key, unpack(ARGV, 2))\n\
             end\n\
             return found"
        );
        Ok(Scripts {
            insert: Script::load(insert, nodes).await?,
            update: Script::load(update, nodes).await?,
            delete: match index {
                true => Some(Script::load(delete, nodes).await?),
                false => None,
            },
            scan: Script::load(scan, nodes).await?,
        })
    }
}
