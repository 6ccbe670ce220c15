//! The same statements on the same server, through Encore and through pgbench.

use std::path::Path;

use replayer::stores::postgres::PostgresServer;
use replayer::stores::relational::engine::Engine;
use replayer::stores::relational::social::design::{Counts, Design, Friendship, Images, Indexes};
use replayer::stores::relational::social::statements::{Call, Statements};
use schemas::social::{Action, Operation};
use servers::{Kind, Options, Server, StartError};

use crate::Settings;
use crate::report::Section;
use crate::sample::{Figures, Sample};
use crate::tools::driver::{self, Driver, Task};
use crate::tools::encore::{Encore, Replay};
use crate::tools::pgbench::{self, Draw, Pgbench, Run, Script, Scripts};

/// The table's name.
pub const GROUP: &str = "PostgreSQL";

const MEMBERS: u32 = 10_000;

/// The design of a URL with `images=none`.
pub const DESIGN: Design =
    Design { friendship: Friendship::TwoRow, images: Images::None, counts: Counts::Computed, indexes: Indexes::On };

/// Both tools draw members from a Zipfian distribution with an exponent of (almost) 1, the lowest
/// that pgbench supports.
const SPEC: &str = r#"
name = "postgres"
sessions = 4_000_000
[data]
members = 10_000
friends_per_member = 100
pending_per_member = 50
resources_per_member = 10
comments_per_resource = 0
attribute_bytes = 200
image_bytes = 0
thumbnail_bytes = 0
resource_bytes = 64
[access]
distribution = "zipfian"
theta = 0.001
own_profile_share = 0
[mix]
"#;

/// A case, as BG's mix and as scripts.
struct Case {
    name: &'static str,
    /// The action, if it is the only one.
    only: Option<Action>,
    mix: &'static str,
    scripts: fn(&Scripts) -> Vec<Script>,
}

impl Case {
    /// The statement of a case with one action. Bare loops over drivers execute it.
    fn statement(&self) -> Option<String> {
        let statements = Statements::new(&DESIGN, &PostgresServer::DIALECT);
        match statements.of(&Operation { action: self.only?, socialite: 0, target: 1, comment: None }) {
            Call::Read(read) => Some(read.statement.sql().as_str().to_string()),
            Call::Write(_) => None,
        }
    }
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "View Profile",
            only: Some(Action::ViewProfile),
            mix: "view_profile = 1",
            scripts: |scripts| vec![scripts.read("view_profile", Action::ViewProfile, 1)],
        },
        Case {
            name: "List Friends",
            only: Some(Action::ListFriends),
            mix: "list_friends = 1",
            scripts: |scripts| vec![scripts.read("list_friends", Action::ListFriends, 1)],
        },
        Case {
            name: "mix with 1% writes",
            only: None,
            mix: "view_profile = 40\nlist_friends = 5\nview_friend_requests = 5\nview_top_k_resources = 49\n\
                  invite_friend = 0.4\naccept_friend_request = 0.2\nreject_friend_request = 0.2\nthaw_friendship = 0.2",
            scripts: |scripts| {
                vec![
                    scripts.read("view_profile", Action::ViewProfile, 4_000),
                    scripts.read("list_friends", Action::ListFriends, 500),
                    scripts.read("view_friend_requests", Action::ViewFriendRequests, 500),
                    scripts.read("view_top_k_resources", Action::ViewTopKResources, 4_900),
                    // Each of these transactions has five actions.
                    scripts.writes(20),
                ]
            },
        },
    ]
}

/// Runs all rounds.
pub fn run(settings: &Settings, folder: &Path, section: &mut Section) -> anyhow::Result<()> {
    let pgbench = section.find("pgbench", pgbench::SETTINGS, Pgbench::find(folder), Pgbench::version);
    // The server holds all data in memory, and writes every commit to disk.
    let arguments = ["-c", "shared_buffers=1GB", "-c", "max_connections=200"];
    let options = Options { durable: true, folder: Some(folder), arguments: &arguments, ..Options::default() };
    let server = match Server::try_start(Kind::Postgres, options) {
        Ok(server) => server,
        Err(error @ StartError::Missing(..)) => {
            section.missing("PostgreSQL", &error.to_string());
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let encore = Encore::new(folder)?;
    let what = "?images=none, --shared-actors, one worker, every operation logged; fsync=on, shared_buffers=1GB, data in memory";
    section.here("Encore", &crate::encore_version(), what);
    section.here("bare sqlx, bare tokio-postgres", "drivers", driver::SETTINGS);

    for (number, case) in cases().into_iter().enumerate() {
        let trace = encore.trace(&format!("postgres-{number}"), &format!("{SPEC}{}", case.mix), &[])?;
        // Each tool writes to a database of its own.
        let url = |tool: &str| server.url(&format!("{tool}_{number}"));
        let store = format!("{}?images=none", url("encore"));
        encore.load(&trace, &store)?;
        encore.load(&trace, &format!("{}?images=none", url("pgbench")))?;
        for round in 1..=settings.rounds {
            for threads in [1, 4, 16, 64] {
                let mut measured = |tool: &str, run: &mut dyn FnMut() -> anyhow::Result<Figures>| {
                    let figures = Figures::beside(&server, run)?;
                    settings.progress(round, GROUP, case.name, threads, tool, &figures);
                    section.samples.push(Sample { case: case.name.into(), threads, tool: tool.into(), figures });
                    anyhow::Ok(())
                };
                let seconds = Some(settings.seconds);
                let replay =
                    Replay { trace: &trace, store: &store, threads, seconds, continued: true, shared_actors: true };
                measured("Encore", &mut || encore.replay(&replay))?;
                for (tool, draw) in [("pgbench", Draw::Zipfian), ("pgbench, uniform", Draw::Uniform)] {
                    let Some(pgbench) = &pgbench else { continue };
                    let (url, scripts) = (url("pgbench"), (case.scripts)(&Scripts::new(&DESIGN, MEMBERS, draw)));
                    let run = Run { url: &url, scripts: &scripts, threads, seconds: settings.seconds };
                    measured(tool, &mut || pgbench.run(&run))?;
                }
                let Some(statement) = case.statement() else { continue };
                let (url, seconds) = (url("pgbench"), settings.seconds);
                let task = Task { url, statement, members: MEMBERS, threads, seconds };
                for driver in [Driver::Sqlx, Driver::TokioPostgres] {
                    measured(driver.name(), &mut || driver::run(driver, &task))?;
                }
            }
        }
    }
    Ok(())
}
