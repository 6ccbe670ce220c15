//! Operations a second of the validator and the figures on rows in memory, and of the whole
//! analysis from files to files.

#[path = "../tests/common/mod.rs"]
mod common;

use analyzer::family::social::initial::Initial;
use analyzer::family::social::items::SocialItems;
use analyzer::figures::Summary;
use analyzer::join::{Place, Row};
use analyzer::timeline::Measured;
use analyzer::validate::Validator;
use analyzer::{Keep, analyze_with};
use common::{Event, Fixture, World, simulate};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use schemas::social::{Operation, Social};
use schemas::vocabulary::Vocabulary;

const OPERATIONS: u64 = 1_000_000;

fn world() -> World {
    World::new(0, 10_000, 50)
}

fn initial(world: &World) -> Initial {
    let mut rows = |table, each: &mut dyn FnMut(&[u64])| {
        world.table(table).iter().for_each(|row| each(row));
        Ok(())
    };
    Initial::from_rows(&mut rows, &|table| table.name().to_string(), common::TOP_K as u32).unwrap()
}

fn in_memory(events: &[Event], order: &[usize], initial: Initial) -> Summary {
    let mut validator = Validator::new(SocialItems::new(initial));
    // One operation per microsecond.
    let elapsed_ns = 1000 * (OPERATIONS + 10);
    let measured = Measured { from_ns: 0, elapsed_ns, counted_ns: elapsed_ns, planned_ns: None };
    let mut summary = Summary::new(Social::KINDS, 100_000_000, measured);
    let mut drain = |validator: &mut Validator<SocialItems, Operation>, now| {
        while let Some(row) = validator.leave(now) {
            let observed = &events[row.log.session as usize].observed;
            summary.add(&row, validator.check(&row, observed).unwrap());
        }
    };
    for index in order {
        let event = &events[*index];
        drain(&mut validator, Some(event.log.start_ns));
        let row = Row {
            log: event.log,
            operation: event.operation,
            actor: event.operation.socialite,
            after: None,
            txn: None,
            kind: 0,
            noops: 0,
            warmup: false,
            drained: false,
            place: Place::default(),
            of_try: None,
        };
        validator.enter(row).unwrap();
    }
    drain(&mut validator, None);
    summary
}

fn benches(c: &mut Criterion) {
    for percent in [1, 10] {
        let start = world();
        let events = simulate(&mut start.clone(), 1, OPERATIONS, percent * 10);
        let mut order: Vec<usize> = (0..events.len()).collect();
        order.sort_by_key(|i| events[*i].log.start_ns);
        let figures = in_memory(&events, &order, initial(&start)).figures();
        assert_eq!((figures.overall.ok, figures.unpredictable_reads), (OPERATIONS, 0));

        let mut group = c.benchmark_group(format!("{percent}% writes"));
        group.throughput(Throughput::Elements(OPERATIONS)).sample_size(10);
        group.bench_function("validate and summarize in memory", |b| {
            b.iter_batched(|| initial(&start), |initial| in_memory(&events, &order, initial), BatchSize::LargeInput);
        });
        let mut fixture = Fixture::new(&[(start, events.clone())]);
        fixture.batch_rows = 8192;
        fixture.write_log(0, 0, &events, true);
        group.bench_function("analyze from files, sealed", |b| b.iter(|| fixture.analyze().unwrap()));
        group.bench_function("analyze from files, figures only", |b| {
            b.iter(|| analyze_with(&fixture.run, 1, None, Keep::Nothing, &|_| {}).unwrap());
        });
        group.finish();
    }
}

criterion_group!(all, benches);
criterion_main!(all);
