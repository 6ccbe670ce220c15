//! What to do after a rating, as commands that can be typed.

use std::path::{Path, absolute};

use analyzer::html::quoted;
use clap::ValueEnum;
use schemas::plan::{Warmup, redact};

use crate::args::{BetweenArg, DEFAULT_RETRIES, FleetArgs, RateArgs, SecretArgs, Wanted, WorkloadArgs};
use crate::resolve::{Rating, Setting};
use crate::trace_set::TraceSet;

/// The variable that stands for a store's URL with secrets.
const STORE_VARIABLE: &str = "ENCORE_STORE";

/// What to do next: look into the run, or repeat it on the same trace set. `setting` and
/// `trace` are those of the rating as it was carried out.
pub fn next_commands(rating: &Rating, setting: &Setting, trace: &TraceSet) -> String {
    let (run, program) = (quoted(&setting.folder.display().to_string()), quoted(&setting.program));
    let Repetition { words, secret } = repetition(rating, setting, trace);
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let first = secret.map_or(String::new(), |url| {
        format!(
            "\n  export {STORE_VARIABLE}={}    # put the secrets where *** stands: the rating keeps none",
            quoted(&url)
        )
    });
    format!(
        "next:\n  {program} analyze sql {run} \"SELECT action, count(*) AS operations, \
         round(quantile_disc(response_ns, 0.95) / 1e6, 3) AS p95_ms FROM operations WHERE outcome = 'ok' GROUP BY action \
         ORDER BY action\"\n  \
         {program} analyze summary {run}{first}\n  {program} {}",
        words.join(" ")
    )
}

/// The command that repeats a rating.
struct Repetition {
    /// Its words after the program.
    words: Vec<String>,
    /// The store's URL with its secrets hidden, where it has some: the command takes the URL
    /// from [`STORE_VARIABLE`].
    secret: Option<String>,
}

/// The command that repeats a rating. Files have absolute paths, so that it can be given in
/// another folder. What is not repeated: the name of the run and how it is shown, and what the
/// trace set holds already.
fn repetition(rating: &Rating, setting: &Setting, trace: &TraceSet) -> Repetition {
    // Without `..`: a new flag has to be repeated here, or named as one that is not.
    let RateArgs {
        spec: _,
        resume: _,
        workload,
        sessions: _,
        rating: wanted,
        search_s: _,
        delta_check,
        between,
        max_threads,
        first_threads,
        exhaustive,
    } = &*rating.typed;
    let WorkloadArgs {
        trace: _,
        settings: _,
        store,
        sla: _,
        warmup: _,
        monitor,
        shared_socialites,
        workers,
        fleet,
        name: _,
        runs,
        json: _,
        quiet: _,
    } = workload;
    let FleetArgs { replayers, secrets, count, calibrate, leave_logs, retries } = fleet;
    let SecretArgs { certs, token_file } = secrets;

    let lengths: Vec<String> = rating.deltas.search_s.iter().map(f64::to_string).collect();
    let mut words = Words(vec!["rate".to_string()]);
    words.value("--search-s", lengths.join(","));
    words.value("--max-threads", max_threads);
    words.value_if(*first_threads != 1, "--first-threads", first_threads);
    words.value_if(*wanted != Wanted::Both, "--rating", typed(wanted));
    words.option("--delta-check", delta_check.as_ref());
    words.value_if(*between != BetweenArg::Load, "--between", typed(between));
    words.flag_if(*exhaustive, "--exhaustive");

    words.value("--trace", whole(&trace.folder));
    let mut secret = None;
    // The default store lies in the run's own folder: the repetition makes its own.
    let own = format!("sqlite:{}", setting.folder.join("store.db").display());
    if let Some(store) = store.as_ref().filter(|_| setting.store != own) {
        let shown = redact(store);
        if shown == *store {
            words.value("--store", if replayers.is_empty() { with_whole_path(store) } else { shown });
        } else {
            words.value("--store", format!("${{{STORE_VARIABLE}}}"));
            secret = Some(shown);
        }
    }
    words.value("--sla", setting.sla);
    words.value_if(runs != Path::new("runs"), "--runs", whole(runs));
    words.value_if(setting.warmup != Warmup::Sessions(0), "--warmup", setting.warmup);
    words.option("--monitor", monitor.as_ref());
    words.flag_if(*shared_socialites, "--shared-socialites");
    words.value_if(*workers != 1, "--workers", workers);

    for replayer in replayers {
        let weight = if replayer.weight == 1.0 { String::new() } else { format!("*{}", replayer.weight) };
        words.value("--replayer", format!("{replayer}{weight}"));
    }
    words.option("--certs", certs.as_deref().map(whole));
    words.option("--token-file", token_file.as_deref().map(whole));
    words.option("--replayers", count.as_ref());
    words.flag_if(*calibrate, "--calibrate");
    words.flag_if(*leave_logs, "--leave-logs");
    words.value_if(*retries != DEFAULT_RETRIES, "--retries", retries);
    Repetition { words: words.0, secret }
}

/// The words of a command.
struct Words(Vec<String>);

impl Words {
    fn value(&mut self, flag: &str, value: impl ToString) {
        self.0.extend([flag.to_string(), value.to_string()]);
    }

    fn value_if(&mut self, is_wanted: bool, flag: &str, value: impl ToString) {
        self.option(flag, Some(value).filter(|_| is_wanted));
    }

    fn option(&mut self, flag: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.value(flag, value);
        }
    }

    fn flag_if(&mut self, is_wanted: bool, flag: &str) {
        self.0.extend(is_wanted.then(|| flag.to_string()));
    }
}

/// A path that means the same in every folder.
fn whole(path: &Path) -> String {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    absolute(path).unwrap_or_else(|_| path.to_path_buf()).display().to_string()
}

/// The URL of a store with the whole path of its file, where it is one in a file. What a
/// variable holds is not known here.
fn with_whole_path(url: &str) -> String {
    match url.split_once(':') {
        Some((scheme @ ("sqlite" | "casql+sqlite"), rest)) if !rest.contains("${") => {
            let (file, parameters) = rest.split_at(rest.find('?').unwrap_or(rest.len()));
            let file = if file.is_empty() { String::new() } else { whole(Path::new(file)) };
            format!("{scheme}:{file}{parameters}")
        }
        _ => url.to_string(),
    }
}

/// The word that stands for a value on the command line.
fn typed(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
}
