//! Every operation answers as a map does: on records that exist and on records that do not.

use std::collections::BTreeMap;

use replayer::source::Source;
use replayer::stores::OperationError;
use schemas::vocabulary::kv::{Found, Operation, Verb, WriteId};
use schemas::workload::kv::{Keys, KvWorkload, Values};

use super::subjects;

/// What the records are, by a map in the order of the keys: for each field whose value it is.
pub struct Model {
    keys: Keys,
    /// The values of fields.
    pub values: Values,
    fields: u32,
    records: BTreeMap<String, (u64, Vec<Option<WriteId>>)>,
}

impl Model {
    /// The records of a trace set's data set.
    pub fn of(source: &Source) -> Model {
        let workload = source.workload::<KvWorkload>();
        let keys = Keys::new(&workload.data);
        let first = workload.data.first_record;
        let records = first..first + workload.data.records;
        let fields = workload.data.fields;
        Model {
            keys,
            values: Values::new(&source.manifest.spec, &workload.data),
            fields,
            records: records.map(|record| (keys.key(record), (record, vec![None; fields as usize]))).collect(),
        }
    }

    /// What an operation has to return: the observed numbers and the bytes of payload. None if it
    /// has to fail.
    fn expect(&mut self, operation: &Operation) -> Option<(Vec<i64>, u64)> {
        let key = self.keys.key(operation.key);
        let places: Vec<u32> = (0..self.fields).filter(|field| operation.fields >> field & 1 == 1).collect();
        let mut seen = Vec::new();
        let mut bytes = 0;
        let mut see = |seen: &mut Vec<i64>, record: u64, ids: &[Option<WriteId>]| {
            for field in &places {
                let mut text = String::new();
                match ids[*field as usize] {
                    Some(id) => self.values.written(id, 0, *field, &mut text),
                    None => self.values.initial(record, *field, &mut text),
                }
                bytes += text.len() as u64;
            }
            let number = |field: &u32| (*field, ids[*field as usize].map_or(0, WriteId::number));
            Found::push(seen, places.iter().map(number));
        };
        match operation.verb {
            Verb::Read => {
                if let Some((record, ids)) = self.records.get(&key) {
                    see(&mut seen, *record, ids);
                }
            }
            Verb::Scan => {
                for (_, (record, ids)) in self.records.range(key..).take(operation.length as usize) {
                    seen.push(self.keys.number(*record) as i64);
                    see(&mut seen, *record, ids);
                }
            }
            Verb::Insert if self.records.contains_key(&key) => return None,
            Verb::Insert => {
                let ids = vec![Some(operation.id); self.fields as usize];
                self.records.insert(key, (operation.key, ids));
            }
            Verb::Update => {
                let (_, ids) = self.records.get_mut(&key)?;
                places.iter().for_each(|field| ids[*field as usize] = Some(operation.id));
            }
            Verb::Delete => drop(self.records.remove(&key)?),
            Verb::Begin | Verb::Commit | Verb::Abort => {}
        }
        Some((seen, bytes))
    }
}

/// Operations of each kind on records that exist and records that do not.
fn operations(fields: u32, records: u64, has_scans: bool) -> Vec<Operation> {
    let mut state = 17u64;
    let mut draw = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let all = (1u64 << fields) - 1;
    let one = |session: u64, draw: &mut dyn FnMut(u64) -> u64| {
        let verb = Verb::ALL[draw(if has_scans { 5 } else { 4 }) as usize];
        let some = [all, draw(all) + 1][draw(2) as usize];
        Operation {
            verb,
            // Some are not in the data set.
            key: draw(records * 5 / 4),
            fields: if matches!(verb, Verb::Insert | Verb::Delete) { all } else { some },
            length: if verb == Verb::Scan { 1 + draw(30) as u32 } else { 0 },
            id: WriteId::new(0, session, 0),
            amount: 0,
        }
    };
    (0..2_000).map(|session| one(session, &mut draw)).collect()
}

#[test]
fn operations_answer_as_a_map_does() {
    let settings = ["data.records=60", "data.field_length=\"uniform\"", "data.field_bytes_min=20", "sessions=1"];
    subjects::each(&settings, |place, subject, has_scans| {
        let (url, subject) = (subject.url.clone(), subject.loaded(&place.source));
        let mut client = subject.connect(&place.source);
        let mut model = Model::of(&place.source);
        let mut failed = [0; 5];
        for operation in operations(4, 60, has_scans) {
            match (client.execute(&operation), model.expect(&operation)) {
                (Ok(answer), Some((seen, bytes))) => {
                    assert_eq!(answer.values, seen, "{url}: {operation:?}");
                    assert_eq!(answer.payload_bytes, bytes, "{url}: {operation:?}");
                }
                (Err(OperationError::Failed(why)), None) => {
                    let expect = if operation.verb == Verb::Insert { "exists already" } else { "does not exist" };
                    assert!(why.contains(expect), "{url}: {operation:?}: {why}");
                    failed[operation.verb as usize] += 1;
                }
                (found, expected) => panic!("{url}: {operation:?}: {found:?}, but expected {expected:?}"),
            }
        }
        assert!(failed[1..4].iter().all(|count| *count > 20), "{failed:?}");
    });
}
