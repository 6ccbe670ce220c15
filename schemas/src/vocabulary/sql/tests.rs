//! Operations, parameters and answers of the vocabulary.

use std::path::Path;

use arrow::array::Array;
use proptest::prelude::*;

use super::*;
use crate::trace::{Chunk, OperationsBuilder};
use crate::vocabulary::{Columns as _, Operation as _};

#[test]
fn an_operation_is_small() {
    assert!(size_of::<Operation>() <= 40);
}

#[test]
fn verbs_have_both_flags() {
    for (verb, reads, writes) in [(Verb::Query, true, false), (Verb::Update, false, true), (Verb::Call, true, true)] {
        assert_eq!(Verb::of(reads, writes), Some(verb));
        assert_eq!((verb.reads(), verb.writes()), (reads, writes));
    }
    assert_eq!(Verb::of(false, false), None);
}

fn picks() -> impl Strategy<Value = Pick> {
    prop_oneof![Just(Pick::First), Just(Pick::Middle), Just(Pick::Last), (0..=Pick::NTH_MAX).prop_map(Pick::Nth),]
}

fn values() -> impl Strategy<Value = Parameter<'static>> {
    prop_oneof![
        Just(Parameter::Value(Value::Null)),
        any::<i64>().prop_map(|number| Parameter::Value(Value::Integer(number))),
        Just(Parameter::Value(Value::Float(-0.25))),
        Just(Parameter::Value(Value::Text("it's; `ü`"))),
        Just(Parameter::Value(Value::Bytes(&[0, 255, 1]))),
        Just(Parameter::Value(Value::Decimal("12.50"))),
        Just(Parameter::Value(Value::Timestamp("2016-05-16 01:02:03"))),
        Just(Parameter::Value(Value::Date("2016-05-16"))),
        Just(Parameter::Value(Value::Unknown("{1,2}"))),
        (any::<u16>(), picks()).prop_map(|(step, pick)| Parameter::Result(ResultOf {
            kind: Type::Integer,
            step,
            column: 3,
            pick
        })),
    ]
}

proptest! {
    /// Parameters come back as they went in, wherever a chunk is split.
    #[test]
    fn parameters_survive_a_trace(
        sessions in prop::collection::vec((prop::collection::vec(values(), 0..4), any::<bool>()), 1..8),
        at in 0usize..8,
    ) {
        let mut builder = OperationsBuilder::<Sql>::new(["kind"]);
        for (session, (parameters, kept)) in sessions.iter().enumerate() {
            let custom: &[&str] = if *kept { &["QUORUM"] } else { &[] };
            let operation =
                Operation::statement(Verb::Query, session as u32, parameters, custom, builder.variable()).unwrap();
            let operation = if *kept { operation.kept() } else { operation };
            builder.push(&TraceRow::plain(session as u64, 0, operation, 0));
        }
        let mut chunk = Chunk::<Sql>::default();
        chunk.add(&builder.finish(), Path::new("a.parquet")).unwrap();
        let at = at.min(sessions.len());
        let rest = chunk.split_off(at);
        let rest = rest.only(|_| true);
        for (session, (parameters, kept)) in sessions.iter().enumerate() {
            let (chunk, row) = if session < at { (&chunk, session) } else { (&rest, session - at) };
            let operation = chunk.operation(row);
            prop_assert_eq!(operation.statement, session as u32);
            prop_assert_eq!(operation.is_kept, *kept);
            let (own, custom) = chunk.columns().bytes(&operation);
            let found: Vec<Parameter> = decode(own).collect::<Result<_, _>>().unwrap();
            prop_assert_eq!(&found, parameters);
            prop_assert_eq!(decode(custom).count(), usize::from(*kept));
        }
    }

    /// Bytes from elsewhere never panic.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = decode(&bytes).collect::<Vec<_>>();
    }
}

fn text(write: impl FnOnce(&mut String)) -> String {
    let mut text = String::new();
    write(&mut text);
    text
}

#[test]
fn numbers_have_one_text_in_all_databases() {
    for (digits, expect) in [
        ("482.50", "482.5"),
        (".5656", "0.5656"),
        ("0982192511.53", "982192511.53"),
        ("-0.00", "0"),
        ("002", "2"),
        ("-1.10", "-1.1"),
        ("100", "100"),
    ] {
        assert_eq!(text(|text| canonical::decimal(digits, text)), expect);
    }
    for (number, expect) in [
        (5.0, "5"),
        (0.1, "0.1"),
        (-0.0, "0"),
        (6177267671.3, "6177267671.3"),
        (1e21, "1000000000000000000000"),
        (64.01 - 4.5, "59.51"),
        (2.5e-7, "0.00000025"),
        (-1234.5, "-1234.5"),
        (0.5, "0.5"),
    ] {
        assert_eq!(text(|text| canonical::float(number, text)), expect);
    }
    assert_eq!(text(|text| canonical::float32(0.1, text)), "0.1");
}

#[test]
fn texts_and_times_have_one_text_in_all_databases() {
    for (content, expect) in [
        ("AB  ", "AB"),
        ("2016-05-16 00:00:00", "2016-05-16"),
        ("2016-05-16 00:00:01", "2016-05-16 00:00:01"),
        ("x016-05-16 00:00:00", "x016-05-16 00:00:00"),
    ] {
        assert_eq!(text(|text| canonical::string(content, text)), expect);
    }
    for (days, expect) in [(0, (1970, 1, 1)), (-1, (1969, 12, 31)), (16_937, (2016, 5, 16)), (11_016, (2000, 2, 29))] {
        assert_eq!(canonical::date_of(days), expect);
    }
    assert_eq!(text(|text| canonical::timestamp((2016, 5, 16), 3_723_500_000, text)), "2016-05-16 01:02:03.5");
    assert_eq!(text(|text| canonical::timestamp((2016, 5, 16), 0, text)), "2016-05-16");
    assert_eq!(text(|text| canonical::bytes(&[0, 171], text)), "\\x00ab");
    assert_eq!(text(|text| canonical::bytes(b"AB ", text)), "AB");
}

fn answer(is_ordered: bool, is_kept: bool, rows: &[&[Option<&str>]]) -> Vec<i64> {
    let mut all = Rows::default();
    all.begin(is_ordered, is_kept);
    for row in rows {
        for value in *row {
            match value {
                None => all.null(),
                Some(content) => all.value(|text| canonical::string(content, text)),
            }
        }
        all.end_row();
    }
    let mut observed = Vec::new();
    all.finish(&mut observed);
    observed
}

#[test]
fn the_order_of_rows_counts_only_where_a_statement_orders_them() {
    let (a, b): (&[_], &[_]) = (&[Some("a"), None], &[Some("b"), Some("")]);
    assert_eq!(answer(false, false, &[a, b]), answer(false, false, &[b, a]));
    assert_ne!(answer(true, false, &[a, b]), answer(true, false, &[b, a]));
    assert_ne!(answer(false, false, &[a]), answer(false, false, &[b]));
    // Neither NULL and an empty text nor the borders of values are mixed up.
    assert_ne!(answer(false, false, &[&[None]]), answer(false, false, &[&[Some("")]]));
    assert_ne!(answer(false, false, &[&[Some("ab"), Some("")]]), answer(false, false, &[&[Some("a"), Some("b")]]));
    assert_eq!(answer(false, false, &[]), [0, EMPTY]);
}

#[test]
fn a_later_step_gets_a_column_of_a_kept_result() {
    let observed = answer(true, true, &[&[Some("7"), Some("x")], &[Some("8"), None], &[Some("9"), Some("z")]]);
    let mut memory = Memory::default();
    let query = Operation { step: 3, ..Operation::statement(Verb::Query, 0, &[], &[], &mut Vec::new()).unwrap() };
    Sql::remember(&mut memory, &query, &observed);
    let wanted = |step, column, pick, kind| ResultOf { kind, step, column, pick };
    let first = wanted(3, 0, Pick::First, Type::Integer);
    assert!(memory.results.value(first).is_err(), "the result is not kept");
    Sql::remember(&mut memory, &query.kept(), &observed);
    assert_eq!(memory.results.value(first), Ok(Value::Integer(7)));
    assert_eq!(memory.results.value(wanted(3, 1, Pick::Middle, Type::Text)), Ok(Value::Null));
    assert_eq!(memory.results.value(wanted(3, 1, Pick::Last, Type::Text)), Ok(Value::Text("z")));
    assert_eq!(memory.results.value(wanted(3, 0, Pick::Nth(1), Type::Integer)), Ok(Value::Integer(8)));
    assert_eq!(memory.results.value(wanted(3, 0, Pick::Nth(3), Type::Integer)), Ok(Value::Null));
    assert!(memory.results.value(wanted(3, 1, Pick::Last, Type::Integer)).is_err());
    assert!(memory.results.value(wanted(3, 2, Pick::First, Type::Integer)).is_err());
    assert!(memory.results.value(wanted(2, 0, Pick::First, Type::Integer)).is_err());
    // A result without rows is NULL, as a subquery without rows is.
    let empty = Operation { step: 4, ..query.kept() };
    Sql::remember(&mut memory, &empty, &answer(true, true, &[]));
    assert_eq!(memory.results.value(wanted(4, 0, Pick::Middle, Type::Integer)), Ok(Value::Null));
    // The core replaces it before the store gets the request.
    let mut builder = OperationsBuilder::<Sql>::new(["kind"]);
    let parameters = [Parameter::Result(first), Parameter::Value(Value::Text("t"))];
    let operation = Operation::statement(Verb::Update, 1, &parameters, &["ONE"], builder.variable()).unwrap();
    builder.push(&TraceRow::plain(0, 0, operation, 0));
    let mut chunk = Chunk::<Sql>::default();
    chunk.add(&builder.finish(), Path::new("a.parquet")).unwrap();
    let operation = chunk.operation(0);
    let request = Sql::request(&operation, chunk.columns(), &mut memory).unwrap();
    assert_eq!(request.values().collect::<Vec<_>>(), [Value::Integer(7), Value::Text("t")]);
    assert_eq!(request.custom().collect::<Vec<_>>(), ["ONE"]);
    Sql::forget(&mut memory);
    assert!(Sql::request(&operation, chunk.columns(), &mut memory).is_err());
}

#[test]
fn operations_begin_and_end_transactions() {
    for control in [Control::Begin, Control::Commit, Control::Abort] {
        let operation = Operation::of_transaction(control);
        assert_eq!((operation.control(), operation.reads(), operation.writes()), (Some(control), false, false));
    }
    assert_eq!(Columns::arrays(&[Operation::of_transaction(Control::Begin)])[0].null_count(), 1);
}
