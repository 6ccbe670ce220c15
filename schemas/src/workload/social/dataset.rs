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

use crate::table::columns::column;
use crate::table::{ParquetBatches, TableError};

/// A table of the data set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// The members.
    Members,
    /// The confirmed friendships.
    Friendships,
    /// The pending invitations.
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

    /// The rows of the table of a fragment, in batches of some thousands. `N` is the number of
    /// columns.
    pub fn rows<const N: usize>(
        self,
        folder: &Path,
        fragment: u32,
    ) -> Result<impl Iterator<Item = Result<Vec<[u64; N]>, TableError>> + use<N>, TableError> {
        debug_assert_eq!(N, self.columns().len());
        let path = self.path(folder, fragment);
        let mut first_row = 0;
        Ok(ParquetBatches::open(&path, self.schema(), 8192)?.map(move |batch| {
            let batch = batch?;
            let rows = self.decode(&batch, &path, first_row);
            first_row += batch.num_rows();
            rows
        }))
    }

    fn decode<const N: usize>(
        self,
        batch: &RecordBatch,
        path: &Path,
        first_row: usize,
    ) -> Result<Vec<[u64; N]>, TableError> {
        let mut rows = vec![[0; N]; batch.num_rows()];
        for (at, name) in self.columns().iter().enumerate() {
            let values: &Int64Array = column(batch, name, path)?;
            for (row, value) in rows.iter_mut().zip(values.values()) {
                row[at] = *value as u64;
            }
            if let Some(row) = values.values().iter().position(|value| *value < 0) {
                let message = format!("row {}: {name} is {}, must not be negative", first_row + row, values.value(row));
                return Err(TableError::new(path, message));
            }
        }
        Ok(rows)
    }

    /// Calls `each` with every row of the table of a fragment.
    pub fn for_each<const N: usize>(
        self,
        folder: &Path,
        fragment: u32,
        mut each: impl FnMut([u64; N]),
    ) -> Result<(), TableError> {
        for rows in self.rows::<N>(folder, fragment)? {
            rows?.into_iter().for_each(&mut each);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use parquet::arrow::ArrowWriter;

    use super::*;

    /// The reader reads or refuses a file with any one byte changed; it does not panic. It
    /// ignores the embedded Arrow schema: a damaged one made the Arrow library panic.
    #[test]
    fn no_changed_byte_panics() {
        let folder = tempfile::tempdir().unwrap();
        let path = Table::Resources.path(folder.path(), 0);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let rows: Vec<Vec<i64>> = (0..3).map(|column| (0..50).map(|row| row * 7 + column).collect()).collect();
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, Table::Resources.schema(), None).unwrap();
        writer.write(&Table::Resources.batch(rows)).unwrap();
        writer.close().unwrap();
        let whole = std::fs::read(&path).unwrap();
        let read = || -> Result<Vec<Vec<[u64; 3]>>, TableError> { Table::Resources.rows(folder.path(), 0)?.collect() };
        let expected = read().unwrap();
        let name = b"ARROW:schema";
        let schema = whole.windows(name.len()).position(|window| window == name).expect("it is embedded");
        for at in 0..whole.len() {
            for mask in [0x01, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] ^= mask;
                std::fs::write(&path, &changed).unwrap();
                match read() {
                    Ok(_) => {}
                    Err(e) => assert!(e.to_string().contains("resources.parquet"), "byte {at}: {e}"),
                }
            }
        }
        let mut changed = whole.clone();
        changed[schema + name.len() + 40] ^= 0x15;
        std::fs::write(&path, &changed).unwrap();
        assert_eq!(read().unwrap(), expected);
    }
}
