//! The validator finds the stale reads of an incoherent cache. It finds none with a cache that uses
//! leases, whatever faults occur.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};

use schemas::plan::Limit;
use servers::{Kind, Options, Proxy, Server};

use crate::faults::with;
use crate::replays::{Replay, Replayed};

/// Writes are frequent and members few, so that races occur.
const RACY: &[&str] = &["sessions=6000", "data.members=40", "data.friends_per_member=4", "fragments=1"];

/// The databases of this machine, each with a cache in front.
fn cached(folder: &std::path::Path, memcached: &str) -> Vec<String> {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let number = CALLS.fetch_add(1, Ordering::Relaxed);
    let name = format!("encore_caches_{}_{number}", std::process::id());
    let mut urls = vec![format!("sqlite:{}?synchronous=off", folder.join(format!("cached-{number}.db")).display())];
    urls.extend([servers::postgres(), servers::mysql()].into_iter().flatten().map(|server| server.url(&name)));
    urls.into_iter().map(|url| with(&format!("casql+{url}"), &format!("memcached={memcached}"))).collect()
}

fn counted(replayed: &Replayed, name: &str) -> u64 {
    replayed.report.store_counters[name]
}

#[test]
fn values_that_only_time_removes_are_found_stale() {
    let Some(memcached) = servers::memcached() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for store in cached(folder.path(), &memcached.address()) {
        let replay = Replay { settings: RACY, ..Replay::new(folder.path()) };
        let replayed = replay.on(&with(&store, "consistency=ttl&ttl_s=60"));
        let figures = &replayed.verdict.figures;
        assert!(figures.unpredictable_percent > 5.0, "{store}: {} of {}", figures.unpredictable_reads, figures.reads);
        assert!(counted(&replayed, "cache_hits") > 1000, "{store}: {:?}", replayed.report.store_counters);
        assert_eq!(counted(&replayed, "cache_invalidations"), 0, "{store}");
    }
}

/// How often the cache was emptied.
fn flushes(memcached: &str) -> u64 {
    let mut stream = TcpStream::connect(memcached).expect("it listens");
    stream.write_all(b"stats\r\nquit\r\n").expect("it takes commands");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    let line = text.lines().find_map(|line| line.strip_prefix("STAT cmd_flush "));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

/// A load or replay may change a database without its cache. Later reads must not return what the
/// cache held before.
#[test]
fn a_cache_of_another_state_is_emptied() {
    // This test needs a memcached of its own: other tests empty the shared one.
    let Some(memcached) = Server::start(Kind::Memcached, Options::default()) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for store in cached(folder.path(), &memcached.address()) {
        let replay = Replay { settings: RACY, ..Replay::new(folder.path()) };
        let leased = with(&store, "consistency=lease&cache_timeout_ms=5000");
        replay.on(&leased);
        let database = store.strip_prefix("casql+").and_then(|url| url.split(&['?', '&'][..]).next()).expect("a URL");
        let database = if database.starts_with("sqlite") { with(database, "synchronous=off") } else { database.into() };
        replay.load(&database).unwrap_or_else(|error| panic!("{error}"));
        let replayed = replay.on_loaded(&leased, &mut |_| {});
        assert_eq!(replayed.verdict.figures.unpredictable_reads, 0, "{store}");
        // A cache that fits the database is kept: neither was changed since the load.
        replay.load(&leased).unwrap_or_else(|error| panic!("{error}"));
        let flushes = flushes(&memcached.address());
        replay.on_loaded(&leased, &mut |_| {});
        assert_eq!(self::flushes(&memcached.address()), flushes, "{store}");
    }
}

/// A slow reader that fills the cache can restore a value that a write has invalidated, unless the
/// fill requires a lease. A pause before each fill provokes this race.
#[test]
fn leases_close_the_race_that_invalidations_leave_open() {
    let Some(memcached) = servers::memcached() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for store in cached(folder.path(), &memcached.address()) {
        let replay = Replay { settings: RACY, threads: 16, ..Replay::new(folder.path()) };
        let provoked = with(&store, "fill_delay_us=20000&compress=on");
        let invalidated = replay.on(&with(&provoked, "consistency=invalidate"));
        let leased = replay.on(&with(&provoked, "consistency=lease"));
        for (name, replayed) in [("invalidate", &invalidated), ("lease", &leased)] {
            let counters = &replayed.report.store_counters;
            assert!(counters["cache_hits"] > 500, "{store} {name}: {counters:?}");
            assert!(counters["cache_invalidations"] > 500, "{store} {name}: {counters:?}");
            assert_eq!(replayed.report.ok, 6000, "{store} {name}");
        }
        assert!(invalidated.verdict.figures.unpredictable_reads > 0, "{store}: the race did not show");
        assert!(counted(&leased, "cache_fills_refused") > 0, "{store}: there was no race to close");
        assert_eq!(leased.verdict.figures.unpredictable_reads, 0, "{store}");
    }
}

/// bg-2013, section C.2: a value larger than the item limit comes from the database each time.
#[test]
fn values_too_large_for_the_cache_come_from_the_database() {
    let Some(memcached) = servers::memcached() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    for store in cached(folder.path(), &memcached.address()) {
        // An item has at most 1 MiB.
        let settings = &["sessions=1500", "data.members=30", "fragments=1", "data.image_bytes=1100000"];
        let replay = Replay { settings, ..Replay::new(folder.path()) };
        let replayed = replay.on(&with(&store, "consistency=lease"));
        assert_eq!(replayed.report.ok, 1500, "{store}");
        assert!(counted(&replayed, "cache_too_large") > 100, "{store}: {:?}", replayed.report.store_counters);
        // All values except profiles fit.
        assert!(counted(&replayed, "cache_hits") > 50, "{store}: {:?}", replayed.report.store_counters);
        assert_eq!(replayed.verdict.figures.unpredictable_reads, 0, "{store}");
    }
}

/// A fault of the cache makes answers slower, never wrong. The cache dies and comes back empty, or
/// is unreachable for a while and comes back with its old values.
#[test]
fn a_cache_that_is_away_makes_nothing_wrong() {
    let Some(memcached) = Server::start(Kind::Memcached, Options::default()) else { return };
    let proxy = Proxy::start(&memcached.address());
    let folder = tempfile::tempdir().expect("a folder");
    let settings = &["sessions=200000", "data.members=60", "fragments=1"];
    for store in cached(folder.path(), &proxy.address()) {
        for dies in [true, false] {
            let store = with(&store, "consistency=lease&cache_timeout_ms=300");
            let replay = Replay { settings, limit: Limit::DurationS(600.0), ..Replay::new(folder.path()) };
            replay.load(&store).unwrap_or_else(|error| panic!("{error}"));
            let (mut phase, mut since) = (0, (0, 0));
            let replayed = replay.until(&store, &mut |snapshot| {
                // Each phase lasts a second of the replay, and enough operations on a slow machine too.
                let (ok, now_ns) = (snapshot.outcomes[0], snapshot.elapsed_ns);
                if ok < since.0 + 300 || now_ns < since.1 + 1_000_000_000 {
                    return false;
                }
                phase += 1;
                since = (ok, now_ns);
                match (phase, dies) {
                    (1, true) => memcached.kill(),
                    (2, true) => memcached.restart(),
                    (1, false) => {
                        proxy.refuse(true);
                        proxy.cut();
                    }
                    (2, false) => proxy.refuse(false),
                    _ => {}
                }
                phase == 3
            });
            assert_eq!(phase, 3, "{store}: the cache was not away and back");
            let report = &replayed.report;
            assert_eq!((report.failed, report.unknown, report.skipped), (0, 0, 0), "{store}: {report:?}");
            assert!(counted(&replayed, "cache_passed_by") > 0, "{store}: nobody noticed, {report:?}");
            assert!(counted(&replayed, "cache_emptied") > 0, "{store}: {report:?}");
            assert!(counted(&replayed, "cache_hits") > 100, "{store}: {report:?}");
            assert_eq!(replayed.verdict.figures.unpredictable_reads, 0, "{store}, dies: {dies}");
        }
    }
}
