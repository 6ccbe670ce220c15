//! Folders of trace sets and runs in object storage.
//!
//! A [`Place`] is a local folder, or a prefix in a bucket of an S3-compatible store (`s3://`) or of Google Cloud
//! Storage (`gs://`). [`Remote`] reads and writes the objects below such a prefix. Its methods block, since the
//! generator and the analyzer are programs that wait.
//!
//! Settings and credentials come from the environment, under the names that other tools use. No message of this crate
//! contains a secret.
//!
//! ```
//! use storage::Place;
//!
//! assert!(matches!(Place::parse("runs/mine"), Ok(Place::Local(_))));
//! let Ok(Place::Remote(url)) = Place::parse("s3://results/runs/mine") else { panic!("a URL") };
//! assert_eq!(url.join("run.json").to_string(), "s3://results/runs/mine/run.json");
//! ```

mod connect;
mod error;
mod folder;
mod place;
mod remote;
mod scratch;
mod transfer;

pub use error::StorageError;
pub use folder::Snapshot;
pub use place::{Place, Scheme, Url};
pub use remote::{Object, Remote};
pub use scratch::Scratch;
