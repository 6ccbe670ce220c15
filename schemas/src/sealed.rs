//! The sealed tables: the log of an experiment joined with its trace, and the
//! unpredictable reads found in it.
//!
//! Both are Hive-partitioned by `experiment` and `fragment`, which are
//! therefore not columns of the files.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::oplog::observed_item;
use crate::trace::name_type;

/// `operations`: one row an operation, in the order of `start_ns`.
pub static OPERATIONS: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("session", DataType::Int64, false),
        Field::new("step", DataType::Int16, false),
        Field::new("kind", name_type(), false),
        Field::new("action", name_type(), false),
        Field::new("socialite", DataType::Int64, false),
        Field::new("target", DataType::Int64, false),
        Field::new("comment", DataType::Int64, true),
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
    ]))
});

/// `unpredictable`: one row for each data item that a read returned and no
/// correct store could have.
///
/// `item` is `friend_count`, `pending_count` or `resource_count` (then
/// `observed`, `low` and `high` are values), `friends`, `pending` or `comments`
/// (then `element` is the member or comment, and the three are 1 for present
/// and 0 for absent, `observed` above 1 for listed more than once), `top_k`
/// (then `element` is the place in the list, from 0, and the three are resource
/// ids, -1 for none), or `shape` (the answer has another number of values than
/// the action observes: `observed` is how many, `low` and `high` how many it
/// should have been).
pub static UNPREDICTABLE: LazyLock<SchemaRef> = LazyLock::new(|| {
    Arc::new(Schema::new(vec![
        Field::new("session", DataType::Int64, false),
        Field::new("step", DataType::Int16, false),
        Field::new("action", name_type(), false),
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
