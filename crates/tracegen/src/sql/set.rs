//! Writes a trace set of the family: schema, statements, preload and processes go in, a folder comes out, whole
//! or not at all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemas::TRACE_FORMAT_VERSION;
use schemas::files::{at, blake3_of, write_json};
use schemas::manifest::{self, FileEntry, Manifest};
use schemas::spec::SpecOf;
use schemas::vocabulary::sql::text::{Dialect, definitions, is_insert_of_a_row};
use schemas::vocabulary::sql::{Parameter, STATEMENTS, Sql, Statement, encode, statements_batch, statements_schema};
use schemas::workload::sql::checks::{CHECKS, Check, checks_text, validate_checks};
use schemas::workload::sql::dataset::{PRELOAD, SCHEMA, preload_batch, preload_schema};
use schemas::workload::sql::recorded::Recorded;
use schemas::workload::sql::{CustomUse, Data, Results, SqlStatistics, SqlWorkload};

use super::arrivals::DueTimes;
use super::recorded::RecordedFile;
use super::script::Script;
use super::sessions::{FragmentFile, Process, SessionOf};
use crate::core::counts::Counts;
use crate::core::error::GenerateError;
use crate::core::output::TableFile;
use crate::core::target::Target;

/// Statements of the preload that are written at once.
const PRELOAD_ROWS: usize = 16_384;

/// What is known of a trace set before its processes.
#[derive(Debug, Clone)]
pub struct Header {
    /// The name of the trace set.
    pub name: String,
    /// What it is made from, such as `benchfoundry`.
    pub source: String,
    /// The SQL of schema and statements.
    pub dialect: Dialect,
    /// The schema.
    pub schema: String,
    /// The statements, in the order of their numbers.
    pub statements: Vec<Statement>,
    /// The kinds of processes.
    pub kinds: Vec<String>,
    /// Among how many fragments the clients are divided.
    pub fragments: u32,
    /// Whether the log of a replay has the rows that statements return.
    pub log_results: bool,
    /// The conditions that the data keep.
    pub checks: Vec<Check>,
}

/// A trace set that is being written. Dropped before [`SetWriter::finish`], it leaves nothing.
pub struct SetWriter {
    header: Header,
    tables: u64,
    place: PathBuf,
    target: Target,
    preload: TableFile,
    preload_rows: Vec<(u32, Vec<u8>)>,
    /// Whether each statement inserts one row.
    inserts: Vec<bool>,
    loaded_rows: Option<u64>,
    fragments: Vec<FragmentFile>,
    recorded: Vec<RecordedFile>,
    counts: Counts,
    uses: Vec<u64>,
    /// How many operations have these custom parameters, by statement.
    custom: BTreeMap<(u32, Vec<String>), u64>,
    due: DueTimes,
    clients: u64,
    /// How many of the processes that were added are the warm-up.
    pub(super) warmup_sessions: u64,
    /// Room for the steps of a process.
    script: Script,
}

impl SetWriter {
    /// Begins the trace set of a folder, which must not exist or hold the same trace set.
    pub fn create(place: &Path, header: Header) -> Result<SetWriter, GenerateError> {
        let wrong = |message: String| GenerateError::Infeasible(format!("schema: {message}"));
        let (all, _) = definitions(&header.schema, header.dialect, header.dialect).map_err(wrong)?;
        let tables = all.iter().filter(|one| one.table.is_some()).count() as u64;
        validate_checks(&header.checks, header.dialect).map_err(GenerateError::Infeasible)?;
        let target = Target::beside(place)?;
        let preload = TableFile::create(&target.folder(), PRELOAD.to_string(), preload_schema())?;
        let inserts = header.statements.iter().map(|one| is_insert_of_a_row(&one.text, header.dialect)).collect();
        Ok(SetWriter {
            tables,
            place: place.to_path_buf(),
            target,
            preload,
            preload_rows: Vec::new(),
            inserts,
            loaded_rows: Some(0),
            fragments: (0..header.fragments).map(|fragment| FragmentFile::new(fragment, &header.kinds)).collect(),
            recorded: (0..header.fragments).map(RecordedFile::new).collect(),
            counts: Counts::new(header.kinds.len(), <Sql as schemas::vocabulary::Vocabulary>::KINDS.len()),
            uses: vec![0; header.statements.len()],
            custom: BTreeMap::new(),
            due: DueTimes::default(),
            clients: 0,
            warmup_sessions: 0,
            script: Script::new(),
            header,
        })
    }

    /// Adds a statement that fills the tables before the first session.
    pub fn preload(&mut self, statement: u32, parameters: &[Parameter<'_>]) -> Result<(), GenerateError> {
        let mut bytes = Vec::new();
        encode(parameters.iter().copied(), &mut bytes);
        let inserts_one = self.inserts.get(statement as usize).copied().unwrap_or_default();
        self.loaded_rows = self.loaded_rows.filter(|_| inserts_one).map(|rows| rows + 1);
        self.preload_rows.push((statement, bytes));
        if self.preload_rows.len() >= PRELOAD_ROWS { self.flush_preload() } else { Ok(()) }
    }

    /// Adds statements, with their parameters, that fill the tables.
    pub(super) fn fill(&mut self, rows: &Script) -> Result<(), GenerateError> {
        for (_, operation) in rows.operations() {
            let parameters: Result<Vec<_>, _> = operation.parameters(rows.bytes()).collect();
            let parameters = parameters.map_err(|why| GenerateError::Infeasible(why.to_string()))?;
            self.preload(operation.statement, &parameters)?;
        }
        Ok(())
    }

    fn flush_preload(&mut self) -> Result<(), GenerateError> {
        let rows = std::mem::take(&mut self.preload_rows);
        self.preload.write(&preload_batch(&rows))
    }

    /// Adds a process of the warm-up. All of them come before the others.
    pub fn warmup(&mut self, process: &Process<'_>) -> Result<(), GenerateError> {
        self.warmup_sessions += 1;
        self.process(process)
    }

    /// Adds a process. Processes are ordered by their due times, and all of them have one or none has.
    pub fn process(&mut self, process: &Process<'_>) -> Result<(), GenerateError> {
        let mut script = std::mem::take(&mut self.script);
        let session = SessionOf { kind: process.kind, client: process.client, due_us: process.due_us };
        let written = process.write_to(&mut script, &self.header.statements);
        let written = written.map_err(GenerateError::Infeasible).and_then(|()| self.script(session, &script));
        self.script = script;
        written
    }

    /// Adds a process by its steps.
    pub(super) fn script(&mut self, session: SessionOf, script: &Script) -> Result<(), GenerateError> {
        let fragment = session.client % self.fragments.len() as u64;
        let SetWriter { fragments, counts, uses, .. } = self;
        let folder = self.target.folder();
        let each = |code: u8, statement: Option<u32>| {
            counts.operations[code as usize] += 1;
            if let Some(uses) = statement.and_then(|statement| uses.get_mut(statement as usize)) {
                *uses += 1;
            }
        };
        let pushed = fragments[fragment as usize].push(&folder, session, script, &self.header.statements, each);
        pushed.map_err(|error| error.named(&folder, &self.place))?;
        for (_, operation) in script.operations() {
            let custom: Vec<String> = operation.custom(script.bytes()).map(String::from).collect();
            if custom.is_empty() {
                continue;
            }
            let key = (operation.statement, custom);
            if self.custom.len() < CustomUse::MOST || self.custom.contains_key(&key) {
                *self.custom.entry(key).or_default() += 1;
            }
        }
        self.counts.sessions[session.kind] += 1;
        self.clients = self.clients.max(session.client + 1);
        if let Some(due_us) = session.due_us {
            self.due.add(due_us);
        }
        Ok(())
    }

    /// Adds a process with what a log recorded of its statements: for each step how long it took, if the log says it,
    /// and whether it failed; None for steps that are no statements.
    pub fn recorded_process(
        &mut self,
        process: &Process<'_>,
        recorded: &[Option<(Option<u64>, bool)>],
    ) -> Result<(), GenerateError> {
        let fragment = (process.client % self.fragments.len() as u64) as usize;
        let session = self.fragments[fragment].sessions;
        self.process(process)?;
        let of_statements = (0..).zip(recorded).filter_map(|(step, one)| Some((step, (*one)?)));
        let rows = of_statements.map(|(step, (took_us, failed))| Recorded { session, step, took_us, failed });
        self.recorded[fragment].push(&self.target.folder(), rows)
    }

    /// Writes what is left, and puts the trace set in its place.
    pub fn finish(mut self) -> Result<Manifest, GenerateError> {
        self.flush_preload()?;
        let folder = self.target.folder();
        let preloaded = self.preload.rows();
        let mut files = vec![self.preload.finish()?];
        let mut table = TableFile::create(&folder, STATEMENTS.to_string(), statements_schema())?;
        table.write(&statements_batch(&self.header.statements))?;
        files.push(table.finish()?);
        files.push(text_file(&folder, SCHEMA, &self.header.schema, self.tables)?);
        if !self.header.checks.is_empty() {
            let text = checks_text(&self.header.checks);
            files.push(text_file(&folder, CHECKS, &text, self.header.checks.len() as u64)?);
        }
        for recorded in self.recorded {
            files.extend(recorded.finish(&folder)?);
        }
        let sessions: u64 = self.fragments.iter().map(|fragment| fragment.sessions).sum();
        let count = self.header.fragments as u64;
        let mut fragments = Vec::new();
        for (number, fragment) in (0..).zip(self.fragments) {
            let clients = (self.clients + count - 1).saturating_sub(number) / count;
            let (own, counts) = fragment.finish(&folder, sessions, clients)?;
            files.extend(own);
            fragments.push(counts);
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        let mut spec = SpecOf::new(SqlWorkload {
            data: Data {
                source: self.header.source,
                dialect: self.header.dialect,
                content: content(&files),
                tables: self.tables,
                statements: self.header.statements.len() as u64,
                preload: preloaded,
                clients: self.clients,
                warmup_sessions: self.warmup_sessions,
                checks: self.header.checks.len() as u64,
            },
            results: Results { log_results: self.header.log_results },
        });
        spec.common.name = self.header.name;
        spec.common.sessions = sessions;
        spec.common.fragments = self.header.fragments;
        spec.common.arrivals = self.due.arrivals();
        let used = self.header.kinds.iter().zip(&self.counts.sessions).filter(|(_, sessions)| **sessions > 0);
        spec.common.mix = used.map(|(kind, sessions)| (kind.clone(), *sessions as f64)).collect();
        let spec = spec.whole();
        spec.check(&spec.name)?;
        let workload_id = spec.workload_id();
        let mix = spec.mix.iter().map(|(kind, count)| (kind.clone(), count / sessions.max(1) as f64));
        let mix: BTreeMap<_, _> = mix.collect();
        let custom = self.custom.into_iter();
        let statistics = SqlStatistics {
            statements: self.header.statements.iter().map(Statement::signature).collect(),
            uses: self.uses,
            loaded_rows: self.loaded_rows,
            custom: custom.map(|((statement, parameters), uses)| CustomUse { statement, parameters, uses }).collect(),
            length_us: self.due.last_us,
        };
        let manifest = Manifest {
            format_version: TRACE_FORMAT_VERSION,
            generator_version: env!("CARGO_PKG_VERSION").into(),
            workload_id: workload_id.clone(),
            trace_id: String::new(),
            spec,
            fragments,
            requested_mix: mix.clone(),
            achieved_mix: mix,
            operations_by_name: self.counts.by_name::<Sql>(),
            noops: Default::default(),
            ended_early: Default::default(),
            active_threads_max: self.clients.max(1),
            statistics: manifest::plain(&statistics),
            files,
        };
        let manifest = manifest.identified();
        write_json(&folder.join(manifest::FILE_NAME), &manifest)?;
        self.target.check(&workload_id, sessions)?;
        self.target.put_in_place()?;
        Ok(manifest)
    }
}

/// Writes a text as it is. `rows` is what it has of tables or conditions.
pub(crate) fn text_file(folder: &Path, name: &str, text: &str, rows: u64) -> Result<FileEntry, GenerateError> {
    let path = folder.join(name);
    std::fs::write(&path, text).map_err(at(&path))?;
    Ok(FileEntry { path: name.to_string(), bytes: text.len() as u64, rows, blake3: blake3_of(&path)? })
}

/// The sum over all files.
fn content(files: &[FileEntry]) -> String {
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(file.path.as_bytes());
        hasher.update(file.blake3.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
