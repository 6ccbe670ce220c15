//! `coord run`: one experiment, its row and its figures by action.

use schemas::verdict::Verdict;

use crate::campaign::{Campaign, Purpose};
use crate::failure::Failure;
use crate::render;
use crate::resolve::Single;

/// Runs the experiment from beginning to end; prints as it goes.
pub fn run(single: Single) -> Result<Verdict, Failure> {
    let mut campaign = Campaign::open(single.setting)?;
    let result = campaign.experiment(single.threads, single.limit, &Purpose::Single).map(|trial| {
        campaign.voice().say(&format!("\n{}", render::by_action(&trial.verdict.figures)));
        trial.verdict
    });
    campaign.close(result)
}
