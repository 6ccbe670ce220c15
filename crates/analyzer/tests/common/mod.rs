//! Small runs for tests: a world that answers correctly, its trace set and its log.

// Every test program uses only a part of this.
#![allow(dead_code)]

use std::path::{Path, PathBuf};

use parquet::arrow::ArrowWriter;
use schemas::RUN_FORMAT_VERSION;
use schemas::manifest::{FileEntry, FragmentCounts, Manifest};
use schemas::oplog::{LogBuffer, LogHeader, LogRow, LogWriter, Outcome};
use schemas::plan::{FragmentPlan, Limit, Plan};
use schemas::run::{Host, ReplayReport, RunDocument, RunFolder, RunState};
use schemas::sla::Sla;
use schemas::social::{Action, Change, CountKind, ListKind, Observation, Operation, Social};
use schemas::spec::Spec;
use schemas::trace::{OperationsBuilder, TraceRow};
use schemas::workload::social::SocialStatistics;
use schemas::workload::social::dataset::Table;

/// A small generator of pseudo-random numbers; only its seed decides them.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Members `first..first + count`, each a friend of the `reach` next ones (in a
/// ring) and so of the ones before; two resources on each wall.
#[derive(Clone)]
pub struct World {
    first: u64,
    count: u64,
    reach: u64,
    friends: Vec<Vec<u64>>,
    pending: Vec<Vec<u64>>,
    comments: Vec<Vec<u64>>,
    next_comment: u64,
}

pub const TOP_K: u64 = 5;

impl World {
    pub fn new(first: u64, count: u64, reach: u64) -> World {
        let mut friends = vec![Vec::new(); count as usize];
        for member in 0..count {
            for step in 1..=reach {
                let friend = (member + step) % count;
                friends[member as usize].push(first + friend);
                friends[friend as usize].push(first + member);
            }
        }
        friends.iter_mut().for_each(|list| list.sort_unstable());
        let none = vec![Vec::new(); count as usize];
        let comments = vec![Vec::new(); 2 * count as usize];
        World { first, count, reach, friends, pending: none, comments, next_comment: 1_000_000 * (first + 1) }
    }

    /// The rows of a table of the data set.
    pub fn table(&self, table: Table) -> Vec<Vec<u64>> {
        let members = self.first..self.first + self.count;
        match table {
            Table::Members => members.map(|m| vec![m]).collect(),
            Table::Friendships => {
                let initial = World::new(self.first, self.count, self.reach);
                members
                    .flat_map(|m| {
                        let friends = initial.friends[(m - self.first) as usize].clone();
                        friends.into_iter().filter(move |f| *f > m).map(move |f| vec![m, f])
                    })
                    .collect()
            }
            Table::Resources => members.flat_map(|m| [vec![2 * m, m, m], vec![2 * m + 1, m, m]]).collect(),
            Table::Invitations | Table::Comments => Vec::new(),
        }
    }

    fn list(&mut self, kind: ListKind, owner: u64) -> &mut Vec<u64> {
        let base = self.first;
        match kind {
            ListKind::Friends => &mut self.friends[(owner - base) as usize],
            ListKind::Pending => &mut self.pending[(owner - base) as usize],
            ListKind::Comments => &mut self.comments[(owner - 2 * base) as usize],
        }
    }

    /// Makes the changes of a write.
    pub fn apply(&mut self, operation: &Operation) {
        for change in operation.changes().iter() {
            if let Change::Element { kind, owner, element, present } = change {
                let list = self.list(kind, owner);
                match (list.binary_search(&element), present) {
                    (Err(at), true) => list.insert(at, element),
                    (Ok(at), false) => {
                        list.remove(at);
                    }
                    _ => {}
                }
            }
        }
    }

    /// The answer to a read.
    pub fn answer(&mut self, operation: &Operation) -> Vec<i64> {
        let mut out = Vec::new();
        for observation in operation.observations().iter() {
            match observation {
                Observation::Count { kind: CountKind::FriendCount, owner } => {
                    out.push(self.list(ListKind::Friends, owner).len() as i64);
                }
                Observation::Count { kind: CountKind::PendingCount, owner } => {
                    out.push(self.list(ListKind::Pending, owner).len() as i64);
                }
                Observation::ResourceCount { .. } => out.push(2),
                Observation::List { kind, owner } => out.extend(self.list(kind, owner).iter().map(|e| *e as i64)),
                Observation::TopK { owner } => out.extend([2 * owner as i64 + 1, 2 * owner as i64]),
            }
        }
        out
    }

    /// An operation that is valid in this state: a write with this chance in 1,000, else a read.
    pub fn draw(&mut self, dice: &mut Dice, writes_per_mille: u64) -> Operation {
        let me = self.first + dice.below(self.count);
        let other = self.first + (me - self.first + 1 + dice.below(self.count - 1)) % self.count;
        let resource = 2 * other + dice.below(2);
        let of = |action, target, comment| Operation { action, socialite: me, target, comment };
        if dice.below(1000) < writes_per_mille {
            let inviter = self.list(ListKind::Pending, me).first().copied();
            let are_friends = self.list(ListKind::Friends, me).contains(&other);
            let is_invited = self.list(ListKind::Pending, other).contains(&me);
            return match (inviter, are_friends) {
                (Some(inviter), _) if dice.below(2) == 0 => of(Action::AcceptFriendRequest, inviter, None),
                (Some(inviter), _) => of(Action::RejectFriendRequest, inviter, None),
                (None, true) => of(Action::ThawFriendship, other, None),
                (None, false) if !is_invited && !self.list(ListKind::Pending, me).contains(&other) => {
                    of(Action::InviteFriend, other, None)
                }
                _ => {
                    self.next_comment += 1;
                    of(Action::PostComment, resource, Some(self.next_comment))
                }
            };
        }
        // Approximately the shares of bg-2013 Table 3.
        match dice.below(20) {
            0..8 => of(Action::ViewProfile, if dice.below(4) == 0 { me } else { other }, None),
            8 => of(Action::ListFriends, other, None),
            9 => of(Action::ViewFriendRequests, me, None),
            10..18 => of(Action::ViewTopKResources, other, None),
            _ => of(Action::ViewComments, resource, None),
        }
    }
}

/// An operation with its log row and what it observed.
#[derive(Clone)]
pub struct Event<O = Operation> {
    pub operation: O,
    pub log: LogRow,
    pub observed: Vec<i64>,
    pub error: Option<String>,
}

/// Operations that overlap, with correct answers: each one takes effect in the middle of its
/// interval.
pub fn simulate(world: &mut World, seed: u64, operations: u64, writes_per_mille: u64) -> Vec<Event> {
    let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    (0..operations)
        .map(|session| {
            let operation = world.draw(&mut dice, writes_per_mille);
            let observed = world.answer(&operation);
            world.apply(&operation);
            let middle = 10_000 + session as i64 * 1000;
            let (before, after) = (dice.below(2000) as i64, dice.below(2000) as i64);
            let log = log_row(session, middle - before, middle + after, Outcome::Ok);
            Event { operation, log, observed, error: None }
        })
        .collect()
}

pub fn log_row(session: u64, start_ns: i64, end_ns: i64, outcome: Outcome) -> LogRow {
    let (waited_ns, pool_wait_ns, attempts) = (0, 0, 1);
    let (step, try_number, thread, due_ns) = (0, 0, 0, None);
    LogRow { session, step, try_number, thread, due_ns, start_ns, end_ns, waited_ns, pool_wait_ns, attempts, outcome }
}

/// A run folder under construction, with a trace set beside it.
pub struct Fixture {
    pub folder: tempfile::TempDir,
    pub run: RunFolder,
    pub fragments: Vec<FragmentPlan>,
    pub batch_rows: usize,
}

pub const THREADS: u32 = 4;

/// How many events have each outcome, in the order of the codes.
pub fn outcomes<'a, O: 'a>(events: impl IntoIterator<Item = &'a Event<O>>) -> [u64; Outcome::ALL.len()] {
    let mut counts = [0; Outcome::ALL.len()];
    events.into_iter().for_each(|event| counts[event.log.outcome as usize] += 1);
    counts
}

impl Fixture {
    /// One experiment, number 1, of one fragment for each world (as it was at the
    /// start) with its events.
    pub fn new(worlds: &[(World, Vec<Event>)]) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let run = RunFolder::new(folder.path().join("run"));
        let fragments = (0..worlds.len() as u32)
            .map(|fragment| FragmentPlan { fragment, first_session: 0, given_back: Vec::new(), warmup_sessions: 0 })
            .collect();
        let fixture = Fixture { folder, run, fragments, batch_rows: 64 };
        let operations: Vec<(World, Vec<Operation>)> =
            worlds.iter().map(|(w, events)| (w.clone(), events.iter().map(|e| e.operation).collect())).collect();
        write_trace(&fixture.trace(), &operations);
        for (fragment, (_, events)) in worlds.iter().enumerate() {
            fixture.write_log(fragment as u32, 0, events, true);
        }
        fixture.write_documents();
        fixture.write_report(1_000_000_000, outcomes(worlds.iter().flat_map(|(_, events)| events)));
        fixture
    }

    pub fn trace(&self) -> PathBuf {
        self.folder.path().join("small.trace")
    }

    pub fn log(&self, fragment: u32) -> PathBuf {
        self.run.experiment(1, THREADS).log(fragment)
    }

    /// Writes the log of a fragment, in the order of the ends like a replayer's.
    pub fn write_log<O>(&self, fragment: u32, first_session: u64, events: &[Event<O>], close: bool) {
        let path = self.log(fragment);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&path);
        let header = LogHeader {
            format_version: RUN_FORMAT_VERSION,
            experiment: 1,
            fragment,
            workload_id: Manifest::read(&self.trace()).unwrap().workload_id,
            first_session,
            threads: THREADS,
            unwritten_rows_max: self.batch_rows as u64,
            aside_sessions_max: 0,
            started_unix_ns: 0,
        };
        let mut writer = LogWriter::create(&path, &header, Default::default()).unwrap();
        let mut events: Vec<&Event<O>> = events.iter().collect();
        events.sort_by_key(|e| e.log.end_ns);
        for chunk in events.chunks(self.batch_rows) {
            let mut buffer = LogBuffer::with_capacity(chunk.len(), 4);
            for event in chunk {
                buffer.push(event.log, &event.observed, event.error.as_deref());
            }
            writer.write(&buffer.into_batch()).unwrap();
        }
        if close {
            writer.close().unwrap();
        }
    }

    pub fn plan(&self) -> Plan {
        let manifest = Manifest::read(&self.trace()).unwrap();
        Plan {
            format_version: RUN_FORMAT_VERSION,
            experiment: 1,
            trace: self.trace(),
            trace_id: manifest.trace_id,
            store: "memory:".into(),
            threads: THREADS,
            workers: 1,
            limit: Limit::WholeTrace,
            fragments: self.fragments.clone(),
            unique_actors: true,
            closing_read: None,
            open_loop: None,
            target_per_s: None,
            threads_over_time: Vec::new(),
            transactions: Default::default(),
        }
    }

    pub fn write_documents(&self) {
        let (plan, manifest) = (self.plan(), Manifest::read(&self.trace()).unwrap());
        schemas::files::write_json(&self.run.experiment(1, THREADS).plan(), &plan).unwrap();
        let document = RunDocument {
            format_version: RUN_FORMAT_VERSION,
            encore_version: "0.1.0".into(),
            name: "run".into(),
            started_unix_s: 0,
            state: RunState::Complete,
            sla: Some(Sla::default()),
            trace: "small.trace".into(),
            trace_id: plan.trace_id,
            workload_id: manifest.workload_id,
            spec: manifest.spec,
            store: "memory:".into(),
            store_settings: [("durability".to_string(), "none".to_string())].into(),
            host: Host { name: "host".into(), system: "linux-x86_64".into(), cpus: 2 },
            command: vec!["replayer".into(), "run".into()],
        };
        schemas::files::write_json(&self.run.document(), &document).unwrap();
    }

    /// Writes a report with these counts of outcomes, without a warm-up.
    pub fn write_report(&self, elapsed_ns: u64, outcomes: [u64; Outcome::ALL.len()]) {
        self.write_warm_report(0, 0, elapsed_ns, outcomes);
    }

    /// Writes a report with a warm-up; the outcomes are those of the measured part.
    pub fn write_warm_report(
        &self,
        warmup_ns: u64,
        warmup_operations: u64,
        elapsed_ns: u64,
        outcomes: [u64; Outcome::ALL.len()],
    ) {
        let [ok, failed, unknown, skipped, aborted] = outcomes;
        let report = ReplayReport {
            warmup_ns,
            warmup_operations,
            elapsed_ns,
            ok,
            failed,
            unknown,
            skipped,
            aborted,
            worker_cpu_share: 0.2,
            dispatch_lag_ns_p99: 100,
            ..ReplayReport::default()
        };
        schemas::files::write_json(&self.run.experiment(1, THREADS).report(), &report).unwrap();
    }

    pub fn analyze(&self) -> Result<schemas::verdict::Verdict, analyzer::AnalyzeError> {
        analyzer::analyze(&self.run, 1, None)
    }
}

pub fn spec() -> Spec {
    let text =
        "name = \"small\"\nsessions = 100\n[data]\nmembers = 400\nfriends_per_member = 10\n[mix]\nview_profile = 1\n";
    Spec::parse(text, "small.toml").unwrap()
}

/// Every session is a single action: the kinds have the names and the codes of the actions.
fn kinds() -> impl Iterator<Item = &'static str> {
    Action::ALL.into_iter().map(Action::name)
}

/// The no-operations before a session of these traces.
pub fn noops_before(session: u64) -> u32 {
    if session % 10 == 3 { 2 } else { 0 }
}

/// Writes a trace set: one fragment for each world.
pub fn write_trace(folder: &Path, fragments: &[(World, Vec<Operation>)]) {
    let mut files = Vec::new();
    let mut counts = Vec::new();
    for (fragment, (world, operations)) in fragments.iter().enumerate() {
        let fragment = fragment as u32;
        for table in Table::ALL {
            let rows = world.table(table);
            let columns = (0..table.columns().len()).map(|c| rows.iter().map(|r| r[c] as i64).collect()).collect();
            files.push(write_parquet(folder, &table.relative_path(fragment), &[table.batch(columns)]));
        }
        let mut batches = Vec::new();
        for (chunk, operations) in operations.chunks(100_000).enumerate() {
            let mut builder = OperationsBuilder::<Social>::new(kinds());
            for (index, operation) in operations.iter().enumerate() {
                let session = (chunk * 100_000 + index) as u64;
                let row = TraceRow::plain(session, 0, *operation, operation.socialite);
                builder.push(&TraceRow { kind: operation.action as u8, noops: noops_before(session), ..row });
            }
            batches.push(builder.finish());
        }
        if batches.is_empty() {
            batches.push(OperationsBuilder::<Social>::new(kinds()).finish());
        }
        files.push(write_parquet(folder, &format!("operations/fragment={fragment}/part-00000.parquet"), &batches));
        let sessions = operations.len() as u64;
        let weight = 1.0 / fragments.len() as f64;
        counts.push(FragmentCounts { fragment, weight, actors: world.count, sessions, operations: sessions });
    }
    let manifest = Manifest {
        format_version: schemas::TRACE_FORMAT_VERSION,
        generator_version: "test".into(),
        workload_id: spec().workload_id(),
        trace_id: String::new(),
        spec: spec(),
        fragments: counts,
        requested_mix: Default::default(),
        achieved_mix: Default::default(),
        operations_by_name: Default::default(),
        noops: Default::default(),
        ended_early: Default::default(),
        active_threads_max: 1,
        statistics: schemas::manifest::plain(&SocialStatistics::default()),
        files,
    };
    let manifest = manifest.identified();
    schemas::files::write_json(&folder.join(schemas::manifest::FILE_NAME), &manifest).unwrap();
}

fn write_parquet(folder: &Path, relative: &str, batches: &[arrow::array::RecordBatch]) -> FileEntry {
    let path = folder.join(relative);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batches[0].schema(), None).unwrap();
    let mut rows = 0;
    for batch in batches {
        writer.write(batch).unwrap();
        rows += batch.num_rows() as u64;
    }
    writer.close().unwrap();
    FileEntry {
        path: relative.into(),
        bytes: std::fs::metadata(&path).unwrap().len(),
        rows,
        blake3: schemas::files::blake3_of(&path).unwrap(),
    }
}
