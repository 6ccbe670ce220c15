//! Every store answers every action as the reference store does.

use std::path::Path;

use replayer::experiment::{Control, Experiment};
use replayer::source::Source;
use replayer::stores::{self, Blame};
use schemas::oplog::{LogColumns, LogReader, Outcome};
use schemas::plan::{FragmentPlan, Limit, Plan};
use schemas::spec::Spec;

const SPEC: &str = r#"
name = "stores"
sessions = 4000
[data]
members = 60
friends_per_member = 8
pending_per_member = 4
resources_per_member = 2
comments_per_resource = 1
image_bytes = 100
thumbnail_bytes = 20
[access]
own_profile_share = 0.3
dependency_window = 8
[mix]
view_profile = 10
list_friends = 10
view_friend_requests = 10
invite_friend = 14
accept_friend_request = 8
reject_friend_request = 4
thaw_friendship = 8
view_top_k_resources = 4
view_comments = 10
post_comment = 6
delete_comment = 6
"#;

/// (session, outcome, what was seen, in the order of the values where that is
/// free) of every operation of a replay by one thread.
fn answers(folder: &Path, trace: &Path, store: &str, seed: u64) -> Vec<(u64, Outcome, Vec<i64>)> {
    let source = Source::open(trace).expect("a trace set");
    let plan = Plan {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment: 1,
        trace: trace.to_path_buf(),
        trace_id: source.manifest.trace_id.clone(),
        store: store.to_string(),
        threads: 1,
        workers: 1,
        limit: Limit::WholeTrace,
        fragments: vec![FragmentPlan { fragment: 0, first_session: 0, warmup_sessions: 0 }],
        unique_socialites: true,
    };
    let name: String = store.chars().take_while(char::is_ascii_alphanumeric).collect();
    let out = folder.join(format!("{name}-{seed}"));
    let experiment = Experiment::prepare(plan, out.clone()).expect("a plan");
    let open = stores::open(store).expect("a store");
    open.load(&source, &|_, _| {}).expect("a load");
    open.run(&experiment, &Control::default(), &mut |_| {}).expect("a replay");
    assert_eq!(open.digest(&source).expect("a digest"), tracegen::digest(trace, None).expect("a digest"), "{store}");

    let actions: Vec<_> = {
        let files = source.manifest.operation_files(trace, 0);
        let mut reader = schemas::trace::OperationsReader::new(files, 1024);
        let (mut chunk, mut all) = (Vec::new(), Vec::new());
        while reader.next_chunk(&mut chunk).expect("a chunk") {
            all.extend(chunk.iter().map(|row| row.operation.action));
        }
        all
    };
    let log = out.join("log/fragment-0.arrows");
    let mut answers = Vec::new();
    for batch in LogReader::open(&log).expect("a log") {
        let batch = batch.expect("a batch");
        let columns = LogColumns::of(&batch, &log).expect("columns");
        for row in 0..columns.len() {
            let session = columns.session[row] as u64;
            let mut seen = columns.observed(row).to_vec();
            if actions[session as usize] != schemas::social::Action::ViewTopKResources
                && actions[session as usize] != schemas::social::Action::ViewProfile
            {
                seen.sort_unstable();
            }
            assert_eq!(columns.error(row), None, "{store} session {session}");
            answers.push((session, columns.row(row).outcome, seen));
        }
    }
    answers
}

#[test]
fn sqlite_answers_as_the_reference_store_does() {
    let folder = tempfile::tempdir().expect("a folder");
    for seed in 0..5 {
        let spec = Spec::parse_with(SPEC, "spec", &[format!("seed={seed}")]).expect("a spec");
        let trace = folder.path().join(format!("{seed}.trace"));
        tracegen::generate(&spec, &trace, &tracegen::GenerateOptions::default()).expect("a trace set");
        let reference = answers(folder.path(), &trace, "memory:", seed);
        assert_eq!(reference.len(), 4000);
        for design in ["", "&journal=delete"] {
            let path = folder.path().join(format!("{seed}{}.db", design.len()));
            let url = format!("sqlite:{}?synchronous=off{design}", path.display());
            let found = answers(folder.path(), &trace, &url, seed * 10 + design.len() as u64);
            assert!(found == reference, "seed {seed}: {url} differs from the reference store");
        }
    }
}

/// A store whose rows were changed behind its back is not the state that the
/// trace starts from.
#[test]
fn a_store_with_rows_missing_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let spec = Spec::parse(SPEC, "spec").expect("a spec");
    let trace = folder.path().join("t.trace");
    tracegen::generate(&spec, &trace, &tracegen::GenerateOptions::default()).expect("a trace set");
    let url = format!("sqlite:{}?synchronous=off", folder.path().join("s.db").display());
    let source = Source::open(&trace).expect("a trace set");
    let store = stores::open(&url).expect("a store");
    store.load(&source, &|_, _| {}).expect("a load");
    // Somebody takes a row away behind Encore's back: the count gives it away.
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        use sqlx::Connection;
        let mut client = sqlx::SqliteConnection::connect(&format!("sqlite:{}", folder.path().join("s.db").display()))
            .await
            .expect("s.db");
        sqlx::query("DELETE FROM invitations WHERE invitee < 5").execute(&mut client).await.expect("a delete");
        client.close().await.expect("closed");
    });
    let plan = Plan {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment: 1,
        trace: trace.clone(),
        trace_id: source.manifest.trace_id.clone(),
        store: url,
        threads: 1,
        workers: 1,
        limit: Limit::WholeTrace,
        fragments: vec![FragmentPlan { fragment: 0, first_session: 0, warmup_sessions: 0 }],
        unique_socialites: true,
    };
    let experiment = Experiment::prepare(plan, folder.path().join("out")).expect("a plan");
    let error = store.check(&experiment).expect_err("a store with rows missing is refused");
    assert_eq!(error.blame, Blame::State);
    assert!(error.message.contains("table invitations has") && error.message.contains("replayer load"), "{error}");
}
