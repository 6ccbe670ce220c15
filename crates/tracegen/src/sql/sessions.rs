//! Processes as sessions of a trace: a file of operations for each fragment.

use std::path::Path;

use schemas::manifest::{FileEntry, FragmentCounts};
use schemas::trace::{OperationsBuilder, TraceRow, operations_schema};
use schemas::vocabulary::sql::{Operation, Parameter, Sql, Statement};
use schemas::vocabulary::{Control, Operation as _};

use crate::core::error::GenerateError;
use crate::core::output::TableFile;

/// Operations are written after the session that brings the batch to this many, or to so many bytes.
const BATCH_OPERATIONS: usize = 16_384;
const BATCH_BYTES: usize = 32 << 20;

/// A file is closed after the batch that brings it to this many operations.
const PART_OPERATIONS: u64 = 4_194_304;

/// A process: what a client does in one session.
#[derive(Debug, Clone, PartialEq)]
pub struct Process<'a> {
    /// The kind of its session, as an index into [`Header::kinds`](super::Header::kinds).
    pub kind: usize,
    /// On whose behalf it runs, from 0.
    pub client: u64,
    /// When it starts, in microseconds from the start of the load; none in a closed loop.
    pub due_us: Option<u64>,
    /// What it does, at least one step.
    pub steps: Vec<Step<'a>>,
}

/// A step of a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Step<'a> {
    /// How long the client waits before it.
    pub think_us: u32,
    /// What it does.
    pub act: Act<'a>,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum Act<'a> {
    /// Begins, commits or aborts a transaction.
    Control(Control),
    /// A statement.
    Statement {
        /// Its number.
        number: u32,
        /// Its parameters.
        parameters: Vec<Parameter<'a>>,
        /// What only the adapter interprets.
        custom: Vec<&'a str>,
        /// Whether a parameter of a later step is a result of this one.
        is_kept: bool,
    },
}

/// The operations of a fragment that is being written.
pub(super) struct FragmentFile {
    fragment: u32,
    rows: OperationsBuilder<Sql>,
    file: Option<TableFile>,
    files: Vec<FileEntry>,
    pub(super) sessions: u64,
    operations: u64,
    due_us: u64,
}

impl FragmentFile {
    pub(super) fn new(fragment: u32, kinds: &[String]) -> FragmentFile {
        FragmentFile {
            fragment,
            rows: OperationsBuilder::new(kinds.iter().map(String::as_str)),
            file: None,
            files: Vec::new(),
            sessions: 0,
            operations: 0,
            due_us: 0,
        }
    }

    /// Adds a session. Calls `each` with the code and the statement of each operation.
    pub(super) fn push(
        &mut self,
        folder: &Path,
        process: &Process<'_>,
        statements: &[Statement],
        mut each: impl FnMut(u8, Option<u32>),
    ) -> Result<(), GenerateError> {
        let wrong = |message: String| Err(GenerateError::Infeasible(format!("session {}: {message}", self.sessions)));
        if process.steps.is_empty() || process.steps.len() > i16::MAX as usize {
            return wrong(format!("has {} operations, and 1 to {} are possible", process.steps.len(), i16::MAX));
        }
        if process.due_us.is_some_and(|due_us| due_us < self.due_us) {
            return wrong("starts before the session in front of it; sort them by time".into());
        }
        self.due_us = process.due_us.unwrap_or_default();
        let mut txn = None;
        for (step, Step { think_us, act }) in process.steps.iter().enumerate() {
            let step = step as u16;
            let operation = match act {
                Act::Control(control) => Operation::of_transaction(*control),
                Act::Statement { number, parameters, custom, is_kept } => {
                    let verb = statements.get(*number as usize).and_then(Statement::verb);
                    let Some(verb) = verb else { return wrong(format!("statement {number} does not exist")) };
                    let operation = Operation::statement(verb, *number, parameters, custom, self.rows.variable());
                    let operation = operation.map_err(|e| GenerateError::Infeasible(e.to_string()))?;
                    if *is_kept { operation.kept() } else { operation }
                }
            };
            let control = operation.control();
            match (control, txn) {
                (Some(Control::Begin), None) => txn = Some(step),
                (Some(Control::Begin), Some(_)) => return wrong(format!("step {step} begins a second transaction")),
                (Some(_), None) => return wrong(format!("step {step} ends a transaction, and none has begun")),
                _ => {}
            }
            let row = TraceRow::plain(self.sessions, step, operation, process.client);
            let due_us = process.due_us.filter(|_| step == 0);
            self.rows.push(&TraceRow { kind: process.kind as u8, think_us: *think_us, due_us, txn, ..row });
            each(operation.code(), control.is_none().then_some(operation.statement));
            if matches!(control, Some(Control::Commit | Control::Abort)) {
                txn = None;
            }
        }
        if txn.is_some() {
            return wrong("leaves its transaction open; end it with a commit or an abort".into());
        }
        self.sessions += 1;
        self.operations += process.steps.len() as u64;
        if self.rows.len() >= BATCH_OPERATIONS || self.rows.variable().len() >= BATCH_BYTES {
            self.flush(folder)?;
        }
        Ok(())
    }

    fn flush(&mut self, folder: &Path) -> Result<(), GenerateError> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                let part = format!("operations/fragment={}/part-{:05}.parquet", self.fragment, self.files.len());
                TableFile::create(folder, part, operations_schema::<Sql>())?
            }
        };
        file.write(&self.rows.finish())?;
        match file.rows() >= PART_OPERATIONS {
            true => self.files.push(file.finish()?),
            false => self.file = Some(file),
        }
        Ok(())
    }

    /// The files, and the share of the sessions.
    pub(super) fn finish(
        mut self,
        folder: &Path,
        sessions: u64,
        actors: u64,
    ) -> Result<(Vec<FileEntry>, FragmentCounts), GenerateError> {
        if !self.rows.is_empty() {
            self.flush(folder)?;
        }
        if let Some(file) = self.file.take() {
            self.files.push(file.finish()?);
        }
        let counts = FragmentCounts {
            fragment: self.fragment,
            weight: self.sessions as f64 / sessions.max(1) as f64,
            actors,
            sessions: self.sessions,
            operations: self.operations,
        };
        Ok((self.files, counts))
    }
}
