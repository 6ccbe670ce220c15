//! The vocabulary of relational databases: numbered statements with typed parameters, and transactions of
//! them (benchfoundry-2016, section 3.3).
//!
//! A trace set has a list of its statements ([`Statement`]). An operation is the number of one of them and
//! its parameters. A parameter is a value, or a column of what an earlier step of the session has returned
//! ([`ResultOf`]).

mod answer;
mod columns;
mod parameters;
pub mod physical;
mod results;
mod statements;
pub mod text;

use super::{Control, OperationKind, Place, Vocabulary};

pub use answer::{Answered, EMPTY, Rows, canonical};
pub use columns::Columns;
pub use parameters::{Parameter, Pick, ResultOf, Type, Value, decode, encode};
pub use results::Results;
pub use statements::{STATEMENTS, Statement, read_statements, statements_batch, statements_schema};

/// The vocabulary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sql;

impl Vocabulary for Sql {
    const NAME: &'static str = "sql";
    const KINDS: &'static [OperationKind] = &Verb::KINDS;
    const HAS_SESSION_FIGURES: bool = true;
    type Operation = Operation;
    type Columns = Columns;
    type Memory = Memory;
    type Request = Request;

    fn request<'a>(
        operation: &'a Operation,
        columns: &Columns,
        memory: &'a mut Memory,
    ) -> Result<&'a Request, &'static str> {
        let (parameters, custom) = columns.bytes(operation);
        memory.request.fill(operation, parameters, custom, &memory.results)?;
        Ok(&memory.request)
    }

    fn forget(memory: &mut Memory) {
        memory.results.forget();
    }

    /// Another try of a transaction may use what the session has read before the transaction. What an
    /// earlier try has read is replaced before it is used.
    fn forget_try(_memory: &mut Memory) {}

    fn remember(memory: &mut Memory, operation: &Operation, observed: &[i64]) {
        if operation.is_kept {
            memory.results.keep(operation.step, observed);
        }
    }
}

/// What a session keeps of its results, and the room of its requests.
#[derive(Debug, Default)]
pub struct Memory {
    results: Results,
    request: Request,
}

/// An operation of a trace with its envelope.
pub type TraceRow = super::TraceRow<Operation>;

/// What is done. The discriminant is the code used in memory; files carry the [name](Verb::name).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Verb {
    /// A statement that reads.
    Query = 0,
    /// A statement that writes.
    Update = 1,
    /// A statement that reads and writes, for example an `INSERT … RETURNING`.
    Call = 2,
    /// The operations that follow are a transaction.
    Begin = 3,
    /// The transaction ends, and has happened.
    Commit = 4,
    /// The transaction ends, and has not happened.
    Abort = 5,
}

impl Verb {
    /// Every verb, in the order of their codes.
    pub const ALL: [Verb; 6] = [Verb::Query, Verb::Update, Verb::Call, Verb::Begin, Verb::Commit, Verb::Abort];

    /// The verbs as kinds of operations.
    const KINDS: [OperationKind; Verb::ALL.len()] = {
        let mut kinds = [OperationKind { name: "", reads: false, writes: false }; Verb::ALL.len()];
        let mut code = 0;
        while code < kinds.len() {
            let verb = Verb::ALL[code];
            kinds[code] = OperationKind { name: verb.name(), reads: verb.reads(), writes: verb.writes() };
            code += 1;
        }
        kinds
    };

    /// The verb of a statement. None if it neither reads nor writes.
    pub const fn of(reads: bool, writes: bool) -> Option<Verb> {
        match (reads, writes) {
            (true, false) => Some(Verb::Query),
            (false, true) => Some(Verb::Update),
            (true, true) => Some(Verb::Call),
            (false, false) => None,
        }
    }

    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Verb::Query => "query",
            Verb::Update => "update",
            Verb::Call => "call",
            Verb::Begin => "begin",
            Verb::Commit => "commit",
            Verb::Abort => "abort",
        }
    }

    /// Whether it observes data.
    pub const fn reads(self) -> bool {
        matches!(self, Verb::Query | Verb::Call)
    }

    /// Whether it changes data.
    pub const fn writes(self) -> bool {
        matches!(self, Verb::Update | Verb::Call)
    }

    /// What it does to a transaction; None for statements.
    #[inline]
    pub const fn control(self) -> Option<Control> {
        match self {
            Verb::Begin => Some(Control::Begin),
            Verb::Commit => Some(Control::Commit),
            Verb::Abort => Some(Control::Abort),
            Verb::Query | Verb::Update | Verb::Call => None,
        }
    }
}

/// One operation. Its parameters are in the [`Columns`] that it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// What is done.
    pub verb: Verb,
    /// Whether a later step of the session uses the result.
    pub is_kept: bool,
    /// Whether a parameter is the result of an earlier step.
    pub uses_results: bool,
    /// The step in its session.
    pub step: u16,
    /// The number of the statement; 0 for begin, commit and abort.
    pub statement: u32,
    /// Where its parameters begin.
    start: u32,
    /// How many bytes the parameters have.
    parameters: u32,
    /// How many bytes the custom parameters have, which follow.
    custom: u32,
}

impl Operation {
    /// A statement, after its parameters were added to `bytes`. Fails if there are more than 4 GiB.
    pub fn statement(
        verb: Verb,
        statement: u32,
        parameters: &[Parameter<'_>],
        custom: &[&str],
        bytes: &mut Vec<u8>,
    ) -> Result<Operation, TooLong> {
        let start = position(bytes)?;
        encode(parameters.iter().copied(), bytes);
        let between = position(bytes)?;
        encode(custom.iter().map(|text| Parameter::Value(Value::Text(text))), bytes);
        let end = position(bytes)?;
        let uses_results = parameters.iter().any(|parameter| matches!(parameter, Parameter::Result(_)));
        Ok(Operation {
            uses_results,
            statement,
            start,
            parameters: between - start,
            custom: end - between,
            ..Operation::plain(verb)
        })
    }

    /// A statement whose parameters are in `bytes` from `start` on, encoded, and its custom ones after them. Both
    /// end with the bytes.
    pub fn encoded(
        (verb, statement): (Verb, u32),
        start: usize,
        custom: usize,
        uses_results: bool,
        bytes: &[u8],
    ) -> Result<Operation, TooLong> {
        let end = position(bytes)?;
        Ok(Operation {
            uses_results,
            statement,
            // Neither lies beyond the end.
            start: start as u32,
            parameters: (custom - start) as u32,
            custom: end - custom as u32,
            ..Operation::plain(verb)
        })
    }

    /// Its parameters, in the bytes that it was made with.
    pub fn parameters<'a>(
        &self,
        bytes: &'a [u8],
    ) -> impl Iterator<Item = Result<Parameter<'a>, &'static str>> + use<'a> {
        let (start, end) = (self.start as usize, self.start as usize + self.parameters as usize);
        decode(bytes.get(start..end).unwrap_or_default())
    }

    /// Its custom parameters, in the bytes that it was made with.
    pub fn custom<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = &'a str> + use<'a> {
        let start = self.start as usize + self.parameters as usize;
        texts(bytes.get(start..start + self.custom as usize).unwrap_or_default())
    }

    /// The same, and a later step of the session uses the result.
    pub fn kept(self) -> Operation {
        Operation { is_kept: true, ..self }
    }

    /// The operation that begins or ends a transaction.
    pub const fn of_transaction(control: Control) -> Operation {
        Operation::plain(match control {
            Control::Begin => Verb::Begin,
            Control::Commit => Verb::Commit,
            Control::Abort => Verb::Abort,
        })
    }

    const fn plain(verb: Verb) -> Operation {
        Operation {
            verb,
            is_kept: false,
            uses_results: false,
            step: 0,
            statement: 0,
            start: 0,
            parameters: 0,
            custom: 0,
        }
    }
}

/// Parameters that no trace can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the parameters of some operations have more than 4 GiB; shorten the longest")]
pub struct TooLong;

fn position(bytes: &[u8]) -> Result<u32, TooLong> {
    u32::try_from(bytes.len()).map_err(|_| TooLong)
}

impl super::Operation for Operation {
    fn code(&self) -> u8 {
        self.verb as u8
    }

    #[inline]
    fn reads(&self) -> bool {
        self.verb.reads()
    }

    #[inline]
    fn writes(&self) -> bool {
        self.verb.writes()
    }

    #[inline]
    fn control(&self) -> Option<Control> {
        self.verb.control()
    }

    fn moved(self, by: usize) -> Operation {
        // The bytes of some operations have fewer than 4 GiB, or adding to them fails.
        Operation { start: self.start + by as u32, ..self }
    }
}

/// What a store gets: a statement's number and its parameters.
#[derive(Debug)]
pub struct Request {
    operation: Operation,
    parameters: Vec<u8>,
    custom: Vec<u8>,
}

impl Default for Request {
    fn default() -> Request {
        Request { operation: Operation::plain(Verb::Query), parameters: Vec::new(), custom: Vec::new() }
    }
}

impl super::Request<Operation> for Request {
    fn operation(&self) -> &Operation {
        &self.operation
    }
}

impl Request {
    /// Makes it the request of an operation. Results of earlier steps are replaced by their values; the error says
    /// that one is missing, or not of the type of its parameter.
    fn fill(
        &mut self,
        operation: &Operation,
        parameters: &[u8],
        custom: &[u8],
        results: &Results,
    ) -> Result<(), &'static str> {
        self.operation = *operation;
        self.parameters.clear();
        self.custom.clear();
        self.custom.extend_from_slice(custom);
        if !operation.uses_results {
            self.parameters.extend_from_slice(parameters);
            return Ok(());
        }
        for parameter in decode(parameters) {
            let value = match parameter? {
                Parameter::Result(result) => results.value(result)?,
                Parameter::Value(value) => value,
            };
            encode([Parameter::Value(value)], &mut self.parameters);
        }
        Ok(())
    }

    /// The parameters, encoded. None of them is a result.
    pub fn parameters(&self) -> &[u8] {
        &self.parameters
    }

    /// The values of the parameters, in their order.
    pub fn values(&self) -> impl Iterator<Item = Value<'_>> {
        values(&self.parameters)
    }

    /// The custom parameters, which only the adapter interprets: for example a consistency level.
    pub fn custom(&self) -> impl Iterator<Item = &str> {
        texts(&self.custom)
    }
}

/// Encoded custom parameters, which are texts.
fn texts(bytes: &[u8]) -> impl Iterator<Item = &str> {
    values(bytes).filter_map(|value| match value {
        Value::Text(text) => Some(text),
        _ => None,
    })
}

/// The values that encoded parameters stand for, which were checked and are no results.
pub fn values(bytes: &[u8]) -> impl Iterator<Item = Value<'_>> {
    decode(bytes).map_while(|parameter| match parameter {
        Ok(Parameter::Value(value)) => Some(value),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
