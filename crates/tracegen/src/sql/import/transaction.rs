//! A transaction of a log, and how the spool holds it.

use super::values::{Value, decode};

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum End {
    /// It is one statement without BEGIN.
    #[default]
    Autocommit,
    /// With COMMIT.
    Commit,
    /// With ROLLBACK, with an error, or with the end of its session.
    Abort,
}

/// A statement in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The number of the statement.
    pub statement: u32,
    /// When it began, in microseconds since 1970.
    pub start_us: i64,
    /// How long it took, in microseconds, if the log says it.
    pub took_us: Option<u64>,
    /// Whether it failed.
    pub failed: bool,
    /// Where its parameters end in [`Transaction::bytes`].
    end: usize,
}

/// A transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transaction {
    /// The number of its session, from 0 in the order of their first entries.
    pub session: u64,
    /// When it began, in microseconds since 1970.
    pub begin_us: i64,
    /// When its end was asked for.
    pub end_us: i64,
    /// How it ended.
    pub end: End,
    /// Its statements.
    pub steps: Vec<Step>,
    bytes: Vec<u8>,
}

impl Transaction {
    /// A transaction of a session that begins at this time.
    pub fn new(session: u64, begin_us: i64) -> Transaction {
        Transaction { session, begin_us, ..Transaction::default() }
    }

    /// Adds a statement, whose parameters `add` writes. It adds nothing if that fails.
    pub fn push<E>(
        &mut self,
        start_us: i64,
        took_us: Option<u64>,
        failed: bool,
        add: impl FnOnce(&mut Vec<u8>) -> Result<u32, E>,
    ) -> Result<(), E> {
        let before = self.bytes.len();
        match add(&mut self.bytes) {
            Ok(statement) => {
                let end = self.bytes.len();
                self.steps.push(Step { statement, start_us, took_us, failed, end });
                Ok(())
            }
            Err(error) => {
                self.bytes.truncate(before);
                Err(error)
            }
        }
    }

    /// Drops the steps after the first `count`.
    pub fn truncate(&mut self, count: usize) {
        self.steps.truncate(count);
        self.bytes.truncate(self.steps.last().map_or(0, |step| step.end));
    }

    /// The parameters of a step.
    pub fn parameters(&self, step: usize) -> impl Iterator<Item = Value<'_>> {
        let start = step.checked_sub(1).and_then(|before| self.steps.get(before)).map_or(0, |before| before.end);
        let end = self.steps.get(step).map_or(start, |step| step.end);
        decode(self.bytes.get(start..end).unwrap_or_default())
    }

    /// Adds it to bytes.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.end as u8);
        for number in
            [self.session, self.begin_us as u64, self.end_us as u64, self.steps.len() as u64, self.bytes.len() as u64]
        {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for step in &self.steps {
            let took = step.took_us.map_or(0, |took| took + 1);
            bytes.extend_from_slice(&step.statement.to_le_bytes());
            bytes.push(step.failed as u8);
            for number in [step.start_us as u64, took, step.end as u64] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        bytes.extend_from_slice(&self.bytes);
    }

    /// The transaction that bytes hold; None if they hold none.
    pub fn decode(mut bytes: &[u8]) -> Option<Transaction> {
        let end = match take::<1>(&mut bytes)?[0] {
            0 => End::Autocommit,
            1 => End::Commit,
            _ => End::Abort,
        };
        let mut number = || take(&mut bytes).map(u64::from_le_bytes);
        let (session, begin_us, end_us) = (number()?, number()? as i64, number()? as i64);
        let (count, length) = (number()? as usize, number()? as usize);
        let mut steps = Vec::with_capacity(count.min(bytes.len()));
        for _ in 0..count {
            let statement = u32::from_le_bytes(take(&mut bytes)?);
            let failed = take::<1>(&mut bytes)?[0] != 0;
            let mut number = || take(&mut bytes).map(u64::from_le_bytes);
            let (start_us, took, end) = (number()? as i64, number()?, number()? as usize);
            steps.push(Step { statement, start_us, took_us: took.checked_sub(1), failed, end });
        }
        (bytes.len() == length).then(|| Transaction { session, begin_us, end_us, end, steps, bytes: bytes.to_vec() })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}
