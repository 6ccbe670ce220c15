//! The generator: turns a workload specification into a trace set.
//!
//! All chance of a benchmark is here, before anything runs. A trace set says
//! what is in the store at first, and which operation follows which; the same
//! specification always gives the same bytes.
//!
//! ```
//! use schemas::spec::Spec;
//! use tracegen::{GenerateOptions, generate};
//!
//! let spec = Spec::parse(r#"
//!     name = "small"
//!     sessions = 1000
//!     [data]
//!     members = 100
//!     friends_per_member = 10
//!     pending_per_member = 4
//!     [mix]
//!     view_profile = 90
//!     invite_friend = 5
//!     accept_friend_request = 5
//! "#, "small.toml").unwrap();
//! let parent = tempfile::tempdir().unwrap();
//! let folder = parent.path().join("small.trace");
//! let manifest = generate(&spec, &folder, &GenerateOptions::default()).unwrap();
//! assert_eq!(manifest.sessions(), 1000);
//!
//! // What any store must hold after the trace was replayed.
//! let digest = tracegen::digest(&folder, tracegen::Ran::All).unwrap();
//! assert!(digest.facts() > 100);
//! ```

mod activity;
mod alias;
mod assigned;
mod chance;
pub mod cli;
mod comments;
mod dataset;
mod digest;
mod fragment;
mod generate;
mod graph;
mod initial;
mod maps;
mod output;
mod population;
pub mod properties;
mod ring;
mod room;
mod sessions;
mod show;
mod statistics;
mod target;
mod walls;

pub use digest::{DigestError, Ran, digest};
pub use generate::{GenerateError, GenerateOptions, generate};
pub use show::Overview;
