//! The generator: turns a workload specification into a trace set.
//!
//! The generator makes all random decisions of a benchmark, before anything runs. A trace set holds
//! the initial data of the store and the sequence of operations. The same specification always
//! gives the same bytes.
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
//! // The state that any store must hold after a replay of the trace.
//! let digest = tracegen::digest(&folder, tracegen::Ran::All).unwrap();
//! assert!(digest.facts() > 100);
//! ```

pub mod cli;
mod consbench;
pub mod core;
mod economy;
mod families;
mod kv;
pub mod properties;
mod social;
pub mod sql;
mod tpcc;

pub use self::core::digest::{DigestError, Ran};
pub use self::core::error::GenerateError;
pub use self::core::options::GenerateOptions;
pub use self::core::parts::AssembleError;
pub use self::core::show::Overview;
pub use families::{add, assemble, can_generate, digest, generate, generate_parts};
