//! The gRPC status of an error: the codes that `replayer.proto` promises.

use schemas::files::FileError;
use schemas::table::TableError;
use tonic::{Code, Status};

use super::shelf::ShelfError;
use crate::experiment::ExperimentError;
use crate::stores::{Blame, StoreError};

/// The status of an experiment that cannot be run, or has failed.
pub fn experiment_status(error: &ExperimentError) -> Status {
    let code = match error {
        ExperimentError::Store(StoreError { blame: Blame::State, .. }) => Code::FailedPrecondition,
        ExperimentError::Table(TableError { io: Some(kind), .. }) if is_full(*kind) => Code::ResourceExhausted,
        ExperimentError::File(error) if is_full(error.source.kind()) => Code::ResourceExhausted,
        error if error.is_usage() => Code::InvalidArgument,
        _ => Code::Internal,
    };
    Status::new(code, error.to_string())
}

/// The status of a trace set that cannot be put on the shelf.
pub fn shelf_status(error: &ShelfError) -> Status {
    let code = match error {
        ShelfError::Manifest(_) | ShelfError::Taken(_) => Code::InvalidArgument,
        ShelfError::Damaged { .. } => Code::DataLoss,
        ShelfError::NoRoom(_) => Code::ResourceExhausted,
        ShelfError::File(error) => return file_status(error),
    };
    Status::new(code, error.to_string())
}

/// The status of a file that cannot be read or written.
pub fn file_status(error: &FileError) -> Status {
    let is_full = is_full(error.source.kind());
    Status::new(if is_full { Code::ResourceExhausted } else { Code::Internal }, error.to_string())
}

/// The status of an error that neither the user nor the store caused.
pub fn internal(error: impl ToString) -> Status {
    Status::internal(error.to_string())
}

/// Runs work of an experiment. A panic must reach the coordinator too, as an error.
pub fn guarded<X>(work: impl FnOnce() -> Result<X, ExperimentError>) -> Result<X, Status> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|e| experiment_status(&e)),
        Err(_) => Err(Status::internal("internal error in the replayer; see its standard error")),
    }
}

/// Whether a disk has no room left, or not for this user.
fn is_full(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(kind, StorageFull | QuotaExceeded | FileTooLarge)
}
