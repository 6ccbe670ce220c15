//! Serves the `social` family: row counts, digest, connections.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use schemas::digest::StateDigest;
use schemas::run::FragmentPosition;
use schemas::social::Social;
use schemas::table::TableError;
use sqlx::Error;

use super::super::contents::{Batches, Contents, Table, Touched, Value};
use super::super::engine::{Client, Engine, Fields};
use super::super::state::sql;
use super::super::{Dialect, Relational};
use super::actions::{Actions, SocialConnection};
use super::design::{Design, Images};
use super::statements::Statements;
use super::{audit, rows, tables, touched};
use crate::source::Source;
use crate::stores::{HeldState, LoadProgress, Serves, StoreError};

/// A data set in a design.
struct DataSet<'a> {
    source: &'a Source,
    design: &'a Design,
}

impl Contents for DataSet<'_> {
    fn source(&self) -> &Source {
        self.source
    }

    fn loaded(&self) -> HeldState {
        self.design.loaded(self.source)
    }

    fn tables(&self, dialect: &Dialect) -> Vec<Table> {
        let table = |table: tables::TableLayout| Table { name: table.name.into(), creation: table.creation(dialect) };
        tables::tables(self.design).into_iter().map(table).collect()
    }

    fn indexes(&self) -> Vec<String> {
        tables::indexes(self.design).iter().map(tables::Index::creation).collect()
    }

    fn rows(&self, fragment: u32) -> Result<Batches<'_>, TableError> {
        rows::of_fragment(self.source, fragment, self.design)
    }

    fn touched(&self, dialect: &Dialect, positions: &[FragmentPosition]) -> Result<Vec<Touched>, TableError> {
        let touched = touched::Touched::before(self.source, positions)?;
        let id = |id: &u64| Value::Integer(*id as i64);
        let pairs = touched.pairs.iter().map(|(a, b)| vec![id(a), id(b)]).collect();
        let [members, comments] =
            [&touched.members, &touched.comments].map(|ids| ids.iter().map(|one| vec![id(one)]).collect());
        let all = tables::TOUCHED.into_iter().zip([pairs, members, comments]);
        Ok(all.map(|((table, columns), rows)| Touched { table, columns, kind: dialect.integer, rows }).collect())
    }

    fn restoration(&self, to: &str, from: &str) -> Vec<String> {
        tables::tables(self.design).iter().flat_map(|table| table.restoration(to, from)).collect()
    }
}

impl<E: Engine> Serves<Social> for Relational<E> {
    type Connection = SocialConnection<E>;

    async fn load(&self, source: &Source, progress: LoadProgress<'_>) -> Result<(), StoreError> {
        E::load(self, &DataSet { source, design: self.design() }, progress).await
    }

    fn check_design(&self, held: &HeldState) -> Result<(), StoreError> {
        self.design().check(crate::stores::Store::url(self), held)
    }

    fn design_settings(&self, _source: &Source) -> BTreeMap<String, String> {
        self.design().settings()
    }

    async fn check_loaded(&self, source: &Source) -> Result<(), StoreError> {
        self.check_rows(source).await
    }

    async fn digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        self.state_digest(source).await
    }

    async fn connect(&self, source: &Source, threads: Range<u32>) -> Result<Vec<SocialConnection<E>>, StoreError> {
        let statements = Arc::new(Statements::new(self.design(), &E::DIALECT));
        self.performers(threads, || Actions::new(statements.clone(), source)).await
    }
}

impl<E: Engine> Relational<E> {
    async fn check_rows(&self, source: &Source) -> Result<(), StoreError> {
        let mut client = self.client().await?;
        for tally in audit::tallies(self.design()) {
            let found = self.count(&mut client, &tally.sql).await?;
            let expected = tally.rows_each * source.rows(tally.of);
            if found != expected {
                let (found, expected) = (found as i64, expected as i64);
                let what = format!("rows of {}", tally.what);
                return Err(StoreError::miscounted(&self.url, &what, found, expected, source));
            }
        }
        self.in_time(client.disconnect()).await
    }

    async fn state_digest(&self, source: &Source) -> Result<StateDigest, StoreError> {
        let mut client = self.client().await?;
        for agreement in audit::agreements(self.design()) {
            match self.count(&mut client, &agreement.sql).await? {
                0 => {}
                n => {
                    return Err(
                        self.failed(format!("{n} {}; load it again with `encore replay load`", agreement.broken))
                    );
                }
            }
        }
        self.facts(source, &mut client).await.map_err(|e| self.driver_failed(e))
    }

    async fn facts(&self, source: &Source, client: &mut E::Client) -> Result<StateDigest, Error> {
        let facts = audit::facts(self.design());
        let payload = source.payload();
        let id = |row: &<E::Client as Client>::Row, column| row.integer(column).map(|id| id as u64);
        let mut digest = StateDigest::default();
        let images = self.design().images;
        client
            .visit(sql(facts.members), &mut |row| {
                let (member, attributes) = (id(row, 0)?, row.text(1)?);
                match images {
                    // The images are on a file server in this design, so the digest takes them
                    // from the payload function.
                    Images::None => {
                        digest.member(member, attributes, &payload.image(member), &payload.thumbnail(member))
                    }
                    Images::Inline | Images::Table => digest.member(member, attributes, row.bytes(3)?, row.bytes(2)?),
                }
                Ok(())
            })
            .await?;
        client
            .visit(sql(facts.friendships), &mut |row| {
                digest.friendship(id(row, 0)?, id(row, 1)?);
                Ok(())
            })
            .await?;
        client
            .visit(sql(facts.invitations), &mut |row| {
                digest.invitation(id(row, 0)?, id(row, 1)?);
                Ok(())
            })
            .await?;
        client
            .visit(sql(facts.resources), &mut |row| {
                digest.resource(id(row, 0)?, id(row, 1)?, id(row, 2)?, row.text(3)?);
                Ok(())
            })
            .await?;
        client
            .visit(sql(facts.comments), &mut |row| {
                digest.comment(id(row, 0)?, id(row, 1)?, id(row, 2)?, row.text(3)?);
                Ok(())
            })
            .await?;
        Ok(digest)
    }
}
