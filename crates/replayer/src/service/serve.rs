//! Starts the service, serves until it is asked to end, and finishes the work under way.

use std::net::SocketAddr;
use std::time::Duration;

use schemas::rpc::replayer_server::ReplayerServer;
use schemas::rpc::{self, MESSAGE_BYTES_MAX};

use super::accept;
use super::access::Misuse;
use super::settings::Settings;
use super::state::Service;

/// How often the replayer pings a connection, and how long the answer may take.
const PING: Duration = Duration::from_secs(20);
const PING_ANSWERED: Duration = Duration::from_secs(20);

/// Serves until `end` is done. `listening` is called with the address once
/// connections are accepted.
pub async fn serve(
    settings: Settings,
    listening: impl FnOnce(SocketAddr),
    end: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let address = settings.address;
    settings.access.check(address)?;
    let tls = settings.access.tls()?;
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .map_err(|e| anyhow::anyhow!("--listen {address}: {e}; choose another port, or 0 for a free one"))?;
    // A coordinator that disappears without closing its connection answers no pings.
    let mut server = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(PING))
        .http2_keepalive_timeout(Some(PING_ANSWERED));
    if let Some(tls) = tls {
        server = server.tls_config(tls).map_err(|e| Misuse(format!("--certs: {}", rpc::innermost(&e))))?;
    }
    let service = Service::new(settings);
    if service.settings.confines_stores {
        // A coordinator's own replayer may never need the folder.
        service.shelf.claim().map_err(|e| Misuse(format!("--work: {e}")))?;
    }
    listening(listener.local_addr()?);
    let watched = tokio::spawn(service.clone().watch_lease());
    let stopping = service.clone();
    server
        .add_service(
            ReplayerServer::new(service.clone())
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX),
        )
        .serve_with_incoming_shutdown(accept::incoming(listener), async move {
            end.await;
            stopping.stop_running();
        })
        .await?;
    watched.abort();
    // Sessions under way are finished and logged, even if no coordinator is left to ask for them.
    service.finish_work();
    Ok(())
}
