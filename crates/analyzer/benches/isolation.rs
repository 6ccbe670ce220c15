//! Operations a second of the check of isolation: of a history that is serializable, of one with lost
//! updates and skews, and of one in which nearly all transactions are in one cycle. `benches/run isolation` has histories
//! of ten million transactions, and the memory.

use analyzer::consistency::isolation::{Act, Checker, Event, Fate, Item, Limits, Transaction};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use schemas::anomalies::Anomalies;

/// Reads and writes of a transaction.
const EVENTS: u64 = 4;
const ITEMS: usize = 100_000;
const THREADS: u64 = 64;

/// How old a value may be that a transaction sees.
#[derive(Clone, Copy)]
enum Sees {
    /// What the last transaction wrote.
    Last,
    /// Sometimes what was overwritten by one of the transactions that run at the same time.
    Older,
    /// Sometimes what a later transaction will write.
    Later,
}

/// Transactions that read two items and overwrite both.
fn history(sees: Sees, transactions: u64, items: usize) -> Vec<(Transaction, [Event; EVENTS as usize])> {
    // The last two versions of each item.
    let mut versions = vec![[0i64; 2]; items];
    let mut chance = 1u64;
    let mut below = |limit: u64| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) % limit
    };
    (0..transactions)
        .map(|session| {
            let start_ns = session as i64 * 1000;
            let end_ns = start_ns + (THREADS as i64 - 1) * 1000;
            let first = below(items as u64) as usize;
            let second = (first + 1 + below(items as u64 - 1) as usize) % items;
            let event = |item: usize, act, version, step: u16| {
                let start_ns = start_ns + i64::from(step) * 100;
                Event { item: Item::new(item as u64, 0), version, start_ns, end_ns: start_ns + 90, step, act }
            };
            let mut seen = [first, second].map(|item| versions[item][0]);
            match sees {
                Sees::Older if below(4) == 0 => seen[0] = versions[first][1],
                // The next transaction writes it, if it takes the same item.
                Sees::Later if seen[0] != 0 => seen[0] += 1 << 12,
                Sees::Last | Sees::Older | Sees::Later => {}
            }
            let written = [1, 2].map(|step| ((session << 12) + step) as i64 + 1);
            for (item, written) in [first, second].into_iter().zip(written) {
                versions[item] = [written, versions[item][0]];
            }
            let transaction = Transaction {
                session,
                txn: 0,
                try_number: 0,
                thread: (session % THREADS) as u32,
                start_ns,
                end_ns,
                fate: Fate::Committed,
            };
            let events = [
                event(first, Act::Read, seen[0], 1),
                event(second, Act::Read, seen[1], 2),
                event(first, Act::Write, written[0], 3),
                event(second, Act::Write, written[1], 4),
            ];
            (transaction, events)
        })
        .collect()
}

fn check(history: &[(Transaction, [Event; EVENTS as usize])]) -> Anomalies {
    let mut checker = Checker::new(0, Limits::default());
    for (transaction, events) in history {
        checker.advance(transaction.start_ns);
        checker.add(transaction, events);
    }
    checker.finish()
}

fn benches(c: &mut Criterion) {
    const TRANSACTIONS: u64 = 1_000_000;
    let mut group = c.benchmark_group("isolation");
    group.throughput(Throughput::Elements(TRANSACTIONS * EVENTS)).sample_size(10);
    for (name, sees) in [("serializable", Sees::Last), ("a quarter stale", Sees::Older)] {
        let history = history(sees, TRANSACTIONS, ITEMS);
        println!("{name}: {:?}", check(&history).counts);
        group.bench_function(name, |b| b.iter(|| check(&history)));
    }
    // Few items and values from later transactions: all hang together, in both directions.
    let cyclic = history(Sees::Later, TRANSACTIONS, 4);
    println!("cyclic: {:?}", check(&cyclic).counts);
    group.bench_function("cyclic", |b| b.iter(|| check(&cyclic)));
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
