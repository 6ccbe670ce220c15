//! What a statement does, by the places of its table and columns; or why documents cannot do it.

use sqlparser::ast::{
    AssignmentTarget, BinaryOperator, DataType, Delete, Expr, FromTable, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, GroupByExpr, InTarget, Insert, LimitClause, ObjectName, OrderByKind, OrderBySort, Query, Select,
    SelectItem, SetExpr, Statement as Parsed, TableFactor, TableObject, TableWithJoins, UnaryOperator, Update, Value,
};
use sqlparser::parser::Parser;

use super::super::Statement;
use super::super::text::{Dialect, dml, tokens};
use super::tables::{Table, Tables};
use super::term::{Constant, Operator, Term, Test};
use super::value::takes;

/// How two values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// They are equal.
    Equal,
    /// They differ.
    NotEqual,
    /// The first is less.
    Less,
    /// The first is less or equal.
    LessOrEqual,
    /// The first is greater.
    Greater,
    /// The first is greater or equal.
    GreaterOrEqual,
}

/// What a column must be.
#[derive(Debug, Clone, PartialEq)]
pub enum Match {
    /// It compares with a value, which reads no column.
    Is(Relation, Term),
    /// It is one of these values.
    In(Vec<Term>),
    /// Whether it is NULL.
    Null(bool),
}

/// A condition on a row. All conditions of a statement hold together.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The column.
    pub column: usize,
    /// What it must be.
    pub is: Match,
}

/// What is computed of all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Aggregate {
    /// The number of rows.
    Count,
    /// The number of rows in which a column is not NULL.
    CountOf(usize),
    /// The sum of a column.
    Sum(usize),
    /// The least value of a column.
    Least(usize),
    /// The greatest value of a column.
    Greatest(usize),
}

impl Aggregate {
    /// The column that it is of.
    pub fn column(&self) -> Option<usize> {
        match self {
            Aggregate::Count => None,
            Aggregate::CountOf(column)
            | Aggregate::Sum(column)
            | Aggregate::Least(column)
            | Aggregate::Greatest(column) => Some(*column),
        }
    }
}

/// A value that is computed of all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Computed {
    /// What is computed.
    pub aggregate: Aggregate,
    /// How many digits after its point it is rounded to.
    pub digits: Option<u32>,
}

/// What a query returns.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Returns {
    /// Columns of rows.
    Columns(Vec<usize>),
    /// One row of values computed of all rows.
    Aggregates(Vec<Computed>),
}

/// A statement on one table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Logical {
    /// The table.
    pub(super) table: usize,
    /// Which rows; of an insert, none.
    pub(super) conditions: Vec<Condition>,
    /// What it does.
    pub(super) does: Does,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Does {
    /// Returns rows in an order (column, whether descending), at most so many after so many.
    Read { returns: Returns, order: Vec<(usize, bool)>, limit: Option<Term>, offset: Option<Term> },
    /// Adds rows: a value for each column of the table.
    Insert(Vec<Vec<Term>>),
    /// Gives columns other values.
    Update(Vec<(usize, Term)>),
    /// Removes rows.
    Delete,
}

/// Reads a statement.
pub(super) fn read(statement: &Statement, dialect: Dialect, tables: &Tables) -> Result<Logical, String> {
    let numbered = dml::numbered(tokens::of(&statement.text, dialect)?);
    let grammar = dialect.grammar();
    let parsed = Parser::new(&*grammar).with_tokens(numbered).parse_statements();
    let parsed = parsed.map_err(|e| format!("is not SQL that Encore knows: {e}"))?;
    let [parsed] = &parsed[..] else { return Err("is not one statement".to_string()) };
    match parsed {
        Parsed::Query(query) => read_query(query, statement, tables),
        Parsed::Insert(insert) => read_insert(insert, statement, tables),
        Parsed::Update(update) => read_update(update, statement, tables),
        Parsed::Delete(delete) => read_delete(delete, statement, tables),
        _ => Err("is no query, insert, update or delete of rows".to_string()),
    }
}

/// The table of a statement, and how names in it are read.
struct Scope<'a> {
    place: usize,
    table: &'a Table,
    statement: &'a Statement,
}

impl<'a> Scope<'a> {
    fn of(name: &ObjectName, statement: &'a Statement, tables: &'a Tables) -> Result<Scope<'a>, String> {
        let name = last_name(name);
        let place = tables.find(&name);
        let place = place.ok_or_else(|| format!("uses {name}, which is no table of the schema"))?;
        Ok(Scope { place, table: &tables.0[place], statement })
    }

    /// The only table of a list.
    fn only(from: &[TableWithJoins], statement: &'a Statement, tables: &'a Tables) -> Result<Scope<'a>, String> {
        match from {
            [TableWithJoins { relation: TableFactor::Table { name, args: None, .. }, joins }] if joins.is_empty() => {
                Scope::of(name, statement, tables)
            }
            [TableWithJoins { relation: TableFactor::Table { .. }, .. }] | [_, _, ..] => {
                Err("joins tables, which collections cannot; read them one after the other".to_string())
            }
            [] => Err("reads no table".to_string()),
            _ => Err("reads what is no table, such as a subquery".to_string()),
        }
    }

    fn column(&self, expression: &Expr) -> Option<usize> {
        match expression {
            Expr::Identifier(name) => self.table.column(&name.value),
            Expr::CompoundIdentifier(names) => self.table.column(&names.last()?.value),
            Expr::Nested(inner) => self.column(inner),
            _ => None,
        }
    }

    fn name(&self, column: usize) -> &str {
        &self.table.columns[column].name
    }

    /// An expression.
    fn term(&self, expression: &Expr) -> Result<Term, String> {
        let boxed = |expression: &Expr| self.term(expression).map(Box::new);
        if let Some(constant) = constant(expression) {
            return Ok(Term::Constant(constant));
        }
        match expression {
            Expr::Nested(inner) => self.term(inner),
            Expr::Value(value) => match &value.value {
                Value::Placeholder(name) => Ok(Term::Parameter(tokens::number(name)? - 1)),
                _ => Err(format!("has the value {expression}, which documents have no type for")),
            },
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                let column = self.column(expression).map(Term::Column);
                column.ok_or_else(|| format!("uses {expression}, which is no column of table {}", self.table.name))
            }
            Expr::BinaryOp { left, op, right } => {
                let operator = match op {
                    BinaryOperator::Plus => Operator::Add,
                    BinaryOperator::Minus => Operator::Subtract,
                    BinaryOperator::Multiply => Operator::Multiply,
                    BinaryOperator::StringConcat => {
                        return Ok(Term::Concat(vec![self.term(left)?, self.term(right)?]));
                    }
                    other => return Err(format!("computes with {other}, which is not supported")),
                };
                Ok(Term::Arithmetic(operator, boxed(left)?, boxed(right)?))
            }
            Expr::Case { operand: None, conditions, else_result, .. } => {
                let tests = conditions.iter().map(|when| Ok((self.test(&when.condition)?, self.term(&when.result)?)));
                let otherwise =
                    else_result.as_ref().map_or(Ok(Box::new(Term::Constant(Constant::Null))), |e| boxed(e))?;
                Ok(Term::Case(tests.collect::<Result<_, String>>()?, otherwise))
            }
            Expr::Substring { expr, substring_from, substring_for, .. } => {
                let place = |part: &Option<Box<Expr>>| part.as_deref().and_then(constant).and_then(small);
                match (place(substring_from), place(substring_for)) {
                    (Some(from), Some(length)) if from > 0 => Ok(Term::Substring(boxed(expr)?, from, length)),
                    _ => Err(format!("has {expression}; a substring needs a start and a length that are numbers")),
                }
            }
            Expr::Function(function) => self.function(function),
            other => Err(format!("has the expression {other}, which is not supported")),
        }
    }

    fn function(&self, function: &Function) -> Result<Term, String> {
        let arguments = arguments(function).unwrap_or_default();
        let terms = || arguments.iter().map(|argument| self.term(argument)).collect::<Result<Vec<Term>, String>>();
        match (last_name(&function.name).to_ascii_lowercase().as_str(), &arguments[..]) {
            ("concat", [_, ..]) => Ok(Term::Concat(terms()?)),
            ("round", [number]) => Ok(Term::Round(Box::new(self.term(number)?), 0)),
            ("round", [number, digits]) if constant(digits).and_then(small).is_some() => {
                let digits = constant(digits).and_then(small).unwrap_or_default();
                Ok(Term::Round(Box::new(self.term(number)?), digits))
            }
            ("substr" | "substring", [text, from, length]) => {
                match (constant(from).and_then(small), constant(length).and_then(small)) {
                    (Some(from), Some(length)) if from > 0 => {
                        Ok(Term::Substring(Box::new(self.term(text)?), from, length))
                    }
                    _ => Err(format!("has {function}; a substring needs a start and a length that are numbers")),
                }
            }
            _ => Err(format!("calls {function}, which is not supported")),
        }
    }

    fn test(&self, expression: &Expr) -> Result<Test, String> {
        match expression {
            Expr::Nested(inner) => self.test(inner),
            Expr::BinaryOp { left, op, right } if relation(op).is_some() => {
                let relation = relation(op).unwrap_or(Relation::Equal);
                Ok(Test { left: self.term(left)?, relation, right: self.term(right)? })
            }
            other => Err(format!("has CASE WHEN {other}, which is no comparison")),
        }
    }

    /// A value to compare a column with or to give it: it must fit the column, and read no other column if it is
    /// compared.
    fn fitting(&self, column: usize, term: Term) -> Result<Term, String> {
        let kind = self.table.columns[column].kind;
        if let Term::Parameter(at) = term
            && let Some(declared) = self.statement.parameters.get(at)
            && !takes(kind, *declared)
        {
            return Err(format!(
                "has parameter {} of type {declared} for column {}, which does not take it",
                at + 1,
                self.name(column)
            ));
        }
        Ok(term)
    }

    fn compared(&self, column: usize, expression: &Expr) -> Result<Term, String> {
        let term = self.term(expression)?;
        match term.is_fixed() {
            true => self.fitting(column, term),
            false => Err(format!("compares {} with another column", self.name(column))),
        }
    }

    fn conditions(&self, selection: Option<&Expr>) -> Result<Vec<Condition>, String> {
        let mut all = Vec::new();
        selection.map_or(Ok(()), |expression| self.condition(expression, &mut all))?;
        Ok(all)
    }

    fn condition(&self, expression: &Expr, all: &mut Vec<Condition>) -> Result<(), String> {
        let of = |expression: &Expr| {
            self.column(expression).ok_or_else(|| format!("has a condition on {expression}, which is no column"))
        };
        match expression {
            Expr::Nested(inner) => self.condition(inner, all),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.condition(left, all)?;
                self.condition(right, all)
            }
            Expr::BinaryOp { left, op, right } if relation(op).is_some() => {
                let relation = relation(op).unwrap_or(Relation::Equal);
                // A column may stand on either side.
                let (column, value, relation) = match self.column(left) {
                    Some(column) => (column, right, relation),
                    None => (of(right).map_err(|_| unsupported(expression))?, left, reversed(relation)),
                };
                all.push(Condition { column, is: Match::Is(relation, self.compared(column, value)?) });
                Ok(())
            }
            Expr::Between { expr, negated: false, low, high } => {
                let column = of(expr)?;
                for (relation, value) in [(Relation::GreaterOrEqual, low), (Relation::LessOrEqual, high)] {
                    all.push(Condition { column, is: Match::Is(relation, self.compared(column, value)?) });
                }
                Ok(())
            }
            Expr::In { expr, target: InTarget::List(list), negated: false, .. } => {
                let column = of(expr)?;
                let values = list.iter().map(|value| self.compared(column, value)).collect::<Result<_, _>>()?;
                all.push(Condition { column, is: Match::In(values) });
                Ok(())
            }
            Expr::IsNull(inner) => {
                all.push(Condition { column: of(inner)?, is: Match::Null(true) });
                Ok(())
            }
            Expr::IsNotNull(inner) => {
                all.push(Condition { column: of(inner)?, is: Match::Null(false) });
                Ok(())
            }
            other => Err(unsupported(other)),
        }
    }
}

fn unsupported(condition: &Expr) -> String {
    format!(
        "has the condition {condition}; supported are =, <>, <, <=, >, >=, BETWEEN, IN and IS NULL of a column, with AND"
    )
}

fn read_query(query: &Query, statement: &Statement, tables: &Tables) -> Result<Logical, String> {
    if query.with.is_some() || query.fetch.is_some() || !query.pipe_operators.is_empty() {
        return Err("has a WITH or FETCH, which is not supported".to_string());
    }
    let SetExpr::Select(select) = &*query.body else {
        return Err("combines queries, which is not supported".to_string());
    };
    let groups = !matches!(&select.group_by, GroupByExpr::Expressions(all, more) if all.is_empty() && more.is_empty());
    if groups || select.having.is_some() {
        return Err("groups rows, which is not supported".to_string());
    }
    if select.distinct.is_some() || select.top.is_some() || select.into.is_some() || select.qualify.is_some() {
        return Err("has a DISTINCT or TOP, which is not supported".to_string());
    }
    let scope = Scope::only(&select.from, statement, tables)?;
    let returns = returned(select, &scope)?;
    let conditions = scope.conditions(select.selection.as_ref())?;
    let order = ordered(query, &scope)?;
    let fixed = |expression: &Expr| match scope.term(expression)? {
        term @ (Term::Parameter(_) | Term::Constant(Constant::Integer(_))) => Ok(term),
        _ => Err(format!("has the limit {expression}, which is no number")),
    };
    let (limit, offset) = match &query.limit_clause {
        None => (None, None),
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => (Some(fixed(limit)?), Some(fixed(offset)?)),
        Some(LimitClause::LimitOffset { limit, offset, .. }) => {
            let offset = offset.as_ref().map(|offset| fixed(&offset.value)).transpose()?;
            (limit.as_ref().map(fixed).transpose()?, offset)
        }
    };
    if matches!(returns, Returns::Aggregates(_)) && (limit.is_some() || offset.is_some()) {
        return Err("limits the one row of an aggregate, which is not supported".to_string());
    }
    Ok(Logical { table: scope.place, conditions, does: Does::Read { returns, order, limit, offset } })
}

fn ordered(query: &Query, scope: &Scope<'_>) -> Result<Vec<(usize, bool)>, String> {
    let Some(order) = &query.order_by else { return Ok(Vec::new()) };
    let OrderByKind::Expressions(all) = &order.kind else { return Err("orders by ALL".to_string()) };
    let one = |by: &sqlparser::ast::OrderByExpr| {
        let column = scope.column(&by.expr);
        let column = column.ok_or_else(|| format!("orders by {}, which is no column of the table", by.expr))?;
        let descends = match &by.options.sort {
            None | Some(OrderBySort::Asc) => false,
            Some(OrderBySort::Desc) => true,
            Some(other) => return Err(format!("orders by {other:?}")),
        };
        match by.options.nulls_first {
            None => Ok((column, descends)),
            // NULL is the least value.
            Some(first) if first != descends => Ok((column, descends)),
            Some(_) => Err("orders NULLS where documents have them at the other end".to_string()),
        }
    };
    all.iter().map(one).collect()
}

fn returned(select: &Select, scope: &Scope<'_>) -> Result<Returns, String> {
    let (mut columns, mut aggregates) = (Vec::new(), Vec::new());
    for item in &select.projection {
        match item {
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => columns.extend(0..scope.table.columns.len()),
            SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } => {
                match scope.column(expression) {
                    Some(column) => columns.push(column),
                    None if matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) => {
                        return Err(format!("returns {expression}, which is no column of table {}", scope.table.name));
                    }
                    None => aggregates.push(computed(expression, scope)?),
                }
            }
            other => return Err(format!("returns {other}, which is not supported")),
        }
    }
    match (columns.is_empty(), aggregates.is_empty()) {
        (false, true) => Ok(Returns::Columns(columns)),
        (true, false) => Ok(Returns::Aggregates(aggregates)),
        _ => Err("returns columns beside values that are computed of all rows".to_string()),
    }
}

/// An aggregate, or one that is rounded.
fn computed(expression: &Expr, scope: &Scope<'_>) -> Result<Computed, String> {
    if let Expr::Function(function) = expression
        && last_name(&function.name).eq_ignore_ascii_case("round")
        && let Some([inner, digits]) = arguments(function).as_deref()
        && let Some(digits) = constant(digits).and_then(small)
    {
        return Ok(Computed { aggregate: aggregate(inner, scope)?, digits: Some(digits) });
    }
    Ok(Computed { aggregate: aggregate(expression, scope)?, digits: None })
}

fn aggregate(expression: &Expr, scope: &Scope<'_>) -> Result<Aggregate, String> {
    let wrong = || {
        format!("returns {expression}; supported are columns, and COUNT, SUM, MIN and MAX of a column, also with ROUND")
    };
    let Expr::Function(function) = expression else { return Err(wrong()) };
    let is_plain = function.over.is_none() && function.filter.is_none();
    let FunctionArguments::List(list) = &function.args else { return Err(wrong()) };
    if list.duplicate_treatment.is_some() || !list.clauses.is_empty() || !is_plain {
        return Err(wrong());
    }
    let name = last_name(&function.name).to_ascii_lowercase();
    match (&name[..], &list.args[..]) {
        ("count", [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]) => Ok(Aggregate::Count),
        (name, [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))]) => {
            if name == "count" && matches!(constant(argument), Some(Constant::Integer(_))) {
                return Ok(Aggregate::Count);
            }
            let column = scope.column(argument).ok_or_else(wrong)?;
            match name {
                "count" => Ok(Aggregate::CountOf(column)),
                "sum" => Ok(Aggregate::Sum(column)),
                "min" => Ok(Aggregate::Least(column)),
                "max" => Ok(Aggregate::Greatest(column)),
                _ => Err(wrong()),
            }
        }
        _ => Err(wrong()),
    }
}

fn read_insert(insert: &Insert, statement: &Statement, tables: &Tables) -> Result<Logical, String> {
    if insert.on.is_some() || insert.ignore || insert.replace_into || insert.or.is_some() || insert.returning.is_some()
    {
        return Err("inserts unless there is a row, or returns what it inserts, which is not supported".to_string());
    }
    let TableObject::TableName(name) = &insert.table else { return Err("inserts into no table".to_string()) };
    let scope = Scope::of(name, statement, tables)?;
    let columns = match insert.columns.is_empty() {
        true => (0..scope.table.columns.len()).collect::<Vec<_>>(),
        false => {
            let column = |name: &ObjectName| {
                let name = last_name(name);
                scope.table.column(&name).ok_or_else(|| format!("inserts {name}, which is no column of the table"))
            };
            insert.columns.iter().map(column).collect::<Result<_, _>>()?
        }
    };
    let counted = (0..scope.table.columns.len()).find(|at| scope.table.columns[*at].counts_up && !columns.contains(at));
    if let Some(counted) = counted {
        return Err(format!("leaves out {}, which documents do not count up", scope.name(counted)));
    }
    let Some(SetExpr::Values(values)) = insert.source.as_ref().map(|query| &*query.body) else {
        return Err("inserts what is not VALUES".to_string());
    };
    let row = |row: &Vec<Expr>| {
        if row.len() != columns.len() {
            return Err(format!("has {} values for {} columns", row.len(), columns.len()));
        }
        let defaults = scope.table.columns.iter().map(|column| Term::Constant(column.default.clone()));
        let mut terms: Vec<Term> = defaults.collect();
        for (column, value) in columns.iter().zip(row) {
            if matches!(value, Expr::Identifier(name) if name.value.eq_ignore_ascii_case("default")) {
                continue;
            }
            let term = scope.term(value)?;
            if !term.is_fixed() {
                return Err(format!("inserts {value}, which reads a column"));
            }
            terms[*column] = scope.fitting(*column, term)?;
        }
        Ok(terms)
    };
    let rows = values.rows.iter().map(|values| row(&values.content)).collect::<Result<_, String>>()?;
    Ok(Logical { table: scope.place, conditions: Vec::new(), does: Does::Insert(rows) })
}

fn read_update(update: &Update, statement: &Statement, tables: &Tables) -> Result<Logical, String> {
    if update.from.is_some() || update.returning.is_some() || update.limit.is_some() || !update.order_by.is_empty() {
        return Err("updates with FROM, LIMIT, ORDER BY or RETURNING, which is not supported".to_string());
    }
    let scope = Scope::only(std::slice::from_ref(&update.table), statement, tables)?;
    let conditions = scope.conditions(update.selection.as_ref())?;
    let assign = |assignment: &sqlparser::ast::Assignment| {
        let AssignmentTarget::ColumnName(name) = &assignment.target else {
            return Err("assigns to several columns at once".to_string());
        };
        let name = last_name(name);
        let column = scope.table.column(&name).ok_or_else(|| format!("sets {name}, which is no column"))?;
        if scope.table.key.contains(&column) {
            return Err(format!("changes {name}, which is of the primary key: a document's id cannot change"));
        }
        Ok((column, scope.fitting(column, scope.term(&assignment.value)?)?))
    };
    let set = update.assignments.iter().map(assign).collect::<Result<_, _>>()?;
    Ok(Logical { table: scope.place, conditions, does: Does::Update(set) })
}

fn read_delete(delete: &Delete, statement: &Statement, tables: &Tables) -> Result<Logical, String> {
    if delete.using.is_some() || delete.returning.is_some() || delete.limit.is_some() || !delete.order_by.is_empty() {
        return Err("deletes with USING, LIMIT, ORDER BY or RETURNING, which is not supported".to_string());
    }
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let scope = Scope::only(from, statement, tables)?;
    let conditions = scope.conditions(delete.selection.as_ref())?;
    Ok(Logical { table: scope.place, conditions, does: Does::Delete })
}

/// The value that an expression writes out; None if it is no value.
pub(super) fn constant(expression: &Expr) -> Option<Constant> {
    match expression {
        Expr::Nested(inner) => constant(inner),
        Expr::Value(value) => match &value.value {
            Value::Null => Some(Constant::Null),
            Value::Boolean(is_true) => Some(Constant::Integer((*is_true).into())),
            Value::Number(digits, _) => match digits.parse() {
                Ok(number) => Some(Constant::Integer(number)),
                Err(_) => super::number::Number::parse(digits).map(|number| Constant::Decimal(number.text())),
            },
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(Constant::Text(text.clone())),
            _ => None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match constant(expr)? {
            Constant::Integer(number) => Some(Constant::Integer(-number)),
            Constant::Decimal(digits) => Some(Constant::Decimal(format!("-{digits}"))),
            _ => None,
        },
        Expr::TypedString(typed) if matches!(typed.data_type, DataType::Date | DataType::Timestamp(..)) => {
            match &typed.value.value {
                Value::SingleQuotedString(text) => Some(Constant::Text(text.clone())),
                _ => None,
            }
        }
        _ => None,
    }
}

fn small(constant: Constant) -> Option<u32> {
    match constant {
        Constant::Integer(number) => u32::try_from(number).ok(),
        _ => None,
    }
}

fn arguments(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let all = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(expression),
        _ => None,
    });
    all.collect()
}

fn relation(operator: &BinaryOperator) -> Option<Relation> {
    Some(match operator {
        BinaryOperator::Eq => Relation::Equal,
        BinaryOperator::NotEq => Relation::NotEqual,
        BinaryOperator::Lt => Relation::Less,
        BinaryOperator::LtEq => Relation::LessOrEqual,
        BinaryOperator::Gt => Relation::Greater,
        BinaryOperator::GtEq => Relation::GreaterOrEqual,
        _ => return None,
    })
}

/// The relation of the two values the other way round.
fn reversed(relation: Relation) -> Relation {
    match relation {
        Relation::Less => Relation::Greater,
        Relation::LessOrEqual => Relation::GreaterOrEqual,
        Relation::Greater => Relation::Less,
        Relation::GreaterOrEqual => Relation::LessOrEqual,
        same => same,
    }
}

/// The name of a table or column without what qualifies it.
pub(super) fn last_name(name: &ObjectName) -> String {
    let last = name.0.last().and_then(|part| part.as_ident());
    last.map_or_else(|| name.to_string(), |ident| ident.value.clone())
}
