//! How fast one thread generates operations, from the draw to the file.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use schemas::spec::Spec;
use tracegen::{GenerateOptions, generate};

const SESSIONS: u64 = 1_000_000;

fn bench(c: &mut Criterion) {
    let traces = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut group = c.benchmark_group("generate");
    group.sample_size(10).throughput(Throughput::Elements(SESSIONS));
    for name in ["quickstart", "bg-10-percent-writes"] {
        let mut spec = Spec::read(&traces.join(format!("{name}.toml"))).expect("a ready spec");
        spec.sessions = SESSIONS;
        let target = folder.path().join(name);
        let options = GenerateOptions { threads: 1, ..GenerateOptions::default() };
        group.bench_function(name, |b| b.iter(|| black_box(generate(&spec, &target, &options).expect("generates"))));
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
