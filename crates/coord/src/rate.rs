//! `coord rate`: searches T for the ratings, confirms each, and says what it found.

mod departure;
mod rater;
mod settle;
mod voids;

use schemas::files;
use schemas::plan::Limit;
use schemas::run::Purpose;
use schemas::verdict::RatingDocument;

use crate::bg_files;
use crate::campaign::{Campaign, Trial};
use crate::failure::Failure;
use crate::render;
use crate::resolve;
use settle::{Question, Settled};

/// Rates a store from beginning to end; prints as it goes.
pub fn rate(rating: resolve::Rating) -> Result<RatingDocument, Failure> {
    let mut campaign = Campaign::open(rating.setting.clone())?;
    let result = rate_within(&mut campaign, &rating);
    campaign.close(result)
}

fn rate_within(campaign: &mut Campaign, rating: &resolve::Rating) -> Result<RatingDocument, Failure> {
    let question = Question {
        wanted: rating.wanted,
        method: rating.method,
        limits: rating.limits,
        deltas: rating.deltas.clone(),
        final_s: rating.setting.sla.delta_s,
    };
    let voice = campaign.voice();
    if rating.setting.unique_socialites {
        let warning = render::busy_at_most(&campaign.trace().manifest, rating.limits.max_threads);
        warning.iter().for_each(|warning| voice.say(warning));
    }
    let mut run = |threads: u32, seconds: f64, purpose: &Purpose| {
        let trial = campaign.experiment(threads, Limit::DurationS(seconds), purpose)?;
        // After each experiment, so that a rating that is interrupted has them too.
        bg_files::write(campaign.run(), &rating.setting.sla, rating.wanted, campaign.trials())?;
        Ok(trial)
    };
    let Settled { ratings, search_s } = settle::settle(&question, &mut run, &mut |line| voice.say(line))?;
    let document = RatingDocument {
        format_version: schemas::RUN_FORMAT_VERSION,
        sla: rating.setting.sla,
        parameters: rating.parameters(search_s, campaign.warmup_sessions()),
        soar: ratings.soar,
        socialites: ratings.socialites,
        experiments: campaign.trials().iter().map(Trial::rated).collect(),
    };
    files::write_json(&campaign.run().rating(), &document)?;
    voice.say(&format!("\n{}", render::ratings(&document)));
    voice.say(&render::next_commands(rating, campaign.setting(), campaign.trace()));
    Ok(document)
}
