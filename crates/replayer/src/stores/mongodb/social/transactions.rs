//! Writes to two members, as one transaction.

use std::time::Duration;

use mongodb::ClientSession;
use mongodb::error::UNKNOWN_TRANSACTION_COMMIT_RESULT;
use mongodb::options::{ReadConcern, ReadConcernLevel, ReadPreference, SessionOptions};
use schemas::social::Operation;

use super::shared::Shared;
use crate::stores::Fate;
use crate::stores::mongodb::retry::Refusal;

/// How long to wait before a commit is retried.
const COMMIT_PAUSE: Duration = Duration::from_millis(20);

/// Tries it once. `may_have_changed` is true from the commit on, until the server says that it
/// rolled the transaction back.
pub async fn attempt(shared: &Shared, operation: &Operation, may_have_changed: &mut bool) -> Result<(), Refusal> {
    // The transaction need not see what another session has seen.
    let options = SessionOptions::builder().causal_consistency(false).build();
    let mut session = shared.database.client().start_session().with_options(options).await?;
    begin(shared, &mut session).await?;
    let (first, second) = shared.changes(operation);
    for change in [Some(first), second].into_iter().flatten() {
        if let Err(refusal) = shared.make(change, Some(&mut session)).await {
            return Err(match refusal.fate {
                // Without a commit the transaction has no effect. The driver aborts it as soon as
                // it reaches the server again.
                Fate::Lost => Refusal { fate: Fate::Refused, ..refusal },
                Fate::Refused | Fate::RolledBack => {
                    // The abort frees what this transaction has locked, before the next
                    // operation. Errors do not matter: the session ends either way.
                    let _ = session.abort_transaction().await;
                    refusal
                }
            });
        }
    }
    *may_have_changed = true;
    let done = commit(&mut session).await;
    if done.as_ref().is_err_and(|refusal| refusal.fate == Fate::RolledBack) {
        *may_have_changed = false;
    }
    done
}

async fn begin(shared: &Shared, session: &mut ClientSession) -> Result<(), Refusal> {
    let begin = session.start_transaction().selection_criteria(ReadPreference::Primary.into());
    // Transactions know three levels. These transactions read nothing, so they lose nothing with `local`.
    use ReadConcernLevel::{Local, Majority, Snapshot};
    let begin = match shared.database.read_concern().map(|concern| &concern.level) {
        None | Some(Local | Majority | Snapshot) => begin,
        Some(_) => begin.read_concern(ReadConcern::local()),
    };
    Ok(begin.await?)
}

/// Retries the commit until there is an answer; the operation's time limit ends it.
async fn commit(session: &mut ClientSession) -> Result<(), Refusal> {
    loop {
        match session.commit_transaction().await {
            Ok(()) => return Ok(()),
            Err(error) if error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT) => {
                tokio::time::sleep(COMMIT_PAUSE).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}
