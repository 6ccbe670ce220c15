//! All decoders of outside input: files that teams share, what users type, what peers send. Each
//! decoder reads its input or refuses it. None panics, and none takes more memory than its input
//! justifies.
//!
//! `tests/mutations.rs` changes good input at random; `corpus/NAME/` keeps the inputs that once
//! broke the decoder NAME.

mod arrivals;
mod kv;
mod sealed;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ::parquet::arrow::ArrowWriter;
use arrow::array::RecordBatch;
use prost::Message;
use schemas::comparison::{ComparisonDocument, ComparisonPlan};
use schemas::latency::ResponseTimes;
use schemas::manifest::Manifest;
use schemas::oplog::{LogBuffer, LogColumns, LogCompression, LogHeader, LogReader, LogRow, LogWriter, Outcome};
use schemas::plan::{Plan, Warmup, redact};
use schemas::rpc;
use schemas::run::{ReplayReport, RunDocument};
use schemas::sla::Sla;
use schemas::social::Social;
use schemas::spec::Spec;
use schemas::trace::TraceRow;
use schemas::verdict::{RatingDocument, Verdict};
use schemas::vocabulary::Vocabulary;
use schemas::workload::social::dataset::Table;
use tempfile::TempDir;

/// A decoder of outside input.
#[derive(Clone, Copy)]
pub struct Decoder {
    /// Its name, and that of its folder in the corpus.
    pub name: &'static str,
    /// Good input.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Reads the input or refuses it.
    pub decode: fn(&[u8]),
}

/// All decoders.
pub const ALL: [Decoder; 19] = [
    Decoder { name: "spec", seeds: specs, decode: |bytes| with_text(bytes, |text| drop(Spec::parse(text, "a.toml"))) },
    Decoder { name: "expression", seeds: arrivals::expressions, decode: arrivals::decode_expression },
    Decoder { name: "rates", seeds: arrivals::rates, decode: arrivals::decode_rates },
    Decoder { name: "properties", seeds: properties, decode: decode_properties },
    Decoder { name: "url", seeds: urls, decode: |bytes| with_text(bytes, decode_url) },
    Decoder { name: "sla", seeds: slas, decode: |bytes| with_text(bytes, decode_sla) },
    Decoder { name: "comparison", seeds: comparisons, decode: |bytes| with_text(bytes, decode_comparison) },
    Decoder { name: "manifest", seeds: || vec![golden("manifest.json")], decode: decode_manifest },
    Decoder { name: "documents", seeds: documents, decode: decode_documents },
    Decoder { name: "operations", seeds: operations, decode: decode_operations },
    Decoder { name: "dataset", seeds: datasets, decode: decode_dataset },
    Decoder { name: "kv-operations", seeds: kv::operations, decode: kv::decode_operations },
    Decoder { name: "kv-records", seeds: kv::records, decode: kv::decode_records },
    Decoder { name: "log", seeds: logs, decode: decode_log },
    Decoder { name: "sealed", seeds: sealed::seeds, decode: sealed::decode },
    Decoder { name: "latency", seeds: latencies, decode: |bytes| drop(ResponseTimes::from_bytes(bytes)) },
    Decoder { name: "messages", seeds: messages, decode: decode_messages },
    Decoder { name: "steps", seeds: steps, decode: |bytes| with_text(bytes, decode_step) },
    Decoder { name: "terminal", seeds: terminals, decode: |bytes| with_text(bytes, decode_terminal) },
];

fn with_text(bytes: &[u8], read: impl FnOnce(&str)) {
    read(&String::from_utf8_lossy(bytes));
}

/// The stored trace set.
fn golden_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/golden.trace")
}

/// A file of the stored trace set.
fn golden(file: &str) -> Vec<u8> {
    let path = golden_folder().join(file);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// A folder for files that are read from a path.
static FOLDER: LazyLock<TempDir> =
    LazyLock::new(|| tempfile::tempdir().unwrap_or_else(|e| panic!("no temporary folder: {e}")));

/// Writes input to a file in a folder of the current thread, and reads it.
fn with_file(name: &str, bytes: &[u8], read: impl FnOnce(&Path, &Path)) {
    let folder = FOLDER.path().join(format!("{:?}", std::thread::current().id()));
    let path = folder.join(name);
    let parent = path.parent().unwrap_or(&folder);
    std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, bytes)).unwrap_or_else(|e| panic!("{e}"));
    read(&folder, &path);
}

fn specs() -> Vec<Vec<u8>> {
    let ready = [include_str!("../../../traces/quickstart.toml"), include_str!("../../../traces/bg-sessions.toml")];
    ready.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn properties() -> Vec<Vec<u8>> {
    let bg = "usercount=1000\nuseroffset=0\nresourcecountperuser=10\nfriendcountperuser=10\nconfperc=1\nnumloadthreads=10\n\
              ViewProfileAction=0.4\nListFriendsAction=0.1\nInviteFriendAction=0.5\nrequestdistribution=dzipfian\n";
    let ycsb = "recordcount=1000\noperationcount=1000000\nworkload=site.ycsb.workloads.CoreWorkload\n\
                readproportion=0.95\nupdateproportion=0.05\nrequestdistribution=zipfian\n";
    [bg, ycsb].map(|text| text.as_bytes().to_vec()).to_vec()
}

fn decode_properties(bytes: &[u8]) {
    let source = tracegen::properties::Source { file: "a.properties".into(), bytes: bytes.to_vec() };
    if let Ok(converted) = tracegen::properties::convert(&[source]) {
        let _ = converted.spec(&[]);
    }
}

fn urls() -> Vec<Vec<u8>> {
    let urls = [
        "memory:?latency_us=5000&servers=4&stale=0.01",
        "postgres://me:hush@db:5432/encore?sslmode=disable&images=none",
        "casql+mysql://me:hush@db/encore?memcached=10.0.0.1:11211&consistency=lease",
        "mongodb://me:hush@a:1,b:2/encore?replicaSet=r&w=majority",
        "null:",
    ];
    urls.map(|url| url.as_bytes().to_vec()).to_vec()
}

fn decode_url(text: &str) {
    // The text shown never contains the password of the seeds.
    let _ = redact(text);
    // A sqlite: URL would create a file.
    if !text.contains("sqlite") {
        drop(replayer::any_store::open(text));
    }
}

fn slas() -> Vec<Vec<u8>> {
    ["95% < 100ms, 0.1% unpredictable, 10s", "99.9% < 1s", "2000ops", "10%"]
        .map(|text| text.as_bytes().to_vec())
        .to_vec()
}

fn decode_sla(text: &str) {
    if let Ok(sla) = text.parse::<Sla>() {
        // What an SLA prints parses to the same SLA.
        assert_eq!(sla.to_string().parse::<Sla>().ok(), Some(sla), "{text:?}");
    }
    let _ = text.parse::<Warmup>();
}

fn comparisons() -> Vec<Vec<u8>> {
    vec![include_bytes!("../../../traces/figure-6.toml").to_vec()]
}

fn decode_comparison(text: &str) {
    let _ = ComparisonPlan::parse(text, "a.toml");
}

fn decode_manifest(bytes: &[u8]) {
    with_file("manifest.json", bytes, |folder, _| drop(Manifest::read(folder)));
}

fn documents() -> Vec<Vec<u8>> {
    let report = serde_json::to_vec(&ReplayReport::default()).unwrap_or_default();
    let spec = Spec::parse(include_str!("../../../traces/quickstart.toml"), "a").ok();
    vec![report, serde_json::to_vec(&spec).unwrap_or_default()]
}

fn decode_documents(bytes: &[u8]) {
    let _ = serde_json::from_slice::<Plan>(bytes);
    let _ = serde_json::from_slice::<RunDocument>(bytes);
    let _ = serde_json::from_slice::<Verdict>(bytes);
    let _ = serde_json::from_slice::<RatingDocument>(bytes);
    let _ = serde_json::from_slice::<ComparisonDocument>(bytes);
    let _ = serde_json::from_slice::<Spec>(bytes).map(|spec| spec.check("a"));
    if let Ok(report) = serde_json::from_slice::<ReplayReport>(bytes) {
        let _ = report.throughput_per_s();
    }
}

const GOLDEN_OPERATIONS: &str = "operations/fragment=0/part-00000.parquet";

fn operations() -> Vec<Vec<u8>> {
    vec![golden(GOLDEN_OPERATIONS)]
}

fn decode_operations(bytes: &[u8]) {
    static MANIFEST: LazyLock<Manifest> =
        LazyLock::new(|| Manifest::read(&golden_folder()).unwrap_or_else(|e| panic!("{e}")));
    with_file(GOLDEN_OPERATIONS, bytes, |folder, _| read_rows::<Social>(&MANIFEST, folder, |_| ()));
}

/// Reads the operations of the first fragment of a trace set, from the beginning and from the middle.
fn read_rows<V: Vocabulary>(manifest: &Manifest, folder: &Path, each: impl Fn(&TraceRow<V::Operation>)) {
    for first in [0, 7] {
        let reader = manifest.reader::<V>(folder, 0, 256).unwrap_or_else(|e| panic!("{e}"));
        let (mut reader, mut rows) = (reader.starting_at(first), Vec::new());
        while reader.next_rows(&mut rows).unwrap_or(false) {
            rows.iter().for_each(&each);
        }
    }
}

/// A table of the data set, small and with Arrow's schema in the file.
fn datasets() -> Vec<Vec<u8>> {
    let rows: Vec<Vec<i64>> = (0..2).map(|column| (0..60).map(|row| row * 3 + column).collect()).collect();
    vec![parquet(&Table::Friendships.batch(rows)), golden("dataset/fragment=0/friendships.parquet")]
}

/// A Parquet file with a batch, without compression.
fn parquet(batch: &RecordBatch) -> Vec<u8> {
    let mut file = Vec::new();
    let written = ArrowWriter::try_new(&mut file, batch.schema(), None)
        .and_then(|mut writer| writer.write(batch).and_then(|()| writer.close().map(drop)));
    written.unwrap_or_else(|e| panic!("{e}"));
    file
}

fn decode_dataset(bytes: &[u8]) {
    with_file("dataset/fragment=0/friendships.parquet", bytes, |folder, _| {
        let _ = Table::Friendships.for_each::<2>(folder, 0, |_| ());
    });
}

fn logs() -> Vec<Vec<u8>> {
    [LogCompression::None, LogCompression::Lz4, LogCompression::Zstd].map(log).to_vec()
}

fn log(compression: LogCompression) -> Vec<u8> {
    let header = LogHeader {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment: 1,
        fragment: 0,
        workload_id: "w".into(),
        first_session: 0,
        threads: 2,
        unwritten_rows_max: 0,
        aside_sessions_max: 0,
        started_unix_ns: 0,
    };
    let mut buffer = LogBuffer::with_capacity(64, 4);
    for session in 0..64 {
        let outcome = if session % 9 == 0 { Outcome::Failed } else { Outcome::Ok };
        let row = LogRow {
            session,
            step: 0,
            try_number: 0,
            thread: session as u32 % 2,
            due_ns: None,
            start_ns: session as i64 * 1000,
            end_ns: session as i64 * 1000 + 700,
            waited_ns: 0,
            pool_wait_ns: 0,
            attempts: 1,
            outcome,
        };
        buffer.push(row, &[session as i64, 5, -1], (outcome == Outcome::Failed).then_some("no"));
    }
    let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
    let path = folder.path().join("log.arrows");
    let written = LogWriter::create(&path, &header, compression).and_then(|mut writer| {
        writer.write(&buffer.into_batch())?;
        writer.close()
    });
    written.unwrap_or_else(|e| panic!("{e}"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{e}"))
}

fn decode_log(bytes: &[u8]) {
    with_file("log.arrows", bytes, |_, path| {
        let Ok(reader) = LogReader::open(path) else { return };
        for batch in reader {
            let Ok(batch) = batch else { return };
            let Ok(columns) = LogColumns::of(&batch, path) else { return };
            for row in 0..columns.len() {
                let _ = (columns.row(row), columns.observed(row), columns.error(row));
            }
        }
    });
}

fn latencies() -> Vec<Vec<u8>> {
    let mut times = ResponseTimes::default();
    (1..100).for_each(|time| times.record(time * time * 1000));
    vec![times.to_bytes(), ResponseTimes::default().to_bytes()]
}

fn messages() -> Vec<Vec<u8>> {
    let hello = rpc::HelloRequest {
        protocol_version: 3,
        encore_version: "0.1.0".into(),
        coordinator: "host".into(),
        lease_ms: 1000,
    };
    let progress = rpc::Progress { elapsed_ns: 5, ok: 7, response_times: latencies().remove(0), ..Default::default() };
    let chunk = rpc::FileChunk { path: "operations/a".into(), offset: 7, data: vec![1, 2, 3] };
    vec![hello.encode_to_vec(), progress.encode_to_vec(), chunk.encode_to_vec()]
}

fn decode_messages(bytes: &[u8]) {
    let _ = rpc::HelloRequest::decode(bytes);
    let _ = rpc::HelloReply::decode(bytes);
    let _ = rpc::ClockReply::decode(bytes);
    let _ = rpc::OfferRequest::decode(bytes);
    let _ = rpc::OfferReply::decode(bytes);
    let _ = rpc::FileChunk::decode(bytes);
    let _ = rpc::PrepareRequest::decode(bytes);
    let _ = rpc::PrepareReply::decode(bytes);
    let _ = rpc::LoadRequest::decode(bytes);
    let _ = rpc::LoadProgress::decode(bytes);
    let _ = rpc::RunRequest::decode(bytes);
    let _ = rpc::StartProposal::decode(bytes);
    let _ = rpc::StartAnswer::decode(bytes);
    let _ = rpc::StartRequest::decode(bytes);
    let _ = rpc::StartReply::decode(bytes);
    let _ = rpc::StopRequest::decode(bytes);
    let _ = rpc::ReportReply::decode(bytes);
    let _ = rpc::SettleRequest::decode(bytes);
    let _ = rpc::SummarizeRequest::decode(bytes);
    let _ = rpc::LogsRequest::decode(bytes);
    let _ = rpc::LogsReply::decode(bytes);
    let _ = rpc::FetchRequest::decode(bytes);
    if let Ok(progress) = rpc::Progress::decode(bytes) {
        drop(ResponseTimes::from_bytes(&progress.response_times));
        drop(ResponseTimes::from_bytes(&progress.service_times));
    }
}

fn steps() -> Vec<Vec<u8>> {
    ["list_friends me", "view_profile friend", "20000", "10%", "500000ops"]
        .map(|text| text.as_bytes().to_vec())
        .to_vec()
}

fn decode_step(text: &str) {
    let _ = text.parse::<schemas::social::session::Step>();
    let _ = text.parse::<Warmup>();
}

fn terminals() -> Vec<Vec<u8>> {
    ["\u{1b}[1mbold\u{1b}[0m", "a\u{1b}]0;title\u{7}b\r\n\tc"].map(|text| text.as_bytes().to_vec()).to_vec()
}

fn decode_terminal(text: &str) {
    let shown = schemas::terminal::printable(text);
    let rest = shown.replace(['\n', '\t'], "");
    let is_style = |part: &str| part.starts_with('[') && part.contains('m');
    let commands = rest.split('\u{1b}').skip(1);
    assert!(commands.into_iter().all(is_style), "{text:?} is shown as {shown:?}");
    assert!(!rest.replace('\u{1b}', "").contains(char::is_control), "{text:?} is shown as {shown:?}");
}
