//! `encore rate`: searches the load for the ratings, confirms each, and reports what it found.

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
use crate::search::Unit;
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
        "plan   {}: search {} ({} each), confirm with {final_s} s",
        wanted.name(),
        wanted.unit().range(limits.first_load, limits.max_load),
        lengths.join(", then "),
    )
}

fn rate_within(campaign: &mut Campaign, rating: &Rating) -> Result<RatingDocument, Failure> {
    let task = task(rating);
    let voice = campaign.voice();
    let threads = rating.threads.unwrap_or_else(|| enough_threads(rating, campaign));
    let (flag, most) = match rating.wanted.unit() {
        Unit::Threads => ("--max-threads", rating.limits.max_load),
        Unit::SessionsPerS => ("--threads", threads),
    };
    if rating.setting.unique_actors {
        let warning = terminal::busy_at_most(&campaign.trace().manifest, flag, most);
        warning.iter().for_each(|warning| voice.say(warning));
    }
    let mut run = |load: u32, seconds: f64, purpose: &Purpose| {
        let trial = campaign.experiment(rating.demand(load, threads), Limit::DurationS(seconds), purpose)?;
        // After each experiment, so that an interrupted rating has them too.
        bg_files::write(campaign.run(), &rating.setting.sla, rating.wanted, campaign.trials())?;
        Ok(trial)
    };
    let RatedLength { ratings, search_s } = lengths::rate_with_lengths(&task, &mut run, &mut |line| voice.say(line))?;
    let document = RatingDocument {
        format_version: schemas::RUN_FORMAT_VERSION,
        sla: rating.setting.sla,
        parameters: rating.parameters(search_s, campaign.warmup_sessions(), threads),
        soar: ratings.soar,
        socialites: ratings.socialites,
        rate: ratings.rate,
        experiments: campaign.trials().iter().map(Trial::rated).collect(),
    };
    files::write_json(&campaign.run().rating(), &document)?;
    // The result comes last, where the user looks first.
    let next = rating.typed.next_commands(rating, campaign.setting(), campaign.trace(), &program::to_type());
    let transactions = transactions(&document, campaign.trials());
    voice.say(&format!("\n{next}\n\n{}{transactions}", terminal::ratings(&document).trim_end()));
    Ok(document)
}

/// What the final experiments say of their transactions, that is the anomaly score and the isolation, then of their
/// sessions and the conditions of the data; the last experiment, if none has confirmed a rating.
fn transactions(document: &RatingDocument, trials: &[Trial]) -> String {
    let ratings = [&document.soar, &document.socialites, &document.rate];
    let confirmed: Vec<u32> = ratings.into_iter().flatten().filter_map(|rating| rating.confirmed_by).collect();
    let finals = trials.iter().filter(|trial| confirmed.contains(&trial.verdict.experiment));
    let last = trials.last().filter(|_| confirmed.is_empty());
    let mut out = String::new();
    for trial in finals.chain(last) {
        for line in trial.about_transactions().into_iter().chain(trial.about_sessions()) {
            out.push_str(&format!("\nexperiment {}: {line}", trial.verdict.experiment));
        }
    }
    out
}

/// T of a rating by arrival rate, unless `--threads` is given. A session that arrives when all
/// threads are busy queues, so T has to be higher than the number of requests that a server works on
/// at once. It stays below the number of connections that servers accept by default (PostgreSQL:
/// 100).
const ENOUGH_THREADS: u32 = 64;

/// T of a rating by arrival rate, if the user leaves the choice: no more than the trace keeps busy.
fn enough_threads(rating: &Rating, campaign: &Campaign) -> u32 {
    let busy = u32::try_from(campaign.trace().manifest.active_threads_max).unwrap_or(u32::MAX).max(1);
    if rating.setting.unique_actors { ENOUGH_THREADS.min(busy) } else { ENOUGH_THREADS }
}

/// The check that a rating is confirmed, and at least this high: the arrival rate in sessions per
/// second if that was rated, else SoAR in operations per second.
pub fn at_least(document: &RatingDocument, least: u64) -> Check {
    let (what, unit, rating) = match &document.rate {
        Some(rate) => ("arrival rate", "sessions/s", Some(rate)),
        None => ("SoAR", "operations/s", document.soar.as_ref()),
    };
    let name = format!("{what} at least {} {unit}", terminal::thousands(least));
    let failure = match rating {
        None => Some("SoAR was not rated (--rating socialites)".to_string()),
        Some(rating) if rating.unmeasured => Some("nothing could be measured".to_string()),
        Some(rating) if rating.value < least as f64 => {
            Some(format!("measured {} {unit}", terminal::thousands(rating.value.round() as u64)))
        }
        Some(rating) if rating.confirmed_by.is_none() => Some("no final experiment confirmed the rating".to_string()),
        Some(_) => None,
    };
    Check { name, failure }
}
