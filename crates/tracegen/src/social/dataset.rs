//! Writes the data set of one fragment: what is in the store before the first session.

use std::path::Path;

use schemas::manifest::FileEntry;
use schemas::spec::SpecOf;
use schemas::workload::social::SocialWorkload;
use schemas::workload::social::dataset::Table;

use crate::core::chance::Stream;
use crate::core::error::GenerateError;
use crate::core::output::TableFile;
use crate::social::initial::Initial;
use crate::social::walls::{self, Posted};

/// How many rows are collected before they are written to the file.
const BATCH_ROWS: usize = 32_768;

/// Writes a table row by row.
struct RowWriter<const N: usize> {
    table: Table,
    file: TableFile,
    columns: [Vec<i64>; N],
}

impl<const N: usize> RowWriter<N> {
    fn create(table: Table, folder: &Path, fragment: u32) -> Result<RowWriter<N>, GenerateError> {
        let file = TableFile::create(folder, table.relative_path(fragment), table.schema())?;
        Ok(RowWriter { table, file, columns: std::array::from_fn(|_| Vec::with_capacity(BATCH_ROWS)) })
    }

    fn push(&mut self, row: [u64; N]) -> Result<(), GenerateError> {
        for (column, value) in self.columns.iter_mut().zip(row) {
            column.push(value as i64);
        }
        if self.columns[0].len() == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), GenerateError> {
        let columns = self.columns.iter_mut().map(std::mem::take).collect();
        self.file.write(&self.table.batch(columns))
    }

    fn finish(mut self) -> Result<FileEntry, GenerateError> {
        if !self.columns[0].is_empty() {
            self.flush()?;
        }
        self.file.finish()
    }
}

/// Writes every table of a fragment.
pub(crate) fn write(
    spec: &SpecOf<SocialWorkload>,
    initial: &Initial,
    fragment: u32,
    folder: &Path,
) -> Result<Vec<FileEntry>, GenerateError> {
    let positions = initial.positions_by_member();
    Ok(vec![
        members(initial, &positions, RowWriter::create(Table::Members, folder, fragment)?)?,
        friendships(initial, &positions, RowWriter::create(Table::Friendships, folder, fragment)?)?,
        invitations(initial, &positions, RowWriter::create(Table::Invitations, folder, fragment)?)?,
        resources(spec, initial, &positions, fragment, RowWriter::create(Table::Resources, folder, fragment)?)?,
        comments(spec, initial, &positions, fragment, RowWriter::create(Table::Comments, folder, fragment)?)?,
    ])
}

fn members(initial: &Initial, positions: &[u32], mut rows: RowWriter<1>) -> Result<FileEntry, GenerateError> {
    for position in positions {
        rows.push([initial.member(*position)])?;
    }
    rows.finish()
}

fn friendships(initial: &Initial, positions: &[u32], mut rows: RowWriter<2>) -> Result<FileEntry, GenerateError> {
    let mut friends = Vec::new();
    for position in positions {
        let member = initial.member(*position);
        friends.clear();
        friends.extend(initial.friends(*position).map(|friend| initial.member(friend)));
        // Each friendship is stored once, with the lower id first.
        friends.retain(|friend| *friend > member);
        friends.sort_unstable();
        for friend in &friends {
            rows.push([member, *friend])?;
        }
    }
    rows.finish()
}

fn invitations(initial: &Initial, positions: &[u32], mut rows: RowWriter<2>) -> Result<FileEntry, GenerateError> {
    let mut inviters = Vec::new();
    for position in positions {
        inviters.clear();
        inviters.extend(initial.inviters(*position).map(|inviter| initial.member(inviter)));
        inviters.sort_unstable();
        for inviter in &inviters {
            rows.push([*inviter, initial.member(*position)])?;
        }
    }
    rows.finish()
}

fn resources(
    spec: &SpecOf<SocialWorkload>,
    initial: &Initial,
    positions: &[u32],
    fragment: u32,
    mut rows: RowWriter<3>,
) -> Result<FileEntry, GenerateError> {
    for Posted { resource, owner, wall } in walls::posted(spec, initial, positions, fragment) {
        rows.push([resource, owner, initial.member(wall)])?;
    }
    rows.finish()
}

fn comments(
    spec: &SpecOf<SocialWorkload>,
    initial: &Initial,
    positions: &[u32],
    fragment: u32,
    mut rows: RowWriter<3>,
) -> Result<FileEntry, GenerateError> {
    let mut authors = Stream::new(spec.common.seed, "authors", fragment);
    let (resources, each) = (spec.own.data.resources_per_member, spec.own.data.comments_per_resource);
    for position in positions {
        let owner = initial.member(*position);
        for resource in owner * resources..(owner + 1) * resources {
            for comment in resource * each..(resource + 1) * each {
                let author = authors.below(initial.len() as u64) as u32;
                rows.push([comment, resource, initial.member(author)])?;
            }
        }
    }
    rows.finish()
}
