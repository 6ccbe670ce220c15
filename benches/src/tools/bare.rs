//! A bare loop over the memcache crate: it requests keys that are in the cache, and ignores the
//! values. Each task has one connection, and all tasks run on one thread.
//!
//! It runs in a separate process (this program again), so that its CPU time and memory can be
//! measured alone.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Context;
use memcache::exp::{AsyncMetaConnection, GetOptions, ReturnCode, build_get};
use schemas::latency::ResponseTimes;
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, LocalOptions};

use crate::measure::{self, Used};
use crate::sample::Figures;

/// How many different keys are requested.
const KEYS: usize = 10_000;

/// The output of a process that runs a bare loop.
#[derive(Serialize, Deserialize)]
pub struct Said {
    operations: u64,
    seconds: f64,
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
}

impl Said {
    /// The figures of a loop.
    pub fn of(times: &ResponseTimes, elapsed: Duration) -> Said {
        Said {
            operations: times.count(),
            seconds: elapsed.as_secs_f64(),
            mean_us: times.mean_ns() / 1e3,
            p50_us: times.percentile_ns(50.0) as f64 / 1e3,
            p99_us: times.percentile_ns(99.0) as f64 / 1e3,
        }
    }

    /// The figures that a process printed, beside what it used.
    pub fn read(used: &Used) -> anyhow::Result<Figures> {
        let said: Said = serde_json::from_str(&used.output)?;
        let all = Figures::of(used, said.operations as f64, said.operations as f64 / said.seconds);
        Ok(Figures { mean_us: Some(said.mean_us), p50_us: Some(said.p50_us), p99_us: Some(said.p99_us), ..all })
    }
}

/// Starts the loop in a separate process.
pub fn run(address: &str, threads: u32, seconds: u32) -> anyhow::Result<Figures> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bare", address, &threads.to_string(), &seconds.to_string()]);
    Said::read(&measure::run(&mut command)?)
}

/// The separate process: prints its figures as one JSON object.
pub fn main(address: &str, threads: u32, seconds: u32) -> anyhow::Result<()> {
    let keys = keys(address)?;
    anyhow::ensure!(!keys.is_empty(), "the cache at {address} is empty");
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    let said = runtime.block_on(async {
        let keys = std::rc::Rc::new(keys);
        let mut connections = Vec::new();
        for _ in 0..threads {
            connections.push(AsyncMetaConnection::connect(address).await?);
        }
        let began = Instant::now();
        let until = began + Duration::from_secs(seconds.into());
        let tasks = connections.into_iter().enumerate().map(|(number, mut connection)| {
            let keys = keys.clone();
            tokio::task::spawn_local(async move {
                let mut times = ResponseTimes::default();
                // Each connection starts at another key, and all go through all keys.
                let mut at = number * 7_919;
                let mut now = Instant::now();
                while now < until {
                    at = (at + 104_729) % keys.len();
                    let command = build_get(keys[at].as_str(), &GetOptions::default())?;
                    let answer = connection.execute(&command).await?;
                    anyhow::ensure!(answer.rc() == ReturnCode::Va, "a key is not in the cache any more");
                    let end = Instant::now();
                    times.record((end - now).as_nanos() as i64);
                    now = end;
                }
                anyhow::Ok(times)
            })
        });
        let mut all = ResponseTimes::default();
        for task in tasks.collect::<Vec<_>>() {
            all.merge(&task.await??);
        }
        anyhow::Ok(Said::of(&all, began.elapsed()))
    })?;
    println!("{}", serde_json::to_string(&said)?);
    Ok(())
}

/// The keys that the cache lists.
fn keys(address: &str) -> anyhow::Result<Vec<String>> {
    let mut stream = TcpStream::connect(address).with_context(|| format!("no memcached at {address}"))?;
    stream.write_all(b"lru_crawler metadump all\r\n")?;
    let mut keys = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line?;
        if line == "END" {
            break;
        }
        let key = line.split(' ').find_map(|field| field.strip_prefix("key="));
        keys.extend(key.map(unescaped));
        if keys.len() == KEYS {
            break;
        }
    }
    Ok(keys)
}

/// Decodes a key: the listing writes some characters as `%3A`.
fn unescaped(key: &str) -> String {
    let mut pieces = key.split('%');
    let mut out = pieces.next().unwrap_or_default().to_string();
    for piece in pieces {
        match piece.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(code) => {
                out.push(char::from(code));
                out += &piece[2..];
            }
            None => {
                out.push('%');
                out += piece;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::unescaped;

    #[test]
    fn escaped_keys_are_read() {
        assert_eq!(unescaped("encore%3A%2Ftmp%2Fa.db%3Aprofile%3A7"), "encore:/tmp/a.db:profile:7");
        assert_eq!(unescaped("100%"), "100%");
    }
}
