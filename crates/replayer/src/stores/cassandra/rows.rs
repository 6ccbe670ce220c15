//! All rows of a table, read in ranges of tokens.

use futures::stream::{self, StreamExt, TryStreamExt};
use scylla::client::session::Session;
use scylla::response::PagingState;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency, Statement};
use std::ops::ControlFlow;

use super::cells::each_row;
use super::layout::Layout;
use super::schema::{FRAGMENT, KEY, RECORDS};
use super::{Cassandra, words};
use crate::stores::StoreError;

/// All rows of a table.
pub struct Whole {
    /// The table, for a statement.
    pub table: String,
    /// The columns of the partition, for a statement.
    pub partition: String,
}

impl Whole {
    /// All records.
    pub fn records(store: &Cassandra, layout: &Layout) -> Whole {
        let partition = if layout.is_by_fragment() { FRAGMENT } else { KEY };
        Whole { table: store.place.table(RECORDS), partition: partition.to_string() }
    }
}

/// How many ranges the table is read in: a count of one must not take the server longer than it allows.
const RANGES: i64 = 128;
/// How many of them are read at the same time.
const IN_FLIGHT: usize = 4;
/// How many rows the server sends at once.
const PAGE: i32 = 1_000;

/// How many rows there are. Every replica answers, so that none is missed that only some have.
pub async fn count(store: &Cassandra, session: &Session, whole: &Whole) -> Result<u64, StoreError> {
    let statement = prepare(store, session, "count(*)", whole).await?;
    let statement = &statement;
    let counts = stream::iter(ranges()).map(async |range| {
        let answer = store.in_time(session.execute_unpaged(statement, range)).await?;
        let unreadable = |error: &dyn std::error::Error| StoreError::store(&store.url, error);
        let rows = answer.into_rows_result().map_err(|error| unreadable(&error))?;
        let (count,) = rows.single_row::<(i64,)>().map_err(|error| unreadable(&error))?;
        Ok::<u64, StoreError>(count as u64)
    });
    counts.buffer_unordered(IN_FLIGHT).try_fold(0, async |sum, count| Ok(sum + count)).await
}

/// Calls `take` with the columns of each row.
pub async fn each(
    store: &Cassandra,
    session: &Session,
    whole: &Whole,
    columns: &str,
    mut take: impl FnMut(&[Option<&[u8]>]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut statement = prepare(store, session, columns, whole).await?;
    statement.set_page_size(PAGE);
    for range in ranges() {
        let mut from = PagingState::start();
        loop {
            let page = store.in_time(session.execute_single_page(&statement, range, from));
            let (answer, next) = page.await?;
            let unreadable = |why: String| StoreError::store(&store.url, why);
            let rows = answer.into_rows_result().map_err(|error| unreadable(error.to_string()))?;
            let mut failed = None;
            each_row(&rows, |cells| {
                let cells = cells.collect::<Result<Vec<Option<&[u8]>>, String>>()?;
                if failed.is_none() {
                    failed = take(&cells).err();
                }
                Ok(())
            })
            .map_err(unreadable)?;
            if let Some(error) = failed {
                return Err(error);
            }
            match next.into_paging_control_flow() {
                ControlFlow::Break(()) => break,
                ControlFlow::Continue(next) => from = next,
            }
        }
    }
    Ok(())
}

async fn prepare(
    store: &Cassandra,
    session: &Session,
    columns: &str,
    Whole { table, partition }: &Whole,
) -> Result<PreparedStatement, StoreError> {
    let mut statement = Statement::new(format!(
        "SELECT {columns} FROM {table} WHERE token({partition}) >= ? AND token({partition}) <= ?"
    ));
    statement.set_consistency(Consistency::All);
    session.prepare(statement).await.map_err(|error| store.with_advice(words::of_prepare(&error)))
}

/// The first and the last token of each range; together they are all tokens.
fn ranges() -> impl Iterator<Item = (i64, i64)> {
    let width = (1i128 << 64) / i128::from(RANGES);
    (0..RANGES).map(move |range| {
        let first = i128::from(i64::MIN) + i128::from(range) * width;
        (first as i64, (first + width - 1) as i64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_all_tokens() {
        let all: Vec<(i64, i64)> = ranges().collect();
        assert_eq!((all[0].0, all[all.len() - 1].1), (i64::MIN, i64::MAX));
        assert!(all.windows(2).all(|two| two[0].1 + 1 == two[1].0));
    }
}
