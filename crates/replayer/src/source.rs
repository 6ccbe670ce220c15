//! What is replayed: a trace set whose manifest has been read and checked.

use std::path::{Path, PathBuf};

use schemas::dataset::Table;
use schemas::digest::StateDigest;
use schemas::manifest::{Manifest, TraceSetError};
use schemas::payload::{self, PayloadKind};
use schemas::spec::Data;

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

    /// Like [`Source::open`]; every file must have the sum that the manifest says.
    pub fn verified(folder: &Path) -> Result<Source, TraceSetError> {
        let source = Source::open(folder)?;
        source.manifest.verify(folder)?;
        Ok(source)
    }

    /// The numbers of all fragments.
    pub fn fragments(&self) -> impl Iterator<Item = u32> + '_ {
        self.manifest.fragments.iter().map(|f| f.fragment)
    }

    /// The parameters of the data set.
    pub fn data(&self) -> &Data {
        &self.manifest.spec.data
    }

    /// Rows of a table over all fragments.
    pub fn rows(&self, table: Table) -> u64 {
        let name = format!("/{}.parquet", table.name());
        let of_table = |path: &str| path.starts_with("dataset/") && path.ends_with(&name);
        self.manifest.files.iter().filter(|f| of_table(&f.path)).map(|f| f.rows).sum()
    }

    /// Rows of all tables.
    pub fn rows_total(&self) -> u64 {
        Table::ALL.iter().map(|t| self.rows(*t)).sum()
    }

    /// The payload function of this data set.
    pub fn payload(&self) -> Payload {
        Payload { seed: self.manifest.spec.seed, data: self.data().clone() }
    }
}

/// The strings and images of a data set.
#[derive(Debug, Clone)]
pub struct Payload {
    seed: u64,
    data: Data,
}

impl Payload {
    /// A member's attributes.
    pub fn attributes(&self, member: u64) -> String {
        payload::text(self.seed, PayloadKind::Attributes, member, self.data.attribute_bytes as usize)
    }

    /// A member's profile image; empty when the data set has none.
    pub fn image(&self, member: u64) -> Vec<u8> {
        payload::bytes(self.seed, PayloadKind::Image, member, self.data.image_bytes as usize)
    }

    /// A member's thumbnail; empty when the data set has none.
    pub fn thumbnail(&self, member: u64) -> Vec<u8> {
        payload::bytes(self.seed, PayloadKind::Thumbnail, member, self.data.thumbnail_bytes as usize)
    }

    /// A resource's text.
    pub fn resource(&self, resource: u64) -> String {
        payload::text(self.seed, PayloadKind::Resource, resource, self.data.resource_bytes as usize)
    }

    /// A comment's text.
    pub fn comment(&self, comment: u64) -> String {
        payload::text(self.seed, PayloadKind::Comment, comment, self.data.comment_bytes as usize)
    }

    /// Adds a member with her payload to a digest.
    pub fn digest_member(&self, digest: &mut StateDigest, member: u64) {
        digest.member(member, &self.attributes(member), &self.image(member), &self.thumbnail(member));
    }
}
