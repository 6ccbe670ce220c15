//! Measures encodings and compressions for the files that grow with the number of operations: the
//! operations of a trace set, and the operation log.
//!
//! Every number column gets the encoding; columns of names keep their dictionary.
//! The sealed tables consist of the same columns as these two.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::ipc::CompressionType;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use replayer::any_store;
use replayer::experiment::{Control, Experiment};
use schemas::manifest::Manifest;
use schemas::oplog::LogReader;
use schemas::plan::{Limit, Plan};
use schemas::social::Social;
use schemas::spec::Spec;
use schemas::table::ParquetBatches;
use schemas::trace::operations_schema;

use crate::machine::Machine;

const SPEC: &str = include_str!("../../traces/quickstart.toml");

/// Rows of each of the two tables.
const OPERATIONS: u64 = 2_000_000;

const BATCH_ROWS: usize = 8192;
const ROW_GROUP_ROWS: usize = 262_144;

/// Prints both tables as Markdown.
pub fn main(folder: &Path) -> anyhow::Result<()> {
    println!("# Encodings and compressions\n\n`benches/run codecs`, on {}\n", Machine::current());
    let trace = folder.join("codecs.trace");
    let spec = Spec::parse_with(SPEC, "quickstart.toml", &[format!("sessions={OPERATIONS}")])?;
    let manifest = tracegen::generate(&spec, &trace, &tracegen::GenerateOptions::default())?;
    let mut operations = Vec::new();
    for file in manifest.operation_files(&trace, 0) {
        for batch in ParquetBatches::open(&file, operations_schema::<Social>(), BATCH_ROWS)? {
            operations.push(batch?);
        }
    }
    println!("## Operations of a trace set\n");
    table(folder, &operations)?;
    println!("\n## Operation log\n");
    table(folder, &log(folder, &trace, &manifest)?)
}

/// The log of a replay on a store without errors.
fn log(folder: &Path, trace: &Path, manifest: &Manifest) -> anyhow::Result<Vec<RecordBatch>> {
    let plan = Plan {
        format_version: schemas::RUN_FORMAT_VERSION,
        experiment: 1,
        trace: trace.to_path_buf(),
        trace_id: manifest.trace_id.clone(),
        store: "memory:".into(),
        threads: 16,
        workers: 1,
        limit: Limit::WholeTrace,
        fragments: schemas::plan::fragments(manifest, &[], 0),
        unique_actors: true,
        closing_read: None,
        open_loop: None,
        target_per_s: None,
        threads_over_time: Vec::new(),
        transactions: Default::default(),
    };
    let experiment = Experiment::prepare(plan, folder.join("codecs.run"))?;
    let store = any_store::open("memory:")?;
    store.load(experiment.source(), &|_, _| {})?;
    store.run(&experiment, &Control::default(), &mut |_| {})?;
    let path = experiment.folder().join("log/fragment-0.arrows");
    Ok(LogReader::open(&path)?.collect::<Result<_, _>>()?)
}

fn table(folder: &Path, batches: &[RecordBatch]) -> anyhow::Result<()> {
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    println!("{rows} rows\n");
    println!("| format | compression | bytes a row | written, M rows/s | read, M rows/s |\n|---|---|---:|---:|---:|");
    let path = folder.join("codecs.file");
    let line = |format: &str, compression: &str, written_s: f64, read_s: f64| -> anyhow::Result<()> {
        let bytes = std::fs::metadata(&path)?.len() as f64 / rows as f64;
        let speed = |seconds: f64| rows as f64 / 1e6 / seconds;
        let (written, read) = (speed(written_s), speed(read_s));
        println!("| {format} | {compression} | {bytes:.1} | {written:.1} | {read:.1} |");
        Ok(())
    };
    for (name, compression) in
        [("none", None), ("LZ4", Some(CompressionType::LZ4_FRAME)), ("zstd", Some(CompressionType::ZSTD))]
    {
        let began = Instant::now();
        write_ipc(&path, batches, compression)?;
        let written_s = began.elapsed().as_secs_f64();
        let began = Instant::now();
        let read = StreamReader::try_new_buffered(File::open(&path)?, None)?;
        read.into_iter().try_for_each(|batch| batch.map(|_| ()))?;
        line("Arrow IPC", name, written_s, began.elapsed().as_secs_f64())?;
    }
    let zstd = |level| ZstdLevel::try_new(level).map(Compression::ZSTD);
    for (format, encoding) in [
        ("Parquet, plain", Some(Encoding::PLAIN)),
        ("Parquet, dictionary", None),
        ("Parquet, DELTA_BINARY_PACKED", Some(Encoding::DELTA_BINARY_PACKED)),
        ("Parquet, BYTE_STREAM_SPLIT", Some(Encoding::BYTE_STREAM_SPLIT)),
    ] {
        for (name, compression) in [
            ("none", Compression::UNCOMPRESSED),
            ("Snappy", Compression::SNAPPY),
            ("zstd 1", zstd(1)?),
            ("zstd 3", zstd(3)?),
            ("zstd 9", zstd(9)?),
        ] {
            let began = Instant::now();
            write_parquet(&path, batches, encoding, compression)?;
            let written_s = began.elapsed().as_secs_f64();
            let began = Instant::now();
            let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(&path)?)?;
            builder.with_batch_size(BATCH_ROWS).build()?.try_for_each(|batch| batch.map(|_| ()))?;
            line(format, name, written_s, began.elapsed().as_secs_f64())?;
        }
    }
    Ok(std::fs::remove_file(&path)?)
}

fn write_ipc(path: &Path, batches: &[RecordBatch], compression: Option<CompressionType>) -> anyhow::Result<()> {
    let options = IpcWriteOptions::default().try_with_compression(compression)?;
    let schema = schema(batches)?;
    let mut writer = StreamWriter::try_new_with_options(File::create(path)?, &schema, options)?;
    batches.iter().try_for_each(|batch| writer.write(batch))?;
    Ok(writer.finish()?)
}

fn write_parquet(
    path: &Path,
    batches: &[RecordBatch],
    encoding: Option<Encoding>,
    compression: Compression,
) -> anyhow::Result<()> {
    let schema = schema(batches)?;
    let mut properties = WriterProperties::builder()
        .set_compression(compression)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS));
    for field in schema.fields() {
        let column = match field.data_type() {
            DataType::List(item) => ColumnPath::new(vec![field.name().clone(), "list".into(), item.name().clone()]),
            kind if kind.is_integer() => ColumnPath::from(field.name().as_str()),
            _ => continue,
        };
        if let Some(encoding) = encoding {
            properties = properties.set_column_dictionary_enabled(column.clone(), false);
            properties = properties.set_column_encoding(column, encoding);
        }
    }
    let mut writer = ArrowWriter::try_new(File::create(path)?, schema, Some(properties.build()))?;
    batches.iter().try_for_each(|batch| writer.write(batch))?;
    writer.close()?;
    Ok(())
}

fn schema(batches: &[RecordBatch]) -> anyhow::Result<SchemaRef> {
    Ok(batches.first().context("no rows")?.schema())
}
