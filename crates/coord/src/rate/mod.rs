//! `encore rate`: searches T for the ratings, confirms each, and reports what it found.

mod bg_files;
mod departure;
mod lengths;
mod rater;
mod rating;
mod voids;

use analyzer::checks::Check;
use schemas::files;
use schemas::plan::Limit;
use schemas::program;
use schemas::run::Purpose;
use schemas::verdict::RatingDocument;

use crate::failure::Failure;
use crate::run::campaign::Campaign;
use crate::run::trial::Trial;
use crate::terminal::{self, Voice};
use lengths::{RatedLength, SearchTask};
pub use rating::{Deltas, Method, Rating, Typed, Wanted};

/// Rates a store from beginning to end; prints as it goes.
pub fn rate(rating: Rating) -> Result<RatingDocument, Failure> {
    Voice::new(rating.setting.json).say(&plan(&task(&rating)));
    let mut campaign = Campaign::open(rating.setting.clone())?;
    let result = rate_within(&mut campaign, &rating);
    campaign.close(result)
}

fn task(rating: &Rating) -> SearchTask {
    SearchTask {
        wanted: rating.wanted,
        method: rating.method,
        limits: rating.limits,
        deltas: rating.deltas.clone(),
        final_s: rating.setting.sla.delta_s,
    }
}

/// What the rating is going to do, in a line.
fn plan(task: &SearchTask) -> String {
    let SearchTask { wanted, limits, deltas, final_s, .. } = task;
    let lengths: Vec<String> = deltas.search_s.iter().map(|length_s| format!("{length_s} s")).collect();
    format!(
        "plan   {}: search T = {} to {} ({} each), confirm with {final_s} s",
        wanted.name(),
        limits.first_threads,
        limits.max_threads,
        lengths.join(", then "),
    )
}

fn rate_within(campaign: &mut Campaign, rating: &Rating) -> Result<RatingDocument, Failure> {
    let task = task(rating);
    let voice = campaign.voice();
    if rating.setting.unique_actors {
        let warning = terminal::busy_at_most(&campaign.trace().manifest, "--max-threads", rating.limits.max_threads);
        warning.iter().for_each(|warning| voice.say(warning));
    }
    let mut run = |threads: u32, seconds: f64, purpose: &Purpose| {
        let trial = campaign.experiment(threads, Limit::DurationS(seconds), purpose)?;
        // After each experiment, so that an interrupted rating has them too.
        bg_files::write(campaign.run(), &rating.setting.sla, rating.wanted, campaign.trials())?;
        Ok(trial)
    };
    let RatedLength { ratings, search_s } = lengths::rate_with_lengths(&task, &mut run, &mut |line| voice.say(line))?;
    let document = RatingDocument {
        format_version: schemas::RUN_FORMAT_VERSION,
        sla: rating.setting.sla,
        parameters: rating.parameters(search_s, campaign.warmup_sessions()),
        soar: ratings.soar,
        socialites: ratings.socialites,
        experiments: campaign.trials().iter().map(Trial::rated).collect(),
    };
    files::write_json(&campaign.run().rating(), &document)?;
    // The result comes last, where the user looks first.
    let next = rating.typed.next_commands(rating, campaign.setting(), campaign.trace(), &program::to_type());
    voice.say(&format!("\n{next}\n\n{}", terminal::ratings(&document).trim_end()));
    Ok(document)
}

/// The check that the SoAR of a rating is confirmed, and at least this many operations per second.
pub fn at_least(document: &RatingDocument, least: u64) -> Check {
    let name = format!("SoAR at least {} operations/s", terminal::thousands(least));
    let failure = match &document.soar {
        None => Some("SoAR was not rated (--rating socialites)".to_string()),
        Some(soar) if soar.unmeasured => Some("nothing could be measured".to_string()),
        Some(soar) if soar.value < least as f64 => {
            Some(format!("measured {} operations/s", terminal::thousands(soar.value.round() as u64)))
        }
        Some(soar) if soar.confirmed_by.is_none() => Some("no final experiment confirmed the rating".to_string()),
        Some(_) => None,
    };
    Check { name, failure }
}
