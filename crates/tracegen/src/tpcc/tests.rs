//! Tests of the family's trace sets.

use std::path::Path;

use schemas::manifest::Manifest;
use schemas::spec::Spec;
use schemas::trace::Chunk;
use schemas::vocabulary::sql::{Operation, Parameter, Sql, Type, Value, Verb, read_statements};
use schemas::workload::sql::checks::{When, read_checks};
use schemas::workload::tpcc::{TpccStatistics, TpccWorkload};
use schemas::workload::sql::rows::{Cell, read_rows};
use schemas::vocabulary::sql::text::Dialect;

use crate::{GenerateOptions, generate};

const SMALL: &str = "name = 't'\nfamily = 'tpcc'\n[data]\nitems = 50\ncustomers = 30\n";

fn generated(folder: &Path, text: &str, settings: &[&str], threads: usize) -> Manifest {
    let settings: Vec<String> = settings.iter().map(|setting| setting.to_string()).collect();
    let spec = Spec::parse_with(text, "t.toml", &settings).unwrap();
    generate(&spec, folder, &GenerateOptions { threads, ..GenerateOptions::default() }).unwrap()
}

fn operations(folder: &Path, manifest: &Manifest, fragment: u32) -> Chunk<Sql> {
    let mut all = Chunk::default();
    for chunk in manifest.reader::<Sql>(folder, fragment, 1_000).unwrap() {
        let chunk = chunk.unwrap();
        (0..chunk.len()).for_each(|row| all.push_from(&chunk, row));
    }
    all
}

fn rows(folder: &Path, table: &str) -> Vec<Vec<Cell>> {
    let path = folder.join(format!("dataset/fragment=0/{table}.parquet"));
    read_rows(&path, 30_000).unwrap().flat_map(|some| some.unwrap().rows).collect()
}
