//! The processes of a trace file of BenchFoundry: numbers of statements and of sets of parameters.

use super::lists::parts;
use super::{ImportError, Text};

/// A process.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Process {
    /// When it starts, in milliseconds.
    pub(super) start_ms: u64,
    pub(super) transactions: Vec<Transaction>,
}

/// A transaction of a process.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Transaction {
    /// How long its client waits before it, in milliseconds.
    pub(super) delay_ms: u64,
    pub(super) operations: Vec<Call>,
}

/// An operation of a transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Call {
    pub(super) line: usize,
    pub(super) statement: i64,
    /// The set of its parameters.
    pub(super) set: Option<i64>,
    /// The set of its custom parameters.
    pub(super) custom: Option<i64>,
}

/// Where the reader of a file stands: what is open, and the line in which it began.
#[derive(Default)]
struct Open {
    process: Option<(usize, Process)>,
    transaction: Option<(usize, Transaction)>,
    all: Vec<Process>,
}

/// The processes of a file, in its order.
pub(super) fn processes(text: &Text) -> Result<Vec<Process>, ImportError> {
    let mut open = Open::default();
    for (line, content) in text.lines() {
        let parts = parts(content).unwrap_or_default();
        let Some((first, rest)) = parts.split_first() else { return Err(text.wrong(line, "has no word")) };
        match *first {
            "BOP" => open.begin_process(text, line, rest)?,
            "EOP" => open.end_process(text, line)?,
            "BOT" => open.begin_transaction(text, line, rest)?,
            "EOT" => open.end_transaction(text, line)?,
            _ => open.operation(text, line, &parts)?,
        }
    }
    match open {
        Open { transaction: Some((line, _)), .. } => {
            Err(text.wrong(line, "begins a transaction that no EOT ends; the file is cut off"))
        }
        Open { process: Some((line, _)), .. } => {
            Err(text.wrong(line, "begins a process that no EOP ends; the file is cut off"))
        }
        Open { all, .. } => Ok(all),
    }
}

impl Open {
    fn begin_process(&mut self, text: &Text, line: usize, rest: &[&str]) -> Result<(), ImportError> {
        if let Some((begun, _)) = &self.process {
            return Err(
                text.wrong(line, format!("begins a process inside of the one of line {begun}; add EOP before it"))
            );
        }
        let start_ms = number(text, line, rest.first(), "the start of the process in ms")?;
        if let Some(last) = self.all.last().filter(|last| last.start_ms > start_ms) {
            let message = format!(
                "starts at {start_ms} ms, before the process in front of it ({} ms); sort the processes by time",
                last.start_ms
            );
            return Err(text.wrong(line, message));
        }
        self.process = Some((line, Process { start_ms, transactions: Vec::new() }));
        Ok(())
    }

    fn begin_transaction(&mut self, text: &Text, line: usize, rest: &[&str]) -> Result<(), ImportError> {
        if self.process.is_none() {
            return Err(text.wrong(line, "begins a transaction outside of a process; add BOP before it"));
        }
        if let Some((begun, _)) = &self.transaction {
            let message = format!("begins a transaction inside of the one of line {begun}; add EOT before it");
            return Err(text.wrong(line, message));
        }
        let delay_ms = match rest.first() {
            None => 0,
            some => number(text, line, some, "the delay of the transaction in ms")?,
        };
        self.transaction = Some((line, Transaction { delay_ms, operations: Vec::new() }));
        Ok(())
    }

    fn end_transaction(&mut self, text: &Text, line: usize) -> Result<(), ImportError> {
        let (Some((begun, transaction)), Some((_, process))) = (self.transaction.take(), &mut self.process) else {
            return Err(text.wrong(line, "ends a transaction, and none has begun"));
        };
        if transaction.operations.is_empty() {
            return Err(text.wrong(begun, "begins a transaction without an operation; remove it"));
        }
        process.transactions.push(transaction);
        Ok(())
    }

    fn end_process(&mut self, text: &Text, line: usize) -> Result<(), ImportError> {
        if let Some((begun, _)) = &self.transaction {
            return Err(text
                .wrong(*begun, format!("begins a transaction that is still open at the EOP of line {line}; add EOT")));
        }
        let Some((begun, process)) = self.process.take() else {
            return Err(text.wrong(line, "ends a process, and none has begun"));
        };
        if process.transactions.is_empty() {
            return Err(text.wrong(begun, "begins a process without a transaction; remove it"));
        }
        self.all.push(process);
        Ok(())
    }

    fn operation(&mut self, text: &Text, line: usize, parts: &[&str]) -> Result<(), ImportError> {
        let Some((_, transaction)) = &mut self.transaction else {
            return Err(text.wrong(line, "is outside of a transaction; expected BOP, BOT, EOT or EOP"));
        };
        let wrong = || text.wrong(line, "is no operation; write statement;parameters;custom parameters, as numbers");
        let numbers: Vec<i64> = parts.iter().map(|part| part.parse().ok()).collect::<Option<_>>().ok_or_else(wrong)?;
        let set = |at: usize| numbers.get(at).copied().filter(|number| *number >= 0);
        if numbers.len() > 3 {
            return Err(wrong());
        }
        transaction.operations.push(Call { line, statement: numbers[0], set: set(1), custom: set(2) });
        Ok(())
    }
}

fn number(text: &Text, line: usize, part: Option<&&str>, what: &str) -> Result<u64, ImportError> {
    let found = part.map_or("", |part| part);
    found.parse().map_err(|_| text.wrong(line, format!("{found:?} is not a number; write {what}")))
}
