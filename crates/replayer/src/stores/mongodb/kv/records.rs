//! The records as documents: how they are made, read, counted and digested.

use std::borrow::Cow;
use std::collections::BTreeMap;

use mongodb::bson::raw::{CString, RawDocumentBuf};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, Document, RawBsonRef, RawDocument, doc};
use mongodb::error::{Error, Result};
use mongodb::{Database, IndexModel};
use schemas::digest::StateDigest;
use schemas::workload::kv::dataset;

use crate::source::Source;
use crate::stores::adoption;
use crate::stores::fields::{Fields, lacks_field};
use crate::stores::kv::KvData;
use crate::stores::mongodb::MongoDb;
use crate::stores::mongodb::batch::{Batches, DocumentError, fitting, in_batches};
use crate::stores::mongodb::collections::{DESIGN_OF_RECORDS, RECORDS};
use crate::stores::mongodb::load::Documents;
use crate::stores::mongodb::visit::visit;
use crate::stores::url::StoreUrl;
use crate::stores::{HeldState, StoreError};

/// What is counted.
const DOCUMENTS: &str = "documents of collection usertable";

/// The version of the documents. A store with another version must be loaded again.
const LAYOUT: u32 = 1;

/// Refuses a store that was loaded with other documents than these.
pub fn check(url: &StoreUrl, held: &HeldState) -> std::result::Result<(), StoreError> {
    held.check(url, LAYOUT, &[DESIGN_OF_RECORDS])
}

/// The documents of a data set.
pub struct Records;

impl Documents for Records {
    fn collections(&self) -> Vec<(Cow<'static, str>, Vec<IndexModel>)> {
        vec![(RECORDS.into(), Vec::new())]
    }

    fn loaded(&self, source: &Source) -> HeldState {
        let (name, value) = DESIGN_OF_RECORDS;
        HeldState::loaded(LAYOUT, BTreeMap::from([(name.to_string(), value.to_string())]), source)
    }

    fn of_fragment<'a>(&'a self, source: &'a Source, fragment: u32) -> std::result::Result<Batches<'a>, DocumentError> {
        let fields = Fields::of(source);
        let names: Vec<CString> = fields.names().iter().filter_map(|name| name.as_str().try_into().ok()).collect();
        let records = dataset::records(&source.folder, fragment)?.flat_map(|records| match records {
            Ok(records) => records.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        });
        let mut value = String::new();
        Ok(in_batches(
            RECORDS,
            records.map(move |record| {
                let record = record?;
                let mut document = RawDocumentBuf::new();
                document.append(mongodb::bson::raw::cstr!("_id"), fields.data.keys.key(record));
                for (field, name) in (0..).zip(&names) {
                    fields.data.initial(record, field, &mut value);
                    document.append(name, binary(&value));
                }
                let advice = "give the workload fewer or shorter fields";
                fitting("record", record, document, advice).map(|document| (document, 1))
            }),
        ))
    }

    /// The documents are small, and sessions insert and delete them: a copy is as fast.
    async fn restore(&self, _: &Database, _: &Database, _: &HeldState) -> Result<bool> {
        Ok(false)
    }
}

/// A value as YCSB writes it.
pub fn binary(value: &str) -> Binary {
    Binary { subtype: BinarySubtype::Generic, bytes: value.as_bytes().to_vec() }
}

/// The values of a record's fields, by their places; None for a field without a value.
pub fn values<'a>(document: &'a RawDocument, fields: &Fields) -> Result<Vec<Option<&'a [u8]>>> {
    let mut values = vec![None; fields.names().len()];
    for element in document {
        let (name, value) = element?;
        let Some(place) = fields.place(name.as_str().as_bytes()) else { continue };
        values[place as usize] = match value {
            RawBsonRef::Binary(binary) => Some(binary.bytes),
            RawBsonRef::String(text) => Some(text.as_bytes()),
            RawBsonRef::Null => None,
            other => {
                let message = format!("{} is of type {:?}, not binary", name.as_str(), other.element_type());
                return Err(Error::custom(message));
            }
        };
    }
    Ok(values)
}

/// Checks by counting that a freshly loaded store holds the data set.
pub async fn check_count(store: &MongoDb, database: &Database, source: &Source) -> std::result::Result<(), StoreError> {
    let counted = database.collection::<Document>(RECORDS).count_documents(doc! {}).await;
    let (found, expected) = (counted.map_err(|error| store.driver_failed(error))?, KvData::count(source));
    match found == expected {
        true => Ok(()),
        false => Err(StoreError::miscounted(&store.url, DOCUMENTS, found as i64, expected as i64, source)),
    }
}

/// The documents that are there, whatever tool has made them.
pub async fn found(store: &MongoDb, database: &Database) -> std::result::Result<adoption::Records, StoreError> {
    let documents = database.collection::<Document>(RECORDS);
    let found = async {
        let count = documents.count_documents(doc! {}).await?;
        let first = documents.find_one(doc! {}).sort(doc! { "_id": 1 }).await?;
        let example = first.and_then(|document| {
            let key = document.get("_id")?;
            Some(key.as_str().map_or_else(|| key.to_string(), str::to_string))
        });
        Ok(adoption::Records { what: DOCUMENTS, count, example })
    };
    found.await.map_err(|error: Error| store.driver_failed(error))
}

/// The digest of all records.
pub async fn digest(
    store: &MongoDb,
    database: &Database,
    source: &Source,
) -> std::result::Result<StateDigest, StoreError> {
    let fields = Fields::of(source);
    let mut digest = StateDigest::default();
    let visited = visit(database, RECORDS, |record| {
        let key = record.get_str("_id")?;
        let values = values(record, &fields)?.into_iter().zip(fields.names());
        let values = values.map(|(value, name)| value.ok_or_else(|| Error::custom(lacks_field(key, name))));
        digest.record(key, values.collect::<Result<Vec<&[u8]>>>()?);
        Ok(())
    });
    visited.await.map_err(|error| store.driver_failed(error))?;
    Ok(digest)
}
