//! Builds a trace set of statements in a program: processes of transactions of statements, method by method.

use std::path::Path;

use schemas::manifest::Manifest;
use schemas::vocabulary::sql::Type;
use schemas::vocabulary::sql::text::Dialect;
use schemas::workload::sql::checks::{Check, When};

use super::script::{Call, Script, Transaction};
use super::sessions::SessionOf;
use super::set::{Header, SetWriter};
use super::statements::{Known, Statements};
use crate::core::error::GenerateError;

/// A trace set that is being built. It keeps all processes in memory until [`Builder::write`], which orders them by their
/// due times.
///
/// ```
/// use schemas::vocabulary::sql::Type::{Decimal, Integer};
/// use schemas::vocabulary::sql::text::Dialect;
/// use tracegen::sql::Builder;
///
/// let schema = "CREATE TABLE account (id INT PRIMARY KEY, balance DECIMAL(12, 2) NOT NULL)";
/// let mut set = Builder::new("bank", Dialect::Logical, schema);
/// let open = set.statement("open", "INSERT INTO account (id, balance) VALUES (?, ?)", &[Integer, Decimal])?;
/// let read = set.statement("read", "SELECT balance FROM account WHERE id = ?", &[Integer])?;
/// let set_to = set.statement("set", "UPDATE account SET balance = ? WHERE id = ?", &[Decimal, Integer])?;
/// for id in 0..10 {
///     set.fill(open).integer(id).decimal("100.00").run();
/// }
/// // A process starts 10 ms after the load begins, and copies a balance that it has read.
/// let mut process = set.process("copy").client(3).due_us(10_000);
/// let mut transaction = process.transaction();
/// let balance = transaction.statement(read).integer(4).keep().first(0);
/// transaction.statement(set_to).result(balance, Decimal).integer(5).run();
/// transaction.commit();
/// process.end();
///
/// let parent = tempfile::tempdir().unwrap();
/// let manifest = set.write(&parent.path().join("bank.trace"))?;
/// assert_eq!((manifest.sessions(), manifest.operations()), (1, 4));
/// # Ok::<(), tracegen::GenerateError>(())
/// ```
#[derive(Debug)]
pub struct Builder {
    name: String,
    dialect: Dialect,
    schema: String,
    source: String,
    statements: Statements,
    kinds: Vec<String>,
    fragments: u32,
    log_results: bool,
    checks: Vec<Check>,
    rows: Script,
    processes: Vec<Process>,
}

/// A process with its steps.
#[derive(Debug)]
struct Process {
    /// Whether it is none of the warm-up, which comes first.
    is_measured: bool,
    session: SessionOf,
    script: Script,
}

impl Builder {
    /// An empty trace set with this name and schema: definitions of tables, indexes and views in this dialect.
    pub fn new(name: &str, dialect: Dialect, schema: &str) -> Builder {
        Builder {
            name: name.to_string(),
            dialect,
            schema: schema.to_string(),
            source: "builder".to_string(),
            statements: Statements::new(dialect),
            kinds: Vec::new(),
            fragments: 1,
            log_results: false,
            checks: Vec::new(),
            rows: Script::new(),
            processes: Vec::new(),
        }
    }

    /// Says what the trace set is made from. Default: `builder`.
    pub fn source(mut self, source: &str) -> Builder {
        self.source = source.to_string();
        self
    }

    /// Divides clients among so many fragments. Default: 1.
    pub fn fragments(mut self, fragments: u32) -> Builder {
        self.fragments = fragments.max(1);
        self
    }

    /// A replay logs the rows that statements return. Default: their number and a hash.
    pub fn log_results(mut self) -> Builder {
        self.log_results = true;
        self
    }

    /// Adds a condition that the data keep: a query that returns the rows that violate it.
    pub fn check(&mut self, name: &str, title: &str, query: &str) {
        let [name, title, query] = [name, title, query].map(str::to_string);
        self.checks.push(Check { name, title, when: When::Always, query });
    }

    /// A statement with the types of its parameters. The same text and types are the same statement. The error says
    /// why it cannot be one.
    pub fn statement(&mut self, name: &str, text: &str, parameters: &[Type]) -> Result<Known, GenerateError> {
        self.statements.add(name, text, parameters)
    }

    /// A statement that fills the tables before the first process.
    pub fn fill(&mut self, statement: Known) -> Call<'_> {
        self.rows.statement(statement)
    }

    /// A process of this kind. [`Building::end`] adds it.
    pub fn process(&mut self, kind: &str) -> Building<'_> {
        let kind = self.kinds.iter().position(|known| known == kind).unwrap_or_else(|| {
            self.kinds.push(kind.to_string());
            self.kinds.len() - 1
        });
        let client = self.processes.len() as u64;
        let session = SessionOf { kind, client, due_us: None };
        Building { builder: self, process: Process { is_measured: true, session, script: Script::new() } }
    }

    /// Writes the trace set, the warm-up first. Processes without due times stay in the order in which they were added;
    /// either all of them have one, or none has.
    pub fn write(mut self, place: &Path) -> Result<Manifest, GenerateError> {
        let wrong = |message: &str| Err(GenerateError::Infeasible(message.to_string()));
        let timed = self.processes.iter().filter(|process| process.session.due_us.is_some()).count();
        if timed > 0 && timed < self.processes.len() {
            return wrong("some processes have a due time and some have none; give all of them one, or none");
        }
        if self.processes.is_empty() {
            return wrong("there is no process; add one");
        }
        self.processes.sort_by_key(|process| (process.is_measured, process.session.due_us));
        if !self.processes.is_sorted_by_key(|process| process.session.due_us) {
            return wrong("a process of the warm-up is due after a measured one; give it an earlier time");
        }
        let mut writer = SetWriter::create(
            place,
            Header {
                name: self.name,
                source: self.source,
                dialect: self.dialect,
                schema: self.schema,
                statements: self.statements.list().to_vec(),
                kinds: self.kinds,
                fragments: self.fragments,
                log_results: self.log_results,
                checks: self.checks,
            },
        )?;
        writer.fill(&self.rows)?;
        for Process { is_measured, session, script } in &self.processes {
            writer.script(*session, script)?;
            writer.warmup_sessions += u64::from(!is_measured);
        }
        writer.finish()
    }
}

/// A process that is being built.
#[must_use = "a process is part of the trace set after end()"]
#[derive(Debug)]
pub struct Building<'b> {
    builder: &'b mut Builder,
    process: Process,
}

impl Building<'_> {
    /// On whose behalf it runs, from 0. A client acts in one process at a time. Default: a client of its own.
    pub fn client(mut self, client: u64) -> Self {
        self.process.session.client = client;
        self
    }

    /// When it starts, in microseconds from the start of the load (open loop). Default: as soon as a thread is free.
    pub fn due_us(mut self, due_us: u64) -> Self {
        self.process.session.due_us = Some(due_us);
        self
    }

    /// It is a part of the warm-up, which is replayed first and is in no figure.
    pub fn warm_up(mut self) -> Self {
        self.process.is_measured = false;
        self
    }

    /// The client waits so long before the next step.
    pub fn wait_us(&mut self, think_us: u32) {
        self.process.script.wait_us(think_us);
    }

    /// Begins a transaction.
    pub fn transaction(&mut self) -> Transaction<'_> {
        self.process.script.begin()
    }

    /// A statement outside of a transaction.
    pub fn statement(&mut self, statement: Known) -> Call<'_> {
        self.process.script.statement(statement)
    }

    /// Adds the process to the trace set.
    pub fn end(self) {
        self.builder.processes.push(self.process);
    }
}

#[cfg(test)]
mod tests {
    use schemas::vocabulary::sql::{Sql, read_statements};
    use schemas::workload::sql::{SqlStatistics, SqlWorkload};

    use super::*;

    const SCHEMA: &str = "CREATE TABLE t (a INT PRIMARY KEY, b INT)";

    fn builder() -> (Builder, Known, Known) {
        let mut set = Builder::new("t", Dialect::Logical, SCHEMA);
        let add = set.statement("add", "INSERT INTO t (a, b) VALUES (?, ?)", &[Type::Integer, Type::Integer]).unwrap();
        let read = set.statement("read", "SELECT b FROM t WHERE a = ?", &[Type::Integer]).unwrap();
        (set, add, read)
    }

    #[test]
    fn processes_are_ordered_and_statements_are_listed_once() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("t.trace");
        let (mut set, add, read) = builder();
        assert_eq!(set.statement("again", "SELECT b  FROM t WHERE a = ?", &[Type::Integer]).unwrap(), read);
        set.check("1", "b is positive", "SELECT a, b FROM t WHERE b < 0");
        set.fill(add).integer(1).integer(2).run();
        for due_us in [300, 100, 200] {
            let mut process = set.process("p").client(due_us / 100).due_us(due_us);
            process.statement(read).id(due_us).run();
            process.wait_us(5);
            let mut transaction = process.transaction();
            let kept = transaction.statement(read).integer(1).keep();
            transaction.statement(add).id(due_us).result(kept.last(0), Type::Integer).run();
            transaction.commit();
            process.end();
        }
        let manifest = set.write(&place).unwrap();
        assert_eq!((manifest.sessions(), manifest.operations(), manifest.transactions()), (3, 15, 3));
        let statistics: SqlStatistics = manifest.statistics_of::<SqlWorkload>().unwrap();
        assert_eq!((statistics.uses, statistics.loaded_rows), (vec![3, 6], Some(1)));
        assert_eq!(read_statements(&place).unwrap().len(), 2);
        let mut rows = Vec::new();
        manifest.reader::<Sql>(&place, 0, 100).unwrap().next_rows(&mut rows).unwrap();
        let due: Vec<u64> = rows.iter().filter_map(|row| row.due_us).collect();
        assert_eq!((due, rows[1].think_us, rows[1].txn, rows[0].txn), (vec![100, 200, 300], 5, Some(1), None));
    }

    #[test]
    fn the_warm_up_comes_first_and_custom_parameters_last() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("t.trace");
        let (mut set, _, read) = builder();
        for number in [1, 2] {
            let mut process = set.process("measured");
            process.statement(read).integer(number).custom("ONE").custom("replica 2").run();
            process.end();
        }
        let mut process = set.process("first").warm_up();
        process.statement(read).integer(3).run();
        process.end();
        let manifest = set.write(&place).unwrap();
        assert_eq!(manifest.spec.workload::<SqlWorkload>().unwrap().data.warmup_sessions, 1);
        let mut reader = manifest.reader::<Sql>(&place, 0, 100).unwrap();
        let mut rows = Vec::new();
        reader.next_rows(&mut rows).unwrap();
        let kinds: Vec<&str> = rows.iter().map(|row| manifest.spec.kinds()[usize::from(row.kind)].0).collect();
        assert_eq!(kinds, ["first", "measured", "measured"]);
        let warm = |due_us| {
            let (mut set, _, read) = builder();
            for (due_us, is_warm) in [(due_us, true), (5, false)] {
                let process = set.process("p").due_us(due_us);
                let mut process = if is_warm { process.warm_up() } else { process };
                process.statement(read).integer(1).run();
                process.end();
            }
            set.write(&folder.path().join(format!("{due_us}.trace"))).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(warm(4), Ok(()));
        assert!(warm(6).is_err_and(|error| error.contains("warm-up is due after a measured one")));
    }

    #[test]
    fn what_is_no_session_is_refused_and_leaves_nothing() {
        let refused = |make: &dyn Fn(&mut Builder, Known, Known), expect: &str| {
            let folder = tempfile::tempdir().unwrap();
            let (mut set, add, read) = builder();
            make(&mut set, add, read);
            let error = set.write(&folder.path().join("t.trace")).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        };
        refused(&|_, _, _| {}, "there is no process");
        refused(&|set, _, _| set.process("p").end(), "has 0 operations");
        let one = |set: &mut Builder, read: Known, due_us: Option<u64>| {
            let mut process = set.process("p");
            process.process.session.due_us = due_us;
            process.statement(read).integer(1).run();
            process.end();
        };
        refused(&|set, _, read| [None, Some(1)].iter().for_each(|due| one(set, read, *due)), "some have none");
        let call = |set: &mut Builder, of: Known, make: &dyn Fn(Call<'_>)| {
            let mut process = set.process("p");
            make(process.statement(of));
            process.end();
        };
        refused(&|set, add, _| call(set, add, &|it| it.integer(1).run()), "has 1 parameters, and the statement has 2");
        refused(&|set, _, read| call(set, read, &|it| it.text("x").run()), "is of type text, expected integer");
        refused(
            &|set, _, read| call(set, read, &|it| it.custom("ONE").integer(1).run()),
            "custom parameters come last",
        );
        let open = |set: &mut Builder, read: Known| {
            let mut process = set.process("p");
            let mut transaction = process.transaction();
            transaction.statement(read).integer(1).run();
            process.end();
        };
        refused(&|set, _, read| open(set, read), "leaves its transaction open");
    }
}
