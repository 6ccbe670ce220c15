//! The generator of the `tpcc` family: TPC-C's data set, its five transactions and its consistency conditions.
//!
//! Terminals act in turn, in a random order that stays. What depends on what a transaction has read is a parameter
//! that says so: the number of an order, the price of an item, the customer in the middle of those with a name.

mod conditions;
mod dataset;
mod random;
mod sessions;
mod show;
mod statements;
mod table;
mod tables;
mod transactions;

use std::path::Path;

use arrow::datatypes::SchemaRef;
use schemas::digest::StateDigest;
use schemas::manifest::{FileEntry, Manifest};
use schemas::run::FragmentPosition;
use schemas::spec::{SpecError, SpecOf};
use schemas::vocabulary::sql::text::{Dialect, definitions};
use schemas::vocabulary::sql::{STATEMENTS, Statement, statements_batch, statements_schema};
use schemas::workload::sql::SqlStatistics;
use schemas::workload::sql::checks::{CHECKS, checks_text};
use schemas::workload::sql::dataset::SCHEMA;
use schemas::workload::tpcc::{DISTRICTS, Draws, TpccStatistics, TpccWorkload, draws_path, draws_schema};

use crate::core::digest::DigestError;
use crate::core::error::GenerateError;
use crate::core::generator::Generator;
use crate::core::output::TableFile;
use crate::core::room::{Need, ROW_BYTES};
use crate::core::show::Facts;
use crate::sql::text_file;
use sessions::Sessions;
use statements::Catalog;

/// The definitions of the tables.
const TABLES: &str = include_str!("schema.sql");

/// The warehouses of a specification.
pub(crate) struct Tpcc {
    spec: SpecOf<TpccWorkload>,
    catalog: Catalog,
    weights: Vec<f64>,
}

impl Tpcc {
    /// The warehouses of a fragment, from 1 on: each one that is so many after its first.
    fn warehouses(&self, fragment: u32) -> impl Iterator<Item = u64> + use<> {
        (u64::from(fragment) + 1..=self.spec.own.data.warehouses).step_by(self.spec.common.fragments as usize)
    }

    /// What belongs to no fragment: schema, statements, conditions.
    fn write_texts(&self, folder: &Path) -> Result<Vec<FileEntry>, GenerateError> {
        let wrong = |message: String| GenerateError::Infeasible(format!("schema: {message}"));
        let (all, _) = definitions(TABLES, Dialect::Logical, Dialect::Logical).map_err(wrong)?;
        let tables = all.iter().filter(|one| one.table.is_some()).count() as u64;
        let conditions = conditions::conditions(&self.spec.own.data);
        let mut statements = TableFile::create(folder, STATEMENTS.to_string(), statements_schema())?;
        statements.write(&statements_batch(self.catalog.list.list()))?;
        Ok(vec![
            text_file(folder, SCHEMA, TABLES, tables)?,
            text_file(folder, CHECKS, &checks_text(&conditions), conditions.len() as u64)?,
            statements.finish()?,
        ])
    }
}

impl Generator for Tpcc {
    type Workload = TpccWorkload;
    type Tally = (Draws, Vec<u64>);
    type Sessions<'a> = Sessions<'a>;

    const NOTHING_TO_DO: [&'static str; 2] = ["a fragment has no terminal", "raise data.warehouses"];

    fn need(spec: &SpecOf<TpccWorkload>) -> Need {
        let data = &spec.own.data;
        // Of each customer there is a row of history, an order and at least five lines.
        let rows = data.warehouses * (data.items + DISTRICTS * data.customers * 8);
        Need {
            disk_bytes: (rows + spec.common.sessions) as f64 * ROW_BYTES,
            memory_bytes: 0.0,
            what: format!("data.warehouses = {}, sessions = {}", data.warehouses, spec.common.sessions),
        }
    }

    fn new(spec: SpecOf<TpccWorkload>) -> Result<Tpcc, GenerateError> {
        let mut tpcc = Tpcc { catalog: Catalog::new(spec.own.data.lines)?, weights: Vec::new(), spec };
        let all = tpcc.spec.own.data.warehouses as f64;
        let weight = |fragment| tpcc.warehouses(fragment).count() as f64 / all;
        // With twelve decimals every JSON reader gets exactly the same number.
        tpcc.weights = (0..tpcc.spec.common.fragments).map(|f| (weight(f) * 1e12).round() / 1e12).collect();
        Ok(tpcc)
    }

    fn weights(&self) -> &[f64] {
        &self.weights
    }

    fn actors(&self, fragment: u32) -> u64 {
        self.warehouses(fragment).count() as u64 * self.spec.own.data.terminals
    }

    fn write_dataset(&self, fragment: u32, folder: &Path) -> Result<Vec<FileEntry>, GenerateError> {
        let mut files = if fragment == 0 { self.write_texts(folder)? } else { Vec::new() };
        let (seed, data) = (self.spec.common.seed, &self.spec.own.data);
        files.extend(dataset::write(folder, fragment, self.warehouses(fragment), (seed, data))?);
        Ok(files)
    }

    fn notes(fragment: u32) -> Option<(String, SchemaRef)> {
        Some((draws_path(fragment), draws_schema()))
    }

    fn sessions(&self, fragment: u32) -> Sessions<'_> {
        Sessions::new(self, fragment)
    }

    fn tally(&self, _fragment: u32, sessions: &Sessions<'_>) -> (Draws, Vec<u64>) {
        sessions.tally()
    }

    fn statistics(&self, tallies: Vec<(Draws, Vec<u64>)>) -> (u64, TpccStatistics) {
        let statements = self.catalog.list.list();
        let (mut draws, mut uses) = (Draws::default(), vec![0; statements.len()]);
        for (own, own_uses) in tallies {
            draws.merge(&own);
            uses.iter_mut().zip(own_uses).for_each(|(sum, own)| *sum += own);
        }
        let sql = SqlStatistics {
            statements: statements.iter().map(Statement::signature).collect(),
            uses,
            // All rows are in the tables of the data set.
            loaded_rows: Some(0),
            ..SqlStatistics::default()
        };
        let data = &self.spec.own.data;
        (data.warehouses * data.terminals, TpccStatistics { sql, draws })
    }

    fn digest(
        _spec: &SpecOf<TpccWorkload>,
        _manifest: &Manifest,
        _folder: &Path,
        _position: &FragmentPosition,
    ) -> Result<StateDigest, DigestError> {
        Err(DigestError::Undetermined {
            what: "what SQL statements leave is known to a database alone; use `encore replay digest` on two stores",
        })
    }

    fn facts(manifest: &Manifest) -> Result<Facts, SpecError> {
        show::facts(manifest)
    }

    fn remark(manifest: &Manifest) -> Option<String> {
        show::remark(manifest)
    }
}
