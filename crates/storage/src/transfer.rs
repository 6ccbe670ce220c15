//! One file to one object and back. Neither appears before it is complete.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use futures::stream::FuturesUnordered;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path as Key;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt};
use schemas::files::{FileError, at};

/// Why a transfer ended early.
pub(crate) enum Failed {
    /// The local file.
    File(FileError),
    /// The store.
    Store(object_store::Error),
    /// An object ended before its end.
    Length { found: u64, expected: u64 },
}

impl From<object_store::Error> for Failed {
    fn from(error: object_store::Error) -> Failed {
        Failed::Store(error)
    }
}

impl From<FileError> for Failed {
    fn from(error: FileError) -> Failed {
        Failed::File(error)
    }
}

/// The bytes of a part. Stores require 5 MiB at least, and parts of one size.
const PART_BYTES: u64 = 8 << 20;
/// The most parts that an object may have.
const PARTS_MAX: u64 = 10_000;
/// How many parts of one object are under way, hence in memory.
const PARTS_AT_ONCE: usize = 3;

/// Reads an object into a file, under a temporary name until it is complete.
pub(crate) async fn download(store: &dyn ObjectStore, key: &Key, to: &Path) -> Result<(), Failed> {
    let found = store.get(key).await?;
    let expected = found.meta.size;
    let folder = match to.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(folder).map_err(at(folder))?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(at(folder))?;
    let mut bytes = 0;
    let mut chunks = found.into_stream();
    while let Some(chunk) = chunks.try_next().await? {
        file.write_all(&chunk).map_err(at(to))?;
        bytes += chunk.len() as u64;
    }
    if bytes != expected {
        return Err(Failed::Length { found: bytes, expected });
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let usual = std::fs::Permissions::from_mode(0o644);
        file.as_file().set_permissions(usual).map_err(at(to))?;
    }
    file.persist(to).map_err(|error| at(to)(error.error))?;
    Ok(())
}

/// Writes a file as an object: a small one in one request, a large one in parts that the last request joins.
pub(crate) async fn upload(store: &dyn ObjectStore, from: &Path, key: &Key) -> Result<(), Failed> {
    let mut file = File::open(from).map_err(at(from))?;
    let bytes = file.metadata().map_err(at(from))?.len();
    if bytes <= PART_BYTES {
        let content = read_exactly(&mut file, bytes).map_err(at(from))?;
        store.put(key, content.into()).await?;
        return Ok(());
    }
    let mut upload = store.put_multipart(key).await?;
    match in_parts(&mut *upload, &mut file, from, bytes).await {
        Ok(()) => Ok(()),
        Err(error) => {
            // Frees the parts. If the store cannot be reached, its own rules for old parts do it.
            let _ = upload.abort().await;
            Err(error)
        }
    }
}

async fn in_parts(upload: &mut dyn MultipartUpload, file: &mut File, from: &Path, bytes: u64) -> Result<(), Failed> {
    let part_bytes = PART_BYTES.max(bytes.div_ceil(PARTS_MAX));
    let mut under_way = FuturesUnordered::new();
    let mut left = bytes;
    while left > 0 {
        let length = left.min(part_bytes);
        let content = read_exactly(file, length).map_err(at(from))?;
        left -= length;
        under_way.push(upload.put_part(content.into()));
        if under_way.len() == PARTS_AT_ONCE {
            under_way.next().await.transpose()?;
        }
    }
    while under_way.next().await.transpose()?.is_some() {}
    upload.complete().await?;
    Ok(())
}

/// The next bytes of a file. One that has become shorter is an error.
fn read_exactly(file: &mut File, bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut content = vec![0; bytes as usize];
    file.read_exact(&mut content)?;
    Ok(content)
}
