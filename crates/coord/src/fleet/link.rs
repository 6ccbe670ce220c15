//! The connection to a replayer: what every call carries, how long it may take, and
//! what an answer that did not come means.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use schemas::rpc::replayer_client::ReplayerClient;
use schemas::rpc::{LEASE, MESSAGE_BYTES_MAX, innermost};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};

use super::address::Address;
use crate::failure::Failure;

/// How long a replayer may take to answer a call that is not a stream.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How often a file is tried that arrives damaged.
const MOST_TRIES: u32 = 5;
/// How long to wait before a call is tried again.
pub const PAUSE: Duration = Duration::from_millis(500);
/// How long to wait for a connection.
const CONNECTING: Duration = Duration::from_secs(5);
/// How often a connection is tried, and how long the other side may take to say that
/// it is there: a cut network or a process that hangs shows after both together.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(4);

/// A client whose calls carry lease and token.
pub type Client = ReplayerClient<InterceptedService<Channel, Credentials>>;

/// What tells a replayer who calls. Clones share the lease.
#[derive(Clone, Default)]
pub struct Credentials {
    lease: Arc<Mutex<Option<MetadataValue<Ascii>>>>,
    token: Option<MetadataValue<Ascii>>,
}

impl Credentials {
    /// With this secret, if there is one.
    pub fn new(token: Option<&str>) -> Result<Credentials, Failure> {
        let bearer = token.map(|token| format!("Bearer {token}").parse::<MetadataValue<Ascii>>()).transpose();
        let mut token = bearer.map_err(|_| Failure::usage("the token holds characters that cannot be sent"))?;
        if let Some(token) = &mut token {
            token.set_sensitive(true);
        }
        Ok(Credentials { lease: Arc::default(), token })
    }

    /// From now on calls name this lease.
    pub fn set_lease(&self, lease: &str) {
        *self.lease.lock().unwrap_or_else(PoisonError::into_inner) = lease.parse().ok();
    }
}

impl Interceptor for Credentials {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", token.clone());
        }
        if let Some(lease) = &*self.lease.lock().unwrap_or_else(PoisonError::into_inner) {
            request.metadata_mut().insert(LEASE, lease.clone());
        }
        Ok(request)
    }
}

/// TLS with the coordinator's certificate from a folder that `coord certs` made.
pub fn tls(certificates: &Path, host: &str) -> Result<ClientTlsConfig, Failure> {
    let read = |name: &str| {
        let path = certificates.join(name);
        std::fs::read(&path)
            .map_err(|e| Failure::usage(format!("--certs: {}: {e}; `coord certs` makes it", path.display())))
    };
    let identity = Identity::from_pem(read("coordinator.pem")?, read("coordinator.key")?);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok(ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(read("ca.pem")?))
        .identity(identity)
        .domain_name(host))
}

/// A client of the replayer at an address; it connects with its first call, and
/// anew after a connection was lost.
pub fn client(address: &Address, tls: Option<ClientTlsConfig>, credentials: Credentials) -> Result<Client, Failure> {
    let scheme = if tls.is_some() { "https" } else { "http" };
    let cannot = |e: tonic::transport::Error| Failure::usage(format!("replayer {address}: {}", innermost(&e)));
    let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
        .map_err(cannot)?
        .connect_timeout(CONNECTING)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE_ANSWER)
        .keep_alive_while_idle(true);
    if let Some(tls) = tls {
        endpoint = endpoint.tls_config(tls).map_err(cannot)?;
    }
    let client = ReplayerClient::with_interceptor(endpoint.connect_lazy(), credentials);
    Ok(client.max_decoding_message_size(MESSAGE_BYTES_MAX).max_encoding_message_size(MESSAGE_BYTES_MAX))
}

/// Waits for an answer, and not for ever.
pub async fn answer<X>(call: impl Future<Output = Result<X, Status>>) -> Result<X, Status> {
    match tokio::time::timeout(PATIENCE, call).await {
        Ok(answer) => answer,
        Err(_) => Err(Status::deadline_exceeded(format!("no answer within {} s", PATIENCE.as_secs()))),
    }
}

/// How long a call that fails on its way is tried again, from its first failure on:
/// networks that are cut come back.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    lasts: Duration,
    failing_since: Option<Instant>,
    damaged: u32,
}

impl Patience {
    /// Patience for so long after a first failure.
    pub fn lasting(lasts: Duration) -> Patience {
        Patience { lasts, failing_since: None, damaged: 0 }
    }

    /// Something was heard: the connection is well again.
    pub fn heard(&mut self) {
        self.failing_since = None;
    }

    /// How long it still lasts.
    pub fn left(&self) -> Duration {
        self.lasts.saturating_sub(self.failing_since.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    /// Whether a call that failed like this is to be tried again; lets some time pass before.
    pub async fn tries_again(&mut self, status: &Status) -> bool {
        if status.code() == Code::DataLoss {
            // It came all the way.
            self.heard();
            self.damaged += 1;
            return self.damaged < MOST_TRIES;
        }
        self.failing_since.get_or_insert_with(Instant::now);
        if !is_on_the_way(status) || self.left().is_zero() {
            return false;
        }
        tokio::time::sleep(PAUSE).await;
        true
    }
}

/// The answer to a call that may be made twice, tried again as long as the patience lasts.
pub async fn patiently<X, F>(mut patience: Patience, mut call: impl FnMut() -> F) -> Result<X, Status>
where
    F: Future<Output = Result<X, Status>>,
{
    loop {
        match call().await {
            Err(status) if patience.tries_again(&status).await => {}
            answered => return answered,
        }
    }
}

/// Whether a call may have failed on its way, so that the next one may succeed.
pub fn is_on_the_way(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded)
}

/// What a replayer's refusal means.
pub fn failure(name: &str, status: &Status) -> Failure {
    match status.code() {
        Code::InvalidArgument | Code::NotFound | Code::Unauthenticated | Code::Unimplemented => {
            Failure::usage(format!("{name}: {}", status.message()))
        }
        // A replayer says this of nothing else: the store does not hold what the plan starts from.
        Code::FailedPrecondition => Failure::State(status.message().to_string()),
        Code::PermissionDenied | Code::ResourceExhausted | Code::DataLoss => {
            Failure::Lost(format!("{name}: {}", status.message()))
        }
        _ if is_on_the_way(status) => Failure::Lost(format!("{name} cannot be reached: {}", innermost(status))),
        _ => Failure::tool(format!("{name}: {}", status.message())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_replayer_says_decides_who_is_to_blame() {
        let check = |code, expect: &str| {
            let text = format!("{:?}", failure("replayer 1", &Status::new(code, "why")));
            assert_eq!(text, expect);
        };
        check(Code::FailedPrecondition, "State(\"why\")");
        check(Code::InvalidArgument, "Usage(\"replayer 1: why\")");
        check(Code::Aborted, "Tool(\"replayer 1: why\")");
        check(Code::Internal, "Tool(\"replayer 1: why\")");
        check(Code::PermissionDenied, "Lost(\"replayer 1: why\")");
        check(Code::Unavailable, "Lost(\"replayer 1 cannot be reached: why\")");
    }

    #[test]
    fn a_token_is_sent_and_never_printed() {
        let mut credentials = Credentials::new(Some("0123456789abcdef")).unwrap();
        credentials.set_lease("abc");
        let request = credentials.call(Request::new(())).unwrap();
        assert_eq!(request.metadata().get("authorization").unwrap(), "Bearer 0123456789abcdef");
        assert_eq!(request.metadata().get(LEASE).unwrap(), "abc");
        assert!(!format!("{request:?}").contains("0123"), "{request:?}");
        assert!(Credentials::new(Some("a\nb")).is_err());
    }
}
