//! What to do after a rating, as commands that can be typed.

use analyzer::html::quoted;
use clap::ValueEnum;
use schemas::plan::{Warmup, redact};
use schemas::verdict::Between;

use crate::args::{BetweenArg, Wanted};
use crate::resolve::{Method, Rating, Setting};
use crate::trace_set::TraceSet;

/// What to do next: look into the run, or repeat it on the same trace set.
pub fn next_commands(setting: &Setting, trace: &TraceSet, repeat: &[String]) -> String {
    let run = quoted(&setting.folder.display().to_string());
    let mut again = format!("./encore {} --trace {}", repeat.join(" "), quoted(&trace.folder.display().to_string()));
    // The default store lies in the run's own folder: the repetition makes its own.
    if setting.store != format!("sqlite:{}", setting.folder.join("store.db").display()) {
        again.push_str(&format!(" --store {}", quoted(&redact(&setting.store))));
    }
    again.push_str(&format!(" --sla {}", quoted(&setting.sla.to_string())));
    let runs = setting.folder.parent().map_or(String::new(), |runs| runs.display().to_string());
    if runs != "runs" {
        again.push_str(&format!(" --runs {}", quoted(if runs.is_empty() { "." } else { &runs })));
    }
    if setting.warmup != Warmup::Sessions(0) {
        again.push_str(&format!(" --warmup {}", setting.warmup));
    }
    if let Some(seconds) = setting.monitor_s {
        again.push_str(&format!(" --monitor {seconds}"));
    }
    if !setting.unique_socialites {
        again.push_str(" --shared-socialites");
    }
    if setting.workers != 1 {
        again.push_str(&format!(" --workers {}", setting.workers));
    }
    format!(
        "next:\n  ./encore analyze sql {run} \"SELECT action, count(*) AS operations, \
         round(quantile_disc(response_ns, 0.95) / 1e6, 3) AS p95_ms FROM operations WHERE outcome = 'ok' GROUP BY action \
         ORDER BY action\"\n  \
         ./encore analyze summary {run}\n  {again}"
    )
}

/// The words of `coord rate` that repeat a search.
pub fn repeat_rate(rating: &Rating) -> Vec<String> {
    let limits = &rating.limits;
    let lengths: Vec<String> = rating.deltas.search_s.iter().map(f64::to_string).collect();
    let mut words = vec!["rate".to_string()];
    let mut push = |flag: &str, value: String| words.extend([flag.to_string(), value]);
    push("--search-s", lengths.join(","));
    push("--max-threads", limits.max_threads.to_string());
    if limits.first_threads != 1 {
        push("--first-threads", limits.first_threads.to_string());
    }
    if rating.wanted != Wanted::Both {
        push("--rating", typed(&rating.wanted));
    }
    if let Some(percent) = rating.deltas.check_percent {
        push("--delta-check", percent.to_string());
    }
    if rating.setting.between == Between::Continue {
        push("--between", typed(&BetweenArg::Continue));
    }
    if rating.method == Method::Exhaustive {
        words.push("--exhaustive".to_string());
    }
    words
}

/// The word that stands for a value on the command line.
fn typed(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
}
