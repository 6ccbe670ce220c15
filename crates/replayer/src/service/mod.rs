//! The replayer as a service: a coordinator prepares, loads, starts and
//! collects experiments over gRPC (`schemas/proto/replayer.proto`).
//!
//! This file admits each call, and hands it to the file in `calls/` that does what it asks for.

mod accept;
mod access;
mod admit;
mod calls;
mod job;
mod lease;
mod logs;
mod objects;
mod paths;
mod serve;
mod settings;
mod shelf;
mod state;
mod status;
mod summarize;

use std::pin::Pin;

use futures::{Stream, StreamExt};
use schemas::rpc::replayer_server::Replayer;
use schemas::rpc::{
    ClockReply, ClockRequest, CloseReadProgress, CloseReadRequest, FetchRequest, FileChunk, HelloReply, HelloRequest,
    LoadProgress, LoadRequest, LogsReply, LogsRequest, OfferReply, OfferRequest, PrepareReply, PrepareRequest,
    Progress, ReleaseReply, ReleaseRequest, ReportReply, ReportRequest, RunRequest, SendReply, SettleReply,
    SettleRequest, StartAnswer, StartProposal, StartReply, StartRequest, StopReply, StopRequest, SummarizeReply,
    SummarizeRequest,
};
use tonic::{Request, Response, Status, Streaming};

pub use access::{Access, Misuse, Token};
pub use lease::unguessable;
pub use paths::Shares;
pub use serve::serve;
pub use settings::Settings;

use crate::clock::unix_ns;
use state::Service;

/// The answer to a call.
type Reply<X> = Result<Response<X>, Status>;

/// The answer to a call that goes on for a while.
type Replies<X> = Pin<Box<dyn Stream<Item = Result<X, Status>> + Send>>;

#[tonic::async_trait]
impl Replayer for Service {
    type LoadStream = Replies<LoadProgress>;
    type RunStream = Replies<Progress>;
    type FetchStream = Replies<FileChunk>;
    type CloseReadStream = Replies<CloseReadProgress>;

    async fn hello(&self, request: Request<HelloRequest>) -> Reply<HelloReply> {
        self.settings.access.admit(request.metadata())?;
        calls::lease::hello(self, request.into_inner()).map(Response::new)
    }

    async fn clock(&self, request: Request<ClockRequest>) -> Reply<ClockReply> {
        self.admitted(request)?;
        Ok(Response::new(ClockReply { unix_ns: unix_ns() }))
    }

    async fn release(&self, request: Request<ReleaseRequest>) -> Reply<ReleaseReply> {
        self.admitted(request)?;
        calls::lease::release(self);
        Ok(Response::new(ReleaseReply {}))
    }

    async fn offer(&self, request: Request<OfferRequest>) -> Reply<OfferReply> {
        let offer = self.admitted(request)?;
        calls::trace_set::offer(self, offer).map(Response::new)
    }

    async fn send(&self, request: Request<Streaming<FileChunk>>) -> Reply<SendReply> {
        let metadata = request.metadata().clone();
        let chunks = self.admitted(request)?;
        calls::trace_set::send(self, &metadata, chunks).await?;
        Ok(Response::new(SendReply {}))
    }

    async fn prepare(&self, request: Request<PrepareRequest>) -> Reply<PrepareReply> {
        let request = self.admitted(request)?;
        calls::prepare::prepare(self, request).map(Response::new)
    }

    async fn load(&self, request: Request<LoadRequest>) -> Reply<Self::LoadStream> {
        let duty = calls::experiment::duty(self.admitted(request)?.part);
        let progress = calls::prepare::load(self, duty)?;
        Ok(Response::new(progress.boxed()))
    }

    async fn run(&self, request: Request<RunRequest>) -> Reply<Self::RunStream> {
        let request = self.admitted(request)?;
        let progress = calls::experiment::run(self, request)?;
        Ok(Response::new(progress.boxed()))
    }

    async fn agree_start(&self, request: Request<StartProposal>) -> Reply<StartAnswer> {
        let proposal = self.admitted(request)?;
        calls::start::agree_start(self, proposal).map(Response::new)
    }

    async fn start(&self, request: Request<StartRequest>) -> Reply<StartReply> {
        let request = self.admitted(request)?;
        calls::start::start(self, request).map(Response::new)
    }

    async fn stop(&self, request: Request<StopRequest>) -> Reply<StopReply> {
        let request = self.admitted(request)?;
        calls::experiment::stop(self, request);
        Ok(Response::new(StopReply {}))
    }

    async fn report(&self, request: Request<ReportRequest>) -> Reply<ReportReply> {
        self.admitted(request)?;
        calls::experiment::report(self).map(Response::new)
    }

    async fn close_read(&self, request: Request<CloseReadRequest>) -> Reply<Self::CloseReadStream> {
        let request = self.admitted(request)?;
        let progress = calls::closing::close_read(self, request)?;
        Ok(Response::new(progress.boxed()))
    }

    async fn settle(&self, request: Request<SettleRequest>) -> Reply<SettleReply> {
        let request = self.admitted(request)?;
        calls::experiment::settle(self, request).await?;
        Ok(Response::new(SettleReply {}))
    }

    async fn summarize(&self, request: Request<SummarizeRequest>) -> Reply<SummarizeReply> {
        let request = self.admitted(request)?;
        calls::logs::summarize(self, request).await?;
        Ok(Response::new(SummarizeReply {}))
    }

    async fn logs(&self, request: Request<LogsRequest>) -> Reply<LogsReply> {
        let request = self.admitted(request)?;
        calls::logs::list(self, request).await.map(Response::new)
    }

    async fn fetch(&self, request: Request<FetchRequest>) -> Reply<Self::FetchStream> {
        let request = self.admitted(request)?;
        let chunks = calls::logs::fetch(self, request)?;
        Ok(Response::new(chunks.boxed()))
    }
}
