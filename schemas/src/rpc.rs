//! The service that a replayer offers to a coordinator (`proto/replayer.proto`).

#![allow(missing_docs, reason = "generated from the .proto, which documents every call")]

tonic::include_proto!("encore.replayer");

/// The version of the protocol. Coordinator and replayer refuse each other if their versions
/// differ.
pub const PROTOCOL_VERSION: u32 = 7;

/// The metadata that names the lease of a call.
pub const LEASE: &str = "encore-lease";

/// The largest message that either side accepts. Manifests and reports are the largest messages;
/// files are sent in chunks.
pub const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// The innermost cause of an error, which says what is wrong. The outer errors only say that a
/// call or a connection failed.
pub fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match innermost.downcast_ref::<tonic::Status>() {
        Some(status) => status.message().to_string(),
        None => innermost.to_string(),
    }
}

/// The most bytes of a file in one message.
pub const CHUNK_BYTES: usize = 256 << 10;
