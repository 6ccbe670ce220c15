//! Writes the transactions of a log as a trace set: each one is a session, due when it began.

use std::path::Path;

use schemas::manifest::Manifest;
use schemas::vocabulary::Control;
use schemas::vocabulary::sql::text::Dialect;
use schemas::vocabulary::sql::{self, Parameter, Type};

use super::statements::{ParameterType, Statement};
use super::transaction::{End, Transaction};
use super::values::Value;
use super::{ImportError, Imported};
use crate::core::error::GenerateError;
use crate::sql::{Act, Header, Process, SetWriter, Step};

/// The kinds of sessions: statements without BEGIN, and transactions.
const KINDS: [&str; 2] = ["statement", "transaction"];

/// How a trace set is written.
#[derive(Debug, Clone)]
pub struct SetOptions {
    /// The name of the trace set.
    pub name: String,
    /// What it is made from, such as `postgres-log`.
    pub source: &'static str,
    /// The SQL of the log and the schema.
    pub dialect: Dialect,
    /// The schema, as SQL; empty if the log's database is copied by other means.
    pub schema: String,
    /// Among how many fragments the sessions of the log are divided.
    pub fragments: u32,
    /// Whether transactions start at the times of the log.
    pub open_loop: bool,
    /// Whether a replay logs the rows that statements return.
    pub log_results: bool,
}

/// Writes a trace set into the folder `place`. Nothing is written if that fails.
pub fn write(imported: &mut Imported, place: &Path, options: &SetOptions) -> Result<Manifest, ImportError> {
    let header = Header {
        name: options.name.clone(),
        source: options.source.to_string(),
        dialect: options.dialect,
        schema: options.schema.clone(),
        statements: imported.statements.iter().map(statement).collect(),
        kinds: KINDS.map(String::from).to_vec(),
        fragments: options.fragments,
        log_results: options.log_results,
        checks: Vec::new(),
    };
    let mut writer = SetWriter::create(place, header)?;
    let mut first_us = None;
    while let Some(transaction) = imported.transactions.next_transaction()? {
        let first_us = *first_us.get_or_insert(transaction.begin_us);
        let due_us = options.open_loop.then_some(transaction.begin_us.abs_diff(first_us));
        writer.recorded_process(&process(&transaction, due_us), &recorded(&transaction))?;
    }
    Ok(writer.finish()?)
}

fn statement(one: &Statement) -> sql::Statement {
    let kind = |parameter: &ParameterType| match parameter {
        ParameterType::Integer => Type::Integer,
        ParameterType::Decimal => Type::Decimal,
        ParameterType::Unknown => Type::Unknown,
    };
    sql::Statement {
        name: String::new(),
        text: one.text.clone(),
        parameters: one.parameters.iter().map(kind).collect(),
        reads: one.reads,
        writes: one.writes,
        ordered: one.ordered,
    }
}

/// A transaction as a process. Between its steps the client waits as long as the log says: from the end of a
/// statement, or from its begin if the log does not say how long it took.
fn process(transaction: &Transaction, due_us: Option<u64>) -> Process<'_> {
    let is_plain = transaction.end == End::Autocommit;
    let mut steps = Vec::with_capacity(transaction.steps.len() + 2);
    let mut free_us = transaction.begin_us;
    if !is_plain {
        steps.push(Step { think_us: 0, act: Act::Control(Control::Begin) });
    }
    for (at, step) in transaction.steps.iter().enumerate() {
        let parameters = transaction.parameters(at).map(parameter).collect();
        let act = Act::Statement { number: step.statement, parameters, custom: Vec::new(), is_kept: false };
        steps.push(Step { think_us: wait(free_us, step.start_us), act });
        free_us = step.start_us.saturating_add_unsigned(step.took_us.unwrap_or(0));
    }
    let end = match transaction.end {
        End::Autocommit => None,
        End::Commit => Some(Control::Commit),
        End::Abort => Some(Control::Abort),
    };
    steps.extend(end.map(|end| Step { think_us: wait(free_us, transaction.end_us), act: Act::Control(end) }));
    Process { kind: usize::from(!is_plain), client: transaction.session, due_us, steps }
}

/// What the log says of each step of the process.
fn recorded(transaction: &Transaction) -> Vec<Option<(Option<u64>, bool)>> {
    let begin = (transaction.end != End::Autocommit).then_some(None);
    begin.into_iter().chain(transaction.steps.iter().map(|step| Some((step.took_us, step.failed)))).collect()
}

fn wait(from_us: i64, to_us: i64) -> u32 {
    u32::try_from((to_us - from_us).max(0)).unwrap_or(u32::MAX).min(i32::MAX as u32)
}

fn parameter(value: Value<'_>) -> Parameter<'_> {
    Parameter::Value(match value {
        Value::Null => sql::Value::Null,
        Value::Integer(number) => sql::Value::Integer(number),
        Value::Decimal(digits) => sql::Value::Decimal(digits),
        Value::Unknown(text) => sql::Value::Unknown(text),
    })
}

impl From<GenerateError> for ImportError {
    fn from(error: GenerateError) -> ImportError {
        ImportError::Write(error)
    }
}
