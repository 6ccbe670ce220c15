//! Processes as sessions of a trace: a file of operations for each fragment.

use std::path::Path;

use schemas::manifest::{FileEntry, FragmentCounts};
use schemas::trace::{OperationsBuilder, TraceRow, operations_schema};
use schemas::vocabulary::sql::{Operation, Parameter, Sql, Statement};
use schemas::vocabulary::{Control, Operation as _};

use super::script::Script;
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

impl Process<'_> {
    /// Its steps as a script.
    pub(super) fn write_to(&self, script: &mut Script, statements: &[Statement]) -> Result<(), String> {
        script.clear();
        for Step { think_us, act } in &self.steps {
            script.wait_us(*think_us);
            match act {
                Act::Control(control) => script.push_control(*control),
                Act::Statement { number, parameters, custom, is_kept } => {
                    let verb = statements.get(*number as usize).and_then(Statement::verb);
                    let verb = verb.ok_or_else(|| format!("statement {number} does not exist"))?;
                    script.push_statement((verb, *number), parameters, custom, *is_kept);
                }
            }
        }
        Ok(())
    }
}

/// Whose session it is, and when it is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionOf {
    pub(super) kind: usize,
    pub(super) client: u64,
    pub(super) due_us: Option<u64>,
}

/// Refuses parameters that are not those of the statement.
fn check(operation: &Operation, step: usize, bytes: &[u8], statements: &[Statement]) -> Result<(), String> {
    let statement = statements.get(operation.statement as usize);
    let statement = statement.ok_or_else(|| format!("statement {} does not exist", operation.statement))?;
    let mut count = 0;
    for parameter in operation.parameters(bytes) {
        let parameter = parameter?;
        if let (Some(found), Some(expected)) = (parameter.kind(), statement.parameters.get(count))
            && found != *expected
        {
            let number = count + 1;
            return Err(format!("parameter {number} is of type {found}, expected {expected}: {}", statement.text));
        }
        if let Parameter::Result(result) = parameter
            && usize::from(result.step) >= step
        {
            return Err(format!("parameter {} is the result of step {}, which is later", count + 1, result.step));
        }
        count += 1;
    }
    let expected = statement.parameters.len();
    if count != expected {
        return Err(format!("has {count} parameters, and the statement has {expected}: {}", statement.text));
    }
    Ok(())
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

    /// Adds a session of a kind and a client. Calls `each` with the code and the statement of each operation.
    pub(super) fn push(
        &mut self,
        folder: &Path,
        session: SessionOf,
        script: &Script,
        statements: &[Statement],
        mut each: impl FnMut(u8, Option<u32>),
    ) -> Result<(), GenerateError> {
        let wrong = |message: String| Err(GenerateError::Infeasible(format!("session {}: {message}", self.sessions)));
        let steps = script.operations();
        if let Some(why) = script.wrong() {
            return wrong(why.to_string());
        }
        if steps.is_empty() || steps.len() > i16::MAX as usize {
            return wrong(format!("has {} operations, and 1 to {} are possible", steps.len(), i16::MAX));
        }
        if session.due_us.is_some_and(|due_us| due_us < self.due_us) {
            return wrong("starts before the session in front of it; sort them by time".into());
        }
        let mut txn = None;
        for (step, (_, operation)) in steps.iter().enumerate() {
            match (operation.control(), txn) {
                (Some(Control::Begin), None) => txn = Some(step),
                (Some(Control::Begin), Some(_)) => return wrong(format!("step {step} begins a second transaction")),
                (Some(_), None) => return wrong(format!("step {step} ends a transaction, and none has begun")),
                (Some(_), Some(_)) => txn = None,
                (None, _) => {
                    if let Err(why) = check(operation, step, script.bytes(), statements) {
                        return wrong(format!("step {step}: {why}"));
                    }
                }
            }
        }
        if txn.is_some() {
            return wrong("leaves its transaction open; end it with a commit or an abort".into());
        }
        self.due_us = session.due_us.unwrap_or_default();
        let moved = self.rows.variable().len();
        self.rows.variable().extend_from_slice(script.bytes());
        let mut txn = None;
        for (step, (think_us, operation)) in steps.iter().enumerate() {
            let step = step as u16;
            let control = operation.control();
            if control == Some(Control::Begin) {
                txn = Some(step);
            }
            let row = TraceRow::plain(self.sessions, step, operation.moved(moved), session.client);
            let due_us = session.due_us.filter(|_| step == 0);
            self.rows.push(&TraceRow { kind: session.kind as u8, think_us: *think_us, due_us, txn, ..row });
            each(operation.code(), control.is_none().then_some(operation.statement));
            if matches!(control, Some(Control::Commit | Control::Abort)) {
                txn = None;
            }
        }
        self.sessions += 1;
        self.operations += steps.len() as u64;
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
