//! The digest of the state that sessions leave in a store, where they leave one state.

use std::path::Path;

use schemas::digest::StateDigest;
use schemas::manifest::Manifest;
use schemas::run::FragmentPosition;
use schemas::spec::SpecOf;
use schemas::vocabulary::kv::{Kv, Verb, WriteId};
use schemas::workload::kv::{Keys, KvWorkload, Values, dataset};

use crate::core::digest::DigestError;
use crate::core::maps::IdMap;

/// How many operations are read at a time.
const CHUNK_ROWS: usize = 16_384;

/// A record that sessions changed: for each field the write that it comes from, None for its initial
/// value.
struct Changed {
    exists: bool,
    fields: Vec<Option<WriteId>>,
}

/// The digest of the state that the sessions before a position leave of a fragment.
pub(crate) fn digest(
    spec: &SpecOf<KvWorkload>,
    manifest: &Manifest,
    folder: &Path,
    position: &FragmentPosition,
) -> Result<StateDigest, DigestError> {
    if spec.own.transactions.is_some() {
        return Err(DigestError::Undetermined { what: "a store may roll transactions back" });
    }
    if !spec.own.leaves_one_state(&spec.common) {
        return Err(DigestError::Undetermined {
            what: "writes of a record do not wait for each other; a specification with access.ordered_writes = true \
                   leaves one state",
        });
    }
    let data = &spec.own.data;
    let changed = changes(spec, manifest, folder, position)?;
    let (keys, values) = (Keys::new(data), Values::new(&spec.common, data));
    let mut digest = StateDigest::default();
    let mut texts = vec![String::new(); data.fields as usize];
    let mut add = |record: u64, fields: Option<&Changed>| {
        for (field, text) in texts.iter_mut().enumerate() {
            text.clear();
            match fields.and_then(|changed| changed.fields[field]) {
                Some(id) => values.written(id, 0, field as u32, text),
                None => values.initial(record, field as u32, text),
            }
        }
        digest.record(&keys.key(record), texts.iter().map(|text| text.as_bytes()));
    };
    for records in dataset::records(folder, position.fragment)? {
        for record in records? {
            if !changed.contains_key(&record) {
                add(record, None);
            }
        }
    }
    // The digest adds facts up, so the order of a map does not matter here.
    changed.iter().filter(|(_, changed)| changed.exists).for_each(|(record, changed)| add(*record, Some(changed)));
    Ok(digest)
}

fn changes(
    spec: &SpecOf<KvWorkload>,
    manifest: &Manifest,
    folder: &Path,
    position: &FragmentPosition,
) -> Result<IdMap<u64, Changed>, DigestError> {
    let mut changed: IdMap<u64, Changed> = IdMap::default();
    let mut reader = manifest.reader::<Kv>(folder, position.fragment, CHUNK_ROWS)?;
    let mut rows = Vec::with_capacity(CHUNK_ROWS);
    while reader.next_rows(&mut rows)? {
        for row in &rows {
            if row.session >= position.next_session {
                return Ok(changed);
            }
            let operation = row.operation;
            if operation.verb.reads() || !position.has_run(row.session) {
                continue;
            }
            let none = || Changed { exists: true, fields: vec![None; spec.own.data.fields as usize] };
            let record = changed.entry(operation.key).or_insert_with(none);
            record.exists = operation.verb != Verb::Delete;
            for (field, written) in record.fields.iter_mut().enumerate() {
                if operation.fields >> field & 1 == 1 {
                    *written = Some(operation.id);
                }
            }
        }
    }
    Ok(changed)
}
