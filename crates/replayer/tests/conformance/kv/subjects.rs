//! The stores under test.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use replayer::stores::memory::Memory;
use replayer::stores::mysql::MySql;
use replayer::stores::postgres::Postgres;
use replayer::stores::sqlite::Sqlite;
use schemas::vocabulary::kv::Kv;

use crate::subjects::{ImagesSent, Subject, url_with};

/// How often [`all`] was called: each call has databases of its own.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// The stores under test, one line each. Files are in `folder`. Subjects on one server share a
/// database, so each of them must replace what the last one has left.
pub fn all(folder: &Path) -> Vec<Subject<Kv>> {
    let name = format!("encore_kv_{}_{}", std::process::id(), CALLS.fetch_add(1, Ordering::Relaxed));
    let file = |name: &str| format!("sqlite:{}?synchronous=off", folder.join(format!("{name}.db")).display());
    let sqlite = |url: &str| Subject::new(url, Sqlite::open, ImagesSent::No);
    let mut subjects = vec![reference(), sqlite(&file("wal")), sqlite(&format!("{}&journal=delete", file("journal")))];
    if let Some(server) = servers::postgres() {
        let url = server.url(&name);
        let strict = url_with(&url, "isolation=serializable&synchronous_commit=off&reset=reload");
        subjects.extend([url, strict].map(|url| Subject::new(&url, Postgres::open, ImagesSent::No)));
    }
    if let Some(server) = servers::mysql() {
        let url = server.url(&name);
        let strict = url_with(&url, "isolation=serializable&reset=reload");
        subjects.extend([url, strict].map(|url| Subject::new(&url, MySql::open, ImagesSent::No)));
    }
    subjects
}

/// The store that the others have to agree with.
pub fn reference() -> Subject<Kv> {
    memory("memory:")
}

/// The reference store, with faults.
pub fn memory(url: &str) -> Subject<Kv> {
    Subject::new(url, Memory::open, ImagesSent::No)
}
