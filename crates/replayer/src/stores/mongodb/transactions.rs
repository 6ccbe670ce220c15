//! Writes that concern two members, as one transaction.

use std::time::Duration;

use mongodb::ClientSession;
use mongodb::error::UNKNOWN_TRANSACTION_COMMIT_RESULT;
use mongodb::options::{ReadConcern, ReadConcernLevel, ReadPreference, SessionOptions};
use schemas::social::Operation;

use super::actions::{Refusal, Shared};
use crate::stores::Fate;

/// How long to wait before a commit is asked for again.
const COMMIT_PAUSE: Duration = Duration::from_millis(20);

/// Tries it once. `may_have_changed` is true from the word to commit on, until
/// the server says that it rolled the transaction back.
pub async fn attempt(shared: &Shared, operation: &Operation, may_have_changed: &mut bool) -> Result<(), Refusal> {
    // Nothing is to be read after what another session has seen.
    let options = SessionOptions::builder().causal_consistency(false).build();
    let mut session = shared.database.client().start_session().with_options(options).await?;
    begin(shared, &mut session).await?;
    let (first, second) = shared.steps(operation);
    for step in [Some(first), second].into_iter().flatten() {
        if let Err(refusal) = shared.take(step, Some(&mut session)).await {
            return Err(match refusal.fate {
                // Without the word to commit it comes to nothing, and the driver
                // takes it back as soon as it reaches the server again.
                Fate::Lost => Refusal { fate: Fate::Refused, ..refusal },
                Fate::Refused | Fate::RolledBack => {
                    // The next operation is not to meet what this one has locked.
                    // Errors are of no interest: the end of the session is the same.
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
    // Transactions know three levels; these read nothing, so that the others lose nothing.
    use ReadConcernLevel::{Local, Majority, Snapshot};
    let begin = match shared.database.read_concern().map(|concern| &concern.level) {
        None | Some(Local | Majority | Snapshot) => begin,
        Some(_) => begin.read_concern(ReadConcern::local()),
    };
    Ok(begin.await?)
}

/// Asks for the commit until there is an answer; the operation's time ends it.
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
