//! MongoDB, as a replica set of one member: transactions need a replica set.

use std::io::{Error, Result};
use std::net::SocketAddr;
use std::path::PathBuf;

use super::op_msg::{Reply, Value, send};
use super::{Durability, Engine, Replication, Site, cache_folder, connect, words};
use crate::machine;

/// The program that `tests/run` installs, below the cache folder.
const CACHED: &str = "mongod-6.0.5/mongod";

pub static ENGINE: Engine = Engine {
    name: "MongoDB",
    programs: "mongod",
    variable: "ENCORE_TEST_MONGODB_URL",
    scheme: "mongodb",
    credentials: "",
    parameters: "replicaSet=rs0",
    default_port: 27017,
    accounts: &[],
    stop_signal: libc::SIGTERM,
    discard_signal: "KILL",
    find,
    prepare,
    command,
    is_ready,
    clean_up: |_| None,
    replication: Some(Replication {
        programs: "mongod",
        find,
        prepare: |site, _| prepare(site),
        arguments: |_| Vec::new(),
        is_ready: answers,
    }),
};

fn find() -> Option<Vec<PathBuf>> {
    let cached = || machine::executable(&cache_folder()?.join(CACHED));
    Some(vec![machine::program("mongod").or_else(cached)?])
}

fn prepare(site: &Site) -> Result<Vec<Vec<String>>> {
    site.create_folder("data")?;
    Ok(Vec::new())
}

fn command(site: &Site, port: u16, durability: Durability) -> Vec<String> {
    let mut command = vec![site.program(0), "--dbpath".to_string(), site.path("data")];
    command.extend(["--port".to_string(), port.to_string()]);
    command.extend(words(["--replSet", "rs0", "--bind_ip", "127.0.0.1", "--nounixsocket", "--quiet"]));
    if durability == Durability::Process {
        // The journal stays on: without it, a killed server loses writes.
        command.extend(words(["--wiredTigerCacheSizeGB", "0.5", "--oplogSize", "128"]));
        command.extend(words(["--setParameter", "diagnosticDataCollectionEnabled=false"]));
    }
    command
}

/// Whether the server is the primary of its replica set. If there is no set, this initiates one.
fn is_ready(address: SocketAddr) -> Result<bool> {
    let mut stream = connect(address)?;
    let hello = send(&mut stream, vec![("hello", Value::Int32(1))])?;
    if hello.flag("isWritablePrimary") == Some(true) {
        return Ok(true);
    }
    // A member reports this if its set is not initiated, or is not loaded yet.
    if hello.flag("isreplicaset") == Some(true) {
        let reply = send(&mut stream, vec![("replSetInitiate", set_of_one(address))])?;
        refused(&reply)?;
    }
    Ok(false)
}

/// Whether the server answers, in whatever state it is as a member.
fn answers(address: SocketAddr) -> Result<bool> {
    Ok(send(&mut connect(address)?, vec![("hello", Value::Int32(1))])?.number("ok") == Some(1.0))
}

/// Makes these servers members of the set of the first one. The first one stays the primary,
/// whatever happens.
pub fn join(members: &[SocketAddr]) -> Result<()> {
    let mut stream = connect(members[0])?;
    let set = vec![("_id", Value::Text("rs0".to_string())), ("version", Value::Int32(2)), addresses(members)];
    // By force, since one member alone could be added otherwise.
    let command = vec![("replSetReconfig", Value::Document(set)), ("force", Value::Flag(true))];
    refused(&send(&mut stream, command)?)
}

/// Keeps a server as it is: it answers reads, and applies nothing until it is unlocked.
pub fn lock(address: SocketAddr, lock: bool) -> Result<()> {
    let order = match lock {
        true => vec![("fsync", Value::Int32(1)), ("lock", Value::Flag(true))],
        false => vec![("fsyncUnlock", Value::Int32(1))],
    };
    refused(&send(&mut connect(address)?, order)?)
}

/// Whether a server is a secondary of its set, with data to read.
pub fn is_secondary(address: SocketAddr) -> Result<bool> {
    Ok(send(&mut connect(address)?, vec![("hello", Value::Int32(1))])?.flag("secondary") == Some(true))
}

fn set_of_one(address: SocketAddr) -> Value<'static> {
    Value::Document(vec![("_id", Value::Text("rs0".to_string())), addresses(&[address])])
}

/// The members of a set. None but the first can become its primary.
fn addresses(members: &[SocketAddr]) -> (&'static str, Value<'static>) {
    let member = |(id, address): (i32, &SocketAddr)| {
        let host = ("host", Value::Text(address.to_string()));
        let priority = ("priority", Value::Int32(i32::from(id == 0)));
        Value::Document(vec![("_id", Value::Int32(id)), host, priority])
    };
    ("members", Value::Array((0..).zip(members).map(member).collect()))
}

fn refused(reply: &Reply) -> Result<()> {
    if reply.number("ok") == Some(1.0) {
        return Ok(());
    }
    let why = reply.text("errmsg").unwrap_or("no reason given");
    Err(Error::other(format!("the command was refused: {why}")))
}
