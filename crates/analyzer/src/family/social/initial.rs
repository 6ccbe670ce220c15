//! The data set of a fragment in compact form: what the store holds before the first session.

use std::path::Path;

use schemas::social::ListKind;
use schemas::table::TableError;
use schemas::workload::social::dataset::Table;

use crate::error::DataSetError;
use crate::validate::UnknownId;

const ABSENT: u32 = u32::MAX;

/// The global ids that belong to a fragment, numbered from 0 without gaps.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    index_of: Vec<u32>,
    count: u32,
}

impl Ids {
    fn insert(&mut self, id: u32) {
        if self.index_of.len() <= id as usize {
            self.index_of.resize(id as usize + 1, ABSENT);
        }
        if self.index_of[id as usize] == ABSENT {
            self.index_of[id as usize] = self.count;
            self.count += 1;
        }
    }

    fn get(&self, id: u64) -> Option<usize> {
        let index = *self.index_of.get(usize::try_from(id).ok()?)?;
        (index != ABSENT).then_some(index as usize)
    }

    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }
}

/// For each owner a list of ids in ascending order, all in one vector.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    starts: Vec<usize>,
    elements: Vec<u32>,
}

impl Lists {
    pub(crate) fn of(&self, owner: usize) -> &[u32] {
        &self.elements[self.starts[owner]..self.starts[owner + 1]]
    }

    /// Builds the lists from pairs (owner, element). It calls `pairs` once to count and once to
    /// fill; both calls must give the same pairs.
    fn build<E>(owners: usize, mut pairs: impl FnMut(&mut dyn FnMut(usize, u32)) -> Result<(), E>) -> Result<Lists, E> {
        let mut starts = vec![0; owners + 1];
        pairs(&mut |owner, _| starts[owner + 1] += 1)?;
        for owner in 0..owners {
            starts[owner + 1] += starts[owner];
        }
        let mut next = starts.clone();
        let mut elements = vec![0; starts[owners]];
        pairs(&mut |owner, element| {
            elements[next[owner]] = element;
            next[owner] += 1;
        })?;
        let mut lists = Lists { starts, elements };
        for owner in 0..owners {
            let list = &mut lists.elements[lists.starts[owner]..lists.starts[owner + 1]];
            if !list.is_sorted() {
                list.sort_unstable();
            }
        }
        Ok(lists)
    }
}

/// The data set of a fragment.
#[derive(Debug, Default)]
pub struct Initial {
    pub(crate) members: Ids,
    pub(crate) resources: Ids,
    pub(crate) friends: Lists,
    pub(crate) pending: Lists,
    pub(crate) comments: Lists,
    pub(crate) walls: Lists,
    pub(crate) top_k: usize,
}

/// Gives the rows of a table, each in the order of [`Table::columns`].
pub type RowSource<'a> = dyn FnMut(Table, &mut dyn FnMut(&[u64])) -> Result<(), TableError> + 'a;

impl Initial {
    /// Reads the data set of a fragment of the trace set in `folder`.
    pub fn read(folder: &Path, fragment: u32, top_k: u32) -> Result<Initial, DataSetError> {
        let name = |table: Table| table.path(folder, fragment).display().to_string();
        let mut rows = |table: Table, each: &mut dyn FnMut(&[u64])| match table {
            Table::Members => table.for_each::<1>(folder, fragment, |row| each(&row)),
            Table::Friendships | Table::Invitations => table.for_each::<2>(folder, fragment, |row| each(&row)),
            Table::Resources | Table::Comments => table.for_each::<3>(folder, fragment, |row| each(&row)),
        };
        Initial::from_rows(&mut rows, &name, top_k)
    }

    /// Builds the data set from any source of rows; `name` is for errors.
    pub fn from_rows(
        rows: &mut RowSource<'_>,
        name: &dyn Fn(Table) -> String,
        top_k: u32,
    ) -> Result<Initial, DataSetError> {
        let mut initial = Initial { top_k: top_k as usize, ..Initial::default() };
        let Initial { members, resources, .. } = &mut initial;
        each(rows, name, Table::Members, |row| narrow("member", row[0]).map(|id| members.insert(id)))?;
        each(rows, name, Table::Resources, |row| narrow("resource", row[0]).map(|id| resources.insert(id)))?;
        let (members, resources) = (initial.members.len(), initial.resources.len());
        initial.friends = Lists::build(members, |pair| {
            each(rows, name, Table::Friendships, |row| {
                pair(initial.member(row[0])?, row[1] as u32);
                pair(initial.member(row[1])?, row[0] as u32);
                Ok(())
            })
        })?;
        initial.pending = Lists::build(members, |pair| {
            each(rows, name, Table::Invitations, |row| {
                initial.member(row[0])?;
                pair(initial.member(row[1])?, row[0] as u32);
                Ok(())
            })
        })?;
        initial.walls = Lists::build(members, |pair| {
            each(rows, name, Table::Resources, |row| {
                pair(initial.member(row[2])?, row[0] as u32);
                Ok(())
            })
        })?;
        initial.comments = Lists::build(resources, |pair| {
            each(rows, name, Table::Comments, |row| {
                pair(initial.resource(row[1])?, narrow("comment", row[0])?);
                Ok(())
            })
        })?;
        Ok(initial)
    }

    /// The index of a member.
    pub(crate) fn member(&self, id: u64) -> Result<usize, UnknownId> {
        self.members.get(id).ok_or(UnknownId { what: "member", id })
    }

    /// The index of a resource.
    pub(crate) fn resource(&self, id: u64) -> Result<usize, UnknownId> {
        self.resources.get(id).ok_or(UnknownId { what: "resource", id })
    }

    /// The index of the owner of a list.
    pub(crate) fn owner(&self, kind: ListKind, id: u64) -> Result<usize, UnknownId> {
        if kind == ListKind::Comments { self.resource(id) } else { self.member(id) }
    }

    /// The lists of a kind.
    pub(crate) fn list(&self, kind: ListKind) -> &Lists {
        match kind {
            ListKind::Friends => &self.friends,
            ListKind::Pending => &self.pending,
            ListKind::Comments => &self.comments,
        }
    }
}

/// Ids are stored in 32 bits.
fn narrow(what: &'static str, id: u64) -> Result<u32, UnknownId> {
    u32::try_from(id).ok().filter(|id| *id != ABSENT).ok_or(UnknownId { what, id })
}

/// Calls `take` for every row of a table. Its errors get the table and the row.
fn each(
    rows: &mut RowSource<'_>,
    name: &dyn Fn(Table) -> String,
    table: Table,
    mut take: impl FnMut(&[u64]) -> Result<(), UnknownId>,
) -> Result<(), DataSetError> {
    let (mut row, mut wrong) = (0, None);
    rows(table, &mut |values| {
        if wrong.is_none()
            && let Err(source) = take(values)
        {
            wrong = Some((row, source));
        }
        row += 1;
    })?;
    match wrong {
        Some((row, source)) => Err(DataSetError::Row { table: name(table), row, source }),
        None => Ok(()),
    }
}
