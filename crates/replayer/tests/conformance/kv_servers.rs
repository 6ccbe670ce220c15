//! The stores on servers that serve `kv`: Redis, MongoDB and memcached.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use replayer::any_store::{self, AnyStore, Opened};
use replayer::experiment::{Control, Experiment};
use replayer::source::Source;
use replayer::stores::memcached::Memcached;
use replayer::stores::mongodb::MongoDb;
use replayer::stores::redis::Redis;
use replayer::stores::url::StoreUrl;
use replayer::stores::{Answer, Blame, Connection, HeldState, OperationError, RUNNING, Serves, StoreError};
use schemas::plan::{FragmentPlan, Limit, Plan};
use schemas::spec::Spec;
use schemas::vocabulary::kv::{Found, FoundRecords, Kv, Operation, Verb, WriteId};
use schemas::workload::kv::{Keys, KvWorkload, Values};

use crate::subjects::url_with;

/// Every kind of session but scans.
const POINTS: &str = "read = 30\nupdate = 30\ninsert = 15\ndelete = 8\nread_modify_write = 17\n";

/// A folder with a trace set.
struct Place {
    folder: tempfile::TempDir,
    source: Source,
}

impl Place {
    fn with(mix: &str, overrides: &[&str]) -> Place {
        let text = format!(
            "name = 'records'\nfamily = 'kv'\nsessions = 900\n[data]\nrecords = 240\nfields = 4\nfield_bytes = 40\n\
             field_bytes_min = 20\nfield_length = 'uniform'\n[access]\nread_all_fields = false\nscan_length_max = 12\n\
             ordered_writes = true\n[mix]\n{mix}"
        );
        let overrides: Vec<String> = overrides.iter().map(|text| text.to_string()).collect();
        let spec = Spec::parse_with(&text, "spec", &overrides).expect("a spec");
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join("t.trace");
        tracegen::generate(&spec, &trace, &tracegen::GenerateOptions::default()).expect("a trace set");
        Place { source: Source::open(&trace).expect("a trace set"), folder }
    }

    /// With scans if the store has them.
    fn of(subject: &Subject, overrides: &[&str]) -> Place {
        let scans = if subject.scans { "scan = 20\n" } else { "" };
        Place::with(&format!("{POINTS}{scans}"), overrides)
    }

    fn digest(&self, ran: tracegen::Ran) -> String {
        tracegen::digest(&self.source.folder, ran).expect("a digest").to_string()
    }

    fn experiment(&self, store: &str, threads: u32, name: &str) -> Experiment {
        let fragments = self.source.fragments().map(|fragment| FragmentPlan {
            fragment,
            first_session: 0,
            given_back: Vec::new(),
            warmup_sessions: 0,
        });
        let plan = Plan {
            format_version: schemas::RUN_FORMAT_VERSION,
            experiment: 1,
            trace: self.source.folder.clone(),
            trace_id: self.source.manifest.trace_id.clone(),
            store: store.to_string(),
            threads,
            workers: 2,
            limit: Limit::WholeTrace,
            fragments: fragments.collect(),
            unique_actors: true,
            closing_read: None,
        };
        let folder: PathBuf = self.folder.path().join(name);
        Experiment::prepare(plan, folder).expect("a plan")
    }
}

/// A store under test.
struct Subject {
    url: String,
    scans: bool,
    store: Box<dyn Connects>,
    /// Kept alive as long as the subject.
    _server: Option<Arc<servers::Server>>,
}

impl Subject {
    fn new<S: Serves<Kv>>(url: &str, scans: bool, open: impl Fn(StoreUrl) -> Result<S, StoreError>) -> Subject {
        let store = open(StoreUrl::parse(url).expect(url)).unwrap_or_else(|error| panic!("{error}"));
        Subject { url: url.to_string(), scans, store: Box::new(Opened::new(store).serving::<Kv>()), _server: None }
    }

    fn store(&self) -> &dyn AnyStore {
        self.store.any()
    }

    fn load(&self, source: &Source) {
        self.store().load(source, &|_, _| {}).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A number that no other test has: of a database of Redis.
fn number() -> u32 {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    CALLS.fetch_add(1, Ordering::Relaxed)
}

/// All stores under test; no two tests share a database.
fn all() -> Vec<Subject> {
    let mut subjects = Vec::new();
    if let Some(server) = servers::redis() {
        subjects.push(Subject::new(&server.url(&number().to_string()), true, Redis::open));
    }
    if let Some(server) = servers::mongodb() {
        for parameters in ["reset=copy&w=1&journal=false", "reset=reload&readConcernLevel=majority"] {
            let url = url_with(&server.url(&format!("encore_kv_{}_{}", std::process::id(), number())), parameters);
            subjects.push(Subject::new(&url, true, MongoDb::open));
        }
    }
    if let Some(server) = separate_memcached() {
        subjects.push(Subject {
            _server: Some(server.clone()),
            ..Subject::new(&memcached_url(&server), false, Memcached::open)
        });
    }
    subjects
}

/// memcached has no databases, so each test has a server of its own.
fn separate_memcached() -> Option<Arc<servers::Server>> {
    servers::Server::start(servers::Kind::Memcached, servers::Options::default()).map(Arc::new)
}

fn memcached_url(server: &servers::Server) -> String {
    format!("memcached://{}", server.address())
}

/// A connection of any kind.
trait Client {
    fn execute(&mut self, operation: &Operation) -> Result<Answer, OperationError>;
}

trait Connects {
    fn any(&self) -> &dyn AnyStore;
    fn connect(&self, source: &Source) -> Box<dyn Client>;
}

impl<S: Serves<Kv>> Connects for Opened<S> {
    fn any(&self) -> &dyn AnyStore {
        self
    }

    fn connect(&self, source: &Source) -> Box<dyn Client> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let connected = runtime.block_on(async {
            let store = self.store();
            if let Some(held) = store.held().await? {
                store.set_held(&HeldState { diverged: Some(RUNNING.to_string()), ..held }).await?;
            }
            store.connect(source, 0..1).await
        });
        let connection = connected.unwrap_or_else(|error| panic!("{error}")).pop().expect("one connection");
        Box::new(Driven { runtime, connection })
    }
}

struct Driven<C> {
    runtime: tokio::runtime::Runtime,
    connection: C,
}

impl<C: Connection<Kv>> Client for Driven<C> {
    fn execute(&mut self, operation: &Operation) -> Result<Answer, OperationError> {
        let mut answer = Answer::default();
        answer.clear();
        self.runtime.block_on(self.connection.execute(operation, &mut answer))?;
        Ok(answer)
    }
}

/// What the records are, by a map in the order of the keys: for each field whose value it is.
struct Model {
    keys: Keys,
    values: Values,
    fields: u32,
    records: BTreeMap<String, (u64, Vec<Option<WriteId>>)>,
}

impl Model {
    fn of(source: &Source) -> Model {
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
                    Some(id) => self.values.written(id, *field, &mut text),
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
        }
        Some((seen, bytes))
    }
}

/// Operations of each kind on records that exist and records that do not.
fn operations(fields: u32, records: u64, scans: bool) -> Vec<Operation> {
    let mut state = 17u64;
    let mut draw = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let all = (1u64 << fields) - 1;
    let one = |session: u64, draw: &mut dyn FnMut(u64) -> u64| {
        let verb = Verb::ALL[draw(if scans { 5 } else { 4 }) as usize];
        let some = [all, draw(all) + 1][draw(2) as usize];
        Operation {
            verb,
            // Some are not in the data set.
            key: draw(records * 5 / 4),
            fields: if matches!(verb, Verb::Insert | Verb::Delete) { all } else { some },
            length: if verb == Verb::Scan { 1 + draw(30) as u32 } else { 0 },
            id: WriteId::new(0, session, 0),
        }
    };
    (0..2_000).map(|session| one(session, &mut draw)).collect()
}

#[test]
fn kv_operations_answer_as_a_map_does() {
    for subject in all() {
        let place = Place::of(&subject, &["data.records=60"]);
        subject.load(&place.source);
        let mut client = subject.store.connect(&place.source);
        let mut model = Model::of(&place.source);
        let mut failed = [0; 5];
        for operation in operations(4, 60, subject.scans) {
            let url = &subject.url;
            match (client.execute(&operation), model.expect(&operation)) {
                (Ok(answer), Some((seen, bytes))) => {
                    assert_eq!(answer.values, seen, "{url}: {operation:?}");
                    assert_eq!(answer.payload_bytes, bytes, "{url}: {operation:?}");
                }
                (Err(OperationError::Failed(why)), None) => {
                    let expect = if operation.verb == Verb::Insert { "exists already" } else { "does not exist" };
                    assert!(why.contains(expect) && why.contains("user"), "{url}: {operation:?}: {why}");
                    failed[operation.verb as usize] += 1;
                }
                (found, expected) => panic!("{url}: {operation:?}: {found:?}, but expected {expected:?}"),
            }
        }
        assert!(failed[1..4].iter().all(|count| *count > 20), "{failed:?}");
    }
}

#[test]
fn kv_scans_are_in_order_and_have_limits() {
    for subject in all().into_iter().filter(|subject| subject.scans) {
        let place = Place::of(&subject, &["data.key_order='ordered'", "data.records=25", "data.fields=1"]);
        subject.load(&place.source);
        let mut client = subject.store.connect(&place.source);
        let mut scan = |key, length| {
            let operation = Operation { verb: Verb::Scan, key, fields: 1, length, id: WriteId::new(0, 0, 0) };
            let answer = client.execute(&operation).expect(&subject.url);
            let numbers = FoundRecords::new(&answer.values).map(|found| found.expect("a record").0);
            numbers.collect::<Vec<i64>>()
        };
        // The keys are texts.
        assert_eq!(scan(1, 5), [1, 10, 11, 12, 13], "{}", subject.url);
        assert_eq!(scan(23, 1), [23], "{}", subject.url);
        assert_eq!(scan(8, 1_000), [8, 9], "{}", subject.url);
        // From a record that is not there.
        assert_eq!(scan(199, 3), [2, 20, 21], "{}", subject.url);
        assert_eq!(scan(99, 3), [0; 0], "{}", subject.url);
        assert_eq!(scan(0, 1_000).len(), 25, "{}", subject.url);
    }
}

#[test]
fn kv_replays_leave_the_state_of_the_trace() {
    for subject in all() {
        let place = Place::of(&subject, &["fragments=2"]);
        let (source, url) = (&place.source, &subject.url);
        let digest = place.digest(tracegen::Ran::All);
        for threads in [1, 8] {
            subject.load(source);
            let loaded = subject.store().digest(source).expect(url).to_string();
            assert_eq!(loaded, place.digest(tracegen::Ran::First(0)), "{url}");
            let experiment = place.experiment(url, threads, &format!("run-{threads}"));
            subject.store().check(&experiment).expect(url);
            let report = subject.store().run(&experiment, &Control::default(), &mut |_| {}).expect(url);
            assert_eq!((report.failed, report.unknown, report.skipped), (0, 0, 0), "{url}");
            assert_eq!(subject.store().digest(source).expect(url).to_string(), digest, "{url}");
            for name in ["version", "durability", "isolation"] {
                assert!(report.store_settings.contains_key(name), "{url}: {:?}", report.store_settings);
            }
            let error = subject.store().check(&experiment).expect_err(url);
            assert_eq!(error.blame, Blame::State, "{error}");
        }
        subject.load(source);
        subject.store().check(&place.experiment(url, 1, "again")).expect(url);
    }
}

#[test]
fn kv_states_that_depend_on_the_order_of_writes_have_no_digest() {
    for subject in all() {
        let place = Place::of(&subject, &["access.ordered_writes=false"]);
        subject.load(&place.source);
        let error = subject.store().digest(&place.source).expect_err(&subject.url);
        assert_eq!(error.blame, Blame::Usage, "{error}");
        assert!(error.message.contains("access.ordered_writes = true"), "{error}");
    }
}

/// An unfinished load and another workload are replaced; nothing of them is left.
#[test]
fn kv_loads_replace_what_encore_has_loaded() {
    for subject in all() {
        let large = Place::of(&subject, &["data.records=300", "seed=3"]);
        let small = Place::of(&subject, &["data.records=20", "data.fields=2", "seed=4"]);
        subject.load(&large.source);
        let error = subject.store().check(&small.experiment(&subject.url, 1, "run")).expect_err(&subject.url);
        assert!(error.message.contains("contains workload"), "{error}");
        subject.load(&small.source);
        let digest = subject.store().digest(&small.source).expect(&subject.url).to_string();
        assert_eq!(digest, small.digest(tracegen::Ran::First(0)), "{}", subject.url);
        // A record is missing.
        let delete = Operation { verb: Verb::Delete, key: 3, fields: 3, length: 0, id: WriteId::new(0, 0, 0) };
        let held = small.experiment(&subject.url, 1, "missing");
        subject.store.connect(&small.source).execute(&delete).expect(&subject.url);
        assert!(subject.store().check(&held).is_err());
    }
}

fn refused<X>(result: Result<X, StoreError>, blame: Blame, words: &[&str]) {
    let error = result.err().expect("a refusal");
    assert_eq!(error.blame, blame, "{error}");
    for word in words {
        assert!(error.message.contains(word), "{error} lacks {word:?}");
    }
}

fn with_redis<X>(url: &str, work: impl AsyncFnOnce(redis::aio::MultiplexedConnection) -> X) -> X {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let client = redis::Client::open(url).expect(url);
        work(client.get_multiplexed_async_connection().await.expect("a connection")).await
    })
}

#[test]
fn kv_foreign_keys_in_redis_are_refused_and_unchanged() {
    let Some(server) = servers::redis() else { return };
    let place = Place::with(POINTS, &[]);
    let url = server.url(&number().to_string());
    let store = any_store::open(&url).expect(&url);
    let set = |key: &'static str| {
        with_redis(&url, async |mut link| redis::cmd("SET").arg(key).arg("42").exec_async(&mut link).await.expect(key));
    };
    let get = |key: &'static str| {
        with_redis(&url, async |mut link| {
            redis::cmd("GET").arg(key).query_async::<Option<String>>(&mut link).await.expect(key)
        })
    };
    set("precious");
    refused(store.load(&place.source, &|_, _| {}), Blame::Usage, &["1 keys that Encore has not made", "FLUSHDB"]);
    assert_eq!(get("precious").as_deref(), Some("42"));
    with_redis(&url, async |mut link| redis::cmd("DEL").arg("precious").exec_async(&mut link).await.expect("DEL"));
    store.load(&place.source, &|_, _| {}).expect(&url);
    // Also beside Encore's own keys.
    set("user7x");
    refused(store.load(&place.source, &|_, _| {}), Blame::Usage, &["contains the key \"user7x\""]);
    refused(store.digest(&place.source), Blame::Usage, &["contains the key \"user7x\""]);
    assert_eq!(get("user7x").as_deref(), Some("42"));
}

/// Records are hashes as YCSB stores them, and there is an index only for scans.
#[test]
fn kv_records_in_redis_are_those_of_ycsb() {
    let Some(server) = servers::redis() else { return };
    for scans in [false, true] {
        let place = Place::with(if scans { "read = 1\nscan = 1\n" } else { "read = 1\n" }, &[]);
        let url = server.url(&number().to_string());
        any_store::open(&url).expect(&url).load(&place.source, &|_, _| {}).expect(&url);
        with_redis(&url, async |mut link| {
            let mut asked = redis::pipe();
            asked
                .cmd("HGET")
                .arg("user6284781860667377211")
                .arg("field3")
                .cmd("DBSIZE")
                .cmd("ZCARD")
                .arg("encore:keys");
            let (value, keys, indexed): (String, u64, u64) = asked.query_async(&mut link).await.expect("answers");
            let mut expected = String::new();
            Model::of(&place.source).values.initial(0, 3, &mut expected);
            assert_eq!(value, expected);
            assert_eq!((keys, indexed), if scans { (242, 240) } else { (241, 0) });
        });
    }
}

/// Records are documents as YCSB stores them; fields that are texts are read too.
#[test]
fn kv_records_in_mongodb_are_those_of_ycsb() {
    let Some(server) = servers::mongodb() else { return };
    let place = Place::with("read = 1\n", &[]);
    let url = server.url(&format!("encore_kv_{}_{}", std::process::id(), number()));
    let subject = Subject::new(&url, true, MongoDb::open);
    subject.load(&place.source);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let digest = |source| subject.store().digest(source).expect(&url).to_string();
    let before = digest(&place.source);
    let key = "user6284781860667377211";
    let mut expected = String::new();
    Model::of(&place.source).values.initial(0, 3, &mut expected);
    runtime.block_on(async {
        let client = mongodb::Client::with_uri_str(&url).await.expect(&url);
        let database = client.default_database().expect("a database");
        let records = database.collection::<mongodb::bson::Document>("usertable");
        let which = mongodb::bson::doc! { "_id": key };
        let record = records.find_one(which.clone()).await.expect("an answer").expect("a record");
        assert_eq!(record.len(), 5);
        assert_eq!(record.get_binary_generic("field3").expect("binary"), expected.as_bytes());
        let change = mongodb::bson::doc! { "$set": { "field3": &expected } };
        assert_eq!(records.update_one(which, change).await.expect("an update").modified_count, 1);
    });
    let read = Operation { verb: Verb::Read, key: 0, fields: 8, length: 0, id: WriteId::new(0, 0, 0) };
    let answer = subject.store.connect(&place.source).execute(&read).expect(&url);
    assert_eq!((answer.values, answer.payload_bytes), (vec![0], expected.len() as u64));
    assert_eq!(digest(&place.source), before);
}

/// A database that holds the data set of one vocabulary can be loaded with that of another.
#[test]
fn kv_and_social_data_sets_replace_each_other_in_mongodb() {
    let Some(server) = servers::mongodb() else { return };
    let records = Place::with(POINTS, &[]);
    let members = crate::place::Place::with(crate::place::BUSY, &["sessions=1"]);
    let url = server.url(&format!("encore_kv_{}_{}", std::process::id(), number()));
    let store = any_store::open(&url).expect(&url);
    assert_eq!(store.vocabularies(), ["social", "kv"]);
    for _ in 0..2 {
        store.load(&records.source, &|_, _| {}).expect(&url);
        assert_eq!(store.positions(&records.source).expect(&url), []);
        refused(store.positions(&members.source), Blame::State, &["contains workload"]);
        store.load(&members.source, &|_, _| {}).expect(&url);
        refused(store.positions(&records.source), Blame::State, &["contains workload"]);
        assert_eq!(store.digest(&members.source).expect(&url).to_string(), members.digest(Some(0)));
    }
}

/// Sends a line to memcached, and reads what comes at once.
fn with_memcached(server: &servers::Server, request: &str, end: &str) -> String {
    let mut stream = std::net::TcpStream::connect(server.address()).expect("a connection");
    stream.write_all(request.as_bytes()).expect("a request is sent");
    let mut answer = String::new();
    while !answer.ends_with(end) {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).expect("an answer");
        assert!(count > 0, "{answer}");
        answer.push_str(std::str::from_utf8(&bytes[..count]).expect("text"));
    }
    answer
}

#[test]
fn kv_items_in_memcached_are_those_of_ycsb_and_foreign_ones_are_refused() {
    let Some(server) = separate_memcached() else { return };
    let place = Place::with(POINTS, &["data.fields=2", "data.field_length='constant'"]);
    let url = memcached_url(&server);
    let subject = Subject::new(&url, false, Memcached::open);
    assert_eq!(with_memcached(&server, "set precious 0 0 2\r\n42\r\n", "\r\n"), "STORED\r\n");
    let refuses = || {
        let load = subject.store().load(&place.source, &|_, _| {});
        refused(load, Blame::Usage, &["contains the item \"precious\"", "flush_all"]);
        assert!(with_memcached(&server, "get precious\r\n", "END\r\n").contains("\r\n42\r\n"));
    };
    refuses();
    assert_eq!(with_memcached(&server, "delete precious\r\n", "\r\n"), "DELETED\r\n");
    subject.load(&place.source);
    let item = with_memcached(&server, "get usertable-user6284781860667377211\r\n", "END\r\n");
    let mut expected = [String::new(), String::new()];
    let model = Model::of(&place.source);
    expected.iter_mut().zip(0..).for_each(|(text, field)| model.values.initial(0, field, text));
    let json = format!("{{\"field0\":\"{}\",\"field1\":\"{}\"}}", expected[0], expected[1]);
    assert_eq!(item.lines().nth(1), Some(json.as_str()), "{item}");
    // Also beside Encore's own items.
    assert_eq!(with_memcached(&server, "set precious 0 0 2\r\n42\r\n", "\r\n"), "STORED\r\n");
    refuses();
}

#[test]
fn kv_scans_of_memcached_are_refused_before_anything_starts() {
    let Some(server) = separate_memcached() else { return };
    let place = Place::with("read = 1\nscan = 1\n", &[]);
    let store = any_store::open(&memcached_url(&server)).expect("a store");
    let words = ["has no scans", "redis://", "mongodb://"];
    refused(store.load(&place.source, &|_, _| {}), Blame::Usage, &words);
    let items = with_memcached(&server, "stats\r\n", "END\r\n");
    assert!(items.contains("STAT curr_items 0\r\n"), "{items}");
}

/// Writers of different fields of one record do not undo each other, and say how often they tried.
#[test]
fn kv_updates_in_memcached_are_atomic() {
    let Some(server) = separate_memcached() else { return };
    let place = Place::with(POINTS, &["data.records=1", "fragments=1"]);
    let url = memcached_url(&server);
    let subject = Subject::new(&url, false, Memcached::open);
    subject.load(&place.source);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let store = Memcached::open(StoreUrl::parse(&url).expect("a URL")).expect("a store");
    let update = |field: u64, session| Operation {
        verb: Verb::Update,
        key: 0,
        fields: 1 << field,
        length: 0,
        id: WriteId::new(0, session, 0),
    };
    let attempts: u64 = runtime.block_on(async {
        let connections = store.connect(&place.source, 0..4).await.expect("connections");
        let writers = connections.into_iter().zip(0..).map(async |(mut connection, field)| {
            let mut attempts = 0;
            for session in 0..100 {
                let mut answer = Answer::default();
                answer.clear();
                connection.execute(&update(field, session), &mut answer).await.expect("an update");
                attempts += answer.attempts as u64;
            }
            attempts
        });
        futures::future::join_all(writers).await.into_iter().sum()
    });
    assert!(attempts > 400, "{attempts}");
    let read = Operation { verb: Verb::Read, fields: 15, ..update(0, 0) };
    let seen = subject.store.connect(&place.source).execute(&read).expect("a read").values;
    let last = WriteId::new(0, 99, 0).number();
    assert_eq!(seen, [15, last, last, last, last]);
}

/// A record that was evicted is missing: a check finds that, and the count of evictions says why.
#[test]
fn kv_evicted_records_are_noticed() {
    let options = servers::Options { arguments: &["-m", "2"], ..servers::Options::default() };
    let Some(server) = servers::Server::start(servers::Kind::Memcached, options) else { return };
    let place = Place::with(POINTS, &["data.records=3000", "data.field_bytes=4000", "data.field_bytes_min=4000"]);
    let store = any_store::open(&memcached_url(&server)).expect("a store");
    // The marker itself may be evicted too.
    store.load(&place.source, &|_, _| {}).expect("a load");
    let error = store.check(&place.experiment(&memcached_url(&server), 1, "run")).expect_err("a refusal");
    assert_eq!(error.blame, Blame::State, "{error}");
    assert!(error.message.contains("more memory (-m)") || error.message.contains("is not loaded"), "{error}");
}

#[test]
fn kv_times_to_live_are_checked_and_kept() {
    let Some(server) = servers::redis() else { return };
    let url = server.url(&number().to_string());
    let forever = Place::with(POINTS, &[]);
    let store = any_store::open(&url_with(&url, "ttl=500")).expect(&url);
    refused(any_store::open(&url_with(&url, "ttl=0")).map(drop), Blame::Usage, &["ttl: 0 is too few"]);
    let scanning = Place::with("scan = 1\n", &[]);
    refused(store.load(&scanning.source, &|_, _| {}), Blame::Usage, &["ttl does not go with scans"]);
    store.load(&forever.source, &|_, _| {}).expect(&url);
    let ttl = with_redis(&url, async |mut link| {
        redis::cmd("TTL").arg("user6284781860667377211").query_async::<i64>(&mut link).await.expect("TTL")
    });
    assert!((1..=500).contains(&ttl), "{ttl}");
    let plain = any_store::open(&url).expect(&url);
    refused(plain.positions(&forever.source), Blame::Usage, &["was loaded with ttl=500, the URL says ttl=none"]);
    let Some(server) = separate_memcached() else { return };
    let url = memcached_url(&server);
    let store = any_store::open(&url_with(&url, "ttl=500")).expect(&url);
    store.load(&forever.source, &|_, _| {}).expect(&url);
    let ttl = with_memcached(&server, "mg usertable-user6284781860667377211 t\r\n", "\r\n");
    let seconds = ttl.trim_end().strip_prefix("HD t").and_then(|ttl| ttl.parse::<i64>().ok());
    assert!(seconds.is_some_and(|seconds| (1..=500).contains(&seconds)), "{ttl}");
}

/// A write that was sent and has no answer may have happened; one that was not sent has not.
#[test]
fn kv_writes_to_a_lost_server_have_the_right_fate() {
    if let Some(server) = servers::Server::start(servers::Kind::Redis, servers::Options::default()) {
        let url = url_with(&server.url("0"), "timeout_ms=300");
        lose(&server, &Subject::new(&url, true, Redis::open));
    }
    if let Some(server) = separate_memcached() {
        let url = url_with(&memcached_url(&server), "timeout_ms=300");
        lose(&server, &Subject::new(&url, false, Memcached::open));
    }
}

fn lose(server: &servers::Server, subject: &Subject) {
    let place = Place::with(POINTS, &[]);
    subject.load(&place.source);
    let mut client = subject.store.connect(&place.source);
    let operation = |verb| Operation { verb, key: 5, fields: 15, length: 0, id: WriteId::new(0, 1, 0) };
    server.pause();
    let late = client.execute(&operation(Verb::Update));
    assert_eq!(late.err(), Some(OperationError::Unknown("timed out after 300 ms".into())));
    let read = client.execute(&operation(Verb::Read));
    assert!(matches!(read, Err(OperationError::Failed(_))), "{read:?}");
    server.resume();
    client.execute(&operation(Verb::Update)).expect("the server answers again");
    server.kill();
    let lost = client.execute(&operation(Verb::Update));
    assert!(matches!(lost, Err(OperationError::Unknown(_))), "{lost:?}");
    let unsent = client.execute(&operation(Verb::Update));
    assert!(matches!(&unsent, Err(OperationError::Failed(why)) if why.contains("cannot connect")), "{unsent:?}");
    // The new server has no scripts, and no data.
    server.restart();
    let missing = client.execute(&operation(Verb::Update));
    assert!(matches!(&missing, Err(OperationError::Failed(why)) if why.contains("does not exist")), "{missing:?}");
    client.execute(&operation(Verb::Insert)).expect("an insert");
    assert_eq!(client.execute(&operation(Verb::Read)).expect("a read").values.len(), 5);
}
