//! The service that a replayer offers to a coordinator (`proto/replayer.proto`).

#![allow(missing_docs, reason = "generated from the .proto, which documents every message")]

tonic::include_proto!("encore.replayer.v1");

/// The version of the protocol; a replayer of another version is refused.
pub const PROTOCOL_VERSION: u32 = 1;
