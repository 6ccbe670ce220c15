//! The list of statements: each text once, with parameters in the place of its literals.

use indexmap::IndexMap;

use super::class::{self, Class};
use super::lexer::{self, Dialect, Kind, Lexed, MARK};
use super::syntax::{self, UNPARSABLE};
use super::values::{Bound, Value, encode};

/// More parameters fit into no message of a protocol.
const PARAMETERS_MAX: usize = u16::MAX as usize;
/// More shapes are not remembered at once.
const SHAPES_MAX: usize = 1 << 16;
/// With more statements the literals of the log are not where values are.
pub const STATEMENTS_MAX: usize = 1_000_000;

/// Statements whose parameters are not in the log.
pub const NO_PARAMETERS: &str = "parameters of the statement are not in the log, or are cut off";
/// Quotes and comments that are not closed.
pub const CUT_STATEMENT: &str = "statement is cut off";
/// Too many different statements.
pub const TOO_MANY: &str = "more than 1,000,000 different statements";

/// The type of a parameter, as far as the log says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParameterType {
    /// A whole number.
    Integer,
    /// Another number.
    Decimal,
    /// The database says it when it prepares the statement.
    Unknown,
}

impl ParameterType {
    const fn letter(self) -> char {
        match self {
            ParameterType::Integer => Kind::Integer.letter(),
            ParameterType::Decimal => Kind::Decimal.letter(),
            ParameterType::Unknown => Kind::Quoted.letter(),
        }
    }
}

/// A statement of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Its text, with `$1`, `$2`, … for the parameters; `?` for MySQL.
    pub text: String,
    /// The types of its parameters.
    pub parameters: Vec<ParameterType>,
    /// Whether it observes data.
    pub reads: bool,
    /// Whether it changes data.
    pub writes: bool,
    /// Whether the order of its rows counts.
    pub ordered: bool,
}

/// What is known of a shape.
#[derive(Debug, Clone)]
enum Shape {
    Other(Class),
    Data(Plan),
}

#[derive(Debug, Clone)]
struct Plan {
    /// Whether each literal is a parameter.
    is_parameter: Vec<bool>,
    /// The number of the statement, if all its literals are parameters.
    number: Option<u32>,
    flags: (bool, bool, bool),
}

/// What a statement of a log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// Nothing: a text without words.
    Empty,
    /// A statement of the list. Its parameters were added to the bytes.
    Data(u32),
    /// Something else.
    Other(Class),
}

/// The list of statements, as it grows.
#[derive(Debug)]
pub struct Statements {
    dialect: Dialect,
    shapes: IndexMap<String, Shape>,
    /// By their texts and types. The number of a statement is its place.
    list: IndexMap<String, Statement>,
    lexed: Lexed,
}

impl Statements {
    /// An empty list.
    pub fn new(dialect: Dialect) -> Statements {
        Statements { dialect, shapes: IndexMap::new(), list: IndexMap::new(), lexed: Lexed::default() }
    }

    /// The statements, in the order of their numbers.
    pub fn list(&self) -> impl ExactSizeIterator<Item = &Statement> {
        self.list.values()
    }

    /// Reads the statement of a text that begins at `from`. `bounds` are the parameters that the log has. Returns
    /// what it is, where it ends, and where the next one begins.
    pub fn read(
        &mut self,
        text: &str,
        from: usize,
        bounds: Option<&[Bound]>,
        bytes: &mut Vec<u8>,
    ) -> (Read, usize, usize) {
        let mut lexed = std::mem::take(&mut self.lexed);
        let (end, next, read) = match lexer::read(text, from, self.dialect, &mut lexed) {
            None => (text.len(), text.len(), Read::Other(Class::Skipped(CUT_STATEMENT))),
            Some((end, next)) if lexed.shape.is_empty() => (end, next, Read::Empty),
            Some((end, next)) => (end, next, self.find(&text[..end], from, &lexed, bounds, bytes)),
        };
        self.lexed = lexed;
        (read, end, next)
    }

    fn find(&mut self, text: &str, from: usize, lexed: &Lexed, bounds: Option<&[Bound]>, bytes: &mut Vec<u8>) -> Read {
        if !self.shapes.contains_key(&lexed.shape) {
            if self.shapes.len() >= SHAPES_MAX {
                self.shapes.clear();
            }
            let shape = self.look(text, from, lexed);
            self.shapes.insert(lexed.shape.clone(), shape);
        }
        let known = match self.shapes.get(&lexed.shape) {
            Some(Shape::Data(plan)) => plan.number,
            Some(Shape::Other(class)) => return Read::Other(*class),
            None => return Read::Other(Class::Skipped(UNPARSABLE)),
        };
        let wanted = usize::from(lexed.parameters);
        let Some(bound) = bounds.unwrap_or_default().get(..wanted) else {
            return Read::Other(Class::Skipped(NO_PARAMETERS));
        };
        let number = match known.map_or_else(|| self.number(text, lexed), Ok) {
            Ok(number) => number,
            Err(reason) => return Read::Other(Class::Skipped(reason)),
        };
        for bound in bound {
            encode(bound.as_deref().map_or(Value::Null, Value::Unknown), bytes);
        }
        let Some(Shape::Data(plan)) = self.shapes.get(&lexed.shape) else { return Read::Data(number) };
        for (literal, _) in lexed.literals.iter().zip(&plan.is_parameter).filter(|(_, is_parameter)| **is_parameter) {
            encode(Value::of_literal(literal.kind, lexed.value(literal)), bytes);
        }
        Read::Data(number)
    }

    /// Looks at a shape for the first time.
    fn look(&self, text: &str, from: usize, lexed: &Lexed) -> Shape {
        let class = class::of(&lexed.shape, self.dialect);
        if class != Class::Data {
            return Shape::Other(class);
        }
        let syntax = match syntax::read(&text[from..], self.dialect) {
            Ok(syntax) => syntax,
            Err(syntax::INTO) => return Shape::Other(Class::Definition),
            Err(reason) => return Shape::Other(Class::Skipped(reason)),
        };
        let fits = lexed.literals.len() + usize::from(lexed.parameters) <= PARAMETERS_MAX;
        let is_parameter =
            lexed.literals.iter().map(|literal| fits && syntax.replaceable.contains(&(literal.unsigned - from)));
        let flags = (syntax.reads, syntax.writes, syntax.ordered);
        Shape::Data(Plan { is_parameter: is_parameter.collect(), number: None, flags })
    }

    /// The number of a statement, which is added to the list if it is new.
    fn number(&mut self, text: &str, lexed: &Lexed) -> Result<u32, &'static str> {
        let Some(Shape::Data(plan)) = self.shapes.get_mut(&lexed.shape) else { return Err(UNPARSABLE) };
        let (normal, parameters) = normal(text, lexed, &plan.is_parameter, self.dialect);
        let types: String = parameters.iter().map(|parameter| parameter.letter()).collect();
        let key = format!("{normal}{MARK}{types}");
        let number = match self.list.get_index_of(&key) {
            Some(number) => number,
            None if self.list.len() >= STATEMENTS_MAX => return Err(TOO_MANY),
            None => {
                let (reads, writes, ordered) = plan.flags;
                let statement = Statement { text: normal, parameters, reads, writes, ordered };
                self.list.insert_full(key, statement).0
            }
        };
        if plan.is_parameter.iter().all(|is_parameter| *is_parameter) {
            plan.number = Some(number as u32);
        }
        Ok(number as u32)
    }
}

/// The text of a statement with parameters for its literals, and their types.
fn normal(text: &str, lexed: &Lexed, is_parameter: &[bool], dialect: Dialect) -> (String, Vec<ParameterType>) {
    let mut parameters = vec![ParameterType::Unknown; lexed.parameters.into()];
    let mut normal = String::with_capacity(lexed.shape.len() + 8);
    let mut rest = lexed.shape.as_str();
    for (literal, is_parameter) in lexed.literals.iter().zip(is_parameter) {
        let Some((before, after)) = rest.split_once(MARK) else { break };
        normal.push_str(before);
        // The letter of the kind.
        rest = after.get(1..).unwrap_or_default();
        if !is_parameter {
            normal.push_str(&text[literal.place.clone()]);
            continue;
        }
        parameters.push(match literal.kind {
            Kind::Integer => ParameterType::Integer,
            Kind::Decimal => ParameterType::Decimal,
            Kind::Quoted => ParameterType::Unknown,
        });
        match dialect {
            Dialect::Postgres => normal.push_str(&format!("${}", parameters.len())),
            Dialect::Mysql => normal.push('?'),
        }
    }
    normal.push_str(rest);
    (normal, parameters)
}

#[cfg(test)]
mod tests {
    use super::super::values::decode;
    use super::*;

    fn read(statements: &mut Statements, text: &str, bounds: &[Bound]) -> (Read, String) {
        let mut bytes = Vec::new();
        let (read, ..) = statements.read(text, 0, Some(bounds), &mut bytes);
        (read, format!("{:?}", decode(&bytes).collect::<Vec<_>>()))
    }

    #[test]
    fn statements_that_differ_in_their_values_are_one() {
        let mut list = Statements::new(Dialect::Postgres);
        let first = read(&mut list, "UPDATE t SET a = a + -3 WHERE b = 'x';", &[]);
        assert_eq!(first, (Read::Data(0), r#"[Integer(-3), Unknown("x")]"#.to_string()));
        let second = read(&mut list, "UPDATE t  SET a = a + 4\n WHERE b = 'it''s'", &[]);
        assert_eq!(second, (Read::Data(0), r#"[Integer(4), Unknown("it's")]"#.to_string()));
        assert_eq!(read(&mut list, "SELECT a FROM t ORDER BY 1", &[]).0, Read::Data(1));
        assert_eq!(read(&mut list, "SELECT a FROM t ORDER BY 2", &[]).0, Read::Data(2));
        assert_eq!(read(&mut list, "SELECT a FROM t WHERE b = 1.5", &[]).0, Read::Data(3));
        assert_eq!(read(&mut list, "SELECT a FROM t WHERE b = 1", &[]).0, Read::Data(4));
        let texts: Vec<&str> = list.list().map(|statement| statement.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "UPDATE t SET a = a + $1 WHERE b = $2",
                "SELECT a FROM t ORDER BY 1",
                "SELECT a FROM t ORDER BY 2",
                "SELECT a FROM t WHERE b = $1",
                "SELECT a FROM t WHERE b = $1",
            ]
        );
    }

    #[test]
    fn parameters_of_the_extended_protocol_come_first() {
        let mut list = Statements::new(Dialect::Postgres);
        let bounds = [Some("7".to_string()), None];
        let found = read(&mut list, "SELECT a FROM t WHERE b = $2 AND c = 5 AND d = $1", &bounds);
        assert_eq!(found, (Read::Data(0), r#"[Unknown("7"), Null, Integer(5)]"#.to_string()));
        let statement = list.list().next().unwrap();
        assert_eq!(statement.text, "SELECT a FROM t WHERE b = $2 AND c = $3 AND d = $1");
        assert_eq!(statement.parameters, [ParameterType::Unknown, ParameterType::Unknown, ParameterType::Integer]);
        let missing = read(&mut list, "SELECT a FROM t WHERE b = $2 AND c = 5 AND d = $1", &bounds[..1]);
        assert_eq!(missing.0, Read::Other(Class::Skipped(NO_PARAMETERS)));
    }

    #[test]
    fn statements_of_mysql_have_its_parameters() {
        let mut list = Statements::new(Dialect::Mysql);
        let found = read(&mut list, "SELECT `a-b` FROM t WHERE c = \"it's\" AND d = 'x\\'y' LIMIT 3", &[]);
        assert_eq!(found, (Read::Data(0), r#"[Unknown("it's"), Unknown("x'y"), Integer(3)]"#.to_string()));
        let statement = list.list().next().unwrap();
        assert_eq!(statement.text, "SELECT `a-b` FROM t WHERE c = ? AND d = ? LIMIT ?");
    }
}
