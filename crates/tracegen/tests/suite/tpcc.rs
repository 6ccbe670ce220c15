//! Tests of the family's trace sets.

use std::path::Path;

use schemas::manifest::Manifest;
use schemas::spec::Spec;
use schemas::trace::Chunk;
use schemas::vocabulary::sql::text::Dialect;
use schemas::vocabulary::sql::{Operation, Parameter, Sql, Type, Value, Verb, decode, read_statements};
use schemas::workload::sql::checks::{When, read_checks};
use schemas::workload::sql::rows::{Cell, read_rows};
use schemas::workload::tpcc::{Draws, TpccStatistics, TpccWorkload, draws_of, draws_path};
use tracegen::{GenerateOptions, generate};

const SMALL: &str = "name = 't'\nfamily = 'tpcc'\n[data]\nitems = 50\ncustomers = 30\n";

fn generated(folder: &Path, text: &str, settings: &[&str], threads: usize) -> Manifest {
    let settings: Vec<String> = settings.iter().map(|setting| setting.to_string()).collect();
    let spec = Spec::parse_with(text, "t.toml", &settings).unwrap();
    generate(&spec, folder, &GenerateOptions { threads, ..GenerateOptions::default() }).unwrap()
}

fn operations(folder: &Path, manifest: &Manifest, fragment: u32) -> Chunk<Sql> {
    let mut all = Chunk::default();
    let mut reader = manifest.reader::<Sql>(folder, fragment, 1_000).unwrap();
    while reader.append_chunk(&mut all).unwrap() {}
    all
}

fn rows(folder: &Path, table: &str) -> Vec<Vec<Cell>> {
    let path = folder.join(format!("dataset/fragment=0/{table}.parquet"));
    read_rows(&path, 30_000).unwrap().flat_map(|some| some.unwrap().rows).collect()
}

fn integer(cell: &Cell) -> i64 {
    match cell {
        Cell::Integer(number) => *number,
        other => panic!("{other:?} is no number"),
    }
}

fn text(cell: &Cell) -> &str {
    match cell {
        Cell::Text(text) => text,
        other => panic!("{other:?} is no text"),
    }
}

/// Clause 4.3.3.1. Only the loaded rows of one warehouse at full size take long, so orders are left out by `customers`.
#[test]
fn cardinalities_are_those_of_the_specification() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t.trace");
    let text = "name = 't'\nfamily = 'tpcc'\nsessions = 1\n[data]\nwarehouses = 2\ncustomers = 100\nitems = 500\n";
    let manifest = generated(&place, text, &[], 1);
    let rows_of = |table: &str| {
        let path = format!("dataset/fragment=0/{table}.parquet");
        manifest.files.iter().find(|file| file.path == path).map(|file| file.rows).unwrap()
    };
    let counts = ["warehouse", "district", "customer", "history", "orders", "new_order", "item", "stock"].map(rows_of);
    assert_eq!(counts, [2, 20, 2_000, 2_000, 2_000, 600, 500, 1_000]);
    let lines = rows_of("order_line") as f64 / 2_000.0;
    assert!((9.5..10.5).contains(&lines), "{lines}");
    assert_eq!(manifest.statistics_of::<TpccWorkload>().unwrap().sql.loaded_rows, Some(0));
    let whole: Spec = Spec::parse("name = 't'\nfamily = 'tpcc'\nsessions = 1\n", "t.toml").unwrap();
    let data = whole.workload::<TpccWorkload>().unwrap().data;
    assert_eq!((data.items, data.customers, data.delivered(), data.terminals), (100_000, 3_000, 2_100, 10));
}

#[test]
fn rows_are_filled_as_the_specification_says() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t.trace");
    let large = "name = 't'\nfamily = 'tpcc'\nsessions = 1\n[data]\nitems = 5000\ncustomers = 1200\n";
    generated(&place, large, &[], 1);
    let share = |count: usize, of: usize| 100.0 * count as f64 / of as f64;
    let items = rows(&place, "item");
    let originals = items.iter().filter(|row| text(&row[4]).contains("ORIGINAL")).count();
    assert!((8.5..11.5).contains(&share(originals, items.len())), "{originals}");
    assert!(
        items.iter().all(|row| (14..=24).contains(&text(&row[2]).len()) && (26..=50).contains(&text(&row[4]).len()))
    );
    let customers = rows(&place, "customer");
    let bad = customers.iter().filter(|row| text(&row[13]) == "BC").count();
    assert!((8.5..11.5).contains(&share(bad, customers.len())), "{bad}");
    assert_eq!((text(&customers[0][5]), text(&customers[999][5])), ("BARBARBAR", "EINGEINGEING"));
    assert_eq!(
        (text(&customers[0][16]), text(&customers[0][17]), text(&customers[0][14])),
        ("-10.00", "10.00", "50000.00")
    );
    assert!(
        customers.iter().all(|row| (300..=500).contains(&text(&row[20]).len()) && text(&row[10]).ends_with("11111"))
    );
    let orders = rows(&place, "orders");
    // Each customer of a district has one order, in a random order.
    let mut buyers: Vec<i64> = orders[..1_200].iter().map(|row| integer(&row[3])).collect();
    assert_ne!(buyers, (1..=1_200).collect::<Vec<_>>());
    buyers.sort_unstable();
    assert_eq!(buyers, (1..=1_200).collect::<Vec<_>>());
    assert!(orders[..1_200].iter().all(|row| (integer(&row[0]) > 840) == (row[5] == Cell::Null)));
    let lines = rows(&place, "order_line");
    let is_new = |row: &Vec<Cell>| integer(&row[0]) > 840;
    assert!(lines.iter().all(|row| is_new(row) == (row[6] == Cell::Null) && is_new(row) == (text(&row[8]) != "0.00")));
}

/// Clause 9.2.2.5, over a hundred thousand sessions.
#[test]
fn the_mix_keeps_the_rules_of_the_specification() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t.trace");
    // Few rows, so that the sessions take most of the time; two warehouses, so that some of them are remote.
    let settings = ["sessions=100000", "data.warehouses=2"];
    let manifest = generated(&place, SMALL, &settings, 1);
    let TpccStatistics { sql, draws } = manifest.statistics_of::<TpccWorkload>().unwrap();
    let rules = draws.rules(true);
    assert_eq!(rules.len(), 6);
    for rule in &rules {
        assert_eq!(rule.holds(), Some(true), "{rule:?}");
    }
    // The table of draws says the same session by session.
    let mut noted = Draws::default();
    for fragment in &manifest.fragments {
        let path = place.join(draws_path(fragment.fragment));
        noted.merge(&draws_of(&path, 0..fragment.sessions).unwrap());
    }
    assert_eq!(noted, draws);
    for (kind, least) in [("payment", 0.425), ("order_status", 0.037), ("delivery", 0.037), ("stock_level", 0.037)] {
        assert!(manifest.achieved_mix[kind] >= least, "{:?}", manifest.achieved_mix);
    }
    assert_eq!(manifest.transactions(), 100_000);
    assert_eq!(manifest.operations_by_name["abort"], draws.rollbacks);
    let uses: u64 = sql.uses.iter().sum();
    assert_eq!(uses + 200_000, manifest.operations());
    assert!(sql.uses.iter().all(|uses| *uses > 0), "{:?}", sql.uses);
    assert_eq!(manifest.active_threads_max, 20);
}

/// A new order gets its number from the district, its amounts from the prices, and everything in one transaction.
#[test]
fn a_new_order_uses_what_it_has_read() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t.trace");
    let manifest = generated(&place, SMALL, &["sessions=200", "mix={new_order=1}"], 1);
    let statements = read_statements(&place).unwrap();
    let all = operations(&place, &manifest, 0);
    let (mut rolled_back, mut lines) = (0, 0);
    for row in 0..all.len() {
        let operation: Operation = all.operation(row);
        let (bytes, _) = all.columns().bytes(&operation);
        let parameters: Vec<Parameter<'_>> = decode(bytes).map(Result::unwrap).collect();
        match operation.verb {
            Verb::Abort => rolled_back += 1,
            Verb::Begin | Verb::Commit => {}
            _ => {
                let statement = &statements[operation.statement as usize];
                if statement.name == "new order: line" {
                    lines += 1;
                    let kinds: Vec<Option<Type>> = parameters
                        .iter()
                        .map(|one| matches!(one, Parameter::Result(_)).then(|| one.kind()).flatten())
                        .collect();
                    assert_eq!(
                        (kinds[0], kinds[8], kinds[9]),
                        (Some(Type::Integer), Some(Type::Decimal), Some(Type::Text))
                    );
                    assert!(matches!(parameters[3], Parameter::Value(Value::Integer(1..=15))), "{parameters:?}");
                }
            }
        }
    }
    let draws = manifest.statistics_of::<TpccWorkload>().unwrap().draws;
    assert_eq!((draws.new_orders, draws.rollbacks), (200, rolled_back));
    assert!(lines > 1_500, "{lines}");
}

#[test]
fn bytes_depend_on_the_specification_alone_and_a_longer_trace_begins_with_the_shorter_one() {
    let folder = tempfile::tempdir().unwrap();
    let settings = ["sessions=3000", "data.warehouses=4", "fragments=3"];
    let place = |name: &str| folder.path().join(name);
    let one = generated(&place("a.trace"), SMALL, &settings, 1);
    let four = generated(&place("b.trace"), SMALL, &settings, 4);
    assert_eq!(one, four);
    assert_eq!(one.fragments.iter().map(|f| f.actors).collect::<Vec<_>>(), [20, 10, 10]);
    assert_eq!(one.fragments.iter().map(|f| f.sessions).sum::<u64>(), 3_000);
    let short = generated(&place("c.trace"), SMALL, &["sessions=1000", "data.warehouses=4", "fragments=3"], 2);
    assert_eq!(short.workload_id, one.workload_id);
    for fragment in 0..3 {
        let short = operations(&place("c.trace"), &short, fragment);
        let long = operations(&place("a.trace"), &one, fragment);
        for row in 0..short.len() {
            let (a, b) = (short.operation(row), long.operation(row));
            assert_eq!(short.columns().bytes(&a), long.columns().bytes(&b), "row {row}");
            assert_eq!((a.verb, a.statement, short.actor(row)), (b.verb, b.statement, long.actor(row)));
        }
    }
    // The rows of a warehouse do not depend on the fragments.
    let whole = generated(&place("d.trace"), SMALL, &["sessions=9", "data.warehouses=4"], 1);
    assert_ne!(whole.workload_id, one.workload_id);
    assert_eq!(rows(&place("d.trace"), "district")[..10], rows(&place("a.trace"), "district")[..10]);
}

/// Clause 5.2.5.7: keying and think times are between two sessions of a terminal.
#[test]
fn users_type_and_think_if_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let waits = |name: &str, settings: &[&str]| {
        let place = folder.path().join(name);
        let all: Vec<&str> = [&["sessions=4000", "mix={payment=1}"], settings].concat();
        let manifest = generated(&place, SMALL, &all, 1);
        let all = operations(&place, &manifest, 0);
        (0..all.len())
            .filter(|row| all.step(*row) == 0)
            .map(|row| f64::from(all.think_us(row)) / 1e6)
            .collect::<Vec<_>>()
    };
    assert!(waits("a.trace", &[]).iter().all(|wait| *wait == 0.0));
    assert!(waits("b.trace", &["waits.keying=true"]).iter().all(|wait| *wait == 3.0));
    let both = waits("c.trace", &["waits.keying=true", "waits.thinking=true"]);
    let mean = both.iter().sum::<f64>() / both.len() as f64;
    assert!((14.0..16.0).contains(&mean) && both.iter().all(|wait| (3.0..=123.0).contains(wait)), "{mean}");
}

#[test]
fn twelve_conditions_are_part_of_the_trace_set() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("t.trace");
    let manifest = generated(&place, SMALL, &["sessions=5"], 1);
    let checks = read_checks(&place, &manifest.files, Dialect::Logical).unwrap();
    let names: Vec<&str> = checks.iter().map(|check| &check.name[..]).collect();
    assert_eq!(names, (1..=12).map(|number| format!("3.3.2.{number}")).collect::<Vec<_>>());
    assert!(checks.iter().all(|check| check.when == When::Always));
    assert!(checks[10].title.starts_with("A district has 21 more orders"), "{}", checks[10].title);
}
