//! The page around the pictures: ratings, tables, circumstances.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use schemas::run::ReplayReport;
use schemas::sla::short_time;
use schemas::verdict::{ActionFigures, Rating, Ruling, Verdict};

use super::Told;
use crate::figures::percent;
use crate::report::{sla_in_words, thousands as grouped};

/// The whole page. Its policy forbids it to load anything and to run any script.
pub fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
                title { (title) " – Encore" }
                // Browsers ask for an icon otherwise.
                link rel="icon" href="data:,";
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body { (body) }
        }
    };
    page.into_string()
}

/// A part of the page.
pub fn section(title: &str, content: &Markup) -> Markup {
    html! { section { h2 { (title) } (content) } }
}

/// A picture with the statement that its numbers are the answer to.
pub fn figure(title: &str, svg: &str, note: &str, sql: &str) -> Markup {
    html! {
        figure {
            (PreEscaped(embedded(svg, title)))
            @if !note.is_empty() { figcaption.soft { (note) } }
            (statement(sql))
        }
    }
}

/// The statement below a picture.
pub(super) fn statement(sql: &str) -> Markup {
    html! { details { summary { "SQL" } pre { (sql.trim()) } } }
}

/// A picture alone.
pub(super) fn picture(svg: &str, title: &str) -> Markup {
    html! { (PreEscaped(embedded(svg, title))) }
}

/// A picture in the page: its colours are the page's, and its names are its own.
fn embedded(svg: &str, title: &str) -> String {
    let own: String = title.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    // Text has its quotation marks escaped, so that only attributes are met.
    svg.replace("\"#FFFFFF\"", "\"var(--paper)\"")
        .replace("\"#222222\"", "\"var(--ink)\"")
        .replace("\"#000000\"", "\"var(--ink)\"")
        .replace("\"#D6D6D6\"", "\"var(--grid)\"")
        .replace("aria-labelledby=\"title description\"", &format!("aria-labelledby=\"t-{own} d-{own}\""))
        .replace("<title id=\"title\">", &format!("<title id=\"t-{own}\">"))
        .replace("<desc id=\"description\">", &format!("<desc id=\"d-{own}\">"))
}

pub(super) fn head(told: &Told<'_>) -> Markup {
    let document = told.document;
    let sla = document.sla.or(told.verdicts.last().map(|verdict| verdict.sla)).unwrap_or_default();
    let began = humantime::format_rfc3339_seconds(
        std::time::UNIX_EPOCH + std::time::Duration::from_secs(document.started_unix_s),
    );
    html! {
        header {
            h1 { (document.name) }
            p.soft { (document.store) " · " (began) " · Encore " (document.encore_version) }
            p { (sla_in_words(&sla)) "." }
            @if let schemas::run::RunState::Failed(why) = &document.state { p.fail { "The run failed: " (why) } }
            @if document.state == schemas::run::RunState::Interrupted { p.void { "The run was interrupted." } }
        }
    }
}

pub(super) fn ratings(told: &Told<'_>) -> Markup {
    let Some(rating) = told.rating else { return html! {} };
    let one = |name: &str, unit: &str, rated: &Rating| {
        if rated.unmeasured {
            return html! {
                div.rating {
                    span.soft { (name) }
                    b { "not measured" }
                    @for note in rated.rests_on_void.iter().chain(&rated.notes) { p.fail { (note) } }
                }
            };
        }
        let value = if name == "SoAR" { grouped(rated.value.round() as u64) } else { rated.threads.to_string() };
        html! {
            div.rating {
                span.soft { (name) }
                b { @if rated.at_least { "≥ " } (value) }
                p { (unit) @if name == "SoAR" { ", with " (rated.threads) " threads" } }
                @if let Some(interval) = &rated.interval {
                    p.soft { "from " (grouped(interval.low.round() as u64)) " to " (grouped(interval.high.round() as u64)) ": " (interval.basis) }
                }
                @match rated.confirmed_by {
                    Some(experiment) => p.soft { "confirmed by experiment " (experiment) },
                    None => p.fail { "not confirmed" },
                }
                @for note in rated.rests_on_void.iter().chain(&rated.notes) { p.soft { (note) } }
            }
        }
    };
    html! {
        div.ratings {
            @if let Some(soar) = &rating.soar { (one("SoAR", "actions a second", soar)) }
            @if let Some(socialites) = &rating.socialites { (one("Socialites", "simultaneous threads", socialites)) }
        }
    }
}

fn ruling(ruling: Ruling) -> Markup {
    html! { span class=(ruling.name()) { (ruling.name()) } }
}

/// Every experiment in the order it ran, with what is wrong with it.
pub(super) fn experiments(told: &Told<'_>) -> Markup {
    let rows = html! {
        div.wide { table {
            thead { tr {
                th { "experiment" } th { "T" } th { "actions/s" } th { "p50" } th { "p95" } th { "p99" } th { "max" }
                th { "% within" } th { "% unpredictable" } th.word { "ruling" }
            } }
            tbody { @for verdict in told.verdicts {
                @let (figures, overall) = (&verdict.figures, &verdict.figures.overall);
                tr {
                    td { (verdict.experiment) } td { (verdict.threads) }
                    td { (grouped(figures.throughput_per_s.round() as u64)) }
                    @for time in [overall.p50_ns, overall.p95_ns, overall.p99_ns, overall.max_ns] { td { (short_time(time)) } }
                    td { (format!("{:.2}", figures.within_beta_percent)) }
                    td { (format!("{:.3}", figures.unpredictable_percent)) }
                    td.word.why[!verdict.reasons.is_empty()] { (ruling(verdict.ruling)) @for reason in &verdict.reasons { br; (reason) } }
                }
            } }
        } }
        (statement("SELECT * FROM experiments ORDER BY experiment"))
    };
    section("Experiments, in the order they ran", &rows)
}

/// Counts and response times by action.
pub(super) fn actions(verdict: &Verdict) -> Markup {
    let row = |name: &str, figures: &ActionFigures| {
        let issued = figures.ok + figures.failed + figures.unknown;
        html! {
            tr {
                td.word { (name) }
                @for count in [figures.ok, figures.failed, figures.unknown, figures.skipped] { td { (grouped(count)) } }
                @for time in [figures.mean_ns as u64, figures.p50_ns, figures.p95_ns, figures.p99_ns, figures.max_ns] {
                    td { (short_time(time)) }
                }
                td { (format!("{:.2}", percent(figures.within_beta, issued))) }
                td { (grouped(figures.unpredictable)) }
            }
        }
    };
    let (experiment, beta_ns) = (verdict.experiment, verdict.sla.beta_ns);
    let sql = format!(
        "-- The percentiles above have three digits; these are exact.\n\
         SELECT \"action\", count(*) FILTER (outcome = 'ok') AS ok, count(*) FILTER (outcome = 'failed') AS failed,\n\
         \u{20}      count(*) FILTER (outcome = 'unknown') AS unknown, count(*) FILTER (outcome = 'skipped') AS skipped,\n\
         \u{20}      avg(response_ns) FILTER (outcome = 'ok') AS mean_ns,\n\
         \u{20}      quantile_disc(response_ns, [0.5, 0.95, 0.99]) FILTER (outcome = 'ok') AS percentiles_ns,\n\
         \u{20}      max(response_ns) FILTER (outcome = 'ok') AS max_ns,\n\
         \u{20}      100.0 * count(*) FILTER (outcome = 'ok' AND response_ns <= {beta_ns})\n\
         \u{20}          / nullif(count(*) FILTER (outcome <> 'skipped'), 0) AS within_percent,\n\
         \u{20}      count(*) FILTER (unpredictable) AS unpredictable\n\
         FROM operations WHERE experiment = {experiment} AND NOT warmup AND NOT drained GROUP BY ALL ORDER BY ALL"
    );
    html! {
        h3 { "Actions" }
        div.wide { table {
            thead { tr {
                th.word { "action" } th { "ok" } th { "failed" } th { "unknown" } th { "skipped" } th { "mean" } th { "p50" }
                th { "p95" } th { "p99" } th { "max" } th { "% within" } th { "unpredictable" }
            } }
            tbody {
                @for (action, figures) in &verdict.figures.by_action { (row(action.name(), figures)) }
                (row("all", &verdict.figures.overall))
            }
        } }
        (statement(&sql))
    }
}

/// How long the busiest worker waited for a processor, where the kernel counts it.
fn waited(run_delay_share: Option<f64>) -> String {
    run_delay_share.map_or(String::new(), |share| format!(" and waited for one {:.1}% of the time", share * 100.0))
}

/// Whether threads had no session to run.
fn idle(report: &ReplayReport) -> String {
    match report.idle_ns {
        0 => String::new(),
        idle_ns => format!("; threads had no session to run for {} in all", short_time(idle_ns)),
    }
}

/// A run without a coordinator.
fn one_replayer(report: &ReplayReport) -> Markup {
    html! {
        p {
            "One replayer, whose busiest worker used " (format!("{:.0}%", report.worker_cpu_share * 100.0))
            " of a processor" (waited(report.run_delay_share)) ", with a dispatch lag of "
            (short_time(report.dispatch_lag_ns_mean as u64)) " on average and " (short_time(report.dispatch_lag_ns_p99))
            " at the 99th percentile. On average " (format!("{:.1}", report.sessions_in_flight))
            " sessions were under way" (idle(report)) "."
        }
    }
}

/// Whether the load generators kept up, and what each of several saw.
pub(super) fn replayers(verdict: &Verdict, report: &ReplayReport) -> Markup {
    let of = |name: &str| verdict.replayers.iter().find(|figures| figures.name == name);
    let clock = |reading: &schemas::run::ClockReading| {
        let sign = if reading.offset_ns < 0 { "-" } else { "" };
        let known_to = short_time((reading.round_trip_ns.max(0) / 2) as u64);
        format!("{sign}{} ± {known_to}", short_time(reading.offset_ns.unsigned_abs()))
    };
    let several = !verdict.replayers.is_empty();
    let content = html! {
        @for fault in &report.faults { p.fail { (fault) } }
        @if report.replayers.is_empty() { (one_replayer(report)) } @else { div.wide { table {
            thead { tr {
                th.word { "replayer" } th.word { "host" } th { "T" } th { "fragments" } th { "ok" } th { "errors" }
                @if several { th { "actions/s" } th { "% within" } th { "% unpredictable" } }
                th { "busiest worker" } th { "waited for a processor" } th { "dispatch lag, mean" } th { "p99" } th { "clock before" } th { "clock after" }
            } }
            tbody { @for replayer in &report.replayers {
                tr {
                    td.word { (replayer.name) }
                    td.word { (replayer.host.name) ", " (replayer.host.system) ", " (replayer.host.cpus) " processors" }
                    td { (replayer.threads) } td { (replayer.fragments.len()) }
                    td { (grouped(replayer.ok)) } td { (grouped(replayer.errors)) }
                    @if several {
                        @if let Some(own) = of(&replayer.name) {
                            td { (grouped(own.throughput_per_s.round() as u64)) }
                            td { (format!("{:.2}", own.within_beta_percent)) }
                            td { (format!("{:.3}", own.unpredictable_percent)) }
                        } @else { td {} td {} td {} }
                    }
                    td { (format!("{:.0}%", replayer.worker_cpu_share * 100.0)) }
                    td { (replayer.run_delay_share.map_or(String::new(), |share| format!("{:.1}%", share * 100.0))) }
                    td { (short_time(replayer.dispatch_lag_ns_mean as u64)) }
                    td { (short_time(replayer.dispatch_lag_ns_p99)) }
                    @for reading in &replayer.clock { td { (clock(reading)) } }
                }
            } }
        } } }
        p.soft {
            "If a replayer's busiest worker has no time left or takes up answers late, results reflect the replayer, not the store. Clocks are those of the \
             replayers less that of the coordinator; no validation depends on them."
        }
        @if !report.store_counters.is_empty() {
            p { "What the store counted, warm-up included:" }
            dl { @for (name, count) in &report.store_counters { dt { (name) } dd { (grouped(*count)) } } }
        }
    };
    section("Replayers", &content)
}

/// Where, with what, and how to have it again.
pub(super) fn circumstances(told: &Told<'_>) -> Markup {
    let document = told.document;
    let again = html! {
        p { "The trace set decides everything but time, so that this repeats the run exactly (under another --name):" }
        pre { (command_line(&document.command)) }
        dl {
            dt { "trace set" } dd { (document.trace.display()) }
            dt { "its id" } dd { (document.trace_id) }
            dt { "workload" } dd { (document.workload_id) }
            dt { "host" } dd { (document.host.name) ", " (document.host.system) ", " (document.host.cpus) " processors" }
            @for (name, value) in &document.store_settings { dt { (name) } dd { (value) } }
        }
    };
    section("Circumstances", &again)
}

/// A command as a shell takes it.
pub fn command_line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
