//! The data set of a trace set: `dataset/fragment=N/TABLE.parquet`.
//!
//! | table | columns | order |
//! |---|---|---|
//! | `members` | `member` | by member |
//! | `friendships` | `member`, `friend` (each pair once, member < friend) | by member, friend |
//! | `invitations` | `inviter`, `invitee` | by invitee, inviter |
//! | `resources` | `resource`, `owner`, `wall` | by resource |
//! | `comments` | `comment`, `resource`, `author` | by comment |

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};

use crate::trace::{TableError, column, open_parquet};

/// A table of the data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// The members.
    Members,
    /// The confirmed friendships.
    Friendships,
    /// The invitations that wait.
    Invitations,
    /// The resources on members' walls.
    Resources,
    /// The comments on resources.
    Comments,
}

impl Table {
    /// Every table, in the order in which a store is loaded.
    pub const ALL: [Table; 5] =
        [Table::Members, Table::Friendships, Table::Invitations, Table::Resources, Table::Comments];

    /// The name of the table and of its file.
    pub const fn name(self) -> &'static str {
        match self {
            Table::Members => "members",
            Table::Friendships => "friendships",
            Table::Invitations => "invitations",
            Table::Resources => "resources",
            Table::Comments => "comments",
        }
    }

    /// The columns, all of them 64-bit ids.
    pub const fn columns(self) -> &'static [&'static str] {
        match self {
            Table::Members => &["member"],
            Table::Friendships => &["member", "friend"],
            Table::Invitations => &["inviter", "invitee"],
            Table::Resources => &["resource", "owner", "wall"],
            Table::Comments => &["comment", "resource", "author"],
        }
    }

    /// The Arrow schema.
    pub fn schema(self) -> SchemaRef {
        let fields: Vec<Field> = self.columns().iter().map(|c| Field::new(*c, DataType::Int64, false)).collect();
        Arc::new(Schema::new(fields))
    }

    /// The path of the table below the trace set's folder, with '/'.
    pub fn relative_path(self, fragment: u32) -> String {
        format!("dataset/fragment={fragment}/{}.parquet", self.name())
    }

    /// The file of the table in a trace set.
    pub fn path(self, folder: &Path, fragment: u32) -> PathBuf {
        folder.join(self.relative_path(fragment))
    }

    /// A batch from one vector for each column.
    pub fn batch(self, columns: Vec<Vec<i64>>) -> RecordBatch {
        let columns = columns.into_iter().map(|c| Arc::new(Int64Array::from(c)) as ArrayRef).collect();
        RecordBatch::try_new(self.schema(), columns)
            .unwrap_or_else(|e| unreachable!("the caller gives one vector for each column: {e}"))
    }

    /// Calls `each` with every row of the table of a fragment; `N` is the number
    /// of columns.
    pub fn for_each<const N: usize>(
        self,
        folder: &Path,
        fragment: u32,
        mut each: impl FnMut([u64; N]),
    ) -> Result<(), TableError> {
        debug_assert_eq!(N, self.columns().len());
        let path = self.path(folder, fragment);
        let mut first_row = 0;
        for batch in open_parquet(&path, 8192)? {
            let batch = batch.map_err(|e| TableError::new(&path, e))?;
            let mut columns: Vec<&Int64Array> = Vec::with_capacity(N);
            for name in self.columns() {
                columns.push(column(&batch, name, &path)?);
            }
            for row in 0..batch.num_rows() {
                let mut values = [0; N];
                for (value, (column, name)) in values.iter_mut().zip(columns.iter().zip(self.columns())) {
                    *value = u64::try_from(column.value(row)).map_err(|_| {
                        TableError::new(
                            &path,
                            format!("row {}: {name} is {}, below 0", first_row + row, column.value(row)),
                        )
                    })?;
                }
                each(values);
            }
            first_row += batch.num_rows();
        }
        Ok(())
    }
}
