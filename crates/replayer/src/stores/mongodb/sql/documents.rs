//! The rows of the data set as documents: one in each collection of their table.

use std::borrow::Cow;

use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::error::Error;
use mongodb::options::IndexOptions;
use mongodb::{Database, IndexModel};
use schemas::table::TableError;
use schemas::vocabulary::sql::physical::{Datum, Kind, Placed, Plan, Table, row_of};
use schemas::vocabulary::sql::values;
use schemas::workload::sql::dataset::{self, PRELOAD};
use schemas::workload::sql::rows::{Cell, Rows, read_rows, row_files};

use super::values::{bson, id};
use super::{LAYOUT, Mapped};
use crate::source::Source;
use crate::stores::HeldState;
use crate::stores::mongodb::batch::{Batches, DocumentError, fitting, in_batches};
use crate::stores::mongodb::load::Documents;

/// Values of a file of rows that are in memory.
const CELLS: usize = 64_000;

/// The tables of a trace set.
pub(super) struct DataSet(pub(super) Mapped);

/// The document of a row in a collection. `row` has a value for each column of the table.
pub(super) fn document(collection: &Placed, table: &Table, row: &[Datum]) -> Result<Document, String> {
    let value = |column: usize| bson(row.get(column).cloned().unwrap_or(Datum::Null));
    let mut document = Document::new();
    if let Some(id) = id(table, value)? {
        document.insert("_id", id);
    }
    for column in &collection.columns {
        document.insert(table.columns[*column].name.clone(), value(*column)?);
    }
    Ok(document)
}

impl DataSet {
    /// The documents of the rows of a fragment's files.
    fn of_files<'a>(&'a self, source: &'a Source, fragment: u32) -> Result<Vec<Batches<'a>>, DocumentError> {
        let mapping = &self.0.mapping;
        let names: Vec<&str> = mapping.tables.0.iter().map(|table| &table.name[..]).collect();
        let mut all: Vec<Batches<'a>> = Vec::new();
        for file in row_files(&source.folder, &source.manifest.files, fragment, &names) {
            let Some(place) = mapping.tables.find(&file.table) else { continue };
            let table = &mapping.tables.0[place];
            let own = mapping.collections.iter().filter(|collection| collection.table == place);
            for (number, collection) in own.enumerate() {
                let counted = u64::from(number == 0);
                let path = file.path.clone();
                let rows =
                    read_rows(&file.path, CELLS)?.flat_map(move |rows| documents(rows, collection, table, &path));
                let documents = rows.map(move |document| document.map(|document| (document, counted)));
                all.push(in_batches(collection.name.clone(), documents));
            }
        }
        Ok(all)
    }

    /// The documents of the statements that fill the tables.
    fn of_preload<'a>(&'a self, source: &'a Source) -> Result<Vec<Batches<'a>>, DocumentError> {
        let mapping = &self.0.mapping;
        let mut all: Vec<Batches<'a>> = Vec::new();
        for (place, collection) in mapping.collections.iter().enumerate() {
            let table = &mapping.tables.0[collection.table];
            let is_first = mapping.collections.iter().position(|one| one.table == collection.table) == Some(place);
            let path = source.folder.join(PRELOAD);
            let documents = dataset::preload(&source.folder, self.0.statements.len())?.flat_map(move |some| {
                let made = some.map_err(DocumentError::from).and_then(|some| {
                    let mut made = Vec::new();
                    for (number, parameters) in some {
                        let wrong = |why: String| {
                            let text = &self.0.statements[number as usize].text;
                            TableError::new(&path, format!("statement {number} {why}: {text}"))
                        };
                        match &mapping.plans[number as usize] {
                            Ok(Plan::Insert(insert)) if insert.table == collection.table => {
                                let parameters: Vec<Datum> = values(&parameters).map(Datum::of).collect();
                                for row in insert.rows(table, &parameters).map_err(wrong)? {
                                    made.push(raw(collection, table, &row).map_err(wrong)?);
                                }
                            }
                            Ok(Plan::Insert(_)) => {}
                            Ok(_) => return Err(wrong("fills no table with rows; write inserts".into()).into()),
                            Err(why) => return Err(wrong(why.clone()).into()),
                        }
                    }
                    Ok(made)
                });
                match made {
                    Ok(made) => made.into_iter().map(Ok).collect::<Vec<_>>(),
                    Err(error) => vec![Err(error)],
                }
            });
            let counted = u64::from(is_first);
            all.push(in_batches(collection.name.clone(), documents.map(move |made| checked(made?, counted))));
        }
        Ok(all)
    }
}

fn raw(collection: &Placed, table: &Table, row: &[Datum]) -> Result<RawDocumentBuf, String> {
    let document = document(collection, table, row)?;
    RawDocumentBuf::try_from(&document).map_err(|error| error.to_string())
}

fn checked(document: RawDocumentBuf, counted: u64) -> Result<(RawDocumentBuf, u64), DocumentError> {
    fitting("row", 0, document, "shorten its texts").map(|document| (document, counted))
}

/// The documents of some rows of a file.
fn documents(
    rows: Result<Rows, TableError>,
    collection: &Placed,
    table: &Table,
    path: &std::path::Path,
) -> Vec<Result<RawDocumentBuf, DocumentError>> {
    let rows = match rows {
        Ok(rows) => rows,
        Err(error) => return vec![Err(error.into())],
    };
    let places: Vec<Option<usize>> = rows.columns.iter().map(|name| table.column(name)).collect();
    let one = |cells: Vec<Cell>| raw(collection, table, &row_of(table, &places, cells)?);
    let wrong = |why: String| DocumentError::from(TableError::new(path, why));
    rows.rows.into_iter().map(|cells| one(cells).map_err(wrong)).collect()
}

impl Documents for DataSet {
    fn collections(&self) -> Vec<(Cow<'static, str>, Vec<IndexModel>)> {
        let mapping = &self.0.mapping;
        let mut seen = vec![false; mapping.tables.0.len()];
        let indexes = |collection: &Placed| {
            let table = &mapping.tables.0[collection.table];
            let keys = |columns: &[usize]| {
                columns.iter().map(|column| (table.columns[*column].name.clone(), Bson::Int32(1))).collect::<Document>()
            };
            let is_own = |path: &&Vec<usize>| !path.is_empty() && **path != table.key;
            let mut indexes: Vec<IndexModel> = collection
                .paths
                .iter()
                .filter(is_own)
                .map(|path| IndexModel::builder().keys(keys(path)).build())
                .collect();
            if !std::mem::replace(&mut seen[collection.table], true) {
                indexes.extend(table.unique.iter().map(|columns| unique(table, columns, keys(columns))));
            }
            (Cow::Owned(collection.name.clone()), indexes)
        };
        mapping.collections.iter().map(indexes).collect()
    }

    fn are_listed(&self) -> bool {
        true
    }

    fn loaded(&self, source: &Source) -> HeldState {
        HeldState::loaded(LAYOUT, self.0.design.clone(), source)
    }

    fn of_fragment<'a>(&'a self, source: &'a Source, fragment: u32) -> Result<Batches<'a>, DocumentError> {
        let mut all = self.of_files(source, fragment)?;
        if source.fragments().next() == Some(fragment) {
            all.extend(self.of_preload(source)?);
        }
        Ok(Box::new(all.into_iter().flatten()))
    }

    /// Which rows statements have touched is not known, so all of them are copied.
    async fn restore(&self, _: &Database, _: &Database, _: &HeldState) -> Result<bool, Error> {
        Ok(false)
    }
}

/// An index that no two rows have the same values in. As in SQL, NULL differs from NULL.
fn unique(table: &Table, columns: &[usize], keys: Document) -> IndexModel {
    let of_type = |column: &usize| {
        let kind = match table.columns[*column].kind {
            Kind::Integer => "long",
            Kind::Decimal => "decimal",
            Kind::Float | Kind::Float32 => "double",
            Kind::Text | Kind::Timestamp | Kind::Date => "string",
            Kind::Bytes => "binData",
        };
        (table.columns[*column].name.clone(), Bson::Document(doc! { "$type": kind }))
    };
    let some = columns.iter().map(of_type).collect::<Document>();
    let name = format!("unique_{}", table.names(columns.iter().copied()).join("_"));
    let options = IndexOptions::builder().unique(true).name(name).partial_filter_expression(some).build();
    IndexModel::builder().keys(keys).options(options).build()
}
