//! The parts of a run's page around the charts: ratings, tables, setup.

use maud::{Markup, html};
use schemas::run::{ClockReading, ReplayReport, ReplayerReport};
use schemas::sla::short_time;
use schemas::verdict::{OperationFigures, Rating, Ruling, ServiceTimes, Verdict};

use super::RunData;
use super::conclusion::conclusion;
use super::conclusion::verdict_in_a_word;
use super::layout::{Column, Section, command_line, section, statement, table};
use super::numbers::spaced;
use crate::report::{plural, sla_in_words, thousands as grouped};
use crate::shares::percent;

/// The title, the conclusion and the ratings.
pub(super) fn head(data: &RunData<'_>) -> Markup {
    let document = data.document;
    let sla = document.sla.or(data.verdicts.last().map(|verdict| verdict.sla)).unwrap_or_default();
    let began = humantime::format_rfc3339_seconds(
        std::time::UNIX_EPOCH + std::time::Duration::from_secs(document.started_unix_s),
    );
    html! {
        h1 { (document.name) }
        p.soft { (document.store) " · " (began) " · Encore " (document.encore_version) }
        @if let Some(sentence) = conclusion(data) {
            div.answer {
                @if let Some((kind, word)) = verdict_in_a_word(data) { span class=(format!("badge {kind}")) { (word) } }
                p.conclusion { (spaced(&html! { (sentence) })) }
            }
        }
        p { "SLA: " (sla_in_words(&sla)) "." }
        @for note in document.notes() { p.soft { "Note: " (note) "." } }
        @if let schemas::run::RunState::Failed(why) = &document.state { p.fail { "The run failed: " (why) } }
        @if document.state == schemas::run::RunState::Interrupted { p.void { "The run was interrupted." } }
        (ratings(data))
    }
}

fn ratings(data: &RunData<'_>) -> Markup {
    let Some(rating) = data.rating else { return html! {} };
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
        let value = if name == "Socialites" { rated.threads.to_string() } else { grouped(rated.value.round() as u64) };
        html! {
            div.rating {
                span.soft { (name) }
                b { @if rated.at_least { "≥ " } (spaced(&html! { (value) })) }
                p { (unit) @if name != "Socialites" { ", with " (plural(rated.threads.into(), "thread")) } }
                @if let Some(interval) = &rated.interval {
                    p.soft {
                        @let ends = [interval.low, interval.high].map(|end| grouped(end.round() as u64));
                        "from " (spaced(&html! { (ends[0]) })) " to " (spaced(&html! { (ends[1]) })) ": " (interval.basis)
                    }
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
            @if let Some(soar) = &rating.soar { (one("SoAR", "operations per second", soar)) }
            @if let Some(socialites) = &rating.socialites { (one("Socialites", "concurrent threads", socialites)) }
            @if let Some(rate) = &rating.rate { (one("Arrival rate", "sessions per second", rate)) }
        }
    }
}

fn ruling(ruling: Ruling) -> Markup {
    html! { span class=(ruling.name()) { (ruling.name()) } }
}

/// Every experiment in the order it ran, with the reasons of its verdict.
pub(super) fn experiments(data: &RunData<'_>) -> Section {
    let is_open_loop = data.verdicts.iter().any(|verdict| verdict.rate_per_s.is_some());
    let columns: Vec<Column> = ["experiment", "T"]
        .into_iter()
        .chain(is_open_loop.then_some("sessions due/s"))
        .chain(["operations/s", "p50", "p95", "p99", "max"])
        .chain(["service p50", "service p95", "service p99", "service max"].into_iter().filter(|_| is_open_loop))
        .chain(["% within", "% unpredictable"])
        .map(Column::Number)
        .chain([Column::Words("verdict")])
        .collect();
    let row = |verdict: &Verdict| {
        let (figures, overall) = (&verdict.figures, &verdict.figures.overall);
        let times = [overall.p50_ns, overall.p95_ns, overall.p99_ns, overall.max_ns].map(short_time);
        let mut row = vec![
            html! { span id=(format!("experiment-{}", verdict.experiment)) { (verdict.experiment) } @if data.is_final(verdict.experiment) { " final" } },
            html! { (verdict.threads) },
        ];
        let rate = |rate: f64| html! { (grouped(rate.round() as u64)) };
        row.extend(is_open_loop.then(|| verdict.rate_per_s.map_or(html! { "-" }, rate)));
        row.push(html! { (grouped(figures.throughput_per_s.round() as u64)) });
        row.extend(times.map(|time| html! { (time) }));
        if is_open_loop {
            let times = overall.service.map(|own| [own.p50_ns, own.p95_ns, own.p99_ns, own.max_ns].map(short_time));
            row.extend(times.unwrap_or_else(|| ["-"; 4].map(String::from)).map(|time| html! { (time) }));
        }
        row.extend([
            html! { (format!("{:.2}", figures.within_beta_percent)) },
            html! { (format!("{:.3}", figures.unpredictable_percent)) },
            html! { (ruling(verdict.ruling)) @for reason in &verdict.reasons { br; (reason) } },
        ]);
        row
    };
    let rows: Vec<Vec<Markup>> = data.verdicts.iter().map(row).collect();
    let content = html! {
        (table(&columns, &rows))
        (statement("SELECT * FROM experiments ORDER BY experiment"))
    };
    section("Experiments, in the order they ran", content)
}

/// Counts and response times by operation, the slowest first.
pub(super) fn operations(verdict: &Verdict) -> Markup {
    // Without transactions nothing is rolled back.
    let aborted = verdict.figures.transactions.map(|_| "aborted");
    let columns: Vec<Column> = std::iter::once(Column::Words("operation"))
        .chain(["ok", "failed", "unknown", "skipped"].map(Column::Number))
        .chain(aborted.map(Column::Number))
        .chain(["mean", "p50", "p95", "p99", "max"].map(Column::Number))
        .chain(["% within", "unpredictable"].map(Column::Number))
        .collect();
    let row = |name: &str, figures: &OperationFigures| {
        let issued = figures.ok + figures.failed + figures.unknown;
        let counts = [figures.ok, figures.failed, figures.unknown, figures.skipped].map(grouped);
        let times = [figures.mean_ns as u64, figures.p50_ns, figures.p95_ns, figures.p99_ns, figures.max_ns];
        let within = format!("{:.2}", percent(figures.within_beta, issued));
        let aborted = aborted.map(|_| grouped(figures.aborted));
        let texts = counts.into_iter().chain(aborted).chain(times.map(short_time));
        let texts = texts.chain([within, grouped(figures.unpredictable)]);
        // The total stays below the operations when the table is sorted.
        let name = html! { span.total[name == "all"] { (name) } };
        std::iter::once(name).chain(texts.map(|text| html! { (text) })).collect::<Vec<Markup>>()
    };
    let mut by_operation: Vec<_> = verdict.figures.by_operation.iter().collect();
    by_operation.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.p95_ns));
    let mut rows: Vec<Vec<Markup>> = by_operation.iter().map(|(operation, figures)| row(operation, figures)).collect();
    rows.push(row("all", &verdict.figures.overall));
    html! {
        @if let Some(transactions) = &verdict.figures.transactions { p { (transactions.in_words()) "." } }
        p.soft { "The operation with the longest p95 is first." }
        (table(&columns, &rows))
        (statement(&operations_sql(verdict, "response_ns")))
        (service_times(verdict))
    }
}

/// The service times of an open loop by operation, the slowest first; nothing in a closed loop.
fn service_times(verdict: &Verdict) -> Markup {
    let overall = &verdict.figures.overall;
    if overall.service.is_none() {
        return html! {};
    }
    let columns: Vec<Column> = std::iter::once(Column::Words("operation"))
        .chain(["mean", "p50", "p95", "p99", "max"].map(Column::Number))
        .collect();
    let of = |(name, figures): (&str, &OperationFigures)| Some((name.to_string(), figures.service?));
    let by_operation = verdict.figures.by_operation.iter().map(|(name, figures)| (name.as_str(), figures));
    let mut rows: Vec<(String, ServiceTimes)> = by_operation.filter_map(of).collect();
    rows.sort_by_key(|(_, service)| std::cmp::Reverse(service.p95_ns));
    rows.extend(of(("all", overall)));
    let row = |(name, own): (String, ServiceTimes)| {
        let times = [own.mean_ns as u64, own.p50_ns, own.p95_ns, own.p99_ns, own.max_ns].map(short_time);
        std::iter::once(name).chain(times).map(|text| html! { (text) }).collect::<Vec<Markup>>()
    };
    html! {
        h3 { "Service times" }
        p.soft {
            "The table above has response times, which begin when a session is due. Service times begin when an \
             operation starts, so they hide how long sessions waited."
        }
        (table(&columns, &rows.into_iter().map(row).collect::<Vec<_>>()))
        (statement(&operations_sql(verdict, "service_ns")))
    }
}

/// Counts and times by operation. `time` is the column of the times.
fn operations_sql(verdict: &Verdict, time: &str) -> String {
    let (experiment, beta_ns) = (verdict.experiment, verdict.sla.beta_ns);
    // What an operation of a transaction counts as depends on the transaction.
    let (outcome, from) = match verdict.figures.transactions {
        None => ("outcome", "operations".to_string()),
        Some(_) => {
            let own = "CASE counts_as WHEN 'nothing' THEN outcome ELSE counts_as END AS counted";
            ("counted", format!("(SELECT *, {own} FROM operations)"))
        }
    };
    format!(
        "-- The percentiles above are rounded to three significant digits; these are exact.\n\
         SELECT operation, count(*) FILTER ({outcome} = 'ok') AS ok, count(*) FILTER ({outcome} = 'failed') AS failed,\n\
         \u{20}      count(*) FILTER ({outcome} = 'unknown') AS unknown, count(*) FILTER ({outcome} = 'skipped') AS skipped,\n\
         \u{20}      avg({time}) FILTER ({outcome} = 'ok') AS mean_ns,\n\
         \u{20}      quantile_disc({time}, [0.5, 0.95, 0.99]) FILTER ({outcome} = 'ok') AS percentiles_ns,\n\
         \u{20}      max({time}) FILTER ({outcome} = 'ok') AS max_ns,\n\
         \u{20}      100.0 * count(*) FILTER ({outcome} = 'ok' AND response_ns <= {beta_ns})\n\
         \u{20}          / nullif(count(*) FILTER ({outcome} NOT IN ('skipped', 'aborted')), 0) AS within_percent,\n\
         \u{20}      count(*) FILTER (unpredictable) AS unpredictable\n\
         FROM {from} WHERE experiment = {experiment} AND NOT warmup AND NOT drained\n\
         GROUP BY ALL ORDER BY percentiles_ns[2] DESC"
    )
}

/// How long the busiest worker waited for a processor, if the kernel counts it.
fn waited(run_delay_share: Option<f64>) -> String {
    run_delay_share
        .map_or(String::new(), |share| format!(" and waited for a processor {:.1}% of the time", share * 100.0))
}

/// How long threads had no session to run.
fn idle(report: &ReplayReport) -> String {
    match report.idle_ns {
        0 => String::new(),
        idle_ns => format!("; threads were idle for {} in total", short_time(idle_ns)),
    }
}

/// The report of a run without a coordinator.
fn one_replayer(report: &ReplayReport) -> Markup {
    html! {
        p {
            "One replayer. Its busiest worker used " (format!("{:.0}%", report.worker_cpu_share * 100.0))
            " of a processor" (waited(report.run_delay_share)) ". Scheduling delay: mean "
            (short_time(report.dispatch_lag_ns_mean as u64)) ", p99 " (short_time(report.dispatch_lag_ns_p99))
            ". Sessions under way on average: " (format!("{:.1}", report.sessions_in_flight)) (idle(report)) "."
        }
    }
}

/// Whether the load generators kept up, and the figures of each of several.
pub(super) fn replayers(verdict: &Verdict, report: &ReplayReport) -> Section {
    let content = html! {
        @for fault in &report.faults { p.fail { (fault) } }
        @if report.replayers.is_empty() { (one_replayer(report)) } @else { (several_replayers(verdict, report)) }
        p.soft {
            "If a replayer's busiest worker is saturated or its scheduling delay is long, results reflect the \
             replayer, not the store. Clock offsets are relative to the coordinator; validation does not use them."
        }
        @if !report.store_counters.is_empty() {
            p { "Store counters (warm-up included):" }
            dl { @for (name, count) in &report.store_counters { dt { (name) } dd { (grouped(*count)) } } }
        }
    };
    section("Replayers", content)
}

fn several_replayers(verdict: &Verdict, report: &ReplayReport) -> Markup {
    let several = !verdict.replayers.is_empty();
    let own = ["operations/s", "% within", "% unpredictable"].into_iter().filter(|_| several);
    let columns: Vec<Column> = ["replayer", "host"]
        .map(Column::Words)
        .into_iter()
        .chain(["T", "fragments", "ok", "errors"].into_iter().chain(own).map(Column::Number))
        .chain(["busiest worker", "waited for a processor", "scheduling delay, mean", "p99"].map(Column::Number))
        .chain(["clock before", "clock after"].map(Column::Number))
        .collect();
    let row = |replayer: &ReplayerReport| {
        let host = &replayer.host;
        let mut row = vec![
            replayer.name.clone(),
            format!("{}, {}, {}", host.name, host.system, plural(host.cpus.into(), "processor")),
            replayer.threads.to_string(),
            replayer.fragments.len().to_string(),
            grouped(replayer.ok),
            grouped(replayer.errors),
        ];
        if several {
            let own = verdict.replayers.iter().find(|figures| figures.name == replayer.name);
            row.push(own.map_or(String::new(), |own| grouped(own.throughput_per_s.round() as u64)));
            row.push(own.map_or(String::new(), |own| format!("{:.2}", own.within_beta_percent)));
            row.push(own.map_or(String::new(), |own| format!("{:.3}", own.unpredictable_percent)));
        }
        row.push(format!("{:.0}%", replayer.worker_cpu_share * 100.0));
        row.push(replayer.run_delay_share.map_or(String::new(), |share| format!("{:.1}%", share * 100.0)));
        row.push(short_time(replayer.dispatch_lag_ns_mean as u64));
        row.push(short_time(replayer.dispatch_lag_ns_p99));
        row.extend(replayer.clock.iter().map(clock));
        row.into_iter().map(|text| html! { (text) }).collect::<Vec<Markup>>()
    };
    table(&columns, &report.replayers.iter().map(row).collect::<Vec<_>>())
}

/// A clock's offset, and how precisely it is known.
fn clock(reading: &ClockReading) -> String {
    let sign = if reading.offset_ns < 0 { "-" } else { "" };
    let known_to = short_time((reading.round_trip_ns.max(0) / 2) as u64);
    format!("{sign}{} ± {known_to}", short_time(reading.offset_ns.unsigned_abs()))
}

/// The command, the trace set and the host: how to repeat the run.
pub(super) fn setup(data: &RunData<'_>) -> Section {
    let document = data.document;
    let again = html! {
        p { "To repeat with the same workload (use another --name):" }
        pre { (command_line(&document.command)) }
        dl {
            dt { "trace set" } dd { (document.trace.display()) }
            dt { "its id" } dd { (document.trace_id) }
            dt { "workload" } dd { (document.workload_id) }
            dt { "host" } dd { (document.host.name) ", " (document.host.system) ", " (plural(document.host.cpus.into(), "processor")) }
            @for (name, value) in &document.store_settings { dt { (name) } dd { (value) } }
        }
    };
    section("Setup", again)
}
