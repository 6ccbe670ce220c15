//! Loads the rows of a trace set into the tables of a design.

use std::collections::HashMap;

use futures::stream::{self, StreamExt, TryStreamExt};
use schemas::table::TableError;
use schemas::vocabulary::sql::physical::wide::{Cql, Plan, Wide, insert_of};
use schemas::vocabulary::sql::physical::{Datum, Table, Term, row_of};
use schemas::vocabulary::sql::values as parameters_of;
use schemas::workload::sql::dataset::{self, PRELOAD};
use schemas::workload::sql::rows::{read_rows, row_files};
use scylla::client::session::Session;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;

use super::super::schema::{self, Found};
use super::super::{Cassandra, words};
use super::values::{Bind, bound, type_of};
use super::{Mapped, quoted};
use crate::source::Source;
use crate::stores::physical::PHYSICAL;
use crate::stores::{Fate, HeldState, LoadProgress, StoreError};

/// Inserts in flight.
const IN_FLIGHT: usize = 64;
/// How often an insert is tried: a node that collects garbage misses the server's time limit.
const TRIES: u32 = 5;
/// Values of a file of rows that are in memory.
const CELLS: usize = 64_000;

/// A row for a table: the text of its insert, and its values.
type Insert = (String, Vec<Bind>);

/// Replaces what Encore has loaded by the data set; the marker comes last.
pub(super) async fn load(
    store: &Cassandra,
    mapped: &Mapped,
    source: &Source,
    progress: LoadProgress<'_>,
) -> Result<(), StoreError> {
    let session = store.session().await?;
    if let Found::Foreign(table) = schema::look_into(store, &session).await? {
        return Err(schema::foreign(store, &table));
    }
    let tables = mapped.mapping.wide.iter().map(|wide| (wide.name.clone(), columns(mapped, wide)));
    schema::make_all(store, &session, &tables.collect::<Vec<_>>()).await?;

    // A session that has seen the new tables knows the nodes of each row.
    let session = store.session().await?;
    let mut known: HashMap<String, PreparedStatement> = HashMap::new();
    for wide in &mapped.mapping.wide {
        let table = &mapped.mapping.tables.0[wide.table];
        let text = of_parameters(table, wide, &store.prefix()).text;
        let made = session.prepare(text.clone()).await;
        let mut made = made.map_err(|error| store.with_advice(words::of_prepare(&error)))?;
        made.set_consistency(Consistency::All);
        known.insert(text, made);
    }
    let (known, session, total, mut done) = (&known, &session, source.rows_total(), 0);
    for fragment in source.fragments() {
        let mut all = of_files(store, mapped, source, fragment)?;
        if source.fragments().next() == Some(fragment) {
            all.push(of_preload(store, mapped, source)?);
        }
        let rows = all.into_iter().flatten();
        let sent = stream::iter(rows).map(async |row| {
            let (text, values) = row?;
            match known.get(&text) {
                Some(prepared) => insert(store, session, prepared, &values).await,
                None => Err(StoreError::usage(&store.url, format!("{text} is not prepared"))),
            }
        });
        let mut sent = sent.buffer_unordered(IN_FLIGHT);
        while sent.try_next().await?.is_some() {
            done += 1;
            if done % 1_000 == 0 {
                progress(done.min(total), total);
            }
        }
    }
    let design = store.design().map(|(name, value)| (name.to_string(), value));
    let mut held = HeldState::loaded(super::LAYOUT, design.into(), source);
    held.design.insert(PHYSICAL.to_string(), mapped.sum.clone());
    schema::write_state(store, session, &held).await?;
    progress(total, total);
    Ok(())
}

async fn insert(
    store: &Cassandra,
    session: &Session,
    prepared: &PreparedStatement,
    values: &[Bind],
) -> Result<(), StoreError> {
    let mut tries = 1;
    loop {
        match session.execute_unpaged(prepared, values).await {
            Ok(_) => return Ok(()),
            Err(error) if tries < TRIES && words::fate(&error) == Fate::Lost => tries += 1,
            Err(error) => return Err(store.failed(&error)),
        }
    }
}

/// The insert of a row whose values are parameters.
fn of_parameters(table: &Table, wide: &Wide, prefix: &str) -> Cql {
    let row: Vec<Term> = (0..table.columns.len()).map(Term::Parameter).collect();
    insert_of(table, wide, &row, prefix)
}

/// What a table has, as in CREATE TABLE: its columns and its key, and the clause of its order.
fn columns(mapped: &Mapped, wide: &Wide) -> schema::Columns {
    let table = &mapped.mapping.tables.0[wide.table];
    let name = |column: usize| quoted(&table.columns[column].name);
    let mut all: Vec<String> = Vec::new();
    for column in &wide.columns {
        all.push(format!("{} {}", name(*column), type_of(table.columns[*column].kind)));
    }
    let partition: Vec<String> = wide.partition.iter().map(|column| name(*column)).collect();
    let clustering: String = wide.clustering.iter().map(|(column, _)| format!(", {}", name(*column))).collect();
    all.push(format!("PRIMARY KEY (({}){clustering})", partition.join(", ")));
    let one = |(column, down): &(usize, bool)| format!("{} {}", name(*column), if *down { "DESC" } else { "ASC" });
    let order: Vec<String> = wide.clustering.iter().map(one).collect();
    let order = (!order.is_empty()).then(|| format!("CLUSTERING ORDER BY ({})", order.join(", ")));
    schema::Columns { columns: all.join(", "), order }
}

type Inserts<'a> = Box<dyn Iterator<Item = Result<Insert, StoreError>> + Send + 'a>;

/// The inserts of the rows of a fragment's files.
fn of_files<'a>(
    store: &'a Cassandra,
    mapped: &'a Mapped,
    source: &'a Source,
    fragment: u32,
) -> Result<Vec<Inserts<'a>>, StoreError> {
    let mapping = &mapped.mapping;
    let names: Vec<&str> = mapping.tables.0.iter().map(|table| &table.name[..]).collect();
    let wrong = |error: TableError| StoreError::usage(&store.url, error);
    let mut all: Vec<Inserts<'a>> = Vec::new();
    for file in row_files(&source.folder, &source.manifest.files, fragment, &names) {
        let Some(place) = mapping.tables.find(&file.table) else { continue };
        let table = &mapping.tables.0[place];
        let own = mapping.wide.iter().filter(|wide| wide.table == place);
        let own: Vec<Cql> = own.map(|wide| of_parameters(table, wide, &store.prefix())).collect();
        let path = file.path.clone();
        let rows = read_rows(&file.path, CELLS).map_err(wrong)?.flat_map(move |rows| {
            let made = rows.map_err(|error| error.to_string()).and_then(|rows| {
                let places: Vec<Option<usize>> = rows.columns.iter().map(|name| table.column(name)).collect();
                let mut made = Vec::new();
                for cells in rows.rows {
                    let row = row_of(table, &places, cells)?;
                    made.extend(of_row(own.iter(), &row)?);
                }
                Ok(made)
            });
            in_sequence(made.map_err(|why: String| StoreError::usage(&store.url, format!("{}: {why}", path.display()))))
        });
        all.push(Box::new(rows));
    }
    Ok(all)
}

/// The inserts of a row. A table that has no value for its key does without the row, except the whole one.
fn of_row<'a>(all: impl Iterator<Item = &'a Cql>, parameters: &[Datum]) -> Result<Vec<Insert>, String> {
    let mut made = Vec::new();
    for (number, cql) in all.enumerate() {
        match bound(cql, parameters)? {
            Some(values) => made.push((cql.text.clone(), values)),
            None if number == 0 => return Err("a column of the primary key is NULL".to_string()),
            None => {}
        }
    }
    Ok(made)
}

/// The inserts of the statements that fill the tables.
fn of_preload<'a>(store: &'a Cassandra, mapped: &'a Mapped, source: &'a Source) -> Result<Inserts<'a>, StoreError> {
    let statements = &mapped.described.statements;
    let wrong = |error: TableError| StoreError::usage(&store.url, error);
    let path = source.folder.join(PRELOAD);
    let all = dataset::preload(&source.folder, statements.len()).map_err(wrong)?;
    Ok(Box::new(all.flat_map(move |some| {
        let made = some.map_err(wrong).and_then(|some| {
            let mut made = Vec::new();
            for (number, parameters) in some {
                let refused = |why: String| {
                    let text = &statements[number as usize].text;
                    StoreError::usage(&store.url, format!("{}: statement {number} {why}: {text}", path.display()))
                };
                let parameters: Vec<Datum> = parameters_of(&parameters).map(Datum::of).collect();
                match &mapped.mapping.plans[number as usize] {
                    Ok(Plan::Write(write)) if write.is_insert() => {
                        for row in &write.rows {
                            made.extend(of_row(row.iter(), &parameters).map_err(refused)?);
                        }
                    }
                    Ok(_) => return Err(refused("fills no table with rows; write inserts".into())),
                    Err(why) => return Err(refused(why.clone())),
                }
            }
            Ok(made)
        });
        in_sequence(made)
    })))
}

fn in_sequence(made: Result<Vec<Insert>, StoreError>) -> Vec<Result<Insert, StoreError>> {
    match made {
        Ok(made) => made.into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    }
}
