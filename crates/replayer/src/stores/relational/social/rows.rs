//! The data set of a trace set as rows of a design's tables.

use std::collections::HashMap;

use schemas::table::TableError;
use schemas::workload::social::dataset::Table;

use super::super::contents::{Batch, Batches, Value};
use super::design::{Counts, Design, Friendship, Images};
use super::tables::{CONFIRMED, PENDING};
use crate::source::Source;

/// Rows of the data set that make a [`Batch`]: few, since images may be large.
const ROWS_EACH: usize = 100;

fn id(value: u64) -> Value {
    Value::Integer(value as i64)
}

/// All rows of a fragment, table by table, made on demand.
pub fn of_fragment<'a>(source: &'a Source, fragment: u32, design: &Design) -> Result<Batches<'a>, TableError> {
    let mut all = members(source, fragment, design)?;
    let mut append = |more: Batches<'a>| all.push(more);
    match design.friendship {
        Friendship::TwoRow => {
            // Each friendship has a row for each of the two members.
            append(batches(source, fragment, Table::Friendships, "friendships", |[a, b]| {
                vec![vec![id(a), id(b)], vec![id(b), id(a)]]
            })?);
            append(batches(source, fragment, Table::Invitations, "invitations", |[inviter, invitee]| {
                vec![vec![id(invitee), id(inviter)]]
            })?);
        }
        Friendship::OneRow => {
            // The data set does not say who invited whom before it began: here the lower id did.
            append(batches(source, fragment, Table::Friendships, "friendships", |[lower, higher]| {
                vec![vec![id(lower), id(higher), Value::Integer(CONFIRMED)]]
            })?);
            append(batches(source, fragment, Table::Invitations, "friendships", |[inviter, invitee]| {
                vec![vec![id(inviter), id(invitee), Value::Integer(PENDING)]]
            })?);
        }
    }
    let payload = source.payload();
    append(batches(source, fragment, Table::Resources, "resources", move |[resource, owner, wall]| {
        vec![vec![id(resource), id(owner), id(wall), Value::Text(payload.resource(resource))]]
    })?);
    let payload = source.payload();
    append(batches(source, fragment, Table::Comments, "comments", move |[comment, resource, author]| {
        vec![vec![id(comment), id(resource), id(author), Value::Text(payload.comment(comment))]]
    })?);
    Ok(Box::new(all.into_iter().flatten()))
}

fn members<'a>(source: &'a Source, fragment: u32, design: &Design) -> Result<Vec<Batches<'a>>, TableError> {
    let counts = match design.counts {
        Counts::Computed => None,
        Counts::Stored => Some(counts(source, fragment)?),
    };
    let (payload, images) = (source.payload(), design.images);
    let mut all = vec![batches(source, fragment, Table::Members, "members", move |[member]| {
        let mut row = vec![id(member), Value::Text(payload.attributes(member))];
        if let Some(counts) = &counts {
            row.extend(counts.get(&member).copied().unwrap_or_default().map(Value::Integer));
        }
        if images != Images::None {
            row.push(Value::Bytes(payload.thumbnail(member)));
        }
        if images == Images::Inline {
            row.push(Value::Bytes(payload.image(member)));
        }
        vec![row]
    })?];
    if design.images == Images::Table {
        let payload = source.payload();
        let images = batches(source, fragment, Table::Members, "images", move |[member]| {
            vec![vec![id(member), Value::Bytes(payload.image(member))]]
        })?;
        all.push(Box::new(images.map(|batch| Ok(Batch { rows_of_data_set: 0, ..batch? }))));
    }
    Ok(all)
}

/// Friends, waiting invitations and resources of each member that has any. A fragment has all
/// data of its members.
fn counts(source: &Source, fragment: u32) -> Result<HashMap<u64, [i64; 3]>, TableError> {
    let mut counts: HashMap<u64, [i64; 3]> = HashMap::new();
    let folder = &source.folder;
    Table::Friendships.for_each(folder, fragment, |[a, b]| {
        counts.entry(a).or_default()[0] += 1;
        counts.entry(b).or_default()[0] += 1;
    })?;
    Table::Invitations.for_each(folder, fragment, |[_inviter, invitee]| counts.entry(invitee).or_default()[1] += 1)?;
    Table::Resources.for_each(folder, fragment, |[_resource, _owner, wall]| counts.entry(wall).or_default()[2] += 1)?;
    Ok(counts)
}

/// The rows that `rows_of` makes from each row of a table of the data set.
fn batches<'a, const N: usize>(
    source: &'a Source,
    fragment: u32,
    from: Table,
    into: &'static str,
    rows_of: impl Fn([u64; N]) -> Vec<Vec<Value>> + Send + 'a,
) -> Result<Batches<'a>, TableError> {
    let pieces = from.rows::<N>(&source.folder, fragment)?.flat_map(|rows| match rows {
        Ok(rows) => rows.chunks(ROWS_EACH).map(|some| Ok(some.to_vec())).collect(),
        Err(error) => vec![Err(error)],
    });
    Ok(Box::new(pieces.map(move |piece| {
        let piece = piece?;
        let rows_of_data_set = piece.len() as u64;
        Ok(Batch { table: into.into(), rows: piece.into_iter().flat_map(&rows_of).collect(), rows_of_data_set })
    })))
}
