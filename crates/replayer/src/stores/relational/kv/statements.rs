//! The five operations in SQL. Statements are made once for the connections of a worker: operations
//! share their text.

use std::sync::Arc;

use sqlx::{AssertSqlSafe, SqlSafeStr, SqlStr};

use super::super::Dialect;
use super::{TABLE, column, fields_of};

/// A statement for each choice of fields.
#[derive(Debug, Clone)]
struct ByFields {
    /// For all fields.
    all: SqlStr,
    /// For each field alone.
    each: Vec<SqlStr>,
    make: fn(u64, &Dialect) -> String,
}

impl ByFields {
    fn new(fields: u32, dialect: &Dialect, make: fn(u64, &Dialect) -> String) -> ByFields {
        let each = (0..fields).map(|field| shared(make(1 << field, dialect))).collect();
        ByFields { all: shared(make((1 << fields) - 1, dialect)), each, make }
    }

    #[inline]
    fn of(&self, mask: u64, dialect: &Dialect) -> SqlStr {
        let one = mask.is_power_of_two().then(|| self.each.get(mask.trailing_zeros() as usize)).flatten();
        match one {
            Some(one) => one.clone(),
            None if mask == (1 << self.each.len()) - 1 => self.all.clone(),
            // No workload has these yet.
            None => shared((self.make)(mask, dialect)),
        }
    }
}

/// The text is that of this module, so it is safe. It is shared, so that each use costs a count.
fn shared(text: String) -> SqlStr {
    AssertSqlSafe(Arc::<str>::from(text)).into_sql_str()
}

/// The statements for records with some number of fields.
#[derive(Debug, Clone)]
pub struct Statements {
    dialect: Dialect,
    read: ByFields,
    locking_read: ByFields,
    scan: ByFields,
    update: ByFields,
    insert: SqlStr,
    delete: SqlStr,
}

impl Statements {
    /// The statements in a database's dialect.
    pub fn new(fields: u32, dialect: &Dialect) -> Statements {
        let parameter = dialect.parameter;
        let columns: Vec<String> = (0..fields).map(column).collect();
        let parameters: Vec<String> = (1..=fields as usize + 1).map(parameter).collect();
        let (columns, parameters) = (columns.join(", "), parameters.join(", "));
        Statements {
            dialect: *dialect,
            read: ByFields::new(fields, dialect, read),
            locking_read: ByFields::new(fields, dialect, locking_read),
            scan: ByFields::new(fields, dialect, scan),
            update: ByFields::new(fields, dialect, update),
            insert: shared(format!("INSERT INTO {TABLE} (YCSB_KEY, {columns}) VALUES ({parameters})")),
            delete: shared(format!("DELETE FROM {TABLE} WHERE YCSB_KEY = {}", parameter(1))),
        }
    }

    /// Selects these fields; the parameter is the key.
    #[inline]
    pub fn read(&self, fields: u64) -> SqlStr {
        self.read.of(fields, &self.dialect)
    }

    /// The same, and locks the record until the transaction ends, if the database can.
    #[inline]
    pub fn locking_read(&self, fields: u64) -> SqlStr {
        self.locking_read.of(fields, &self.dialect)
    }

    /// Selects the key, then these fields; the parameters are the key and the number of records.
    #[inline]
    pub fn scan(&self, fields: u64) -> SqlStr {
        self.scan.of(fields, &self.dialect)
    }

    /// Sets these fields; the parameters are their values, then the key.
    #[inline]
    pub fn update(&self, fields: u64) -> SqlStr {
        self.update.of(fields, &self.dialect)
    }

    /// The parameters are the key, then the values of all fields.
    #[inline]
    pub fn insert(&self) -> SqlStr {
        self.insert.clone()
    }

    /// The parameter is the key.
    #[inline]
    pub fn delete(&self) -> SqlStr {
        self.delete.clone()
    }
}

/// Selects the key and all fields of every record.
pub fn every_row(fields: u32) -> String {
    let columns: Vec<String> = (0..fields).map(column).collect();
    format!("SELECT YCSB_KEY, {} FROM {TABLE}", columns.join(", "))
}

fn columns(mask: u64) -> String {
    fields_of(mask).map(column).collect::<Vec<_>>().join(", ")
}

fn read(mask: u64, dialect: &Dialect) -> String {
    format!("SELECT {} FROM {TABLE} WHERE YCSB_KEY = {}", columns(mask), (dialect.parameter)(1))
}

fn locking_read(mask: u64, dialect: &Dialect) -> String {
    read(mask, dialect) + dialect.for_update
}

fn scan(mask: u64, dialect: &Dialect) -> String {
    let [from, length] = [1, 2].map(dialect.parameter);
    let columns = columns(mask);
    format!("SELECT YCSB_KEY, {columns} FROM {TABLE} WHERE YCSB_KEY >= {from} ORDER BY YCSB_KEY LIMIT {length}")
}

fn update(mask: u64, dialect: &Dialect) -> String {
    let set: Vec<String> = fields_of(mask)
        .zip(1..)
        .map(|(field, place)| format!("{} = {}", column(field), (dialect.parameter)(place)))
        .collect();
    let key = (dialect.parameter)(set.len() + 1);
    format!("UPDATE {TABLE} SET {} WHERE YCSB_KEY = {key}", set.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stores::postgres::PostgresServer;
    use crate::stores::relational::engine::Engine;

    #[test]
    fn statements_name_the_fields_that_are_asked_for() {
        let statements = Statements::new(3, &PostgresServer::DIALECT);
        let check = |sql: SqlStr, expect: &str| assert_eq!(sql.as_str(), expect);
        check(statements.read(0b010), "SELECT FIELD1 FROM usertable WHERE YCSB_KEY = $1");
        check(statements.locking_read(0b010), "SELECT FIELD1 FROM usertable WHERE YCSB_KEY = $1 FOR UPDATE");
        check(statements.read(0b111), "SELECT FIELD0, FIELD1, FIELD2 FROM usertable WHERE YCSB_KEY = $1");
        check(statements.update(0b101), "UPDATE usertable SET FIELD0 = $1, FIELD2 = $2 WHERE YCSB_KEY = $3");
        check(
            statements.scan(0b100),
            "SELECT YCSB_KEY, FIELD2 FROM usertable WHERE YCSB_KEY >= $1 ORDER BY YCSB_KEY LIMIT $2",
        );
        check(statements.insert(), "INSERT INTO usertable (YCSB_KEY, FIELD0, FIELD1, FIELD2) VALUES ($1, $2, $3, $4)");
        let most = Statements::new(63, &PostgresServer::DIALECT);
        assert!(
            most.read(1 << 62).as_str().contains("FIELD62 FROM") && most.read(i64::MAX as u64).as_str().len() > 400
        );
    }
}
