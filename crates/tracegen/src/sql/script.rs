//! What a process does: transactions of statements, each with its parameters, one call after the other.
//!
//! Parameters are encoded as they are given, so a generator can make one session at a time in the same room.

use schemas::vocabulary::Control;
use schemas::vocabulary::sql::{Operation, Parameter, Pick, ResultOf, Type, Value, Verb, encode};

use super::statements::Known;

/// The steps of a process.
#[derive(Debug, Clone, Default)]
pub struct Script {
    steps: Vec<(u32, Operation)>,
    bytes: Vec<u8>,
    think_us: u32,
    /// What cannot be a step of a trace.
    wrong: Option<String>,
}

impl Script {
    /// No step yet.
    pub fn new() -> Script {
        Script::default()
    }

    /// Removes all steps, and keeps their room.
    pub fn clear(&mut self) {
        self.steps.clear();
        self.bytes.clear();
        (self.think_us, self.wrong) = (0, None);
    }

    /// The client waits so long before the next step.
    pub fn wait_us(&mut self, think_us: u32) -> &mut Script {
        self.think_us = think_us;
        self
    }

    /// Begins a transaction.
    pub fn begin(&mut self) -> Transaction<'_> {
        self.push(Operation::of_transaction(Control::Begin));
        Transaction { script: self }
    }

    /// A statement outside of a transaction.
    pub fn statement(&mut self, statement: Known) -> Call<'_> {
        let start = self.bytes.len();
        Call { start, script: self, statement, custom: None, uses_results: false }
    }

    /// The operations, each with the wait before it. What they have of variable length is in
    /// [`Script::bytes`].
    pub fn operations(&self) -> &[(u32, Operation)] {
        &self.steps
    }

    /// The parameters of all operations.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Why the steps cannot be a session; None if they can.
    pub fn wrong(&self) -> Option<&str> {
        self.wrong.as_deref()
    }

    fn push(&mut self, operation: Operation) -> u16 {
        // A session has at most 32,767 steps, which is checked where it is written.
        let step = self.steps.len() as u16;
        self.steps.push((std::mem::take(&mut self.think_us), operation));
        step
    }

    pub(super) fn push_control(&mut self, control: Control) {
        self.push(Operation::of_transaction(control));
    }

    pub(super) fn push_statement(
        &mut self,
        (verb, number): (Verb, u32),
        parameters: &[Parameter<'_>],
        custom: &[&str],
        is_kept: bool,
    ) {
        match Operation::statement(verb, number, parameters, custom, &mut self.bytes) {
            Ok(operation) => {
                self.push(if is_kept { operation.kept() } else { operation });
            }
            Err(error) => self.wrong = Some(error.to_string()),
        }
    }
}

/// A transaction that is open. It must be committed or aborted.
#[must_use = "a transaction that is neither committed nor aborted is refused"]
#[derive(Debug)]
pub struct Transaction<'s> {
    script: &'s mut Script,
}

impl<'s> Transaction<'s> {
    /// A statement of the transaction.
    pub fn statement(&mut self, statement: Known) -> Call<'_> {
        self.script.statement(statement)
    }

    /// The client waits so long before the next step.
    pub fn wait_us(&mut self, think_us: u32) {
        self.script.wait_us(think_us);
    }

    /// Ends the transaction: it has happened.
    pub fn commit(self) -> &'s mut Script {
        self.script.push_control(Control::Commit);
        self.script
    }

    /// Ends the transaction: nothing of it has happened.
    pub fn abort(self) -> &'s mut Script {
        self.script.push_control(Control::Abort);
        self.script
    }
}

/// The result of a statement that later statements of the process use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept(u16);

impl Kept {
    /// A column of its first row, from 0.
    pub fn first(self, column: u16) -> Column {
        Column { step: self.0, column, pick: Pick::First }
    }

    /// A column of its middle row.
    pub fn middle(self, column: u16) -> Column {
        Column { pick: Pick::Middle, ..self.first(column) }
    }

    /// A column of its last row.
    pub fn last(self, column: u16) -> Column {
        Column { pick: Pick::Last, ..self.first(column) }
    }

    /// A column of the row with this number, from 0 to [`Pick::NTH_MAX`].
    pub fn nth(self, row: u8, column: u16) -> Column {
        Column { pick: Pick::Nth(row), ..self.first(column) }
    }
}

/// A column of a row of a result. It is NULL if the result has no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    step: u16,
    column: u16,
    pick: Pick,
}

/// A statement whose parameters are given one after the other. [`Call::run`] or [`Call::keep`] ends it.
#[must_use = "a statement is part of the process after run() or keep()"]
#[derive(Debug)]
pub struct Call<'s> {
    script: &'s mut Script,
    statement: Known,
    start: usize,
    /// Where the custom parameters begin, if there are any.
    custom: Option<usize>,
    uses_results: bool,
}

impl Call<'_> {
    fn value(self, value: Value<'_>) -> Self {
        self.parameter(Parameter::Value(value))
    }

    fn parameter(self, parameter: Parameter<'_>) -> Self {
        if self.custom.is_some() {
            self.script.wrong = Some("has a parameter after a custom one; custom parameters come last".to_string());
        }
        encode([parameter], &mut self.script.bytes);
        self
    }

    /// NULL.
    pub fn null(self) -> Self {
        self.value(Value::Null)
    }

    /// A whole number.
    pub fn integer(self, number: i64) -> Self {
        self.value(Value::Integer(number))
    }

    /// A whole number that is not negative, such as an id below 2^63.
    pub fn id(self, number: u64) -> Self {
        self.integer(number as i64)
    }

    /// A floating point number.
    pub fn float(self, number: f64) -> Self {
        self.value(Value::Float(number))
    }

    /// A text.
    pub fn text(self, text: &str) -> Self {
        self.value(Value::Text(text))
    }

    /// Bytes.
    pub fn bytes(self, bytes: &[u8]) -> Self {
        self.value(Value::Bytes(bytes))
    }

    /// A decimal number, by its digits.
    pub fn decimal(self, digits: &str) -> Self {
        self.value(Value::Decimal(digits))
    }

    /// `YYYY-MM-DD HH:MM:SS`, perhaps with a fraction of a second.
    pub fn timestamp(self, text: &str) -> Self {
        self.value(Value::Timestamp(text))
    }

    /// `YYYY-MM-DD`.
    pub fn date(self, text: &str) -> Self {
        self.value(Value::Date(text))
    }

    /// A column of what an earlier statement of the process has returned, as a parameter of this type.
    pub fn result(mut self, Column { step, column, pick }: Column, kind: Type) -> Self {
        self.uses_results = true;
        self.parameter(Parameter::Result(ResultOf { kind, step, column, pick }))
    }

    /// A custom parameter, which is not the statement's: the store gets it as it is, such as a consistency level. Custom
    /// parameters come last.
    pub fn custom(mut self, text: &str) -> Self {
        self.custom.get_or_insert(self.script.bytes.len());
        encode([Parameter::Value(Value::Text(text))], &mut self.script.bytes);
        self
    }

    /// The statement is a step of the process.
    pub fn run(self) {
        self.end(false);
    }

    /// The same, and later statements use what it returns.
    pub fn keep(self) -> Kept {
        Kept(self.end(true))
    }

    fn end(self, is_kept: bool) -> u16 {
        let Known { number, verb } = self.statement;
        let bytes = &self.script.bytes;
        let custom = self.custom.unwrap_or(bytes.len());
        match Operation::encoded((verb, number), self.start, custom, self.uses_results, bytes) {
            Ok(operation) => self.script.push(if is_kept { operation.kept() } else { operation }),
            Err(error) => {
                self.script.wrong = Some(error.to_string());
                0
            }
        }
    }
}
