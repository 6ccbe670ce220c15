//! The command `serve`.

use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use schemas::terminal::hangup_is_ignored;
use storage::StorageError;

use crate::service::{self, Access, Misuse, Shares, Token};

#[derive(Args)]
#[command(after_help = "\
Examples:
  encore replay serve                                                    local only
  encore replay serve --listen 127.0.0.2:7070 --work /data/encore
  encore replay serve --listen 10.0.0.5:7070 --certs certs               other machines, by certificate
  encore replay serve --listen 10.0.0.5:7070 --certs certs --token-file token
  encore replay serve --share /mnt/encore                                traces and runs on shared storage
  encore replay serve --share s3://bucket/encore                         in object storage

Use it from a coordinator with `encore rate --replayer HOST:PORT`. The replayer keeps the
trace sets and logs in --work; remove them yourself. Addresses other than loopback
require certificates (`encore certs`).")]
pub struct ServeArgs {
    /// Address and port to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7070")]
    listen: SocketAddr,
    /// Folder for logs and for the trace sets that coordinators send; a coordinator can use no
    /// other folder except those of --share
    #[arg(long, value_name = "DIR", default_value = "replayer-work")]
    work: PathBuf,
    /// A folder that the coordinator sees under the same path; trace sets, runs and SQLite files in
    /// it are used in place. Or a URL (s3://BUCKET/PREFIX, gs://): trace sets are fetched from there,
    /// and with --publish and --leave-logs of the coordinator, logs are published there. May be given
    /// several times
    #[arg(long, value_name = "DIR")]
    share: Vec<PathBuf>,
    /// Refuse trace sets that are larger than this, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 40)]
    trace_bytes_max: u64,
    /// Folder with ca.pem, replayer.pem and replayer.key (`encore certs` makes it): use TLS, and
    /// require client certificates of the same authority
    #[arg(long, value_name = "DIR")]
    certs: Option<PathBuf>,
    /// File with a secret of at least 16 characters: require it in every call; with --certs,
    /// clients then need no certificate
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Read the secret from the first line of standard input, and end when standard input ends, as
    /// it does when the parent process dies
    #[arg(long, hide = true, conflicts_with = "token_file")]
    exit_with_stdin: bool,
}

/// Serves a coordinator until the process is asked to end.
pub fn serve(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let ended = Arc::new(tokio::sync::Notify::new());
    let mut token = args.token_file.as_deref().map(Token::read).transpose()?;
    if args.exit_with_stdin {
        token = Some(token_from_stdin()?);
        notify_at_end_of_stdin(ended.clone());
    }
    let shares = Shares::new(&args.share)?;
    shares.check().map_err(refused)?;
    let settings = service::Settings {
        address: args.listen,
        work: std::path::absolute(&args.work)?,
        shares,
        confines_stores: !args.exit_with_stdin,
        trace_bytes_max: args.trace_bytes_max,
        access: Access { certificates: args.certs.clone(), token },
    };
    runtime.block_on(service::serve(settings, |address| println!("listening on {address}"), async move {
        tokio::select! {
            () = ended.notified() => {}
            () = asked_to_end() => {}
        }
    }))?;
    Ok(ExitCode::SUCCESS)
}

/// What is wrong with a share in object storage: what the user can correct is a misuse.
fn refused(error: StorageError) -> anyhow::Error {
    if error.is_of_user() { Misuse(format!("--share {error}")).into() } else { error.into() }
}

/// The token that the parent process sends. Other users of this machine reach the port too, but not
/// this pipe.
fn token_from_stdin() -> anyhow::Result<Token> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(Token::new(&line)?)
}

/// Reads standard input until it ends, on a thread of its own.
fn notify_at_end_of_stdin(ended: Arc<tokio::sync::Notify>) {
    std::thread::spawn(move || {
        let mut nothing = [0; 64];
        while matches!(std::io::stdin().read(&mut nothing), Ok(n) if n > 0) {}
        ended.notify_one();
    });
}

/// Waits for Ctrl-C, a request to terminate, or the end of the terminal unless hangups are ignored.
async fn asked_to_end() {
    use tokio::signal::unix::{SignalKind, signal};
    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    if !hangup_is_ignored() {
        kinds.push(SignalKind::hangup());
    }
    // Without a handler a signal ends the process as it always does.
    let signals = kinds.into_iter().filter_map(|kind| signal(kind).ok());
    let signals_seen: Vec<_> = signals.map(|mut signal| Box::pin(async move { signal.recv().await })).collect();
    if signals_seen.is_empty() {
        std::future::pending::<()>().await;
    }
    futures::future::select_all(signals_seen).await;
}
