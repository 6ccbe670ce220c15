//! The calls that take the replayer and give it back.

use std::time::{Duration, Instant};

use schemas::rpc::{HelloReply, HelloRequest, PROTOCOL_VERSION};
use schemas::run::Host;
use tonic::Status;

use crate::service::lease::unguessable;
use crate::service::state::{Service, State};

/// Takes the replayer for a coordinator. The caller has checked the token; there is no lease yet.
pub fn hello(service: &Service, asked: HelloRequest) -> Result<HelloReply, Status> {
    let encore_version = env!("CARGO_PKG_VERSION").to_string();
    if asked.protocol_version != PROTOCOL_VERSION {
        return Err(Status::unimplemented(format!(
            "this replayer (Encore {encore_version}) uses protocol {PROTOCOL_VERSION}, the coordinator (Encore {}) \
             uses protocol {}; use the same Encore version on both",
            asked.encore_version, asked.protocol_version
        )));
    }
    let lease = unguessable().map_err(|e| Status::internal(format!("no random number: {e}")))?;
    grant(service, lease.clone(), asked.coordinator, Duration::from_millis(asked.lease_ms.into()))?;
    let Host { name, system, cpus } = Host::current();
    let protocol_version = PROTOCOL_VERSION;
    Ok(HelloReply { protocol_version, encore_version, cpus, lease, host: name, system })
}

/// Grants a lease, unless another coordinator holds one or its experiment is still ending.
fn grant(service: &Service, lease: String, coordinator: String, length: Duration) -> Result<(), Status> {
    let mut state = service.state();
    let has_run_out = state.leases.has_run_out(Instant::now());
    if has_run_out && state.is_running() {
        let whose = state.leases.coordinator();
        return Err(Status::permission_denied(format!("an experiment of {whose} is still ending; retry in a moment")));
    }
    state.leases.grant(Instant::now(), lease, coordinator, length).map_err(Status::permission_denied)?;
    // The next coordinator must not get the last one's store, whose URL may hold secrets.
    *state = State { leases: std::mem::take(&mut state.leases), ..State::default() };
    Ok(())
}

/// Gives the replayer back, and stops what still runs.
pub fn release(service: &Service) {
    let mut state = service.state();
    state.leases.end();
    if state.is_running() {
        service.stop_running();
    }
}
