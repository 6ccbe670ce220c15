//! Which operations a trace set of the family may have: those of its statements, with their parameters.

use std::ops::Range;

use super::SqlStatistics;
use crate::trace::{BadRow, Chunk, Rules};
use crate::vocabulary::sql::{Operation, Parameter, Sql, Statement, Type, Verb, decode};

/// The rules of all fragments.
pub(super) struct SqlRules {
    statements: Vec<(Verb, Vec<Type>)>,
}

impl SqlRules {
    pub(super) fn new(statistics: &SqlStatistics) -> Result<SqlRules, String> {
        let read = |text: &String| {
            Statement::read_signature(text).ok_or_else(|| format!("statistics.statements: {text:?} is no signature"))
        };
        Ok(SqlRules { statements: statistics.statements.iter().map(read).collect::<Result<_, _>>()? })
    }

    fn check_one(&self, chunk: &Chunk<Sql>, row: usize, operation: &Operation) -> Result<(), String> {
        let Some((verb, types)) = self.statements.get(operation.statement as usize) else {
            return Err(format!("statement {} does not exist", operation.statement));
        };
        if *verb != operation.verb {
            let (found, expected) = (operation.verb.name(), verb.name());
            return Err(format!("operation is {found}, and statement {} is a {expected}", operation.statement));
        }
        let (parameters, _) = chunk.columns().bytes(operation);
        let mut count = 0;
        for parameter in decode(parameters) {
            let parameter = parameter?;
            match (parameter.kind(), types.get(count)) {
                (_, None) => {}
                (None, Some(_)) => {}
                (Some(found), Some(expected)) if found == *expected => {}
                (Some(found), Some(expected)) => {
                    return Err(format!("parameter {} is of type {found}, expected {expected}", count + 1));
                }
            }
            if let Parameter::Result(result) = parameter
                && result.step >= chunk.step(row)
            {
                return Err(format!("parameter {} is the result of step {}, which is later", count + 1, result.step));
            }
            count += 1;
        }
        if count != types.len() {
            return Err(format!("has {count} parameters, and statement {} has {}", operation.statement, types.len()));
        }
        Ok(())
    }
}

impl Rules<Sql> for SqlRules {
    fn check(&self, chunk: &Chunk<Sql>, mut rows: Range<usize>) -> Result<(), BadRow> {
        rows.try_for_each(|row| {
            let operation = chunk.operation(row);
            if operation.verb.control().is_some() {
                return Ok(());
            }
            self.check_one(chunk, row, &operation).map_err(|message| BadRow { row, message })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::trace::OperationsBuilder;
    use crate::vocabulary::sql::{Pick, ResultOf, TraceRow, Value};

    fn refused(verb: Verb, statement: u32, parameters: &[Parameter<'_>]) -> Option<String> {
        let statistics =
            SqlStatistics { statements: vec!["query(integer,text)".into(), "update()".into()], ..Default::default() };
        let mut builder = OperationsBuilder::<Sql>::new(["kind"]);
        let operation = Operation::statement(verb, statement, parameters, &[], builder.variable()).unwrap();
        builder.push(&TraceRow::plain(0, 0, operation, 0));
        let mut chunk = Chunk::<Sql>::default();
        chunk.add(&builder.finish(), Path::new("a.parquet")).unwrap();
        SqlRules::new(&statistics).unwrap().check(&chunk, 0..1).err().map(|bad| bad.message)
    }

    #[test]
    fn operations_that_are_not_those_of_the_statements_are_refused() {
        let (one, text) = (Parameter::Value(Value::Integer(1)), Parameter::Value(Value::Text("a")));
        let later = Parameter::Result(ResultOf { kind: Type::Integer, step: 0, column: 0, pick: Pick::First });
        let null = Parameter::Value(Value::Null);
        assert_eq!(refused(Verb::Query, 0, &[one, text]), None);
        assert_eq!(refused(Verb::Query, 0, &[null, null]), None);
        assert_eq!(refused(Verb::Update, 1, &[]), None);
        for (verb, statement, parameters, expect) in [
            (Verb::Query, 2, &[][..], "statement 2 does not exist"),
            (Verb::Query, 1, &[], "operation is query, and statement 1 is a update"),
            (Verb::Query, 0, &[one], "has 1 parameters, and statement 0 has 2"),
            (Verb::Update, 1, &[one], "has 1 parameters, and statement 1 has 0"),
            (Verb::Query, 0, &[text, text], "parameter 1 is of type text, expected integer"),
            (Verb::Query, 0, &[later, text], "parameter 1 is the result of step 0, which is later"),
        ] {
            assert_eq!(refused(verb, statement, parameters).as_deref(), Some(expect));
        }
    }

    #[test]
    fn signatures_of_another_form_are_refused() {
        for text in ["query", "query(number)", "begin()", "(integer)"] {
            let statistics = SqlStatistics { statements: vec![text.into()], ..Default::default() };
            assert!(SqlRules::new(&statistics).is_err(), "{text}");
        }
    }
}
