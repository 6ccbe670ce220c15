//! What is replayed: a trace set whose manifest has been read and checked.

use std::path::{Path, PathBuf};

use schemas::manifest::{Manifest, TraceSetError};
use schemas::spec::SpecError;
use schemas::workload::kv::KvWorkload;
use schemas::workload::sql::SqlSet;
use schemas::workload::{AnyWorkload, Closing, Workload};

/// A trace set, by its folder and manifest.
#[derive(Debug, Clone)]
pub struct Source {
    /// The folder.
    pub folder: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
}

impl Source {
    /// Reads the manifest; every file must be there with its size.
    pub fn open(folder: &Path) -> Result<Source, TraceSetError> {
        Ok(Source { folder: folder.to_path_buf(), manifest: Manifest::read(folder)? })
    }

    /// Like [`Source::open`], and every file must have the checksum that the manifest lists.
    pub fn verified(folder: &Path) -> Result<Source, TraceSetError> {
        let source = Source::open(folder)?;
        source.manifest.verify(folder)?;
        Ok(source)
    }

    /// The numbers of all fragments.
    pub fn fragments(&self) -> impl Iterator<Item = u32> + '_ {
        self.manifest.fragments.iter().map(|f| f.fragment)
    }

    /// How many actors there are.
    pub fn actors(&self) -> u64 {
        self.workload_of(|family| family.actors(&self.manifest.spec))
    }

    /// What a store needs to know of its statements and schema. Its vocabulary must be SQL.
    pub fn sql(&self) -> SqlSet {
        let set = self.workload_of(|family| family.sql(&self.manifest.spec));
        set.unwrap_or_else(|| unreachable!("stores are chosen by the vocabulary, and its families know this"))
    }

    /// What the family reads after an experiment; none if it has no closing read.
    pub fn closing(&self) -> Option<Closing> {
        self.workload_of(|family| family.closing(&self.manifest.spec))
    }

    /// Whether the data keep conditions that can be checked.
    pub fn has_conditions(&self) -> bool {
        self.workload_of(|family| family.has_conditions(&self.manifest.spec))
    }

    /// How many of the first sessions are the trace set's own warm-up.
    pub fn warmup_sessions(&self) -> u64 {
        self.workload_of(|family| family.warmup_sessions(&self.manifest.spec))
    }

    fn workload_of<X>(&self, read: impl FnOnce(&dyn AnyWorkload) -> Result<X, SpecError>) -> X {
        let read = self.manifest.spec.family().and_then(read);
        read.unwrap_or_else(|e| unreachable!("a manifest that was read has a checked specification: {e}"))
    }

    /// The workload of its specification, which must be of this family.
    pub fn workload<W: Workload>(&self) -> W {
        self.workload_of(|_| self.manifest.spec.workload())
    }

    /// The workload of its specification, which must be of a family on records.
    pub fn records(&self) -> KvWorkload {
        self.workload_of(|_| KvWorkload::of(&self.manifest.spec))
    }

    /// Rows of a table of the data set over all fragments.
    pub fn rows_of(&self, table: &str) -> u64 {
        let name = format!("/{table}.parquet");
        let of_table = |path: &str| path.starts_with("dataset/") && path.ends_with(&name);
        self.manifest.files.iter().filter(|f| of_table(&f.path)).map(|f| f.rows).sum()
    }

    /// Rows of all tables of the data set.
    pub fn rows_total(&self) -> u64 {
        self.manifest.files.iter().filter(|f| f.path.starts_with("dataset/")).map(|f| f.rows).sum()
    }
}
