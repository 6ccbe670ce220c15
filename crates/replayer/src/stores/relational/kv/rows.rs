//! The data set of a trace set as rows of the table.

use std::collections::BTreeSet;

use schemas::run::FragmentPosition;
use schemas::table::TableError;
use schemas::vocabulary::Operation;
use schemas::vocabulary::kv::Kv;
use schemas::workload::kv::dataset;

use super::super::Dialect;
use super::super::contents::{Batch, Batches, Contents, Table, Touched, Value};
use super::{LAYOUT, TABLE, column};
use crate::source::Source;
use crate::stores::HeldState;
use crate::stores::kv::KvData;

/// The most rows of a [`Batch`].
const ROWS_EACH: usize = 100;

/// The most bytes of payload of a [`Batch`], except for a single row.
const BYTES_EACH: usize = 1 << 20;

/// Operations that are read at a time.
const CHUNK: usize = 8192;

/// The temporary table of touched keys.
const TOUCHED: &str = "touched_keys";

/// The records of a trace set.
pub struct DataSet<'a> {
    source: &'a Source,
    data: KvData,
}

impl DataSet<'_> {
    /// Those of this trace set.
    pub fn of(source: &Source) -> DataSet<'_> {
        DataSet { source, data: KvData::of(source) }
    }

    fn row(&self, record: u64) -> Vec<Value> {
        let text = |field| {
            let mut text = String::new();
            self.data.initial(record, field, &mut text);
            Value::Text(text)
        };
        let key = Value::Text(self.data.keys.key(record));
        std::iter::once(key).chain((0..self.data.data.fields).map(text)).collect()
    }
}

impl Contents for DataSet<'_> {
    fn source(&self) -> &Source {
        self.source
    }

    fn loaded(&self) -> HeldState {
        HeldState::loaded(LAYOUT, Default::default(), self.source)
    }

    fn tables(&self, dialect: &Dialect) -> Vec<Table> {
        let mut creation = format!("CREATE TABLE {TABLE} (YCSB_KEY {} PRIMARY KEY", dialect.key);
        let kind = (dialect.value)(self.data.data.field_bytes);
        for field in 0..self.data.data.fields {
            creation += &format!(", {} {kind}", column(field));
        }
        vec![Table { name: TABLE.into(), creation: creation + ")" }]
    }

    fn indexes(&self) -> Vec<String> {
        Vec::new()
    }

    fn rows(&self, fragment: u32) -> Result<Batches<'_>, TableError> {
        let row_bytes = self.data.data.fields as usize * self.data.data.field_bytes as usize;
        let rows_each = (BYTES_EACH / row_bytes).clamp(1, ROWS_EACH);
        let pieces = dataset::records(&self.source.folder, fragment)?.flat_map(move |records| match records {
            Ok(records) => records.chunks(rows_each).map(|some| Ok(some.to_vec())).collect(),
            Err(error) => vec![Err(error)],
        });
        Ok(Box::new(pieces.map(move |piece| {
            let records = piece?;
            let rows_of_data_set = records.len() as u64;
            Ok(Batch {
                table: TABLE.into(),
                rows: records.iter().map(|one| self.row(*one)).collect(),
                rows_of_data_set,
            })
        })))
    }

    fn touched(&self, dialect: &Dialect, positions: &[FragmentPosition]) -> Result<Vec<Touched>, TableError> {
        let mut records = BTreeSet::new();
        for position in positions.iter().filter(|position| position.next_session > 0) {
            let mut reader = self.source.manifest.reader::<Kv>(&self.source.folder, position.fragment, CHUNK)?;
            let mut rows = Vec::new();
            'fragment: while reader.next_rows(&mut rows)? {
                for row in &rows {
                    if row.session >= position.next_session {
                        break 'fragment;
                    }
                    if row.operation.writes() {
                        records.insert(row.operation.key);
                    }
                }
            }
        }
        let rows = records.iter().map(|record| vec![Value::Text(self.data.keys.key(*record))]).collect();
        Ok(vec![Touched { table: TOUCHED, columns: &["a"], kind: dialect.key, rows }])
    }

    fn restoration(&self, to: &str, from: &str) -> Vec<String> {
        vec![
            format!("DELETE t FROM {TOUCHED} x JOIN {to}.{TABLE} t ON t.YCSB_KEY = x.a"),
            format!("INSERT INTO {to}.{TABLE} SELECT s.* FROM {TOUCHED} x JOIN {from}.{TABLE} s ON s.YCSB_KEY = x.a"),
        ]
    }
}
