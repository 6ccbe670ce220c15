//! Parquet files whose bytes depend on nothing but their rows. Their checksums are computed as they
//! are written.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use schemas::files::at;
use schemas::manifest::FileEntry;
use schemas::table::TableError;

use super::error::GenerateError;

/// Rows of a row group: large enough to compress well, small enough that a reader can hold a few of them.
pub const ROW_GROUP_ROWS: usize = 262_144;

/// Passes bytes on, and keeps their number and BLAKE3 checksum.
struct Summing {
    file: File,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl Write for Summing {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let count = self.file.write(buffer)?;
        self.hasher.update(&buffer[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// One Parquet file of a trace set, being written.
pub struct TableFile {
    path: PathBuf,
    relative: String,
    writer: ArrowWriter<Summing>,
    rows: u64,
}

impl TableFile {
    /// Creates the file at the path `relative` below `folder`.
    pub fn create(folder: &Path, relative: String, schema: SchemaRef) -> Result<TableFile, GenerateError> {
        let path = folder.join(&relative);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(at(parent))?;
        }
        let file = File::create(&path).map_err(at(&path))?;
        let summing = Summing { file, hasher: blake3::Hasher::new(), bytes: 0 };
        let writer = ArrowWriter::try_new(summing, schema.clone(), Some(properties(&schema)))
            .map_err(|e| TableError::refused(&path, e))?;
        Ok(TableFile { path, relative, writer, rows: 0 })
    }

    /// Appends rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), GenerateError> {
        self.writer.write(batch).map_err(|e| TableError::refused(&self.path, e))?;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// How many rows were appended.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Closes the file and returns its entry of the manifest.
    pub fn finish(self) -> Result<FileEntry, GenerateError> {
        let summing = self.writer.into_inner().map_err(|e| TableError::refused(&self.path, e))?;
        Ok(FileEntry {
            path: self.relative,
            bytes: summing.bytes,
            rows: self.rows,
            blake3: summing.hasher.finalize().to_hex().to_string(),
        })
    }
}

/// Ids are stored as differences, names as numbers of a dictionary. The file says nothing of the
/// writer's version or the time.
fn properties(schema: &SchemaRef) -> WriterProperties {
    let level = ZstdLevel::try_new(3).unwrap_or_else(|e| unreachable!("3 is a level of zstd: {e}"));
    let mut builder = WriterProperties::builder()
        .set_created_by("encore".into())
        .set_compression(Compression::ZSTD(level))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for field in schema.fields() {
        let column = ColumnPath::new(vec![field.name().clone()]);
        if field.data_type().is_integer() {
            builder = builder
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
    }
    builder.build()
}
