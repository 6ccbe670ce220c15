//! The sentence at the top of a run's page: what the run found.

use schemas::sla::short_time;
use schemas::verdict::{Rating, RatingDocument, Ruling, Verdict};

use super::RunData;
use crate::report::{plural, thousands};

/// What the run found; None if no experiment has ended.
pub(super) fn conclusion(data: &RunData<'_>) -> Option<String> {
    match data.rating {
        Some(rating) => of_rating(rating, data.verdicts),
        None => data.detailed().map(of_experiment),
    }
}

/// The verdict in a word, and the class of its colour; None if no experiment has ended.
pub(super) fn verdict_in_a_word(data: &RunData<'_>) -> Option<(&'static str, &'static str)> {
    match data.rating {
        Some(rating) => Some(match rating.exit_code() {
            0 => (Ruling::Pass.name(), "Rated"),
            1 => (Ruling::Fail.name(), "Not met"),
            _ => (Ruling::Void.name(), "Not confirmed"),
        }),
        None => data.detailed().map(|verdict| match verdict.ruling {
            Ruling::Pass => (Ruling::Pass.name(), "Pass"),
            Ruling::Fail => (Ruling::Fail.name(), "Fail"),
            Ruling::Void => (Ruling::Void.name(), "Void"),
        }),
    }
}

fn of_rating(document: &RatingDocument, verdicts: &[Verdict]) -> Option<String> {
    if let Some(rate) = &document.rate {
        return Some(of_rate(rate, verdicts));
    }
    let (soar, socialites) = (document.soar.as_ref(), document.socialites.as_ref());
    let first = soar.or(socialites)?;
    if first.unmeasured {
        return Some("Nothing could be measured.".to_string());
    }
    if first.value <= 0.0 {
        return Some("The store met the SLA at no number of threads.".to_string());
    }
    let mut sentences = Vec::new();
    if let Some(soar) = soar {
        let (least, value) = (at_least(soar), thousands(soar.value.round() as u64));
        sentences.push(format!(
            "The store completes {least}{value} operations/s within the SLA, with {}.",
            plural(soar.threads.into(), "thread")
        ));
    }
    if let Some(socialites) = socialites.filter(|own| soar.is_none_or(|soar| soar.threads != own.threads)) {
        let most = plural(socialites.threads.into(), "thread");
        sentences.push(format!("It meets the SLA with {}{most}.", at_least(socialites)));
    }
    sentences.push(beyond(socialites.unwrap_or(first), verdicts));
    if first.confirmed_by.is_none() {
        sentences.push("No final experiment confirms this.".to_string());
    }
    sentences.retain(|sentence| !sentence.is_empty());
    Some(sentences.join(" "))
}

/// What a rating by arrival rate found.
fn of_rate(rating: &Rating, verdicts: &[Verdict]) -> String {
    if rating.unmeasured {
        return "Nothing could be measured.".to_string();
    }
    if rating.value <= 0.0 {
        return "The store met the SLA at no arrival rate.".to_string();
    }
    let (least, value) = (at_least(rating), thousands(rating.value.round() as u64));
    let threads = plural(rating.threads.into(), "thread");
    let mut out = format!("The store meets the SLA while {least}{value} sessions/s arrive, with {threads}.");
    let due = |own: &Verdict| own.rate_per_s.unwrap_or(0.0);
    let failed = verdicts.iter().filter(|own| own.ruling == Ruling::Fail && due(own) > rating.value);
    if rating.at_least {
        out.push_str(" The search ended at its highest rate.");
    } else if let Some(own) = failed.min_by(|a, b| due(a).total_cmp(&due(b))) {
        let rate = thousands(due(own).round() as u64);
        out.push_str(&format!(" At {rate} sessions/s it misses the SLA: {}.", own.reasons.join("; ")));
    }
    if rating.confirmed_by.is_none() {
        out.push_str(" No final experiment confirms this.");
    }
    out
}

fn at_least(rating: &Rating) -> &'static str {
    if rating.at_least { "at least " } else { "" }
}

/// Why the rating is not higher: the end of the search, or the failure at the next number of
/// threads.
fn beyond(rating: &Rating, verdicts: &[Verdict]) -> String {
    if rating.at_least {
        return "The search ended at its highest number of threads.".to_string();
    }
    let failed = verdicts.iter().filter(|own| own.ruling == Ruling::Fail && own.threads > rating.threads);
    match failed.min_by_key(|own| own.threads) {
        Some(own) => {
            let threads = plural(own.threads.into(), "thread");
            format!("With {threads} it misses the SLA: {}.", own.reasons.join("; "))
        }
        None => String::new(),
    }
}

fn of_experiment(verdict: &Verdict) -> String {
    let figures = &verdict.figures;
    let threads = match verdict.rate_per_s {
        Some(rate) => format!("{} sessions/s due", thousands(rate.round() as u64)),
        None => plural(verdict.threads.into(), "thread"),
    };
    let reasons = verdict.reasons.join("; ");
    let operations = thousands(figures.throughput_per_s.round() as u64);
    let sentence = match verdict.ruling {
        Ruling::Void => return format!("The experiment with {threads} is void: {reasons}."),
        Ruling::Pass => format!("With {threads} the store completes {operations} operations/s and meets the SLA."),
        Ruling::Fail => {
            format!("With {threads} the store completes {operations} operations/s and misses the SLA: {reasons}.")
        }
    };
    let counted_s = figures.counted_ns as f64 / 1e9;
    if counted_s >= verdict.sla.delta_s * 0.999 {
        return sentence;
    }
    let (counted, asked_s) = (short_time(figures.counted_ns), verdict.sla.delta_s);
    format!("{sentence} It was judged over {counted}, while the SLA asks for {asked_s} s.")
}

#[cfg(test)]
mod tests {
    use schemas::sla::Sla;

    use super::*;

    fn verdict(threads: u32, ruling: Ruling, reason: &str) -> Verdict {
        let reasons = Some(reason.to_string()).filter(|reason| !reason.is_empty()).into_iter().collect();
        let mut verdict = crate::void_verdict(threads, threads, Sla::default(), reasons);
        verdict.ruling = ruling;
        verdict.figures.throughput_per_s = 1234.4;
        verdict.figures.counted_ns = (verdict.sla.delta_s * 1e9) as u64;
        verdict
    }

    fn rating(value: f64, threads: u32, at_least: bool) -> Rating {
        Rating {
            value,
            threads,
            interval: None,
            at_least,
            confirmed_by: Some(1),
            unmeasured: false,
            rests_on: Vec::new(),
            rests_on_void: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn one_experiment_met_the_sla_or_says_why_not() {
        let pass = of_experiment(&verdict(4, Ruling::Pass, ""));
        assert_eq!(pass, "With 4 threads the store completes 1,234 operations/s and meets the SLA.");
        let fail = of_experiment(&verdict(1, Ruling::Fail, "too slow"));
        assert_eq!(fail, "With 1 thread the store completes 1,234 operations/s and misses the SLA: too slow.");
        assert_eq!(
            of_experiment(&verdict(4, Ruling::Void, "no room")),
            "The experiment with 4 threads is void: no room."
        );
    }

    #[test]
    fn a_rating_by_rate_speaks_of_sessions() {
        let of = |rate_per_s, ruling, reason| Verdict { rate_per_s: Some(rate_per_s), ..verdict(64, ruling, reason) };
        let verdicts =
            [of(1600.0, Ruling::Fail, "worst"), of(1200.0, Ruling::Fail, "slow"), of(800.0, Ruling::Pass, "")];
        assert_eq!(
            of_rate(&rating(1100.0, 64, false), &verdicts),
            "The store meets the SLA while 1,100 sessions/s arrive, with 64 threads. At 1,200 sessions/s it misses the \
             SLA: slow."
        );
        assert!(of_rate(&rating(1600.0, 64, true), &verdicts).ends_with("The search ended at its highest rate."));
        assert_eq!(of_rate(&rating(0.0, 0, false), &verdicts), "The store met the SLA at no arrival rate.");
        let pass = of_experiment(&verdicts[2]);
        assert_eq!(pass, "With 800 sessions/s due the store completes 1,234 operations/s and meets the SLA.");
    }

    #[test]
    fn a_rating_says_what_limits_it() {
        let verdicts = [(8, Ruling::Pass, ""), (16, Ruling::Fail, "worst"), (9, Ruling::Fail, "bad")]
            .map(|(t, r, w)| verdict(t, r, w));
        let beyond = |rating: &Rating| beyond(rating, &verdicts);
        assert_eq!(beyond(&rating(8.0, 8, false)), "With 9 threads it misses the SLA: bad.");
        assert_eq!(beyond(&rating(16.0, 16, true)), "The search ended at its highest number of threads.");
        assert_eq!(beyond(&rating(16.0, 16, false)), "");
    }
}
