//! From the tables of a folder to a trace set.

use std::path::{Path, PathBuf};

use schemas::files::at;
use schemas::manifest::Manifest;
use schemas::vocabulary::sql::Parameter;
use schemas::vocabulary::sql::text::definitions;
use schemas::workload::sql::checks::{CHECKS, Check, parse_checks};

use super::arguments::Argument;
use super::lists::Lists;
use super::processes::{Processes, add_kind};
use super::rows::{Column, Rows, needed, optional};
use super::steps::{Does, Steps};
use super::{ImportError, ImportOptions};
use crate::core::error::GenerateError;
use crate::sql::{Header, SetWriter};

const PRELOAD: [Column; 2] = [needed("statement"), optional("parameters")];

/// See the module.
pub(super) fn convert(folder: &Path, place: &Path, options: &ImportOptions) -> Result<Manifest, ImportError> {
    let statements = find(folder, "statements")?;
    let operations = find(folder, "operations")?;
    let preload = Rows::find(folder, "preload")?;
    let schema = read_schema(folder, options)?;
    let mut lists = Lists::read(&statements, options.dialect)?;
    if let Some(path) = preload.as_deref().filter(|_| !lists.is_complete()) {
        learn_from_preload(path, &mut lists)?;
    }
    let kinds = scan(&operations, &mut lists)?;
    let header = Header {
        name: options.name.clone(),
        source: "table".into(),
        dialect: options.dialect,
        schema,
        statements: lists.statements(),
        kinds: kinds.clone(),
        fragments: options.fragments,
        log_results: options.log_results,
        checks: read_own_checks(folder, options)?,
    };
    let mut writer = SetWriter::create(place, header)?;
    preload.map_or(Ok(()), |path| write_preload(&path, &lists, &mut writer))?;
    let mut processes = Processes::open(&operations, &lists, &kinds, options.closed_loop)?;
    while let Some(process) = processes.next_process()? {
        let written = match process.is_warmup {
            true => writer.warmup(&process.borrowed()),
            false => writer.process(&process.borrowed()),
        };
        written.map_err(|error| match error {
            GenerateError::Infeasible(message) => process.wrong(message),
            other => ImportError::Write(other),
        })?;
    }
    processes.finish()?;
    Ok(writer.finish()?)
}

/// The path of a table that every import needs.
fn find(folder: &Path, name: &str) -> Result<PathBuf, ImportError> {
    if !folder.is_dir() {
        return Err(ImportError::whole(folder, "is no folder; give the folder that holds the tables"));
    }
    let path = Rows::find(folder, name)?;
    path.ok_or_else(|| ImportError::whole(folder, format!("has neither {name}.csv nor {name}.parquet; add one")))
}

/// The definitions of the tables; empty if the folder has none.
fn read_schema(folder: &Path, options: &ImportOptions) -> Result<String, ImportError> {
    let path = folder.join("schema.sql");
    if !path.exists() {
        return Ok(String::new());
    }
    let schema = std::fs::read_to_string(&path).map_err(at(&path))?;
    definitions(&schema, options.dialect, options.dialect).map_err(|why| ImportError::whole(&path, why))?;
    Ok(schema)
}

/// The conditions that the data keep; none if the folder has none.
fn read_own_checks(folder: &Path, options: &ImportOptions) -> Result<Vec<Check>, ImportError> {
    let path = folder.join(CHECKS);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(&path).map_err(at(&path))?;
    parse_checks(&text, options.dialect).map_err(|why| ImportError::whole(&path, why))
}

fn learn_from_preload(path: &Path, lists: &mut Lists) -> Result<(), ImportError> {
    let mut rows = Rows::open(path, &PRELOAD)?;
    while rows.next_row()? {
        let number = lists.number(&rows, rows.needed(0, "statement")?)?;
        lists.learn(&rows, number, rows.get(1))?;
    }
    Ok(())
}

/// The kinds of processes. Learns the types of parameters that are not declared.
fn scan(path: &Path, lists: &mut Lists) -> Result<Vec<String>, ImportError> {
    let mut steps = Steps::open(path)?;
    let (mut kinds, mut process) = (Vec::new(), String::new());
    let is_complete = lists.is_complete();
    while steps.0.next_row()? {
        let name = steps.process()?;
        if name != process {
            process = name.to_string();
            add_kind(&steps, &mut kinds)?;
        }
        if let Does::Statement(name) = steps.does()?
            && !is_complete
        {
            let number = lists.number(&steps.0, name)?;
            lists.learn(&steps.0, number, steps.parameters())?;
        }
    }
    match kinds.is_empty() {
        true => Err(ImportError::whole(path, "has no operation")),
        false => Ok(kinds),
    }
}

fn write_preload(path: &Path, lists: &Lists, writer: &mut SetWriter) -> Result<(), ImportError> {
    let mut rows = Rows::open(path, &PRELOAD)?;
    while rows.next_row()? {
        let number = lists.number(&rows, rows.needed(0, "statement")?)?;
        let arguments = lists.arguments(&rows, number, rows.get(1))?;
        if arguments.iter().any(|argument| matches!(argument, Argument::Result(_))) {
            return Err(rows.wrong("has a parameter that is a result, and a preload has no earlier step"));
        }
        let parameters: Vec<Parameter<'_>> = arguments.iter().map(Argument::parameter).collect();
        writer.preload(number, &parameters)?;
    }
    Ok(())
}
