//! The list of statements, and the types of their parameters.

use std::collections::BTreeMap;
use std::path::Path;

use schemas::vocabulary::sql::text::{Dialect, effect};
use schemas::vocabulary::sql::{Statement, Type};

use super::ImportError;
use super::arguments::{Argument, argument, elements};
use super::rows::{Column, Place, Rows, needed, optional};
use crate::sql::literals::wider;

const COLUMNS: [Column; 3] = [needed("statement"), needed("text"), optional("parameters")];

/// The words of steps that are no statements.
const RESERVED: [&str; 3] = ["begin", "commit", "abort"];

/// A statement, and what is known of its parameters.
struct Listed {
    statement: Statement,
    /// Whether the file declares the types.
    is_declared: bool,
    /// The type of each parameter and the row that showed it; None if only NULLs were seen.
    types: Vec<Option<(Type, Option<Place>)>>,
}

/// The statements of `statements.csv` or `statements.parquet`.
pub(super) struct Lists {
    all: Vec<Listed>,
    by_name: BTreeMap<String, u32>,
}

impl Lists {
    pub(super) fn read(path: &Path, dialect: Dialect) -> Result<Lists, ImportError> {
        let mut rows = Rows::open(path, &COLUMNS)?;
        let mut lists = Lists { all: Vec::new(), by_name: BTreeMap::new() };
        while rows.next_row()? {
            let name = rows.needed(0, "statement")?.trim().to_string();
            let listed = read_one(&rows, &name, dialect)?;
            if lists.by_name.insert(name.clone(), lists.all.len() as u32).is_some() {
                return Err(rows.wrong(format!("statement {name} is there twice; rename one")));
            }
            lists.all.push(listed);
        }
        match lists.all.is_empty() {
            true => Err(ImportError::whole(path, "has no statement")),
            false => Ok(lists),
        }
    }

    /// The number of a statement that a row names.
    pub(super) fn number(&self, rows: &Rows, name: &str) -> Result<u32, ImportError> {
        let number = self.by_name.get(name.trim()).copied();
        number.ok_or_else(|| rows.wrong(format!("statement {name} is not in the list of statements")))
    }

    /// Whether the types of all parameters are declared.
    pub(super) fn is_complete(&self) -> bool {
        self.all.iter().all(|listed| listed.is_declared)
    }

    /// Learns from a row the types that no one has declared.
    pub(super) fn learn(&mut self, rows: &Rows, number: u32, parameters: Option<&str>) -> Result<(), ImportError> {
        let listed = &mut self.all[number as usize];
        if listed.is_declared {
            return Ok(());
        }
        let name = listed.statement.name.clone();
        let elements = counted(rows, &name, parameters, listed.types.len())?;
        for (at, (known, element)) in listed.types.iter_mut().zip(elements).enumerate() {
            let wrong = |why: String| rows.wrong(format!("parameter {} of statement {name} {why}", at + 1));
            let Some(kind) = argument(element, None).map_err(wrong)?.kind() else { continue };
            match known {
                None => *known = Some((kind, Some(rows.place()))),
                Some((before, place)) => {
                    let wide = wider(*before, kind).ok_or_else(|| {
                        let first = place.as_ref().map_or(String::new(), |place| format!(" ({})", place.short()));
                        wrong(format!(
                            "is {element}, of type {kind}, and was of type {before} before{first}; write values of one \
                             type, or declare it in the column parameters of the statements"
                        ))
                    })?;
                    *before = wide;
                }
            }
        }
        Ok(())
    }

    /// The parameters of a row, in the types of its statement.
    pub(super) fn arguments(
        &self,
        rows: &Rows,
        number: u32,
        parameters: Option<&str>,
    ) -> Result<Vec<Argument>, ImportError> {
        let Listed { statement, types, .. } = &self.all[number as usize];
        let elements = counted(rows, &statement.name, parameters, types.len())?;
        let typed = types.iter().zip(elements).enumerate().map(|(at, (kind, element))| {
            let kind = kind.as_ref().map_or(Type::Text, |(kind, _)| *kind);
            argument(element, Some(kind))
                .map_err(|why| rows.wrong(format!("parameter {} of statement {} {why}", at + 1, statement.name)))
        });
        typed.collect()
    }

    /// The statement of a number.
    pub(super) fn statement(&self, number: u32) -> &Statement {
        &self.all[number as usize].statement
    }

    /// The statements, with the types of their parameters.
    pub(super) fn statements(&self) -> Vec<Statement> {
        let types =
            |one: &Listed| one.types.iter().map(|kind| kind.as_ref().map_or(Type::Text, |(kind, _)| *kind)).collect();
        self.all.iter().map(|one| Statement { parameters: types(one), ..one.statement.clone() }).collect()
    }
}

fn read_one(rows: &Rows, name: &str, dialect: Dialect) -> Result<Listed, ImportError> {
    if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(rows.wrong(format!("a statement cannot be called {name}, which begins or ends a transaction")));
    }
    let text = rows.needed(1, "text")?.trim().trim_end_matches(';').trim_end();
    let effect = effect(text, dialect).map_err(|why| rows.wrong(format!("statement {name} {why}")))?;
    let declared = match rows.get(2) {
        None => None,
        Some(types) => {
            let types: Result<Vec<Type>, String> = types.split(',').map(|kind| kind.trim().parse()).collect();
            Some(types.map_err(|why| rows.wrong(format!("statement {name}: {why}")))?)
        }
    };
    if let Some(types) = declared.as_ref().filter(|types| types.len() != effect.parameters) {
        let (found, expected) = (types.len(), effect.parameters);
        return Err(rows.wrong(format!("statement {name} declares {found} parameters, and its text has {expected}")));
    }
    let statement = Statement {
        name: name.to_string(),
        text: text.to_string(),
        parameters: Vec::new(),
        reads: effect.reads,
        writes: effect.writes,
        ordered: effect.ordered,
    };
    let is_declared = declared.is_some() || effect.parameters == 0;
    let types = match declared {
        Some(types) => types.into_iter().map(|kind| Some((kind, None))).collect(),
        None => vec![None; effect.parameters],
    };
    Ok(Listed { statement, is_declared, types })
}

/// The elements of a row's parameters, as many as the statement has.
fn counted<'a>(
    rows: &Rows,
    name: &str,
    parameters: Option<&'a str>,
    expected: usize,
) -> Result<Vec<&'a str>, ImportError> {
    let elements = parameters.map_or(Ok(Vec::new()), elements).map_err(|why| rows.wrong(why))?;
    if elements.len() != expected {
        let found = elements.len();
        return Err(rows.wrong(format!("statement {name} has {expected} parameters, and the row has {found}")));
    }
    Ok(elements)
}
