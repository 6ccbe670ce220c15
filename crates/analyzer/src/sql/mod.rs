//! SQL over a run, or over the cells of a comparison: an in-memory DuckDB with the documented
//! views. It can read only that folder, and write nowhere.

mod cells;
mod consistency;
mod open_loop;
mod output;

use std::path::{Path, PathBuf};

use arrow::datatypes::{DataType, Schema};
use duckdb::types::Value;
use duckdb::{Connection, params};
use schemas::anomalies::Class;
use schemas::comparison::{ComparisonDocument, ComparisonFolder};
use schemas::isolation::Isolation;
use schemas::run::{ReplayReport, RunFolder};
use schemas::sealed::UNPREDICTABLE;
use schemas::verdict::Verdict;
use tempfile::TempDir;

pub use output::{Format, print};

use crate::error::AnalyzeError;
use crate::families;
use crate::verify::verify;

/// What errors about a table that does not exist add, for a run.
const HINT: &str = "; the views are operations, sessions, transactions, experiments, timeline, spectrum, service_spectrum, \
    freshness, item_reads, item_updates, register_reads, register_writes, read_staleness, \
    register_staleness, register_values, registers, consistency, gamma_over_time, gamma_spectrum, \
    session_guarantees, availability, excused_reads, closing_reads, checks, session_kinds, unpredictable and isolation_anomalies";

/// Whether a run's operations can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// As the sealed tables have them.
    Sealed,
    /// There are none.
    Without,
}

/// The views of a run or of a comparison.
pub struct Database {
    connection: Connection,
    /// The temporary folder for data above DuckDB's memory limit.
    spill: TempDir,
    /// A text for errors about a table that does not exist.
    hint: &'static str,
}

/// The answer to a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
}

impl Database {
    /// Opens the sealed tables of a run whose experiments have these verdicts.
    ///
    /// `memory_limit` is the memory that DuckDB may use, such as `4GiB`. The default is four
    /// fifths of the machine's. DuckDB writes data above it to a temporary folder.
    pub fn open(run: &RunFolder, verdicts: &[Verdict], memory_limit: Option<&str>) -> Result<Database, AnalyzeError> {
        let database = Database::unlocked(run, verdicts, memory_limit)?;
        database.lock(&canonical(run.root())?)?;
        Ok(database)
    }

    /// The tables of a run that come from documents, with their rows. The views of operations have none. Where the
    /// replayer left no report, the start of the measured part is not known from documents.
    pub fn of_documents(
        run: &RunFolder,
        verdicts: &[Verdict],
        memory_limit: Option<&str>,
    ) -> Result<Database, AnalyzeError> {
        let database = Database { hint: HINT, ..Database::empty(memory_limit)? };
        database.connection.execute_batch(&definitions_of(run, verdicts, Rows::Without)?)?;
        database.fill(run, verdicts)?;
        database.lock(&canonical(run.root())?)?;
        Ok(database)
    }

    /// The cells of a comparison, as its `comparison.json` has them.
    pub fn of_comparison(folder: &ComparisonFolder, memory_limit: Option<&str>) -> Result<Database, AnalyzeError> {
        let document: ComparisonDocument = schemas::files::read_json(&folder.document())?;
        let hint = "; a comparison has only the view cells; query one of its runs for the other views";
        let database = Database { hint, ..Database::empty(memory_limit)? };
        cells::fill(&database.connection, &document)?;
        database.lock(&canonical(folder.root())?)?;
        Ok(database)
    }

    fn empty(memory_limit: Option<&str>) -> Result<Database, AnalyzeError> {
        let connection = Connection::open_in_memory()?;
        if let Some(limit) = memory_limit {
            let set = format!("SET memory_limit = {}", quoted(limit));
            let wrong = |e| AnalyzeError::MemoryLimit { limit: limit.to_string(), message: first_lines(&e) };
            connection.execute_batch(&set).map_err(wrong)?;
        }
        let spill = TempDir::new().map_err(|source| {
            let path = std::env::temp_dir();
            AnalyzeError::File(schemas::files::FileError { path, source })
        })?;
        // DuckDB estimates how many reads a freshness query has, and uses a nested loop if it
        // estimates few: over millions of updates that took minutes.
        connection.execute_batch("SET asof_loop_join_threshold = 0")?;
        // DuckDB's default is the user's current folder.
        connection.execute_batch(&format!("SET temp_directory = {}", quoted(&spill.path().display().to_string())))?;
        Ok(Database { connection, spill, hint: "" })
    }

    /// A temporary folder, which is removed with the database.
    pub(crate) fn spill(&self) -> &Path {
        self.spill.path()
    }

    /// Like [`Database::open`], for the analyzer's own statements, which may write files
    /// elsewhere.
    pub(crate) fn unlocked(
        run: &RunFolder,
        verdicts: &[Verdict],
        memory_limit: Option<&str>,
    ) -> Result<Database, AnalyzeError> {
        verify(run, verdicts)?;
        let database = Database { hint: HINT, ..Database::empty(memory_limit)? };
        database.connection.execute_batch(&definitions(run, verdicts)?)?;
        database.fill(run, verdicts)?;
        Ok(database)
    }

    /// Fills the tables that come from documents.
    fn fill(&self, run: &RunFolder, verdicts: &[Verdict]) -> Result<(), AnalyzeError> {
        self.fill_experiments(run, verdicts)?;
        self.fill_anomalies(verdicts)?;
        self.fill_goals(verdicts)?;
        Ok(consistency::fill(&self.connection, verdicts)?)
    }

    fn fill_experiments(&self, run: &RunFolder, verdicts: &[Verdict]) -> Result<(), AnalyzeError> {
        if verdicts.is_empty() {
            return Ok(());
        }
        let document = run.read_document()?;
        let trace = document.trace.display().to_string();
        let mut insert = self.connection.prepare(include_str!("experiment.sql"))?;
        for verdict in verdicts {
            let (figures, overall) = (&verdict.figures, &verdict.figures.overall);
            let measured_from_ns = self.measured_from_ns(run, verdict)?;
            insert.execute(params![
                verdict.experiment,
                verdict.threads,
                verdict.rate_per_s,
                verdict.ruling.name(),
                serde_json::Value::from(verdict.reasons.as_slice()).to_string(),
                measured_from_ns,
                figures.elapsed_ns,
                figures.counted_ns,
                (figures.timeline.slice_s * 1e9).round() as u64,
                figures.warmup_operations,
                figures.drained_operations,
                figures.sessions,
                figures.noops,
                overall.ok,
                overall.failed,
                overall.unknown,
                overall.skipped,
                overall.aborted,
                figures.throughput_per_s,
                figures.sessions_per_s,
                overall.mean_ns,
                overall.p50_ns,
                overall.p95_ns,
                overall.p99_ns,
                overall.max_ns,
                overall.service.map(|service| service.mean_ns),
                overall.service.map(|service| service.p50_ns),
                overall.service.map(|service| service.p95_ns),
                overall.service.map(|service| service.p99_ns),
                overall.service.map(|service| service.max_ns),
                figures.within_beta_percent,
                figures.reads,
                figures.unpredictable_reads,
                figures.unpredictable_percent,
                figures.met_percent,
                verdict.sla.beta_ns,
                verdict.sla.gamma.map(|gamma| gamma.limit_ns),
                verdict.sla.to_string(),
                document.store,
                trace,
            ])?;
        }
        Ok(())
    }

    fn fill_anomalies(&self, verdicts: &[Verdict]) -> Result<(), AnalyzeError> {
        let mut insert = self.connection.prepare("INSERT INTO isolation_anomalies VALUES (?, ?, ?, ?, ?, ?)")?;
        for verdict in verdicts {
            let Some(anomalies) = &verdict.figures.anomalies else { continue };
            for (second, counts) in anomalies.per_second.iter().enumerate() {
                for class in Class::ALL.into_iter().filter(|class| counts[*class as usize] > 0) {
                    let leaves = class.leaves().map(Isolation::name);
                    let count = counts[class as usize];
                    let (experiment, threads) = (verdict.experiment, verdict.threads);
                    insert.execute(params![experiment, threads, second as u64, class.name(), leaves, count])?;
                }
            }
        }
        Ok(())
    }

    /// What the benchmark asks of the kinds of sessions.
    fn fill_goals(&self, verdicts: &[Verdict]) -> Result<(), AnalyzeError> {
        let mut insert = self.connection.prepare("INSERT INTO session_goals VALUES (?, ?, ?, ?, ?)")?;
        for verdict in verdicts {
            for (kind, own) in &verdict.figures.by_session {
                let headline = verdict.figures.headline.as_ref().filter(|headline| headline.kind == *kind);
                let headline = headline.map(|headline| headline.name.as_str());
                insert.execute(params![verdict.experiment, kind, own.p90_max_ns, own.share_min_percent, headline])?;
            }
        }
        Ok(())
    }

    /// Where the measured part begins: as the replayer reports it, else at its first start.
    fn measured_from_ns(&self, run: &RunFolder, verdict: &Verdict) -> Result<Option<i64>, AnalyzeError> {
        let report = run.existing_experiment(verdict.experiment, verdict.threads).report();
        if report.exists() {
            let report: ReplayReport = schemas::files::read_json(&report)?;
            return Ok(Some(report.warmup_ns as i64));
        }
        let statement =
            "SELECT min(start_ns) FROM sealed_operations WHERE experiment = ? AND NOT warmup AND NOT drained";
        Ok(self.connection.query_row(statement, [verdict.experiment], |row| row.get(0))?)
    }

    /// From now on no statement can reach a file outside the folder, and none can undo this.
    fn lock(&self, root: &Path) -> Result<(), AnalyzeError> {
        // DuckDB checks the pattern of a view's files as well as each file.
        let allowed = [root.display().to_string(), literal_pattern(root)].map(|folder| quoted(&format!("{folder}/")));
        let settings = format!(
            "SET allowed_directories = [{}]; SET enable_external_access = false; SET lock_configuration = true;",
            allowed.join(", "),
        );
        Ok(self.connection.execute_batch(&settings)?)
    }

    /// Runs a user's statement, which must only read.
    pub fn query(&self, statement: &str) -> Result<Answer, AnalyzeError> {
        self.query_at_most(statement, u64::MAX)
    }

    /// The same, but takes this many rows at most.
    pub fn query_at_most(&self, statement: &str, rows_max: u64) -> Result<Answer, AnalyzeError> {
        self.check_read_only(statement)?;
        self.first_rows(statement, &[], rows_max).map_err(|e| {
            let message = first_lines(&e);
            AnalyzeError::Statement(match message.contains("Table with name") {
                // DuckDB suggests its internal tables.
                true => format!("{}{}", message.split(" Did you mean").next().unwrap_or_default(), self.hint),
                false => message,
            })
        })
    }

    /// Runs the analyzer's own definitions.
    pub(crate) fn execute(&self, statements: &str) -> Result<(), AnalyzeError> {
        Ok(self.connection.execute_batch(statements)?)
    }

    /// Runs one of the analyzer's own statements.
    pub(crate) fn run(&self, statement: &str, values: &[Value]) -> Result<Answer, duckdb::Error> {
        self.first_rows(statement, values, u64::MAX)
    }

    fn first_rows(&self, statement: &str, values: &[Value], rows_max: u64) -> Result<Answer, duckdb::Error> {
        let mut prepared = self.connection.prepare(statement)?;
        let mut found = prepared.query(duckdb::params_from_iter(values))?;
        let columns = found.as_ref().map(|statement| statement.column_names()).unwrap_or_default();
        let mut rows = Vec::new();
        while rows.len() as u64 != rows_max
            && let Some(row) = found.next()?
        {
            rows.push((0..columns.len()).map(|column| row.get(column)).collect::<Result<_, _>>()?);
        }
        Ok(Answer { columns, rows })
    }

    /// Runs one of the analyzer's own statements, and calls `take` with each row.
    pub(crate) fn each(
        &self,
        statement: &str,
        mut take: impl FnMut(&duckdb::Row<'_>) -> Result<(), duckdb::Error>,
    ) -> Result<(), duckdb::Error> {
        let mut prepared = self.connection.prepare(statement)?;
        let mut found = prepared.query([])?;
        while let Some(row) = found.next()? {
            take(row)?;
        }
        Ok(())
    }

    /// DuckDB's own parser decides: it can convert statements that only read to JSON, and no
    /// others.
    fn check_read_only(&self, statement: &str) -> Result<(), AnalyzeError> {
        let read = without_explain(statement);
        let text: String =
            self.connection
                .query_row("SELECT CAST(json_serialize_sql(?::VARCHAR) AS VARCHAR)", [read], |row| row.get(0))?;
        let parsed: serde_json::Value = serde_json::from_str(&text)
            .map_err(|e| AnalyzeError::Statement(format!("DuckDB's parser returned {text:?}: {e}")))?;
        let refuse = |why: String| Err(AnalyzeError::Statement(why));
        if parsed["error"] == true {
            let message = parsed["error_message"].as_str().unwrap_or("not a statement");
            return match parsed["error_type"].as_str() {
                Some("not implemented") => refuse(
                    "only statements that read are allowed: SELECT, WITH, DESCRIBE, SUMMARIZE, SHOW, or EXPLAIN of \
                     one of these"
                        .to_string(),
                ),
                _ => refuse(format!("SQL: {message}")),
            };
        }
        match parsed["statements"].as_array().map_or(0, Vec::len) {
            1 => match other_table_function(&parsed) {
                Some(name) => refuse(format!(
                    "table function {name} is not allowed here; allowed are {}",
                    TABLE_FUNCTIONS.join(", ")
                )),
                None => Ok(()),
            },
            0 => refuse("the statement is empty".to_string()),
            n => refuse(format!("expected one statement, found {n}")),
        }
    }

    /// A value as DuckDB writes it.
    fn text_of(&self, value: &Value) -> Result<String, duckdb::Error> {
        self.connection.prepare_cached("SELECT CAST(? AS VARCHAR)")?.query_row([value], |row| row.get(0))
    }
}

/// Table functions that a statement may use. Some others have effects (one enables a log to a
/// file), and none of them is needed.
const TABLE_FUNCTIONS: [&str; 7] =
    ["unnest", "range", "generate_series", "json_each", "json_tree", "duckdb_columns", "duckdb_functions"];

/// A table function in a parsed statement, at any depth, that is not one of [`TABLE_FUNCTIONS`].
fn other_table_function(parsed: &serde_json::Value) -> Option<&str> {
    match parsed {
        serde_json::Value::Array(items) => items.iter().find_map(other_table_function),
        serde_json::Value::Object(fields) => {
            if parsed["type"] == "TABLE_FUNCTION" {
                let name = parsed["function"]["function_name"].as_str().unwrap_or("without a name");
                if !TABLE_FUNCTIONS.contains(&name.to_lowercase().as_str()) {
                    return Some(name);
                }
            }
            fields.values().find_map(other_table_function)
        }
        _ => None,
    }
}

/// `EXPLAIN` only reads if the statement that it explains only reads.
fn without_explain(statement: &str) -> &str {
    let mut rest = statement;
    for word in ["explain", "analyze"] {
        let trimmed = rest.trim_start();
        match trimmed.get(..word.len()) {
            Some(first)
                if first.eq_ignore_ascii_case(word) && trimmed[word.len()..].starts_with(char::is_whitespace) =>
            {
                rest = &trimmed[word.len()..];
            }
            _ => break,
        }
    }
    rest
}

/// The part of DuckDB's message that says what is wrong. After it the message repeats the
/// statement, with a mark under it.
fn first_lines(error: &duckdb::Error) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    format!("SQL: {}", lines.join(" "))
}

fn canonical(folder: &Path) -> Result<PathBuf, AnalyzeError> {
    Ok(std::fs::canonicalize(folder).map_err(schemas::files::at(folder))?)
}

/// A text as an SQL literal.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The error of a query with this memory limit. If DuckDB ran out of memory, the limit is wrong.
pub fn within_memory(error: AnalyzeError, limit: Option<&str>) -> AnalyzeError {
    match limit {
        Some(limit) if error.to_string().contains("Out of Memory Error") => {
            AnalyzeError::LowMemory { limit: limit.to_string() }
        }
        _ => error,
    }
}

/// A path as a pattern that matches only this path.
pub(crate) fn literal_pattern(path: &Path) -> String {
    let mut pattern = String::new();
    for c in path.display().to_string().chars() {
        if matches!(c, '[' | '*' | '?') {
            pattern.extend(['[', c, ']']);
        } else {
            pattern.push(c);
        }
    }
    pattern
}

/// The statements that define the tables and views of a run. The table of experiments is empty.
pub(crate) fn definitions(run: &RunFolder, verdicts: &[Verdict]) -> Result<String, AnalyzeError> {
    definitions_of(run, verdicts, Rows::Sealed)
}

fn definitions_of(run: &RunFolder, verdicts: &[Verdict], rows: Rows) -> Result<String, AnalyzeError> {
    // The verdicts whose tables are read.
    let sealed = if rows == Rows::Sealed { verdicts } else { &[] };
    let family = families::of(&run.read_document()?.spec)?;
    let root = canonical(run.root())?;
    // An experiment that never ran has a verdict, but no tables.
    let is_sealed = |verdict: &Verdict| root.join(format!("operations/experiment={}", verdict.experiment)).exists();
    let pattern = |table: &str| quoted(&format!("{}/{table}/*/*/*.parquet", literal_pattern(&root)));
    let has_closing_reads = |verdict: &Verdict| verdict.sealed.iter().any(|sealed| sealed.closing_reads.is_some());
    let closing_reads = match sealed.iter().any(has_closing_reads) {
        false => empty_table("closing_reads", &family.closing_reads_schema()),
        true => include_str!("closing_reads.sql").replace("{closing_reads}", &pattern("closing_reads")),
    };
    let tables = match sealed.iter().any(is_sealed) {
        false => format!(
            "{}\n\n{}\nALTER TABLE unpredictable ADD COLUMN closing BOOLEAN;",
            empty_table("sealed_operations", &family.operations_schema()),
            empty_table("unpredictable", &UNPREDICTABLE)
        ),
        true => include_str!("views.sql")
            .replace("{operations}", &pattern("operations"))
            .replace("{unpredictable}", &pattern("unpredictable")),
    };
    Ok([
        closing_reads,
        tables,
        open_loop::definitions(run, verdicts)?,
        include_str!("derived.sql").into(),
        family.views(),
        include_str!("freshness.sql").into(),
        include_str!("isolation.sql").into(),
        family.registers().unwrap_or(include_str!("no_registers.sql")).into(),
        include_str!("read_staleness.sql").into(),
        include_str!("register_values.sql").into(),
        include_str!("consistency.sql").into(),
        match verdicts.iter().any(|verdict| verdict.sla.gamma.is_some()) {
            true => include_str!("excused_reads.sql").into(),
            false => include_str!("no_excused_reads.sql").into(),
        },
        checks(run, sealed)?,
        include_str!("session_kinds.sql").into(),
        include_str!("timeline.sql").into(),
        include_str!("availability.sql").into(),
    ]
    .join("\n"))
}

/// The view of the conditions that were checked.
fn checks(run: &RunFolder, verdicts: &[Verdict]) -> Result<String, AnalyzeError> {
    let is_known = |verdict: &&Verdict| verdict.figures.conditions.as_ref().is_some_and(|own| own.missing.is_none());
    let mut files = Vec::new();
    for verdict in verdicts.iter().filter(is_known) {
        let path = run.existing_experiment(verdict.experiment, verdict.threads).checks();
        if path.exists() {
            files.push(quoted(&literal_pattern(&canonical(&path)?)));
        }
    }
    Ok(match files.is_empty() {
        true => include_str!("no_checks.sql").into(),
        false => include_str!("checks.sql").replace("{checks}", &format!("[{}]", files.join(", "))),
    })
}

/// The statements that define the table of a comparison, without its rows.
pub(crate) fn definitions_of_comparison() -> &'static str {
    cells::DEFINITION
}

/// The statement that makes an empty table with the columns of a sealed one.
fn empty_table(name: &str, schema: &Schema) -> String {
    let columns = schema.fields().iter().map(|field| {
        let sql = match field.data_type() {
            DataType::Int64 => "BIGINT",
            DataType::Int32 => "INTEGER",
            DataType::Int16 => "SMALLINT",
            DataType::Boolean => "BOOLEAN",
            DataType::List(item) if item.data_type().is_nested() => {
                "STRUCT(item VARCHAR, owner BIGINT, element BIGINT, observed BIGINT, low BIGINT, high BIGINT)[]"
            }
            DataType::List(_) => "BIGINT[]",
            _ => "VARCHAR",
        };
        format!("\"{}\" {sql}", field.name())
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    format!("CREATE TABLE {name} (experiment BIGINT, fragment BIGINT, {columns});")
}
