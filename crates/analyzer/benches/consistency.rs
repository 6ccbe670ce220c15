//! Operations a second of the consistency metrics, on histories in memory: for one register and for many, few
//! clients and many, a right store and one in which 5% of the reads are stale.

use std::hint::black_box;

use analyzer::consistency::delta::delta;
use analyzer::consistency::gamma::Gamma;
use analyzer::consistency::guarantees::{by_actor, by_thread};
use analyzer::consistency::history::{Access, Clients, History};
use analyzer::consistency::k_atomicity::K;
use analyzer::consistency::measure::Measured;
use analyzer::consistency::staleness::{of_reads, of_writes};
use analyzer::validate::Interval;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const OPERATIONS: usize = 1_000_000;

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// The writes and reads of each register. Each client runs one operation after the other; half of them are
/// writes, which take effect in the middle.
fn histories(registers: usize, clients: u32, stale_percent: u64) -> Vec<(Vec<Access>, Vec<Access>)> {
    let mut dice = Dice(7);
    let mut all = vec![(Vec::new(), Vec::new()); registers];
    // The times of the operations, by the middle of each.
    let mut operations: Vec<(i64, i64, i64, u32)> = Vec::with_capacity(OPERATIONS);
    let mut free = vec![0i64; clients as usize];
    for index in 0..OPERATIONS {
        let client = index % clients as usize;
        let start = free[client] + dice.below(1_000) as i64;
        let end = start + 50_000 + dice.below(500_000) as i64;
        free[client] = end + 1;
        operations.push((start + (end - start) / 2, start, end, client as u32));
    }
    operations.sort_unstable();
    let mut values: Vec<Vec<i64>> = vec![vec![0]; registers];
    for (value, (_, start, end, client)) in (1..).zip(operations) {
        let register = dice.below(registers as u64) as usize;
        let by = Clients { thread: client, actor: u64::from(client) / 2 };
        let at = Interval { start, end };
        let (writes, reads) = &mut all[register];
        let written = &mut values[register];
        if dice.below(2) == 0 {
            written.push(value);
            writes.push(Access { value, at, by });
        } else {
            let back = if dice.below(100) < stale_percent { 1 + dice.below(20) as usize } else { 0 };
            let value = written[written.len().saturating_sub(1 + back)];
            reads.push(Access { value, at, by });
        }
    }
    all
}

fn built(all: &[(Vec<Access>, Vec<Access>)]) -> Vec<History> {
    all.iter().map(|(writes, reads)| History::new(writes.clone(), reads.clone())).collect()
}

fn benches(c: &mut Criterion) {
    for (registers, clients) in [(1, 4), (1, 64), (1_000, 16), (100_000, 64)] {
        for stale_percent in [0, 5] {
            let input = histories(registers, clients, stale_percent);
            let built = built(&input);
            let linearizable = built.iter().filter(|history| Gamma::of(&history.clusters()).is_linearizable()).count();
            assert_eq!(linearizable == registers, stale_percent == 0, "{linearizable} of {registers}");
            let mut group =
                c.benchmark_group(format!("{registers} registers, {clients} clients, {stale_percent}% stale"));
            group.throughput(Throughput::Elements(OPERATIONS as u64)).sample_size(10);
            group.bench_function("linearizability and Γ", |b| {
                b.iter_batched(
                    || input.clone(),
                    |input| {
                        for (writes, reads) in input {
                            black_box(Gamma::of(&History::new(writes, reads).clusters()));
                        }
                    },
                    BatchSize::LargeInput,
                );
            });
            group.bench_function("all metrics", |b| {
                b.iter_batched(
                    || input.clone(),
                    |input| {
                        for (writes, reads) in input {
                            black_box(Measured::of(History::new(writes, reads)));
                        }
                    },
                    BatchSize::LargeInput,
                );
            });
            let clusters: Vec<_> = built.iter().map(History::clusters).collect();
            let each: [(&str, &dyn Fn()); 6] = [
                ("Γ alone", &|| clusters.iter().for_each(|clusters| drop(black_box(Gamma::of(clusters))))),
                ("Δ alone", &|| clusters.iter().for_each(|clusters| _ = black_box(delta(clusters)))),
                ("k alone", &|| clusters.iter().for_each(|clusters| _ = black_box(K::of_broken(clusters)))),
                ("staleness alone", &|| built.iter().for_each(|history| drop(black_box(of_reads(history))))),
                ("t-visibility alone", &|| built.iter().for_each(|history| drop(black_box(of_writes(history))))),
                ("session guarantees alone", &|| {
                    built.iter().for_each(|history| _ = black_box((by_thread(history), by_actor(history))));
                }),
            ];
            for (name, work) in each {
                group.bench_function(name, |b| b.iter(work));
            }
            group.finish();
        }
    }
}

criterion_group!(all, benches);
criterion_main!(all);
