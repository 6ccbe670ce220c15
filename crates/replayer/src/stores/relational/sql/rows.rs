//! The data set of a trace set: its schema, the rows of its tables, and the statements that fill them further.

use schemas::run::FragmentPosition;
use schemas::table::TableError;
use schemas::vocabulary::sql::text::{self, quoted};
use schemas::workload::sql::dataset;
use schemas::workload::sql::rows::{RowFile, Rows, read_rows, row_files};

use super::super::Dialect;
use super::super::contents::{Batch, Batches, Contents, Table, Touched, Work, Works};
use super::statements::Statements;
use super::{LAYOUT, design_of};
use crate::source::Source;
use crate::stores::HeldState;

/// The most values of a batch: SQLite takes 32,766 parameters in a statement, MariaDB and MySQL 65,535.
const CELLS_MAX: usize = 32_000;

/// The tables of a trace set.
pub struct DataSet<'a> {
    source: &'a Source,
    statements: Statements,
    dialect: text::Dialect,
}

impl DataSet<'_> {
    /// Those of this trace set.
    pub fn new(source: &Source, statements: Statements, dialect: text::Dialect) -> DataSet<'_> {
        DataSet { source, statements, dialect }
    }

    /// The name of a column in the database, which gets the schema of another dialect in lower case if it is
    /// PostgreSQL.
    fn folded(&self, name: &str) -> String {
        let postgres = text::Dialect::Postgres;
        match self.dialect == postgres && self.source.sql().dialect != postgres {
            true => name.to_lowercase(),
            false => name.to_string(),
        }
    }
}

impl Contents for DataSet<'_> {
    fn source(&self) -> &Source {
        self.source
    }

    fn loaded(&self) -> HeldState {
        HeldState::loaded(LAYOUT, design_of(&self.statements), self.source)
    }

    fn begun(&self) -> Option<HeldState> {
        let diverged = Some("a load was not finished".to_string());
        Some(HeldState { workload_id: String::new(), diverged, ..self.loaded() })
    }

    fn tables(&self, dialect: &Dialect) -> Vec<Table> {
        let tables = self.statements.definitions().iter().filter_map(|one| Some((one, one.table.as_ref()?)));
        let table = |(one, name): (&schemas::vocabulary::sql::text::Definition, &String)| Table {
            name: quoted(name, dialect.sql).into(),
            creation: one.text.clone(),
        };
        tables.map(table).collect()
    }

    fn indexes(&self) -> Vec<String> {
        let others = self.statements.definitions().iter().filter(|one| one.table.is_none());
        others.map(|one| one.text.clone()).collect()
    }

    fn rows(&self, fragment: u32) -> Result<Batches<'_>, TableError> {
        let tables: Vec<&str> = self.statements.tables().collect();
        let files = row_files(&self.source.folder, &self.source.manifest.files, fragment, &tables);
        let mut all: Vec<Batches<'_>> = Vec::with_capacity(files.len());
        for RowFile { table, path } in files {
            let rows = read_rows(&path, CELLS_MAX)?;
            all.push(Box::new(rows.map(move |some| {
                let Rows { columns, rows } = some?;
                let names = columns.iter().map(|name| quoted(&self.folded(name), self.dialect));
                let names = names.collect::<Vec<_>>().join(", ");
                let table = format!("{} ({names})", quoted(&table, self.dialect)).into();
                Ok(Batch { table, rows_of_data_set: rows.len() as u64, rows })
            })));
        }
        Ok(Box::new(all.into_iter().flatten()))
    }

    fn are_converted(&self) -> bool {
        true
    }

    fn work(&self) -> Result<Works<'_>, TableError> {
        let all = dataset::preload(&self.source.folder, self.statements.len())?;
        let work = |(number, parameters): (u32, Vec<u8>)| {
            // The preload was read with the number of statements.
            let statement = self.statements.get(number)?;
            Some(Work { text: statement.text.clone(), kinds: statement.parameters.clone(), parameters })
        };
        Ok(Box::new(all.map(move |some| some.map(|some| some.into_iter().filter_map(work).collect()))))
    }

    /// Which rows statements have touched is not known, so all rows are copied again.
    fn is_restorable(&self) -> bool {
        false
    }

    fn touched(&self, _dialect: &Dialect, _positions: &[FragmentPosition]) -> Result<Vec<Touched>, TableError> {
        Ok(Vec::new())
    }

    fn restoration(&self, _to: &str, _from: &str) -> Vec<String> {
        Vec::new()
    }
}
