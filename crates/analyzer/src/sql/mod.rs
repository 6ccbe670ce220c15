//! SQL over a run, or over a comparison's cells: an in-memory DuckDB with the documented
//! views, which reads that folder, nothing else, and writes nowhere.

mod cells;
mod output;

use std::path::{Path, PathBuf};

use duckdb::types::Value;
use duckdb::{Connection, params};
use schemas::comparison::{ComparisonDocument, ComparisonFolder};
use schemas::run::{ReplayReport, RunFolder};
use schemas::verdict::Verdict;
use tempfile::TempDir;

pub use output::{Format, print};

use crate::error::AnalyzeError;

/// The views of a run or of a comparison.
pub struct Database {
    connection: Connection,
    /// Where DuckDB puts what does not fit its memory.
    spill: TempDir,
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
    /// `memory_limit` is what DuckDB may use, such as `4GiB`; without it four fifths
    /// of the machine's. What does not fit goes to a temporary folder.
    pub fn open(run: &RunFolder, verdicts: &[Verdict], memory_limit: Option<&str>) -> Result<Database, AnalyzeError> {
        let database = Database::unlocked(run, verdicts, memory_limit)?;
        database.lock(&canonical(run.root())?)?;
        Ok(database)
    }

    /// The cells of a comparison, as its `comparison.json` has them.
    pub fn of_comparison(folder: &ComparisonFolder, memory_limit: Option<&str>) -> Result<Database, AnalyzeError> {
        let document: ComparisonDocument = schemas::files::read_json(&folder.document())?;
        let database = Database::empty(memory_limit)?;
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
        // Not where the user happens to be.
        connection.execute_batch(&format!("SET temp_directory = {}", quoted(&spill.path().display().to_string())))?;
        Ok(Database { connection, spill })
    }

    /// A folder of its own, gone with it.
    pub(crate) fn spill(&self) -> &Path {
        self.spill.path()
    }

    /// The same for statements of the analyzer's own, which may write files elsewhere.
    pub(crate) fn unlocked(
        run: &RunFolder,
        verdicts: &[Verdict],
        memory_limit: Option<&str>,
    ) -> Result<Database, AnalyzeError> {
        let Database { connection, spill } = Database::empty(memory_limit)?;
        let root = canonical(run.root())?;
        // An experiment that never ran has a verdict and no table.
        let is_sealed = |verdict: &Verdict| root.join(format!("operations/experiment={}", verdict.experiment)).exists();
        if !verdicts.iter().any(is_sealed) {
            connection.execute_batch(include_str!("empty.sql"))?;
        } else {
            let pattern = |table: &str| quoted(&format!("{}/{table}/*/*/*.parquet", literal_pattern(&root)));
            let views = include_str!("views.sql")
                .replace("{operations}", &pattern("operations"))
                .replace("{unpredictable}", &pattern("unpredictable"));
            connection.execute_batch(&views)?;
        }
        connection.execute_batch(include_str!("derived.sql"))?;
        connection.execute_batch(include_str!("freshness.sql"))?;
        let database = Database { connection, spill };
        database.fill_experiments(run, verdicts)?;
        Ok(database)
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
                figures.throughput_per_s,
                figures.sessions_per_s,
                overall.mean_ns,
                overall.p50_ns,
                overall.p95_ns,
                overall.p99_ns,
                overall.max_ns,
                figures.within_beta_percent,
                figures.reads,
                figures.unpredictable_reads,
                figures.unpredictable_percent,
                verdict.sla.to_string(),
                document.store,
                trace,
            ])?;
        }
        Ok(())
    }

    /// Where the measured part begins: as the replayer reports it, else at its first start.
    fn measured_from_ns(&self, run: &RunFolder, verdict: &Verdict) -> Result<Option<i64>, AnalyzeError> {
        let report = run.experiment(verdict.experiment, verdict.threads).report();
        if report.exists() {
            let report: ReplayReport = schemas::files::read_json(&report)?;
            return Ok(Some(report.warmup_ns as i64));
        }
        let statement = "SELECT min(start_ns) FROM operations WHERE experiment = ? AND NOT warmup AND NOT drained";
        Ok(self.connection.query_row(statement, [verdict.experiment], |row| row.get(0))?)
    }

    /// From here on no statement can reach a file outside the folder, and none can
    /// undo this.
    fn lock(&self, root: &Path) -> Result<(), AnalyzeError> {
        // DuckDB asks for the pattern of a view's files as well as for each file.
        let allowed = [root.display().to_string(), literal_pattern(root)].map(|folder| quoted(&format!("{folder}/")));
        let settings = format!(
            "SET allowed_directories = [{}]; SET enable_external_access = false; SET lock_configuration = true;",
            allowed.join(", "),
        );
        Ok(self.connection.execute_batch(&settings)?)
    }

    /// Runs a statement of the user's, which must be one that only reads.
    pub fn query(&self, statement: &str) -> Result<Answer, AnalyzeError> {
        self.check_read_only(statement)?;
        self.run(statement, &[]).map_err(|e| AnalyzeError::Statement(first_lines(&e)))
    }

    /// Runs one of the analyzer's own statements.
    pub(crate) fn run(&self, statement: &str, values: &[Value]) -> Result<Answer, duckdb::Error> {
        let mut prepared = self.connection.prepare(statement)?;
        let mut found = prepared.query(duckdb::params_from_iter(values))?;
        let columns = found.as_ref().map(|statement| statement.column_names()).unwrap_or_default();
        let mut rows = Vec::new();
        while let Some(row) = found.next()? {
            rows.push((0..columns.len()).map(|column| row.get(column)).collect::<Result<_, _>>()?);
        }
        Ok(Answer { columns, rows })
    }

    /// Runs one of the analyzer's own statements, and hands over each row.
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

    /// DuckDB's own parser decides: it can turn statements that only read into
    /// JSON, and no others.
    fn check_read_only(&self, statement: &str) -> Result<(), AnalyzeError> {
        let read = without_explain(statement);
        let text: String =
            self.connection
                .query_row("SELECT CAST(json_serialize_sql(?::VARCHAR) AS VARCHAR)", [read], |row| row.get(0))?;
        let parsed: serde_json::Value = serde_json::from_str(&text)
            .map_err(|e| AnalyzeError::Statement(format!("DuckDB's parser gave {text:?}: {e}")))?;
        let refuse = |why: String| Err(AnalyzeError::Statement(why));
        if parsed["error"] == true {
            let message = parsed["error_message"].as_str().unwrap_or("not a statement");
            return match parsed["error_type"].as_str() {
                Some("not implemented") => refuse(
                    "only a statement that reads is run: SELECT, WITH, DESCRIBE, SUMMARIZE, SHOW or EXPLAIN of one \
                     of these; a run is never changed"
                        .to_string(),
                ),
                _ => refuse(format!("SQL: {message}")),
            };
        }
        match parsed["statements"].as_array().map_or(0, Vec::len) {
            1 => match other_table_function(&parsed) {
                Some(name) => refuse(format!(
                    "table function {name} is not one that may be used here; those are {}",
                    TABLE_FUNCTIONS.join(", ")
                )),
                None => Ok(()),
            },
            0 => refuse("the statement is empty".to_string()),
            n => refuse(format!("{n} statements; give one")),
        }
    }

    /// A value as DuckDB writes it.
    fn text_of(&self, value: &Value) -> Result<String, duckdb::Error> {
        self.connection.prepare_cached("SELECT CAST(? AS VARCHAR)")?.query_row([value], |row| row.get(0))
    }
}

/// Table functions that a statement may use: some others have effects (one
/// switches on a log to a file), and none of those is needed.
const TABLE_FUNCTIONS: [&str; 7] =
    ["unnest", "range", "generate_series", "json_each", "json_tree", "duckdb_columns", "duckdb_functions"];

/// A table function in a parsed statement, at any depth, that is none of [`TABLE_FUNCTIONS`].
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

/// `EXPLAIN` reads when what it explains does.
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

/// DuckDB's messages end with the statement again and a mark under it; the first line says what is wrong.
fn first_lines(error: &duckdb::Error) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
    format!("SQL: {}", lines.join(" "))
}

fn canonical(folder: &Path) -> Result<PathBuf, AnalyzeError> {
    Ok(std::fs::canonicalize(folder).map_err(schemas::files::at(folder))?)
}

/// A text as SQL has it.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A path as a pattern that matches it alone.
fn literal_pattern(path: &Path) -> String {
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
