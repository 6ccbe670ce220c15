//! The data set of a trace set: its schema, and the statements that fill the tables.

use schemas::run::FragmentPosition;
use schemas::table::TableError;
use schemas::vocabulary::sql::text::quoted;
use schemas::workload::sql::dataset;

use super::super::Dialect;
use super::super::contents::{Batches, Contents, Table, Touched, Work, Works};
use super::statements::Statements;
use super::{LAYOUT, design_of};
use crate::source::Source;
use crate::stores::HeldState;

/// The tables of a trace set.
pub struct DataSet<'a> {
    source: &'a Source,
    statements: Statements,
}

impl DataSet<'_> {
    /// Those of this trace set.
    pub fn new(source: &Source, statements: Statements) -> DataSet<'_> {
        DataSet { source, statements }
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

    fn rows(&self, _fragment: u32) -> Result<Batches<'_>, TableError> {
        Ok(Box::new(std::iter::empty()))
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
