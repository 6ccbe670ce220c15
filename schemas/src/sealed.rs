//! The sealed tables: the log of an experiment joined with its trace, and the
//! unpredictable reads found in it.
//!
//! Both are Hive-partitioned by `experiment` and `fragment`, which are
//! therefore not columns of the files.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};

use crate::oplog::observed_item;
use crate::trace::{ACTOR, OPERATION, name_type};
use crate::vocabulary::{Columns, Vocabulary};

/// `operations`: one row per operation, in the order of `start_ns`.
pub fn operations_schema<V: Vocabulary>() -> SchemaRef {
    let mut fields = vec![
        Field::new("session", DataType::Int64, false),
        Field::new("step", DataType::Int16, false),
        Field::new("txn", DataType::Int16, true),
        Field::new("try", DataType::Int16, false),
        Field::new("kind", name_type(), false),
        Field::new(OPERATION, name_type(), false),
        Field::new(ACTOR, DataType::Int64, false),
    ];
    fields.extend(V::Columns::fields());
    fields.extend([
        Field::new("after", DataType::Int64, true),
        Field::new("thread", DataType::Int32, false),
        Field::new("due_ns", DataType::Int64, true),
        Field::new("start_ns", DataType::Int64, false),
        Field::new("end_ns", DataType::Int64, false),
        Field::new("response_ns", DataType::Int64, false),
        Field::new("waited_ns", DataType::Int64, false),
        Field::new("pool_wait_ns", DataType::Int64, false),
        Field::new("attempts", DataType::Int16, false),
        Field::new("outcome", name_type(), false),
        Field::new("error", DataType::Utf8, true),
        Field::new("observed", DataType::List(observed_item()), false),
        Field::new("unpredictable", DataType::Boolean, false),
        Field::new("warmup", DataType::Boolean, false),
        Field::new("drained", DataType::Boolean, false),
        Field::new("counts_as", name_type(), true),
        Field::new("snapshot_ns", DataType::Int64, true),
        Field::new("visible_ns", DataType::Int64, true),
        Field::new("try_end", name_type(), true),
    ]);
    Arc::new(Schema::new(fields))
}

/// `closing_reads`: one row per item that was read after the experiment, in the order of the
/// replayer. `violations` has what no correct store could have returned, as in [`UNPREDICTABLE`].
pub fn closing_reads_schema<V: Vocabulary>() -> SchemaRef {
    let mut fields = vec![Field::new(OPERATION, name_type(), false)];
    fields.extend(V::Columns::fields());
    fields.extend([
        Field::new("start_ns", DataType::Int64, false),
        Field::new("end_ns", DataType::Int64, false),
        Field::new("attempts", DataType::Int16, false),
        Field::new("outcome", name_type(), false),
        Field::new("error", DataType::Utf8, true),
        Field::new("observed", DataType::List(observed_item()), false),
        Field::new("unpredictable", DataType::Boolean, false),
        Field::new("violations", DataType::List(violation_item()), false),
    ]);
    Arc::new(Schema::new(fields))
}

/// The item field of the `violations` list.
pub fn violation_item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Struct(violation_fields()), false))
}

/// The fields of an entry of the `violations` list.
pub fn violation_fields() -> Fields {
    Fields::from(vec![
        Field::new("item", DataType::Utf8, false),
        Field::new("owner", DataType::Int64, false),
        Field::new("element", DataType::Int64, true),
        Field::new("observed", DataType::Int64, false),
        Field::new("low", DataType::Int64, false),
        Field::new("high", DataType::Int64, false),
    ])
}

/// `unpredictable`: one row for each data item that a read returned and that no correct store
/// could have returned.
///
/// `item` says what `observed`, `low` and `high` are; a correct store returns `low` to `high`. Each
/// family has its own items, and `shape` in common: the numbers of values, of an answer with another
/// number of values than the operation observes.
pub static UNPREDICTABLE: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("session", DataType::Int64, false),
        Field::new("step", DataType::Int16, false),
        Field::new(OPERATION, name_type(), false),
        Field::new("start_ns", DataType::Int64, false),
        Field::new("end_ns", DataType::Int64, false),
        Field::new("item", DataType::Utf8, false),
        Field::new("owner", DataType::Int64, false),
        Field::new("element", DataType::Int64, true),
        Field::new("observed", DataType::Int64, false),
        Field::new("low", DataType::Int64, false),
        Field::new("high", DataType::Int64, false),
        Field::new("warmup", DataType::Boolean, false),
        Field::new("drained", DataType::Boolean, false),
    ]))
});
