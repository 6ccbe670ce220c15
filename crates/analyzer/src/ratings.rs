//! The ratings in words.

use std::fmt::Write as _;

use schemas::verdict::{Rating, RatingDocument};

use crate::report::thousands;

/// The ratings in words, with their notes.
pub fn ratings(document: &RatingDocument) -> String {
    let mut out = String::new();
    if let Some(rating) = &document.soar {
        let line = match rating.threads {
            0 => format!("SoAR        {}", nothing(rating, "number of threads")),
            threads => {
                let value = thousands(rating.value.round() as u64);
                format!("SoAR        {} operations/s{} at T={threads}", bound(rating, value), interval(rating))
            }
        };
        push_rating(&mut out, &line, rating);
    }
    if let Some(rating) = &document.socialites {
        let line = match rating.threads {
            0 => format!("Socialites  {}", nothing(rating, "number of threads")),
            threads => {
                let unit = if threads == 1 { "thread" } else { "threads" };
                format!("Socialites  {} {unit}{}", bound(rating, thousands(threads as u64)), interval(rating))
            }
        };
        push_rating(&mut out, &line, rating);
    }
    if let Some(rating) = &document.rate {
        let line = match rating.threads {
            0 => format!("rate        {}", nothing(rating, "arrival rate")),
            threads => {
                let value = thousands(rating.value.round() as u64);
                format!("rate        {} sessions/s{} with T={threads}", bound(rating, value), interval(rating))
            }
        };
        push_rating(&mut out, &line, rating);
    }
    out
}

fn push_rating(out: &mut String, line: &str, rating: &Rating) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{line}{}{}", confirmed(rating), void(rating));
    for note in &rating.notes {
        let _ = writeln!(out, "            note: {note}");
    }
}

fn bound(rating: &Rating, value: String) -> String {
    if rating.at_least { format!("at least {value}") } else { value }
}

fn interval(rating: &Rating) -> String {
    let whole = |value: f64| thousands(value.round() as u64);
    match &rating.interval {
        // An interval of one number adds nothing to the value.
        Some(interval) if whole(interval.low) == whole(interval.high) => String::new(),
        Some(interval) => format!(" ({} to {})", whole(interval.low), whole(interval.high)),
        None => String::new(),
    }
}

fn confirmed(rating: &Rating) -> String {
    match rating.confirmed_by {
        Some(experiment) => format!(" (confirmed by experiment {experiment})"),
        None if rating.threads > 0 => " (not confirmed)".to_string(),
        None => String::new(),
    }
}

/// The text for a rating for which no load passed; `load` names what was varied.
fn nothing(rating: &Rating, load: &str) -> String {
    match (rating.unmeasured, &rating.rests_on_void) {
        (true, Some(why)) => why.clone(),
        (true, None) => "nothing could be measured".to_string(),
        (false, _) => format!("0: no {load} kept the SLA"),
    }
}

/// In the line of the value itself, so that every reader of the value sees it.
fn void(rating: &Rating) -> String {
    let open = rating.rests_on_void.as_ref().filter(|_| !rating.unmeasured);
    open.map_or(String::new(), |open| format!("; {open}"))
}
