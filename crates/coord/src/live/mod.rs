//! What a running experiment shows to viewers: a feed in the run folder for the deck, and a board for
//! `--metrics-listen`. Both have only what the replayers report anyway, and neither can fail an experiment.

mod board;
mod feed;
mod metrics;
mod wanted;

pub use board::Board;
pub use feed::Feed;
pub use metrics::listen;
pub use wanted::Wanted;
