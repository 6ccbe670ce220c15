//! Admits calls by the token and the lease, and ends the experiment of a coordinator that is gone.

use std::time::{Duration, Instant};

use schemas::rpc::LEASE;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use super::state::Service;

/// How often the replayer checks whether the lease has run out.
const WATCH: Duration = Duration::from_millis(100);

impl Service {
    /// Ends the experiment of a coordinator whose lease has run out.
    pub async fn watch_lease(self) {
        loop {
            tokio::time::sleep(WATCH).await;
            let mut state = self.state();
            if state.leases.has_run_out(Instant::now()) && state.is_running() {
                self.stop_running();
            }
        }
    }

    /// The content of a call by the coordinator that holds the lease; renews the lease.
    pub fn admitted<X>(&self, request: Request<X>) -> Result<X, Status> {
        self.renew(request.metadata())?;
        Ok(request.into_inner())
    }

    /// Renews the lease that a call names.
    pub fn renew(&self, metadata: &MetadataMap) -> Result<(), Status> {
        self.settings.access.admit(metadata)?;
        let lease = metadata.get(LEASE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        self.state().leases.renew(Instant::now(), lease).map_err(Status::permission_denied)
    }
}
