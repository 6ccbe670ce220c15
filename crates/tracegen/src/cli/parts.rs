//! Trace sets in parts: `assemble`, and what `gen --only-fragments` takes and prints.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use schemas::part::{Part, PartError};
use schemas::words::plural;
use serde_json::json;

use super::remote::Parts;
use super::{Failure, of_generation, print};
use crate::AssembleError;
use crate::families::assemble_checked;

/// Makes a trace set of its parts
///
/// The trace set has the same bytes as one that was generated at once. The parts are removed.
/// A trace set that is complete stays as it is.
#[derive(Args)]
#[command(after_help = "\
Examples:
  encore trace gen big.toml -o /mnt/big.trace --only-fragments 0..8      on one machine
  encore trace gen big.toml -o /mnt/big.trace --only-fragments 8..16     on another
  encore trace assemble /mnt/big.trace                                   when both are done
  encore trace assemble s3://bucket/big.trace")]
pub struct AssembleArgs {
    /// The folder with the parts, or its URL (s3://, gs://)
    dir: PathBuf,
    /// Print one JSON object: folder, trace_id, workload_id, sessions, operations, bytes
    #[arg(long)]
    json: bool,
}

/// The value of `--only-fragments`: `3..5` for the fragments 3 and 4, or `3` for one.
pub fn range(text: &str) -> Result<Range<u32>, String> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number < u32::MAX);
    let (first, end) = match text.split_once("..") {
        Some((first, end)) => (number(first), number(end)),
        None => (number(text), number(text).map(|only| only + 1)),
    };
    let range = first.zip(end).map(|(first, end)| first..end).filter(|range| range.start < range.end);
    range.ok_or_else(|| "write A..B for the fragments A to B-1, such as 0..4, or one number".to_string())
}

/// Prints what was generated.
pub fn print_parts(folder: &Path, parts: &[Part], elapsed_s: f64, as_json: bool) -> Result<(), Failure> {
    let sum = |of: fn(&Part) -> u64| parts.iter().map(of).sum::<u64>();
    let (sessions, operations) = (sum(|part| part.fragment.sessions), sum(|part| part.fragment.operations));
    let bytes = sum(|part| part.files.iter().map(|file| file.bytes).sum());
    if as_json {
        let object = json!({
            "folder": folder,
            "workload_id": parts.first().map(|part| &part.workload_id),
            "fragments": parts.iter().map(|part| part.fragment.fragment).collect::<Vec<_>>(),
            "sessions": sessions,
            "operations": operations,
            "bytes": bytes,
            "elapsed_s": elapsed_s,
        });
        return print(&format!("{object}\n"));
    }
    if parts.is_empty() {
        return print(&format!("{}: this trace set is complete; nothing was generated\n", folder.display()));
    }
    print(&format!(
        "{}: {} of {}, {} in {}, {}, {elapsed_s:.1} s; when all parts are there: encore trace assemble {}\n",
        folder.display(),
        plural(parts.len() as u64, "fragment"),
        parts[0].spec.fragments,
        plural(operations, "operation"),
        plural(sessions, "session"),
        plural(bytes, "byte"),
        folder.display()
    ))
}

/// `assemble`.
pub fn assemble(args: &AssembleArgs) -> Result<(), Failure> {
    let parts = Parts::of(&args.dir)?;
    let assembled = assemble_checked(parts.folder(), |manifest| parts.check_files(manifest));
    let manifest = assembled.map_err(|error| {
        parts.named(match error {
            AssembleError::Generate(error) => of_generation(error, args.dir.display().to_string()),
            AssembleError::TraceSet(error) => error.into(),
            AssembleError::File(_) | AssembleError::Part(PartError::File(_)) => Failure::tool(error),
            error => Failure::input(error),
        })
    })?;
    parts.publish()?;
    let (sessions, operations) = (manifest.sessions(), manifest.operations());
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    if args.json {
        let object = json!({
            "folder": args.dir,
            "trace_id": manifest.trace_id,
            "workload_id": manifest.workload_id,
            "sessions": sessions,
            "operations": operations,
            "bytes": bytes,
        });
        return print(&format!("{object}\n"));
    }
    print(&format!(
        "{}: {} in {}, {}, trace {}\n",
        args.dir.display(),
        plural(operations, "operation"),
        plural(sessions, "session"),
        plural(bytes, "byte"),
        manifest.trace_id
    ))
}
