//! The command `digest`.

use std::process::ExitCode;

use super::output::print;
use super::target::Target;
use crate::any_store;

/// Prints the digest of the state that the store holds.
pub fn digest(target: &Target) -> anyhow::Result<ExitCode> {
    let source = target.source()?;
    let digest = any_store::open(&target.store)?.digest(&source)?;
    if target.json {
        print(&serde_json::json!({ "digest": digest.to_string(), "facts": digest.facts() }))?;
    } else {
        print(&digest)?;
    }
    Ok(ExitCode::SUCCESS)
}
