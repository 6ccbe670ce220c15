//! A list of statements without duplicates: each gets its number when it is first named.

use std::collections::BTreeMap;

use schemas::vocabulary::sql::text::{Dialect, effect};
use schemas::vocabulary::sql::{Statement, Type, Verb};

use crate::core::error::GenerateError;

/// A statement of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    pub(super) number: u32,
    pub(super) verb: Verb,
}

impl Known {
    /// Its number.
    pub fn number(self) -> u32 {
        self.number
    }
}

/// Statements in the order of their numbers.
#[derive(Debug, Clone)]
pub struct Statements {
    dialect: Dialect,
    list: Vec<Statement>,
    numbers: BTreeMap<(String, Vec<Type>), u32>,
}

impl Statements {
    /// An empty list of statements in this dialect.
    pub fn new(dialect: Dialect) -> Statements {
        Statements { dialect, list: Vec::new(), numbers: BTreeMap::new() }
    }

    /// The statement with this text and these types of parameters. A text that is known keeps its first name. The
    /// error says why it cannot be a statement of a trace set.
    pub fn add(&mut self, name: &str, text: &str, parameters: &[Type]) -> Result<Known, GenerateError> {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let key = (text, parameters.to_vec());
        let known = |number: u32, statement: &Statement| Some(Known { number, verb: statement.verb()? });
        if let Some(found) = self.numbers.get(&key).and_then(|number| known(*number, &self.list[*number as usize])) {
            return Ok(found);
        }
        let wrong = |why: String| GenerateError::Infeasible(format!("statement {name:?} {why}: {}", key.0));
        let effect = effect(&key.0, self.dialect).map_err(wrong)?;
        if effect.parameters != parameters.len() {
            return Err(wrong(format!(
                "has {} parameters, and {} types are given",
                effect.parameters,
                parameters.len()
            )));
        }
        let statement = Statement {
            name: name.to_string(),
            text: key.0.clone(),
            parameters: parameters.to_vec(),
            reads: effect.reads,
            writes: effect.writes,
            ordered: effect.ordered,
        };
        // A trace numbers statements with 32 bits.
        let number = self.list.len() as u32;
        let added = known(number, &statement).ok_or_else(|| wrong("neither reads nor writes".into()))?;
        self.list.push(statement);
        self.numbers.insert(key, number);
        Ok(added)
    }

    /// The statements.
    pub fn list(&self) -> &[Statement] {
        &self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_gets_one_number() {
        let mut statements = Statements::new(Dialect::Logical);
        let first = statements.add("a", "SELECT a FROM t\n WHERE b = ?", &[Type::Integer]).unwrap();
        assert_eq!(statements.add("b", "SELECT a  FROM t WHERE b = ?", &[Type::Integer]).unwrap(), first);
        let other = statements.add("c", "SELECT a FROM t WHERE b = ?", &[Type::Text]).unwrap();
        assert_eq!((first.number(), other.number(), statements.list().len()), (0, 1, 2));
        for (text, expect) in [
            ("SELECT a FROM t WHERE b = ?", "has 1 parameters, and 0 types are given"),
            ("DROP TABLE t", "changes the schema"),
            ("COMMIT", "begins or ends a transaction"),
        ] {
            let error = statements.add("d", text, &[]).unwrap_err().to_string();
            assert!(error.contains(expect), "{error}");
        }
    }
}
