//! Turns the statements of sessions into transactions.

use std::hash::{DefaultHasher, Hash, Hasher};

use indexmap::IndexMap;

use super::class::{self, Class, SAVEPOINT, TWO_PHASE};
use super::error::ImportError;
use super::lexer::Dialect;
use super::savepoints::Savepoints;
use super::spool::{Sorted, Spool};
use super::statements::{Read, Statement, Statements};
use super::tally::{Place, Tally, beginning};
use super::time::{Limit, Time};
use super::transaction::{End, Transaction};
use super::values::Bound;

/// A trace has at most so many steps in a session, with BEGIN and COMMIT.
const STEPS_MAX: usize = i16::MAX as usize - 2;

/// Statements that change the schema.
pub const DEFINITION: &str = "DDL (--skip-ddl)";
/// BEGIN without effect.
pub const NESTED: &str = "BEGIN inside of a transaction";
/// COMMIT or ROLLBACK without effect, or of a transaction that began before the log.
pub const NOT_OPEN: &str = "COMMIT or ROLLBACK without BEGIN";
/// Texts without a statement.
pub const EMPTY: &str = "empty statement";
/// What is outside of `--from` and `--to`.
pub const OUTSIDE: &str = "statement of a transaction outside of --from and --to";
/// What a session took back.
pub const UNDONE: &str = "statement undone by ROLLBACK TO";
/// Isolation levels.
pub const ISOLATION: &str = "isolation level of a transaction (the replay's is isolation=… in the store's URL)";
/// Very long transactions.
pub const TOO_LONG: &str = "statement after the first 32,765 of its transaction";

/// Which transactions are taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct Window {
    /// Those that begin at this time or later.
    pub from: Option<Limit>,
    /// Those that begin before this time.
    pub to: Option<Limit>,
    /// Whether statements that change the schema are left out. If not, they are an error.
    pub skip_ddl: bool,
}

impl Window {
    fn holds(&self, time: Time) -> bool {
        self.from.is_none_or(|from| from.is_reached(time)) && !self.to.is_some_and(|to| to.is_reached(time))
    }
}

/// A text that a session executed.
#[derive(Debug, Clone, Copy)]
pub struct Executed<'a> {
    /// Where the log has it.
    pub place: Place,
    /// When it began.
    pub start: Time,
    /// How long it took, in microseconds, if that is known.
    pub took_us: Option<u64>,
    /// The text: one statement or more.
    pub text: &'a str,
    /// Its parameters, if the log has them.
    pub bounds: Option<&'a [Bound]>,
    /// Whether it failed.
    pub failed: bool,
}

/// What a later line may add to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Last {
    #[default]
    Nothing,
    /// The last step of the transaction that is open, or of the one that just ended.
    Step,
    /// The end of the transaction that just ended.
    End,
    /// A statement that was not taken, and that was counted when it began.
    Skipped,
}

#[derive(Debug, Default)]
struct Open {
    transaction: Transaction,
    begun: Time,
    place: Place,
    has_failed: bool,
    savepoints: Savepoints,
}

#[derive(Debug)]
struct Session {
    name: String,
    number: u64,
    open: Option<Open>,
    /// The transaction that ended with the last text. A later line may say that this failed.
    ended: Option<Open>,
    is_autocommit: bool,
    last: Last,
    last_text: u64,
    /// When its last statement began. No later one began before it.
    latest_us: i64,
}

/// Totals of what was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// Sessions.
    pub sessions: u64,
    /// Statements of the transactions that were taken.
    pub statements: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Transactions, with the statements without BEGIN.
    pub transactions: u64,
    /// When the first one began, in microseconds since 1970.
    pub first_us: i64,
    /// When the last statement began.
    pub last_us: i64,
    /// Transactions that their session left open.
    pub left_open: u64,
}

/// The sessions of a log.
pub struct Sessions {
    dialect: Dialect,
    window: Window,
    sessions: IndexMap<u32, Session>,
    statements: Statements,
    /// Whether a transaction that was taken has each statement of the list.
    used: Vec<bool>,
    spool: Spool,
    taken: Taken,
}

impl Sessions {
    /// No sessions yet.
    pub fn new(dialect: Dialect, window: Window, spool: Spool) -> Sessions {
        let statements = Statements::new(dialect);
        Sessions {
            dialect,
            window,
            sessions: IndexMap::new(),
            statements,
            used: Vec::new(),
            spool,
            taken: Taken::default(),
        }
    }

    /// Begins a session of this process, if another one had it.
    fn enter(&mut self, process: u32, name: &str, tally: &mut Tally) -> Result<(), ImportError> {
        if self.sessions.get(&process).is_some_and(|session| session.name == name) {
            return Ok(());
        }
        self.end(process, tally)?;
        let session = Session {
            name: name.to_string(),
            number: self.taken.sessions,
            open: None,
            ended: None,
            is_autocommit: true,
            last: Last::Nothing,
            last_text: 0,
            latest_us: i64::MIN,
        };
        self.taken.sessions += 1;
        self.sessions.insert(process, session);
        Ok(())
    }

    /// A session has executed a text, or executes it now.
    pub fn execute(
        &mut self,
        process: u32,
        name: &str,
        executed: Executed<'_>,
        tally: &mut Tally,
    ) -> Result<(), ImportError> {
        self.enter(process, name, tally)?;
        let Some(mut session) = self.sessions.swap_remove(&process) else { return Ok(()) };
        let done = self.execute_in(&mut session, executed, tally);
        self.sessions.insert(process, session);
        done
    }

    fn execute_in(
        &mut self,
        session: &mut Session,
        executed: Executed<'_>,
        tally: &mut Tally,
    ) -> Result<(), ImportError> {
        self.put_away(session.ended.take(), tally)?;
        session.last = Last::Nothing;
        session.last_text = sum(executed.text);
        let start_us = executed.start.utc.max(session.latest_us);
        session.latest_us = start_us;
        let is_implicit = session.open.is_none() && session.is_autocommit;
        let (mut from, mut is_empty) = (0, true);
        let mut implicit = Open::new(session.number, &executed, start_us);
        while from < executed.text.len() {
            let before = from;
            // A text of several statements is one transaction, unless it has its own ones.
            if session.open.is_none() && !session.is_autocommit {
                session.open = Some(Open::new(session.number, &executed, start_us));
            }
            let open = session.open.as_mut().unwrap_or(&mut implicit);
            let is_full = open.transaction.steps.len() >= STEPS_MAX;
            let (statements, took_us) = (&mut self.statements, executed.took_us);
            let added = open.transaction.push(start_us, took_us, executed.failed, |bytes| {
                let (read, end, next) = statements.read(executed.text, before, executed.bounds, bytes);
                from = next;
                match read {
                    Read::Data(_) if is_full => Err((Some(Class::Skipped(TOO_LONG)), end)),
                    Read::Data(number) => Ok(number),
                    Read::Other(class) => Err((Some(class), end)),
                    Read::Empty => Err((None, end)),
                }
            });
            let (class, end) = match added {
                Ok(()) => {
                    open.has_failed |= executed.failed;
                    session.last = Last::Step;
                    is_empty = false;
                    continue;
                }
                Err((None, _)) => continue,
                Err((Some(class), end)) => (class, end),
            };
            is_empty = false;
            let text = executed.text.get(before..end).unwrap_or_default().trim();
            self.control(session, class, text, &executed, start_us, tally)?;
        }
        // With its duration it is over, so a failure that comes is that of another one.
        if executed.took_us.is_some() {
            session.last = Last::Nothing;
        }
        if is_empty {
            tally.add(EMPTY, executed.place, executed.text.as_bytes());
        }
        let steps = implicit.transaction.steps.len();
        if steps > 0 {
            if steps > 1 {
                implicit.transaction.end = if executed.failed { End::Abort } else { End::Commit };
            }
            implicit.transaction.end_us = start_us;
            // A BEGIN later in the same text has opened another one, which goes on.
            if session.ended.is_none() && is_implicit {
                session.ended = Some(implicit);
            } else {
                self.put_away(Some(implicit), tally)?;
            }
        }
        Ok(())
    }

    /// A statement that is no data: it begins or ends a transaction, or is not taken.
    fn control(
        &mut self,
        session: &mut Session,
        class: Class,
        text: &str,
        executed: &Executed<'_>,
        start_us: i64,
        tally: &mut Tally,
    ) -> Result<(), ImportError> {
        if let Some(open) = session.open.as_mut() {
            open.has_failed |= executed.failed;
        }
        if self.dialect == Dialect::Mysql && ends_transaction(class, text, session.is_autocommit) {
            match session.open.as_ref().map(|open| open.transaction.steps.is_empty()) {
                Some(false) => self.close(session, true, text, executed, start_us, tally)?,
                _ => session.open = None,
            }
        }
        match class {
            Class::Begin
                if session
                    .open
                    .as_ref()
                    .is_some_and(|open| !open.transaction.steps.is_empty() || session.is_autocommit) =>
            {
                tally.add(NESTED, executed.place, text.as_bytes());
            }
            Class::Begin => {
                if text.to_ascii_uppercase().contains("ISOLATION LEVEL") {
                    tally.add(ISOLATION, executed.place, text.as_bytes());
                }
                session.open = Some(Open::new(session.number, executed, start_us));
            }
            Class::Commit { chains } | Class::Abort { chains } => {
                let is_commit = matches!(class, Class::Commit { .. }) && !executed.failed;
                self.close(session, is_commit, text, executed, start_us, tally)?;
                if chains {
                    session.open = Some(Open::new(session.number, executed, start_us));
                }
            }
            Class::Autocommit => {
                session.is_autocommit = class::autocommit(text);
                tally.add(class::SETTING, executed.place, text.as_bytes());
            }
            Class::Definition if !self.window.holds(executed.start) => {
                tally.add(OUTSIDE, executed.place, text.as_bytes());
            }
            Class::Definition if !self.window.skip_ddl => return Err(self.definition(text, executed, tally)),
            Class::Definition => tally.add(DEFINITION, executed.place, text.as_bytes()),
            Class::Skipped(reason) => {
                tally.add(reason, executed.place, text.as_bytes());
                if executed.took_us.is_none() && !executed.failed {
                    session.last = Last::Skipped;
                }
                if reason == TWO_PHASE && session.open.is_some() {
                    self.close(session, true, text, executed, start_us, tally)?;
                }
            }
            Class::Savepoint | Class::Release | Class::GoBack => {
                tally.add(SAVEPOINT, executed.place, text.as_bytes());
                if let Some(open) = session.open.as_mut() {
                    open.savepoint(class, text, executed.place, tally);
                }
            }
            Class::Data => {}
        }
        Ok(())
    }

    fn definition(&self, text: &str, executed: &Executed<'_>, tally: &Tally) -> ImportError {
        ImportError::line(
            tally.path(executed.place.file),
            executed.place.line,
            format!(
                "changes the schema in the middle of the trace ({}), and a trace has one schema; \
                 import what is before or after it with --to or --from, or leave such statements out with --skip-ddl",
                beginning(text.as_bytes())
            ),
        )
    }

    /// The transaction of a session ends.
    fn close(
        &mut self,
        session: &mut Session,
        is_commit: bool,
        text: &str,
        executed: &Executed<'_>,
        start_us: i64,
        tally: &mut Tally,
    ) -> Result<(), ImportError> {
        let Some(mut open) = session.open.take() else {
            tally.add(NOT_OPEN, executed.place, text.as_bytes());
            return Ok(());
        };
        let has_happened = is_commit && (!open.has_failed || self.dialect == Dialect::Mysql);
        open.transaction.end = if has_happened { End::Commit } else { End::Abort };
        open.transaction.end_us = start_us;
        session.last = Last::End;
        let before = session.ended.replace(open);
        self.put_away(before, tally)
    }

    /// The last statement of a session took so long.
    pub fn took(&mut self, process: u32, name: &str, took_us: u64) -> bool {
        let Some(session) = self.sessions.get_mut(&process).filter(|session| session.name == name) else {
            return false;
        };
        let last = std::mem::take(&mut session.last);
        let open = session.ended.as_mut().or(session.open.as_mut());
        let step = open.and_then(|open| open.transaction.steps.last_mut());
        match (last, step) {
            (Last::Step, Some(step)) => {
                step.took_us.get_or_insert(took_us);
                true
            }
            (last, _) => last == Last::End,
        }
    }

    /// A text of a session failed. It was perhaps logged before, when it began.
    pub fn fail(
        &mut self,
        process: u32,
        name: &str,
        executed: Executed<'_>,
        tally: &mut Tally,
    ) -> Result<(), ImportError> {
        self.enter(process, name, tally)?;
        let known = self.sessions.get_mut(&process).filter(|session| session.last_text == sum(executed.text));
        let Some(session) = known.filter(|session| session.last != Last::Nothing) else {
            return self.execute(process, name, executed, tally);
        };
        let last = std::mem::take(&mut session.last);
        let open = session.ended.as_mut().or(session.open.as_mut());
        match (last, open) {
            (Last::Skipped, open) => {
                if let Some(open) = open {
                    open.has_failed = true;
                }
            }
            (Last::End, Some(open)) => open.transaction.end = End::Abort,
            (_, Some(open)) => {
                open.has_failed = true;
                if let Some(step) = open.transaction.steps.last_mut() {
                    step.failed = true;
                }
                if open.transaction.end == End::Commit {
                    open.transaction.end = End::Abort;
                }
            }
            (_, None) => {}
        }
        Ok(())
    }

    /// The session of a process ends, if there is one.
    pub fn end(&mut self, process: u32, tally: &mut Tally) -> Result<(), ImportError> {
        let Some(session) = self.sessions.swap_remove(&process) else { return Ok(()) };
        self.put_away(session.ended, tally)?;
        let Some(mut open) = session.open else { return Ok(()) };
        if open.transaction.steps.is_empty() {
            return Ok(());
        }
        (open.transaction.end, open.transaction.end_us) = (End::Abort, session.latest_us);
        self.taken.left_open += 1;
        self.put_away(Some(open), tally)
    }

    /// Hands a transaction that has ended to the spool.
    fn put_away(&mut self, open: Option<Open>, tally: &mut Tally) -> Result<(), ImportError> {
        let Some(Open { transaction, begun, place, .. }) = open else { return Ok(()) };
        if !self.window.holds(begun) {
            for _ in &transaction.steps {
                tally.add(OUTSIDE, place, b"");
            }
            return Ok(());
        }
        let last_us = transaction.steps.last().map_or(transaction.end_us, |step| step.start_us);
        let taken = &mut self.taken;
        if taken.transactions == 0 {
            (taken.first_us, taken.last_us) = (transaction.begin_us, last_us);
        }
        taken.transactions += 1;
        taken.statements += transaction.steps.len() as u64;
        self.used.resize(self.statements.list().len(), false);
        for step in &transaction.steps {
            if let Some(used) = self.used.get_mut(step.statement as usize) {
                *used = true;
            }
        }
        taken.failed += transaction.steps.iter().filter(|step| step.failed).count() as u64;
        taken.first_us = taken.first_us.min(transaction.begin_us);
        taken.last_us = taken.last_us.max(last_us);
        Ok(self.spool.push(&transaction)?)
    }

    /// Ends all sessions. Returns the statements that they executed, the transactions, and the totals.
    pub fn finish(mut self, tally: &mut Tally) -> Result<(Vec<Statement>, Sorted, Taken), ImportError> {
        let processes: Vec<u32> = self.sessions.keys().copied().collect();
        for process in processes {
            self.end(process, tally)?;
        }
        // Statements that no transaction has get no number.
        self.used.resize(self.statements.list().len(), false);
        let numbers = self.used.iter().scan(0, |next, used| {
            let number = *next;
            *next += u32::from(*used);
            Some(number)
        });
        let sorted = self.spool.finish(numbers.collect())?;
        let used = self.statements.list().zip(&self.used).filter(|(_, used)| **used);
        Ok((used.map(|(statement, _)| statement.clone()).collect(), sorted, self.taken))
    }
}

impl Open {
    fn new(session: u64, executed: &Executed<'_>, start_us: i64) -> Open {
        let transaction = Transaction::new(session, start_us);
        Open { transaction, begun: executed.start, place: executed.place, ..Open::default() }
    }

    /// A statement about a savepoint. The replay has none, so what the session undid is dropped.
    fn savepoint(&mut self, class: Class, text: &str, place: Place, tally: &mut Tally) {
        let steps = self.transaction.steps.len();
        match class {
            Class::Savepoint => self.savepoints.set(text, steps, self.has_failed),
            Class::Release => self.savepoints.release(text),
            _ => {
                let Some((left, had_failed)) = self.savepoints.go_back(text) else { return };
                (left..steps).for_each(|_| tally.add(UNDONE, place, text.as_bytes()));
                self.transaction.truncate(left);
                self.has_failed = had_failed;
            }
        }
    }
}

/// Whether MySQL commits the open transaction before such a statement.
fn ends_transaction(class: Class, text: &str, is_autocommit: bool) -> bool {
    match class {
        Class::Begin | Class::Definition | Class::Skipped(class::LOCK) => true,
        Class::Autocommit => !is_autocommit && class::autocommit(text),
        _ => false,
    }
}

/// A number by which texts are compared.
fn sum(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
