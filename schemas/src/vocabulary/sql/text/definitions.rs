//! The schema of a trace set: definitions of tables, views and indexes, and the same for a database.

use std::collections::BTreeMap;

use sqlparser::ast::{
    ColumnDef, ColumnOption, ColumnOptionDef, CreateTable, CreateTableOptions, DataType, Ident, ObjectName,
    Statement as Parsed, TableConstraint,
};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::Dialect;
use super::tokens::{of, write};
use super::types::{is_text, translated};

/// A definition of a schema, for a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The statement.
    pub text: String,
    /// The table that it creates; None if it is another definition.
    pub table: Option<String>,
    /// The view that it creates.
    pub view: Option<String>,
}

/// The columns of the primary keys of tables, by the table's name in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys(BTreeMap<String, Vec<String>>);

impl Keys {
    /// Those of a table.
    pub fn of(&self, table: &str) -> Option<&[String]> {
        self.0.get(table).map(Vec::as_slice).filter(|columns| !columns.is_empty())
    }
}

/// The definitions of a schema for a database, in their order, and the keys of its tables. The error has the
/// number of the statement, from 1.
pub fn definitions(schema: &str, from: Dialect, to: Dialect) -> Result<(Vec<Definition>, Keys), String> {
    let parsed =
        Parser::parse_sql(&*from.grammar(), schema).map_err(|e| format!("is not SQL that Encore knows: {e}"))?;
    let mut keys = Keys::default();
    let mut all = Vec::new();
    for (number, statement) in (1..).zip(parsed) {
        let wrong = |message: String| format!("statement {number}: {message}");
        let mut view = None;
        let (statement, table, suffix) = match statement {
            Parsed::CreateTable(mut table) => {
                let name = last_name(&table.name);
                keys.0.insert(name.to_lowercase(), key_of(&table));
                if from != to {
                    translate(&mut table, from, to);
                }
                let suffix = if from != to && to == Dialect::Mysql { OF_BYTES } else { "" };
                (Parsed::CreateTable(table), Some(name), suffix)
            }
            Parsed::CreateView(created) => {
                view = Some(last_name(&created.name));
                (Parsed::CreateView(created), None, "")
            }
            other @ (Parsed::CreateIndex(_) | Parsed::AlterTable(_)) => (other, None, ""),
            other => {
                let text = other.to_string();
                let first = text.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
                return Err(wrong(format!("{first} is no definition of a table, a view or an index; remove it")));
            }
        };
        let tokens = of(&statement.to_string(), from).map_err(wrong)?;
        let text = write(&tokens, from, to, &mut |number| format!("${number}")).map_err(wrong)?;
        let folded = |name: String| if from != to && to == Dialect::Postgres { name.to_lowercase() } else { name };
        all.push(Definition { text: text + suffix, table: table.map(folded), view: view.map(folded) });
    }
    Ok((all, keys))
}

/// What follows a table of MySQL, so that texts are compared by their bytes.
const OF_BYTES: &str = " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin";

fn last_name(name: &ObjectName) -> String {
    let last = name.0.last().and_then(|part| part.as_ident());
    last.map_or_else(|| name.to_string(), |ident| ident.value.clone())
}

/// The columns of a table's primary key.
fn key_of(table: &CreateTable) -> Vec<String> {
    let of_column = |column: &ColumnDef| {
        let is_key = |option: &ColumnOptionDef| matches!(option.option, ColumnOption::PrimaryKey(_));
        column.options.iter().any(is_key).then(|| column.name.value.clone())
    };
    let constraint = table.constraints.iter().find_map(|constraint| match constraint {
        TableConstraint::PrimaryKey(key) => Some(key.columns.iter().map(|column| bare(&column.to_string())).collect()),
        _ => None,
    });
    constraint.unwrap_or_else(|| table.columns.iter().filter_map(of_column).collect())
}

fn bare(name: &str) -> String {
    name.trim_matches(['`', '"']).to_string()
}

/// Changes types, numbering and options of a table.
fn translate(table: &mut CreateTable, from: Dialect, to: Dialect) {
    table.table_options = CreateTableOptions::None;
    table.comment = None;
    for column in &mut table.columns {
        let is_text = is_text(&column.data_type);
        if let Some(kind) = translated(&column.data_type, to) {
            column.data_type = DataType::Custom(ObjectName::from(vec![Ident::new(kind)]), Vec::new());
        }
        let counted = column.options.iter().any(|option| counts_up(&option.option));
        column.options.retain(|option| !counts_up(&option.option) && !is_of_one_database(&option.option));
        if counted {
            let how = match to {
                Dialect::Postgres => "GENERATED BY DEFAULT AS IDENTITY",
                Dialect::Mysql | Dialect::Logical => "AUTO_INCREMENT",
                // An integer key counts up by itself.
                Dialect::Sqlite => "",
            };
            if !how.is_empty() {
                column.options.push(plain(ColumnOption::DialectSpecific(vec![Token::make_word(how, None)])));
            }
        }
        if is_text && to == Dialect::Postgres && from == Dialect::Logical {
            let bytes = ObjectName::from(vec![Ident::with_quote('`', "C")]);
            column.options.push(plain(ColumnOption::Collation(bytes)));
        }
    }
}

fn plain(option: ColumnOption) -> ColumnOptionDef {
    ColumnOptionDef { name: None, option }
}

/// Whether the database counts the column up.
fn counts_up(option: &ColumnOption) -> bool {
    match option {
        ColumnOption::DialectSpecific(tokens) => {
            let text = tokens.iter().map(Token::to_string).collect::<String>().to_ascii_lowercase();
            text == "auto_increment" || text == "autoincrement"
        }
        ColumnOption::Generated { generation_expr: None, .. } | ColumnOption::Identity(_) => true,
        _ => false,
    }
}

/// Whether other databases do not have an option of a column.
fn is_of_one_database(option: &ColumnOption) -> bool {
    matches!(
        option,
        ColumnOption::CharacterSet(_)
            | ColumnOption::Collation(_)
            | ColumnOption::Comment(_)
            | ColumnOption::OnUpdate(_)
    )
}
