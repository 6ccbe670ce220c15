//! The connection to a replayer: what every call carries, how long it may take, and what a
//! missing answer means.

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
/// How often the transfer of a file that arrives damaged is tried.
const MOST_TRIES: u32 = 5;
/// How long to wait before a call is repeated.
pub const PAUSE: Duration = Duration::from_millis(500);
/// How long to wait for a connection.
const CONNECTING: Duration = Duration::from_secs(5);
/// How often a connection is checked, and how long the other side may take to answer. A cut
/// network or a process that hangs is noticed after both together.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(4);

/// A client whose calls carry lease and token.
pub type Client = ReplayerClient<InterceptedService<Channel, Credentials>>;

/// What identifies the coordinator to a replayer. All clones share the lease.
#[derive(Clone, Default)]
pub struct Credentials {
    lease: Arc<Mutex<Option<MetadataValue<Ascii>>>>,
    token: Option<MetadataValue<Ascii>>,
}

impl Credentials {
    /// Credentials with this token, if there is one.
    pub fn new(token: Option<&str>) -> Result<Credentials, Failure> {
        let bearer = token.map(|token| format!("Bearer {token}").parse::<MetadataValue<Ascii>>()).transpose();
        let mut token = bearer.map_err(|_| {
            Failure::usage("--token-file: the secret contains characters that HTTP headers do not allow")
        })?;
        if let Some(token) = &mut token {
            token.set_sensitive(true);
        }
        Ok(Credentials { lease: Arc::default(), token })
    }

    /// All further calls carry this lease.
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

/// TLS with the coordinator's certificate from a folder that `encore certs` made.
pub fn tls(certificates: &Path, host: &str) -> Result<ClientTlsConfig, Failure> {
    let read = |name: &str| {
        let path = certificates.join(name);
        std::fs::read(&path)
            .map_err(|e| Failure::usage(format!("--certs: {}: {e}; `encore certs` makes it", path.display())))
    };
    let identity = Identity::from_pem(read("coordinator.pem")?, read("coordinator.key")?);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok(ClientTlsConfig::new()
        .ca_certificate(Certificate::from_pem(read("ca.pem")?))
        .identity(identity)
        .domain_name(host))
}

/// A client of the replayer at an address. It connects at its first call, and again after a
/// connection was lost.
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

/// Waits for an answer, for at most [`PATIENCE`].
pub async fn answer<X>(call: impl Future<Output = Result<X, Status>>) -> Result<X, Status> {
    match tokio::time::timeout(PATIENCE, call).await {
        Ok(answer) => answer,
        Err(_) => Err(Status::deadline_exceeded(format!("no answer within {} s", PATIENCE.as_secs()))),
    }
}

/// How long a call that fails on its way is repeated, from its first failure on: a network that
/// was cut may come back.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    lasts: Duration,
    failing_since: Option<Instant>,
    damaged: u32,
}

impl Patience {
    /// Patience for this long after a first failure.
    pub fn lasting(lasts: Duration) -> Patience {
        Patience { lasts, failing_since: None, damaged: 0 }
    }

    /// Records that an answer or a message arrived: the connection works again.
    pub fn heard(&mut self) {
        self.failing_since = None;
    }

    /// How much of it is left.
    pub fn left(&self) -> Duration {
        self.lasts.saturating_sub(self.failing_since.map_or(Duration::ZERO, |since| since.elapsed()))
    }

    /// Whether to repeat a call that failed with this status; it waits a little before it agrees.
    pub async fn tries_again(&mut self, status: &Status) -> bool {
        if status.code() == Code::DataLoss {
            // The answer arrived, so the connection works.
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

/// The answer to a call that may be made twice. The call is repeated as long as the patience
/// lasts.
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

/// What a replayer's error status means.
pub fn failure(name: &str, status: &Status) -> Failure {
    match status.code() {
        Code::InvalidArgument | Code::NotFound | Code::Unauthenticated | Code::Unimplemented => {
            Failure::usage(format!("{name}: {}", status.message()))
        }
        // A replayer uses this code for one thing only: the store is not in the state that the
        // plan starts from.
        Code::FailedPrecondition => Failure::State(status.message().to_string()),
        Code::PermissionDenied | Code::ResourceExhausted | Code::DataLoss => {
            Failure::Lost(format!("{name}: {}", status.message()))
        }
        _ if is_on_the_way(status) => Failure::Lost(format!("{name} cannot be reached: {}", innermost(status))),
        _ => Failure::tool(format!("{name}: {}", status.message())),
    }
}

/// What an error status means of a replayer that this coordinator has started itself. The user need
/// not know where it listens.
pub fn failure_here(name: &str, status: &Status) -> Failure {
    let unnamed = |text: String| {
        let rest = text.strip_prefix(name).and_then(|rest| rest.strip_prefix(": "));
        rest.map(String::from).unwrap_or(text)
    };
    match failure(name, status) {
        Failure::Usage(text) => Failure::Usage(unnamed(text)),
        Failure::Tool(text) => Failure::Tool(unnamed(text)),
        Failure::Lost(text) => Failure::Lost(unnamed(text)),
        other => other,
    }
}

/// Why a replayer that should wait at an address does not answer, and what to do. `why` is the error
/// of the connection.
pub fn no_answer(address: &Address, why: &str, certificates: Option<&Path>) -> String {
    match certificates {
        None if why.contains("h2 protocol error") => {
            format!("the replayer at {address} does not answer in plain text: it probably uses TLS; give --certs DIR")
        }
        None => format!("{why}; check that `encore replay serve` runs there, without --certs"),
        Some(_) if why.contains("InvalidContentType") => format!(
            "the replayer at {address} does not use TLS; start it with `encore replay serve --certs DIR`, or remove \
             --certs"
        ),
        // A side that refuses the other's certificate closes the connection. Here only a broken
        // pipe shows.
        Some(folder) => format!(
            "{why}; check that `encore replay serve --certs` runs there, and that its certificates and {} are of one \
             authority and not expired",
            folder.join("coordinator.pem").display()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_code_decides_the_kind_of_failure() {
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
    fn a_replayer_of_this_coordinator_is_not_named() {
        let check = |code, expect: &str| {
            let text = format!("{:?}", failure_here("replayer 1", &Status::new(code, "why")));
            assert_eq!(text, expect);
        };
        check(Code::InvalidArgument, "Usage(\"why\")");
        check(Code::Internal, "Tool(\"why\")");
        check(Code::ResourceExhausted, "Lost(\"why\")");
        check(Code::Unavailable, "Lost(\"replayer 1 cannot be reached: why\")");
    }

    #[test]
    fn a_mismatch_of_tls_is_said_plainly() {
        let check = |why: &str, certificates: Option<&str>, expect: &str| {
            let text = no_answer(&"db7:7070".parse().unwrap(), why, certificates.map(Path::new));
            assert!(text.contains(expect), "{text}");
        };
        let tls = "the replayer at db7:7070 does not answer in plain text: it probably uses TLS; give --certs DIR";
        check("db7:7070 cannot be reached: h2 protocol error: http2 error", None, tls);
        check("db7:7070 cannot be reached: refused", None, "refused; check that `encore replay serve` runs there");
        let plain = "the replayer at db7:7070 does not use TLS; start it with `encore replay serve --certs DIR`";
        check("received corrupt message of type InvalidContentType", Some("certs"), plain);
        check("broken pipe", Some("certs"), "certs/coordinator.pem are of one authority");
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
