//! The commands that a rating suggests next, ready to type.

use std::path::{Path, absolute};

use analyzer::html::quoted;
use clap::ValueEnum;
use schemas::plan::{Warmup, redact};

use super::args::{By, DEFAULT_RETRIES, FleetArgs, RateArgs, SecretArgs, WorkloadArgs};
use crate::rate::{Rating, Typed, Wanted};
use crate::run::setting::Setting;
use crate::run::trace_set::TraceSet;
use crate::search::Limits;

/// The environment variable for a store's URL with secrets.
pub const STORE_VARIABLE: &str = "ENCORE_STORE";

impl Typed for RateArgs {
    fn next_commands(&self, rating: &Rating, setting: &Setting, trace: &TraceSet, program: &str) -> String {
        let (run, program) = (quoted(&whole(&setting.folder)), quoted(program));
        let Repetition { words, secret } = repetition(self, rating, setting, trace);
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let first = secret.map_or(String::new(), |url| {
            format!("\n  export {STORE_VARIABLE}={}    # replace *** with the password", quoted(&url))
        });
        format!(
            "next:\n  {program} analyze summary {run}\n  \
         {program} analyze sql {run} \"SELECT operation, count(*), max(response_ns) FROM operations GROUP BY operation\"\
         {first}\n  {program} {}",
            words.join(" ")
        )
    }
}

/// The command that repeats a rating.
struct Repetition {
    /// Its words after the program.
    words: Vec<String>,
    /// The store's URL with its secrets hidden, if it has any. The command then takes the URL
    /// from [`STORE_VARIABLE`].
    secret: Option<String>,
}

/// The command that repeats a rating. Files have absolute paths, so that it works in any folder.
/// It repeats neither the name of the run and the flags for its output, nor what the trace set
/// holds already.
fn repetition(args: &RateArgs, rating: &Rating, setting: &Setting, trace: &TraceSet) -> Repetition {
    // There is no `..`, so that a new flag has to be repeated here, or named as one that is not.
    let RateArgs {
        spec: _,
        resume: _,
        workload,
        sessions: _,
        by,
        rating: wanted,
        search_s: _,
        delta_check,
        between,
        max_threads: _,
        first_threads: _,
        exhaustive,
        max_rate: _,
        first_rate: _,
        threads,
        overload,
        fail_below,
        junit,
    } = args;
    let WorkloadArgs {
        trace: _,
        settings: _,
        store,
        sla: _,
        warmup: _,
        monitor,
        shared_actors,
        transactions,
        keep_data,
        no_closing_read,
        workers,
        fleet,
        name: _,
        runs,
        publish,
        deck: _,
        metrics_listen: _,
        json: _,
        quiet: _,
    } = workload;
    let FleetArgs { replayers, secrets, count, calibrate, leave_logs, retries } = fleet;
    let SecretArgs { certs, token_file } = secrets;

    let lengths: Vec<String> = rating.deltas.search_s.iter().map(f64::to_string).collect();
    let mut words = Words(vec!["rate".to_string()]);
    words.value("--search-s", lengths.join(","));
    let Limits { first_load, max_load, .. } = rating.limits;
    match by {
        By::Threads => {
            words.value("--max-threads", max_load);
            words.value_if(first_load != 1, "--first-threads", first_load);
        }
        By::Rate => {
            words.value("--by", typed(by));
            words.value("--max-rate", max_load);
            words.value("--first-rate", first_load);
        }
    }
    words.option("--threads", threads.as_ref());
    words.option("--overload", overload.as_ref());
    words.value_if(*wanted != Wanted::Both, "--rating", typed(wanted));
    words.option("--delta-check", delta_check.as_ref());
    words.option("--between", between.as_ref().map(typed));
    words.flag_if(*exhaustive, "--exhaustive");
    words.option("--fail-below", fail_below.as_ref());
    words.option("--junit", junit.as_deref().map(whole));

    words.value("--trace", whole(&trace.folder));
    let mut secret = None;
    // The default store lies in the run's own folder; the repeated run gets its own.
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
    words.flag_if(*keep_data, "--keep-data");
    words.value("--sla", setting.sla);
    words.value_if(runs != Path::new("runs"), "--runs", whole(runs));
    words.option("--publish", publish.as_ref());
    let spec = setting.source.spec();
    let own_warmup = spec.family().and_then(|family| family.warmup_sessions(spec)).unwrap_or_default();
    words.value_if(setting.warmup != Warmup::Sessions(own_warmup), "--warmup", setting.warmup);
    words.option("--monitor", monitor.as_ref());
    words.flag_if(*shared_actors, "--shared-actors");
    words.option("--transactions", transactions.transactions.as_ref().map(typed));
    words.option("--tries", transactions.tries.as_ref());
    words.flag_if(*no_closing_read, "--no-closing-read");
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

/// The URL of a store with the absolute path of its file, if it has one. A path with a variable
/// is kept, because the value is unknown here.
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

/// A value as it is typed on the command line.
fn typed(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or(String::new(), |value| value.get_name().to_string())
}
