//! Servers die, hang or lose connections. The run goes on, the log has the true outcome of every
//! operation, and a correct store is never accused.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use schemas::oplog::{LogColumns, LogReader, LogRow};
use schemas::plan::Limit;
use servers::{Kind, Options, Proxy, Server};

use crate::replays::{Replay, Replayed};

/// The servers of this machine that tests share.
fn shared() -> impl Iterator<Item = &'static Server> {
    [servers::postgres(), servers::mysql(), servers::mongodb()].into_iter().flatten()
}

/// The name of a database that no other test uses.
fn database() -> String {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    format!("encore_faults_{}_{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed))
}

/// Adds parameters to a URL.
pub fn with(url: &str, parameters: &str) -> String {
    format!("{url}{}{parameters}", if url.contains('?') { '&' } else { '?' })
}

/// A trace longer than any test here needs.
const LONG: &[&str] = &["sessions=200000", "data.members=400"];

/// Every row of the log, with its error text.
fn rows(replayed: &Replayed, threads: u32) -> Vec<(LogRow, Option<String>)> {
    let mut rows = Vec::new();
    for fragment in 0..2 {
        let path = replayed.run.experiment(1, threads).log(fragment);
        for batch in LogReader::open(&path).expect("a log") {
            let batch = batch.expect("a batch");
            let columns = LogColumns::of(&batch, &path).expect("columns");
            rows.extend((0..columns.len()).map(|row| (columns.row(row), columns.error(row).map(str::to_string))));
        }
    }
    rows
}

fn accuses_nobody(replayed: &Replayed, store: &str) {
    let figures = &replayed.verdict.figures;
    assert!(figures.reads > 100, "{store}: only {} reads", figures.reads);
    assert_eq!(figures.unpredictable_reads, 0, "{store}");
}

#[test]
fn connections_that_are_cut_accuse_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    for server in shared() {
        let (name, proxy) = (database(), Proxy::start(&server.address()));
        for design in ["", "counts=stored"] {
            // MongoDB has other designs: the second one makes writes of several documents a transaction.
            let design = match (server.kind(), design) {
                (_, "") => "timeout_ms=5000".to_string(),
                (Kind::Mongodb, _) => "timeout_ms=5000&transactions=on".to_string(),
                (_, design) => format!("timeout_ms=5000&{design}"),
            };
            let direct = with(&server.url(&name), &design);
            let store = with(&server.url_through(&proxy, &name), &design);
            // The replay lasts a few seconds, because progress is reported twice a second.
            let sessions = if server.kind() == Kind::Mongodb { 12_000 } else { 40_000 };
            let replay = Replay { settings: LONG, limit: Limit::Sessions(sessions), ..Replay::new(folder.path()) };
            replay.load(&direct).unwrap_or_else(|error| panic!("{error}"));
            // After each cut, MongoDB's driver checks the server again for half a second.
            let every = if server.kind() == Kind::Mongodb { 701 } else { 101 };
            let (before, mut is_faulty) = (proxy.cuts(), false);
            let replayed = replay.on_loaded(&store, &mut |snapshot| {
                // Replies are lost and requests arrive in part, in turn. The faults begin when all threads
                // are connected, and end before the replayer writes the final marker.
                let ended: u64 = snapshot.outcomes.iter().sum();
                let faulty = (300..sessions * 3 / 4).contains(&ended);
                if faulty != is_faulty {
                    is_faulty = faulty;
                    proxy.cut_replies_every(if faulty { every } else { 0 });
                    proxy.cut_requests_every(if faulty { every - 4 } else { 0 });
                }
            });
            let report = &replayed.report;
            assert!(proxy.cuts() > before + 10, "{store}: only {} cuts", proxy.cuts() - before);
            assert!(report.failed > 0 && report.unknown > 0, "{store}: {report:?}");
            assert!(report.ok > sessions / 2, "{store}: {report:?}");
            accuses_nobody(&replayed, &store);
        }
    }
}

#[test]
fn a_server_that_is_killed_and_started_again_accuses_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    for kind in [Kind::Postgres, Kind::Mysql, Kind::Mongodb] {
        let Some(server) = Server::start(kind, Options::default()) else { continue };
        let name = database();
        // With a journal, writes that MongoDB acknowledged survive the kill.
        let parameters =
            if kind == Kind::Mongodb { "timeout_ms=5000&w=majority&journal=true" } else { "timeout_ms=5000" };
        let store = with(&server.url(&name), parameters);
        let replay = Replay { settings: LONG, limit: Limit::DurationS(600.0), ..Replay::new(folder.path()) };
        replay.load(&store).unwrap_or_else(|error| panic!("{error}"));
        let mut killed_at = None;
        let mut ok_after = 0;
        let replayed = replay.until(&store, &mut |snapshot| {
            let ok = snapshot.outcomes[0];
            match killed_at {
                None if ok > 300 => {
                    server.kill();
                    server.restart();
                    killed_at = Some(ok);
                }
                Some(before) => ok_after = ok - before,
                None => {}
            }
            ok_after > 300
        });
        let report = &replayed.report;
        assert!(killed_at.is_some() && ok_after > 300, "{store}: {ok_after} operations after the kill, {report:?}");
        assert!(report.failed + report.unknown > 0, "{store}: nobody noticed, {report:?}");
        accuses_nobody(&replayed, &store);
    }
}

#[test]
fn a_server_that_does_not_answer_holds_nobody_up_for_ever() {
    let folder = tempfile::tempdir().expect("a folder");
    for server in shared() {
        let (name, proxy) = (database(), Proxy::start(&server.address()));
        let store = with(&server.url_through(&proxy, &name), "timeout_ms=2000");
        let replay = Replay { settings: LONG, limit: Limit::DurationS(600.0), ..Replay::new(folder.path()) };
        replay.load(&with(&server.url(&name), "timeout_ms=5000")).unwrap_or_else(|error| panic!("{error}"));
        let (mut is_held, mut ok_before, mut ok_after) = (false, None, 0);
        let replayed = replay.until(&store, &mut |snapshot| {
            let [ok, failed, unknown, ..] = snapshot.outcomes;
            match ok_before {
                Some(before) => ok_after = ok - before,
                None if !is_held && ok > 100 => {
                    proxy.hold(true);
                    is_held = true;
                }
                // The proxy holds replies until an operation has timed out.
                None if is_held && failed + unknown > 0 => {
                    proxy.hold(false);
                    ok_before = Some(ok);
                }
                None => {}
            }
            ok_after > 100
        });
        let given_up: Vec<_> = rows(&replayed, replay.threads)
            .into_iter()
            .filter(|(_, error)| error.as_ref().is_some_and(|error| error.contains("timed out after 2000 ms")))
            .collect();
        assert!(!given_up.is_empty(), "{store}: nothing was given up, {:?}", replayed.report);
        for (row, error) in given_up {
            let took_ms = (row.end_ns - row.start_ns) / 1_000_000;
            assert!(took_ms >= 2000, "{store}: {took_ms} ms, {error:?}");
        }
        assert!(ok_after > 100, "{store}: it did not go on, {:?}", replayed.report);
        accuses_nobody(&replayed, &store);
    }
}

/// The time limit of an operation may be shorter than the time to connect.
#[test]
fn a_server_that_wakes_slowly_is_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    for server in shared() {
        let (name, proxy) = (database(), Proxy::start(&server.address()));
        let store = with(&server.url_through(&proxy, &name), "timeout_ms=1000");
        let replay = Replay { settings: &["sessions=300"], ..Replay::new(folder.path()) };
        replay.load(&server.url(&name)).unwrap_or_else(|error| panic!("{error}"));
        proxy.hold(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(1500));
                proxy.hold(false);
            });
            let replayed = replay.on_loaded(&store, &mut |_| {});
            accuses_nobody(&replayed, &store);
        });
    }
}

#[test]
fn a_slow_server_is_slow_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    for server in shared() {
        let (name, proxy) = (database(), Proxy::start(&server.address()));
        let store = server.url_through(&proxy, &name);
        let replay = Replay { settings: &["sessions=300"], ..Replay::new(folder.path()) };
        replay.load(&server.url(&name)).unwrap_or_else(|error| panic!("{error}"));
        proxy.delay(Duration::from_millis(20));
        let replayed = replay.on_loaded(&store, &mut |_| {});
        assert_eq!(replayed.report.ok, 300, "{store}: {:?}", replayed.report);
        let slowest_ms = replayed.verdict.figures.overall.max_ns / 1_000_000;
        assert!(slowest_ms >= 20, "{store}: {slowest_ms} ms");
        accuses_nobody(&replayed, &store);
    }
}

/// Eight threads share two connections. The wait for a connection is logged in its own column.
#[test]
fn threads_wait_for_the_connections_that_there_are() {
    let folder = tempfile::tempdir().expect("a folder");
    for server in shared() {
        let store = with(&server.url(&database()), "connections=2");
        let replay = Replay::new(folder.path());
        let replayed = replay.on(&store);
        assert_eq!(replayed.report.ok, 3000, "{store}: {:?}", replayed.report);
        let rows = rows(&replayed, replay.threads);
        let waited = rows.iter().filter(|(row, _)| row.pool_wait_ns > 10_000).count();
        // On a busy machine fewer threads are at it at once, and fewer have to wait.
        assert!(waited > rows.len() / 10, "{store}: {waited} of {} operations waited", rows.len());
        assert!(rows.iter().all(|(row, _)| row.pool_wait_ns <= row.end_ns - row.start_ns), "{store}");
        accuses_nobody(&replayed, &store);
    }
}

#[test]
fn a_server_without_room_for_all_threads_is_a_clear_error() {
    let folder = tempfile::tempdir().expect("a folder");
    for (kind, arguments) in
        [(Kind::Postgres, &["-c", "max_connections=12"][..]), (Kind::Mysql, &["--max-connections=12"][..])]
    {
        let Some(server) = Server::start(kind, Options { arguments, ..Options::default() }) else { continue };
        let store = server.url(&database());
        let replay = Replay { threads: 40, ..Replay::new(folder.path()) };
        replay.load(&store).unwrap_or_else(|error| panic!("{error}"));
        let run = std::panic::catch_unwind(|| replay.on_loaded(&store, &mut |_| {}));
        let message = run.err().and_then(|panic| panic.downcast_ref::<String>().cloned()).expect("an error");
        for words in ["max_connections", "connections=N", " of 40:"] {
            assert!(message.contains(words), "{message:?} lacks {words:?}");
        }
        let replayed = replay.on_loaded(&with(&store, "connections=5"), &mut |_| {});
        assert_eq!(replayed.report.ok, 3000, "{store}");
    }
}
