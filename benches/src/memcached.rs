//! Hits in memcached: through Encore's CASQL, and through clients that ignore the values.

use std::path::Path;

use servers::{Kind, Options, Server, StartError};

use crate::Settings;
use crate::report::Section;
use crate::sample::{Figures, Sample};
use crate::tools::bare;
use crate::tools::encore::{Encore, Replay};
use crate::tools::memtier::Memtier;

/// The table's name.
pub const GROUP: &str = "memcached";

const CASE: &str = "View Profile, all hits";

/// A profile has some 300 bytes. There are few members, so that all profiles are soon in the cache.
const SPEC: &str = r#"
name = "memcached"
sessions = 8_000_000
[data]
members = 2_000
friends_per_member = 20
attribute_bytes = 256
image_bytes = 0
thumbnail_bytes = 0
[access]
distribution = "zipfian"
theta = 0.27
own_profile_share = 0
[mix]
view_profile = 1
"#;

/// The size of a value: the codec, the row's values, text and image with their lengths.
const VALUE_BYTES: u64 = 1 + 1 + 2 * 8 + 4 + 256 + 4;

/// Runs all rounds.
pub fn run(settings: &Settings, folder: &Path, section: &mut Section) -> anyhow::Result<()> {
    let options = Options { arguments: &["-m", "1024"], folder: Some(folder), ..Options::default() };
    let server = match Server::try_start(Kind::Memcached, options) {
        Ok(server) => server,
        Err(error @ StartError::Missing(..)) => {
            section.missing("memcached", &error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let address = server.address();
    let encore = Encore::new(folder)?;
    let what = "casql+sqlite:, one worker, values decoded, every operation logged";
    section.here("Encore", &crate::encore_version(), what);
    section.here("bare loop", "memcache crate 0.21.0", "one runtime, asynchronous meta connections");
    let memtier = section.find("memtier", "-t 1, memcache_text", Memtier::find(folder), Memtier::version);

    let trace = encore.trace("memcached", SPEC, &[])?;
    let database = folder.join("memcached.db");
    let store = format!("casql+sqlite:{}?images=none&memcached={address}", database.display());
    encore.load(&trace, &store)?;
    let replay = |threads, seconds| Replay {
        trace: &trace,
        store: &store,
        threads,
        seconds,
        continued: true,
        shared_actors: true,
    };
    // This run fills the cache.
    encore.replay(&replay(16, Some(3)))?;

    for round in 1..=settings.rounds {
        for threads in [1, 4, 16, 64] {
            let seconds = settings.seconds;
            let mut measured = |tool: &str, run: &mut dyn FnMut() -> anyhow::Result<Figures>| {
                let figures = Figures::beside(&server, run)?;
                settings.progress(round, GROUP, CASE, threads, tool, &figures);
                section.samples.push(Sample { case: CASE.into(), threads, tool: tool.into(), figures });
                anyhow::Ok(())
            };
            measured("Encore", &mut || encore.replay(&replay(threads, Some(seconds))))?;
            measured("bare loop", &mut || bare::run(&address, threads, seconds))?;
            if let Some(memtier) = &memtier {
                measured("memtier", &mut || memtier.run(&address, threads, seconds, VALUE_BYTES))?;
            }
        }
    }
    Ok(())
}
