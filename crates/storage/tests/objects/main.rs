//! Object storage against a real S3 server, which checks signatures.

mod faults;
mod folders;
mod killed;
mod objects;
mod support;
