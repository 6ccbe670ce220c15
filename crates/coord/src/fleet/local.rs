//! A replayer on this machine: a child process, spoken to over gRPC like any other.

use std::collections::VecDeque;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use schemas::latency::ResponseTimes;
use schemas::plan::Plan;
use schemas::rpc;
use schemas::rpc::replayer_client::ReplayerClient;
use schemas::run::ReplayReport;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::Progress;
use crate::failure::Failure;

/// How many lines of a replayer's stderr are kept for an error.
const LAST_LINES: usize = 10;
/// How long a replayer may take to start, to answer, and to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// A replayer process and the connection to it.
pub struct Replayer {
    name: String,
    client: ReplayerClient<Channel>,
    child: Child,
    /// The replayer ends when this closes, however the coordinator ends.
    stdin: ChildStdin,
    /// Kept open: a replayer that prints to a closed pipe would die of it.
    _stdout: Lines<BufReader<ChildStdout>>,
    stderr: LastLines,
}

impl Replayer {
    /// Starts this program again as a replayer and connects to it.
    pub async fn start() -> Result<Replayer, Failure> {
        let program = std::env::current_exe().map_err(|e| Failure::tool(format!("cannot find this program: {e}")))?;
        let mut command = Command::new(&program);
        command.args(["replayer", "serve", "--listen", "127.0.0.1:0", "--exit-with-stdin"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // Ctrl-C on the terminal reaches the whole foreground group: the
        // replayer must outlive it, to close its log when it is told to.
        #[cfg(unix)]
        command.process_group(0);
        let cannot = |what: &str| Failure::tool(format!("cannot start {} as a replayer: {what}", program.display()));
        let mut child = command.spawn().map_err(|e| cannot(&e.to_string()))?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            unreachable!("all three are piped, and taken once");
        };
        let mut stderr = LastLines::collect(stderr);
        let mut lines = BufReader::new(stdout).lines();
        let address = match tokio::time::timeout(PATIENCE, address(&mut lines)).await {
            Ok(Ok(address)) => address,
            Ok(Err(what)) => return Err(cannot(&format!("{what}{}", stderr.told().await))),
            Err(_) => return Err(cannot(&format!("it did not say where it listens within {PATIENCE:?}"))),
        };
        let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|e| cannot(&e.to_string()))?;
        let channel =
            endpoint.connect_timeout(PATIENCE).connect().await.map_err(|e| cannot(&format!("{address}: {e}")))?;
        let name = format!("replayer {address} (process {})", child.id().unwrap_or_default());
        Ok(Replayer { name, client: ReplayerClient::new(channel), child, stdin, _stdout: lines, stderr })
    }

    /// Another handle to speak to it.
    pub fn client(&self) -> ReplayerClient<Channel> {
        self.client.clone()
    }

    /// Hello: refuses a replayer that speaks another protocol.
    pub async fn greet(&mut self) -> Result<(), Failure> {
        let request = rpc::HelloRequest {
            protocol_version: rpc::PROTOCOL_VERSION,
            encore_version: env!("CARGO_PKG_VERSION").to_string(),
        };
        let reply = self.client.hello(request).await;
        let reply = self.answer(reply).await?.into_inner();
        if reply.protocol_version != rpc::PROTOCOL_VERSION {
            return Err(Failure::tool(format!(
                "{} speaks protocol version {} (Encore {}), this coordinator version {} (Encore {}); use one Encore on both",
                self.name,
                reply.protocol_version,
                reply.encore_version,
                rpc::PROTOCOL_VERSION,
                env!("CARGO_PKG_VERSION")
            )));
        }
        Ok(())
    }

    /// Hands over a plan.
    pub async fn prepare(&mut self, plan: &Plan, experiment_folder: &Path) -> Result<(), Failure> {
        let plan_json = serde_json::to_string(plan).unwrap_or_else(|e| unreachable!("a plan is plain data: {e}"));
        let Some(experiment_folder) = experiment_folder.to_str().map(String::from) else {
            let folder = experiment_folder.display();
            return Err(Failure::usage(format!("{folder}: the name of a run's folder must be UTF-8")));
        };
        let reply = self.client.prepare(rpc::PrepareRequest { plan_json, experiment_folder }).await;
        self.answer(reply).await?;
        Ok(())
    }

    /// Brings the store to the state that the plan starts from.
    pub async fn load(&mut self, watch: &mut dyn FnMut(u64, u64)) -> Result<(), Failure> {
        let reply = self.client.load(rpc::LoadRequest {}).await;
        let mut stream = self.answer(reply).await?.into_inner();
        loop {
            let message = stream.message().await;
            match self.answer(message).await? {
                Some(progress) => watch(progress.rows, progress.rows_total),
                None => return Ok(()),
            }
        }
    }

    /// Proposes a start time; answers with that or a later one.
    pub async fn agree_start(&mut self, start_unix_ns: i64) -> Result<i64, Failure> {
        let reply = self.client.agree_start(rpc::StartProposal { start_unix_ns }).await;
        Ok(self.answer(reply).await?.into_inner().start_unix_ns)
    }

    /// Runs the prepared experiment to its end; sends its progress with `index`.
    pub async fn run(
        &mut self,
        start_unix_ns: i64,
        index: usize,
        progress: mpsc::Sender<(usize, Progress)>,
    ) -> Result<(), Failure> {
        let reply = self.client.run(rpc::RunRequest { start_unix_ns }).await;
        let mut stream = self.answer(reply).await?.into_inner();
        loop {
            let message = stream.message().await;
            let Some(message) = self.answer(message).await? else { return Ok(()) };
            let Some(response_times) = ResponseTimes::from_bytes(&message.response_times) else {
                return Err(Failure::tool(format!("{} sent a histogram that cannot be read", self.name)));
            };
            let errors = message.failed + message.unknown + message.skipped;
            let latest = Progress {
                is_warmup: message.is_warmup,
                elapsed_ns: message.elapsed_ns,
                ok: message.ok,
                errors,
                response_times,
            };
            // Nobody watches any more only when the experiment is being given up.
            let _ = progress.send((index, latest)).await;
        }
    }

    /// The report of the experiment that ended last.
    pub async fn report(&mut self) -> Result<ReplayReport, Failure> {
        let reply = self.client.report(rpc::ReportRequest {}).await;
        let reply = self.answer(reply).await?.into_inner();
        serde_json::from_str(&reply.report_json)
            .map_err(|e| Failure::tool(format!("{} sent a report that cannot be read: {e}", self.name)))
    }

    /// Lets it end: its stdin closes, and what does not end then is killed.
    pub async fn end(mut self) {
        drop(self.stdin);
        if tokio::time::timeout(PATIENCE, self.child.wait()).await.is_err() {
            // It may have ended in this very moment, which is as well.
            let _ = self.child.kill().await;
        }
    }

    /// The answer, or why there is none: what the replayer says, or that it died.
    async fn answer<X>(&mut self, reply: Result<X, Status>) -> Result<X, Failure> {
        let status = match reply {
            Ok(answer) => return Ok(answer),
            Err(status) => status,
        };
        // A lost connection: the process is ending, if it has not yet.
        if let Code::Unavailable | Code::Unknown | Code::Cancelled = status.code()
            && let Ok(Ok(exit)) = tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await
        {
            let said = self.stderr.told().await;
            return Err(Failure::tool(format!("{} died ({exit}){said}", self.name)));
        }
        Err(failure(&self.name, &status))
    }
}

/// What a replayer's refusal means.
fn failure(name: &str, status: &Status) -> Failure {
    match status.code() {
        Code::InvalidArgument | Code::NotFound => Failure::usage(status.message()),
        // A replayer says this of nothing else: the store does not hold what the plan starts from.
        Code::FailedPrecondition => Failure::State(status.message().to_string()),
        _ => Failure::tool(format!("{name}: {}", status.message())),
    }
}

/// The address in the line `listening on ADDRESS`.
async fn address(lines: &mut Lines<BufReader<ChildStdout>>) -> Result<String, String> {
    match lines.next_line().await {
        Ok(Some(line)) => match line.strip_prefix("listening on ") {
            Some(address) => Ok(address.trim().to_string()),
            None => Err(format!("it said {line:?} instead of where it listens")),
        },
        Ok(None) => Err("it ended at once".to_string()),
        Err(e) => Err(e.to_string()),
    }
}

/// The last lines of a process's stderr.
struct LastLines {
    lines: Arc<Mutex<VecDeque<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl LastLines {
    fn collect(stderr: ChildStderr) -> LastLines {
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let kept = lines.clone();
        let reader = tokio::spawn(async move {
            let mut stderr = BufReader::new(stderr).lines();
            // A line that is no UTF-8 ends the collecting: it is for an error text only.
            while let Ok(Some(line)) = stderr.next_line().await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == LAST_LINES {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        });
        LastLines { lines, reader: Some(reader) }
    }

    /// What a process that has ended said last, as the end of a sentence.
    async fn told(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            // The pipe is closed, so this ends at once, unless a grandchild holds it.
            let _ = tokio::time::timeout(Duration::from_secs(2), reader).await;
        }
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() {
            return String::new();
        }
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        format!("; it said last:\n{}", lines.join("\n"))
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
        check(Code::InvalidArgument, "Usage(\"why\")");
        check(Code::Aborted, "Tool(\"replayer 1: why\")");
        check(Code::Internal, "Tool(\"replayer 1: why\")");
    }
}
