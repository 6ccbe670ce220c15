//! What 32 threads of one worker get from memcached in the same time, with three clients. One waits
//! without blocking the others, one blocks the worker, and one blocks in a pool of threads beside it.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use memcache::exp::{AsyncMetaConnection, GetOptions, build_get};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

const THREADS: usize = 32;

/// A cached profile with an image of 12 KB.
const VALUE_BYTES: usize = 12 * 1024;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn gets(c: &mut Criterion) {
    let Some(server) = servers::memcached() else { return };
    let blocking =
        memcache::Client::with_pool_size(format!("memcache://{}?protocol=ascii", server.address()), THREADS as u32)
            .expect("a client");
    blocking.set("profile", vec![7u8; VALUE_BYTES].as_slice(), 0).expect("a value");

    let mut group = c.benchmark_group("memcached gets");
    group.throughput(Throughput::Elements(THREADS as u64));
    group.bench_function("async", |b| {
        let runtime = runtime();
        let connect = async {
            let mut connections = Vec::new();
            for _ in 0..THREADS {
                connections.push(AsyncMetaConnection::connect(server.address()).await.expect("a connection"));
            }
            connections
        };
        let mut connections = runtime.block_on(connect);
        let command = build_get("profile", &GetOptions::default()).expect("a command");
        b.iter(|| {
            let gets = std::mem::take(&mut connections).into_iter().map(|mut connection| {
                let command = command.clone();
                async move {
                    black_box(connection.execute(&command).await.expect("a value"));
                    connection
                }
            });
            connections = all(&runtime, gets.collect());
        });
    });
    group.bench_function("blocking the worker", |b| {
        let runtime = runtime();
        b.iter(|| {
            let gets = (0..THREADS).map(|_| {
                let client = blocking.clone();
                async move {
                    black_box(client.get::<Vec<u8>>("profile").expect("an answer"));
                }
            });
            all(&runtime, gets.collect());
        });
    });
    group.bench_function("blocking beside the worker", |b| {
        let runtime = runtime();
        b.iter(|| {
            let gets = (0..THREADS).map(|_| {
                let client = blocking.clone();
                async move {
                    let get = move || client.get::<Vec<u8>>("profile").expect("an answer");
                    black_box(tokio::task::spawn_blocking(get).await.expect("it does not panic"));
                }
            });
            all(&runtime, gets.collect());
        });
    });
}

/// Runs all of them as the tasks of one worker.
fn all<F: Future + 'static>(runtime: &Runtime, tasks: Vec<F>) -> Vec<F::Output> {
    let local = LocalSet::new();
    local.block_on(runtime, async {
        let tasks: Vec<_> = tasks.into_iter().map(tokio::task::spawn_local).collect();
        let mut done = Vec::with_capacity(tasks.len());
        for task in tasks {
            done.push(task.await.expect("it does not panic"));
        }
        done
    })
}

criterion_group!(benches, gets);
criterion_main!(benches);
