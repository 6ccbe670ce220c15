//! The objects below a prefix, for programs that wait: list, read, write and delete.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStoreExt;
use object_store::path::Path as Key;
use tokio::runtime::{Builder, Runtime};

use crate::connect::{Connection, connect};
use crate::error::StorageError;
use crate::place::Url;
use crate::transfer;

/// How many objects are read or written at a time.
const AT_ONCE: usize = 8;

/// How often a transfer looks whether the user wants to stop.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// An object below a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its name below the prefix, with '/'.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The objects below a prefix. Each method returns when the store has answered.
pub struct Remote {
    url: Url,
    connection: Connection,
    runtime: Runtime,
    interrupted: Option<Arc<AtomicBool>>,
}

impl Remote {
    /// Connects to the store, and checks that it is there, takes the credentials and has the bucket.
    /// Settings and credentials come from the environment of the process.
    pub fn open(url: &Url) -> Result<Remote, StorageError> {
        let text = |variable: std::ffi::OsString| variable.into_string().ok();
        Remote::open_with(url, std::env::vars_os().filter_map(|(name, value)| text(name).zip(text(value))))
    }

    /// The same with other variables than those of the process.
    pub fn open_with(url: &Url, variables: impl IntoIterator<Item = (String, String)>) -> Result<Remote, StorageError> {
        let variables: Vec<(String, String)> = variables.into_iter().collect();
        let runtime = Builder::new_current_thread().enable_all().build().map_err(StorageError::Start)?;
        let connection = runtime.block_on(connect(url, &variables))?;
        let remote = Remote { url: url.clone(), connection, runtime, interrupted: None };
        let below = remote.key("")?;
        // The first page is enough.
        let mut objects = remote.connection.store.list(Some(&below));
        remote.runtime.block_on(objects.next()).transpose().map_err(remote.wrong(""))?;
        drop(objects);
        Ok(remote)
    }

    /// Lets every transfer end with an error soon after the flag is set.
    pub fn until(self, interrupted: Arc<AtomicBool>) -> Remote {
        Remote { interrupted: Some(interrupted), ..self }
    }

    /// The prefix.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// All objects below a folder of the prefix (`""`: the whole prefix), sorted by name. A folder is whole parts of
    /// a name: `fragment=1` is not a folder of `fragment=10/part-0.parquet`.
    pub fn list(&self, folder: &str) -> Result<Vec<Object>, StorageError> {
        let below = self.key(folder)?;
        let objects: Vec<_> = self
            .runtime
            .block_on(self.connection.store.list(Some(&below)).try_collect())
            .map_err(self.wrong(folder))?;
        let start = if self.url.prefix.is_empty() { String::new() } else { format!("{}/", self.url.prefix) };
        let mut found: Vec<Object> = objects
            .into_iter()
            .filter_map(|meta: object_store::ObjectMeta| {
                let name = meta.location.as_ref().strip_prefix(&start)?.to_string();
                Some(Object { name, bytes: meta.size })
            })
            .collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(without_markers(found))
    }

    /// Whether there is an object of this name.
    pub fn exists(&self, name: &str) -> Result<bool, StorageError> {
        let key = self.key(name)?;
        match self.runtime.block_on(self.connection.store.head(&key)).map_err(self.wrong(name)) {
            Ok(_) => Ok(true),
            Err(StorageError::NoObject { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads an object into a file. The file gets its name when it is complete.
    pub fn get(&self, name: &str, to: &Path) -> Result<(), StorageError> {
        self.run(self.get_one(name, to))
    }

    /// Reads a small object.
    pub fn get_bytes(&self, name: &str) -> Result<Vec<u8>, StorageError> {
        let key = self.key(name)?;
        let read = async { self.connection.store.get(&key).await?.bytes().await };
        self.runtime.block_on(read).map(|bytes| bytes.to_vec()).map_err(self.wrong(name))
    }

    /// Writes a file as an object, which appears whole or not at all.
    pub fn put(&self, from: &Path, name: &str) -> Result<(), StorageError> {
        self.run(self.put_one(from, name))
    }

    /// Writes a small object.
    pub fn put_bytes(&self, name: &str, content: &[u8]) -> Result<(), StorageError> {
        let key = self.key(name)?;
        let put = self.connection.store.put(&key, content.to_vec().into());
        self.runtime.block_on(put).map(drop).map_err(self.wrong(name))
    }

    /// Checks that objects can be written and deleted, with one that is there for a moment.
    pub fn check_writable(&self) -> Result<(), StorageError> {
        let name = format!(".encore-check-{}", std::process::id());
        self.put_bytes(&name, b"")?;
        self.delete(&name)
    }

    /// Deletes an object. One that does not exist is no error.
    pub fn delete(&self, name: &str) -> Result<(), StorageError> {
        let key = self.key(name)?;
        match self.runtime.block_on(self.connection.store.delete(&key)).map_err(self.wrong(name)) {
            Err(StorageError::NoObject { .. }) => Ok(()),
            done => done,
        }
    }

    /// Reads objects into a folder, under their names, several at a time. At an error, some of the files may be there.
    pub fn get_all<'a>(&self, names: impl IntoIterator<Item = &'a str>, into: &Path) -> Result<(), StorageError> {
        let each = names.into_iter().map(|name| async move { self.get_one(name, &into.join(name)).await });
        self.all(each)
    }

    /// Writes files of a folder as objects of the same names, several at a time. At an error, some of the objects may
    /// be there.
    pub fn put_all<'a>(&self, from: &Path, names: impl IntoIterator<Item = &'a str>) -> Result<(), StorageError> {
        let each = names.into_iter().map(|name| async move { self.put_one(&from.join(name), name).await });
        self.all(each)
    }

    fn all(
        &self,
        each: impl Iterator<Item = impl Future<Output = Result<(), StorageError>>>,
    ) -> Result<(), StorageError> {
        self.run(stream::iter(each).buffer_unordered(AT_ONCE).try_collect())
    }

    /// Waits for a transfer, or for the user's wish to stop: what was not complete then does not appear.
    fn run(&self, transfer: impl Future<Output = Result<(), StorageError>>) -> Result<(), StorageError> {
        let Some(flag) = &self.interrupted else { return self.runtime.block_on(transfer) };
        let interrupted = async {
            while !flag.load(Ordering::Relaxed) {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        let either = async {
            tokio::select! {
                done = transfer => done,
                () = interrupted => Err(StorageError::Interrupted { url: self.url.clone() }),
            }
        };
        self.runtime.block_on(either)
    }

    async fn get_one(&self, name: &str, to: &Path) -> Result<(), StorageError> {
        let key = self.key(name)?;
        transfer::download(&*self.connection.store, &key, to).await.map_err(|error| self.failed(name, error))
    }

    async fn put_one(&self, from: &Path, name: &str) -> Result<(), StorageError> {
        let key = self.key(name)?;
        transfer::upload(&*self.connection.store, from, &key).await.map_err(|error| self.failed(name, error))
    }

    fn failed(&self, name: &str, error: transfer::Failed) -> StorageError {
        match error {
            transfer::Failed::File(error) => error.into(),
            transfer::Failed::Store(error) => self.wrong(name)(error),
            transfer::Failed::Length { found, expected } => {
                StorageError::Failed { url: self.url.join(name), cause: format!("{found} of {expected} bytes arrived") }
            }
        }
    }

    /// The key of an object, or of a folder of objects.
    fn key(&self, name: &str) -> Result<Key, StorageError> {
        let url = self.url.join(name);
        Key::parse(&url.prefix).map_err(|error| StorageError::Url { url: url.to_string(), message: error.to_string() })
    }

    /// Puts an error about an object into words.
    fn wrong(&self, name: &str) -> impl Fn(object_store::Error) -> StorageError {
        let (url, endpoint) = (self.url.join(name), self.connection.endpoint.clone());
        move |error| StorageError::of(&error, &url, &endpoint)
    }
}

impl std::fmt::Debug for Remote {
    // Without the connection, which knows secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Without the empty objects by which some programs mark folders. The objects are sorted by name.
fn without_markers(objects: Vec<Object>) -> Vec<Object> {
    let is_folder = |name: &str| {
        let start = format!("{name}/");
        let first_below = objects.partition_point(|object| object.name.as_str() < start.as_str());
        objects.get(first_below).is_some_and(|object| object.name.starts_with(&start))
    };
    let markers: Vec<bool> = objects.iter().map(|object| object.bytes == 0 && is_folder(&object.name)).collect();
    objects.into_iter().zip(markers).filter(|(_, is_marker)| !is_marker).map(|(object, _)| object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_folders_are_no_objects() {
        let object = |(name, bytes): &(&str, u64)| Object { name: name.to_string(), bytes: *bytes };
        let all = [("a", 0), ("a-b", 0), ("a/b", 0), ("a/b/c", 3), ("d", 1), ("d/e", 1)].iter().map(object).collect();
        let names: Vec<String> = without_markers(all).into_iter().map(|object| object.name).collect();
        assert_eq!(names, ["a-b", "a/b/c", "d", "d/e"]);
    }
}
