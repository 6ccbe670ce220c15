//! A running experiment, pushed by server-sent events: one picture a second, each of them whole, so that a viewer
//! who comes late or was away sees what all others see.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use analyzer::chart::{Across, LineChart, LinePoint, LineSeries, Mark, Rule, Scale, Stroke};
use analyzer::html::{Column, picture as drawn, spaced, table};
use analyzer::thousands;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use schemas::run::{LiveEvent, LiveFigures, LiveLine, LiveVerdict};
use schemas::sla::short_time;
use schemas::verdict::Ruling;
use tokio::sync::watch;

use super::run::{actions, experiment_id, stopping};
use super::{command, shell};
use crate::deck::command::Typed;
use crate::deck::folder::{Name, State};
use crate::deck::form::encoded;
use crate::deck::server::{Deck, see};
use crate::deck::watch::{Frame, Live};

/// How often a connection without news is used, so that its loss is noticed.
const HEARTBEAT: Duration = Duration::from_secs(10);

pub(in crate::deck) fn page(deck: &Deck, name: &Name) -> Response {
    let mut live = Live::new(deck.setup.folder.clone(), name.clone());
    let frame = live.frame(&deck.setup);
    let is_trace_set = name.is_trace_set();
    if frame.is_last && (is_trace_set || live.document.is_some() || live.output.is_none()) {
        return see(&name.url());
    }
    let events = format!("/events?run={}", encoded(&name.to_string()));
    let state = live.state.clone().unwrap_or(State::Running);
    let content = html! {
        h1 { (name) }
        div.row {
            (actions(deck, name, &state, false))
            @if !is_trace_set { a.button href=(name.url()) { "All of the run" } }
        }
        noscript { meta http-equiv="refresh" content="2"; }
        p.fail data-connection="" role="status" {}
        div data-events=(events) data-then=(name.url()) { (maud::PreEscaped(&frame.html)) }
        (command(&Typed::of(["deck".to_string(), deck.setup.folder.display().to_string()])))
    };
    shell(&format!("{name} live"), "", &content)
}

/// The pictures of a run as server-sent events. `seen` is the picture that the viewer has already.
pub(in crate::deck) fn events(frames: watch::Receiver<Arc<Frame>>, seen: Option<u64>) -> Response {
    let stream = futures::stream::unfold((frames, seen, false), async |(mut frames, seen, has_ended)| {
        if has_ended {
            return None;
        }
        loop {
            let frame = frames.borrow_and_update().clone();
            let is_new = frame.id != 0 && seen != Some(frame.id);
            if is_new || frame.is_last {
                let text = if frame.is_last { last(&frame) } else { event(&frame) };
                return Some((Ok::<_, Infallible>(text), (frames, Some(frame.id), frame.is_last)));
            }
            match tokio::time::timeout(HEARTBEAT, frames.changed()).await {
                Ok(Ok(())) => {}
                // The picture comes from nobody any more: the browser asks again.
                Ok(Err(_)) => return None,
                Err(_) => return Some((Ok(":\n\n".to_string()), (frames, seen, false))),
            }
        }
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream")];
    (headers, Body::from_stream(stream)).into_response()
}

fn event(frame: &Frame) -> String {
    // As JSON it has no line breaks.
    let html = serde_json::Value::from(frame.html.as_str());
    format!("id: {}\nevent: frame\ndata: {html}\n\n", frame.id)
}

fn last(frame: &Frame) -> String {
    format!("{}event: last\ndata: \n\n", event(frame))
}

/// The live part of the page.
pub(in crate::deck) fn picture(live: &Live) -> Markup {
    html! {
        @if let Some(document) = &live.document {
            p.soft { (document.spec.name) " · " (document.store) }
            p { "SLA: " (spaced(&html! { (analyzer::sla_in_words(&document.sla())) })) "." }
        }
        (stopping(live.is_stopping))
        @match (&live.last, &live.output) {
            (Some(line), _) => (spaced(&now(line))),
            (None, Some(output)) if live.name.is_trace_set() => (generating(live.written_bytes, output)),
            (None, Some(output)) if live.document.is_none() => {
                p.conclusion { "The command has started; the run has not begun yet." }
                pre { (output) }
            }
            (None, _) if live.document.is_none() => {
                p.conclusion { "The run has not begun yet: its trace set is generated, or its replayers are started." }
            }
            (None, _) => p.conclusion { "The run prepares its first experiment." },
        }
        (over_time(live))
        (search(&live.name, &live.ended))
        @if let Some(output) = live.output.as_ref().filter(|_| live.document.is_some()) {
            details { summary { "What the command has printed" } pre { (output) } }
        }
        @if let Some(document) = &live.document {
            details { summary { "The command that started this run" } pre.command { (analyzer::html::command_line(&document.command)) } }
        }
    }
}

/// The generation of a trace set.
fn generating(written_bytes: u64, output: &str) -> Markup {
    html! {
        p.conclusion { "The trace set is being generated." }
        p { (format!("{:.1}", written_bytes as f64 / 1e6)) " MB are written so far, with those of other trace sets under way." }
        progress aria-label="Generation" {}
        pre { (output) }
    }
}

/// What happens now.
fn now(line: &LiveLine) -> Markup {
    let LiveLine { experiment, load, why, planned_s, event, .. } = line;
    let part = |what: &str, done: u64, total: u64| {
        html! {
            p { (what) ": " (thousands(done)) " of " (thousands(total.max(done))) }
            progress value=(done) max=(total.max(done).max(1)) aria-label=(what) {}
        }
    };
    html! {
        h2 { "Experiment " (experiment) ", " (load) }
        @if !why.is_empty() { p.soft { (why) } }
        @match event {
            LiveEvent::Sending { done, total } => (part("Sending the trace set to the replayers (bytes)", *done, *total)),
            LiveEvent::Loading { done, total } => (part("Loading the store (rows)", *done, *total)),
            LiveEvent::Closing { done, total } => (part("Closing read (items)", *done, *total)),
            LiveEvent::Collecting => p { "Fetching the logs." },
            LiveEvent::Validating => p { "Validating every read." },
            LiveEvent::Ended(verdict) => p { "Verdict: " (ruling(verdict)) },
            LiveEvent::Running(figures) => (running(figures, *planned_s)),
        }
    }
}

fn ruling(verdict: &LiveVerdict) -> Markup {
    let name = verdict.ruling.name();
    spaced(&html! { span class=(name) { (name) } @for reason in &verdict.reasons { "; " (reason) } })
}

fn running(figures: &LiveFigures, planned_s: Option<f64>) -> Markup {
    let tile = |name: &str, value: String| html! { div.tile { span.soft { (name) } b { (value) } } };
    let round = |value: f64| thousands(value.max(0.0).round() as u64);
    html! {
        @if figures.is_warmup { p { "Warm-up, which does not count: " (format!("{:.0} s", figures.elapsed_s)) } }
        @if let Some(planned_s) = planned_s.filter(|_| !figures.is_warmup) {
            p { (format!("{:.1} s of {planned_s} s", figures.elapsed_s.min(planned_s))) }
            progress value=(figures.elapsed_s.min(planned_s)) max=(planned_s) aria-label="Time" {}
        }
        div.tiles {
            (tile("operations/s", round(figures.ok_per_s)))
            @if let Some(wanted) = figures.wanted_per_s { (tile("wanted operations/s", round(wanted))) }
            (tile("p50", short_time(figures.p50_ns)))
            (tile("p95", short_time(figures.p95_ns)))
            (tile("p99", short_time(figures.p99_ns)))
            (tile("maximum", short_time(figures.max_ns)))
            @if let Some(service) = figures.service_p99_ns { (tile("service p99", short_time(service))) }
            @if let Some(within) = figures.within_percent { (tile("within the SLA", format!("{within:.2}%"))) }
            (tile("errors so far", thousands(figures.errors)))
            @if figures.aborted > 0 { (tile("rolled back so far", thousands(figures.aborted))) }
        }
        (replayers(figures))
        (counters("Counters of the store so far", &figures.store_counters))
    }
}

/// What the store has counted itself.
fn counters(title: &str, counters: &BTreeMap<String, u64>) -> Markup {
    html! {
        @if !counters.is_empty() {
            h3 { (title) }
            dl { @for (name, count) in counters { dt { (name) } dd { (thousands(*count)) } } }
        }
    }
}

fn replayers(figures: &LiveFigures) -> Markup {
    let columns = [
        Column::Words("replayer, since the start"),
        Column::Number("operations/s"),
        Column::Number("p99"),
        Column::Number("processors now"),
        Column::Number("delay at most"),
    ];
    let rows: Vec<Vec<Markup>> = figures
        .replayers
        .iter()
        .map(|own| {
            let per_s = thousands(own.ok_per_s.round() as u64);
            let texts = [own.name.clone(), per_s, short_time(own.p99_ns), format!("{:.2}", own.cpus_used)];
            texts.into_iter().chain([short_time(own.lag_ns_max)]).map(|text| html! { (text) }).collect()
        })
        .collect();
    html! { @if !rows.is_empty() { (table(&columns, &rows)) } }
}

fn line(label: &str, points: &[LiveFigures], value: impl Fn(&LiveFigures) -> Option<f64>) -> LineSeries {
    let point = |figures: &LiveFigures| LinePoint {
        x: figures.elapsed_s,
        y: value(figures).unwrap_or(f64::NAN),
        mark: Mark::Filled,
    };
    let points = points.iter().map(point).collect();
    LineSeries { label: label.to_string(), points, stroke: Stroke::Plain, ..LineSeries::default() }
}

/// The experiment that runs, over time.
fn over_time(live: &Live) -> Markup {
    let points: Vec<LiveFigures> = live.points.iter().filter(|figures| !figures.is_warmup).cloned().collect();
    let is_running = matches!(live.last.as_ref().map(|line| &line.event), Some(LiveEvent::Running(_)));
    if points.len() < 2 || !is_running {
        return html! {};
    }
    let mut rates = vec![line("achieved", &points, |figures| Some(figures.ok_per_s))];
    if points.iter().any(|figures| figures.wanted_per_s.is_some()) {
        rates.push(line("wanted, f(t)", &points, |figures| figures.wanted_per_s));
    }
    let ms = |ns: u64| Some(ns as f64 / 1e6).filter(|ms| *ms > 0.0);
    let times = vec![
        line("p50", &points, |figures| ms(figures.p50_ns)),
        line("p95", &points, |figures| ms(figures.p95_ns)),
        line("p99", &points, |figures| ms(figures.p99_ns)),
    ];
    let limit = live.document.as_ref().map(|document| document.sla().beta_ns as f64 / 1e6);
    let lows = points.iter().flat_map(|figures| [figures.p50_ns, figures.p99_ns]).map(|ns| ns as f64 / 1e6);
    let scale = Scale::suited_to(lows.chain(limit));
    let rates = plot("Throughput over time", "operations/s", Scale::Linear, rates, Vec::new());
    let limits = limit.map(|ms| Rule::at(ms, "SLA".into())).into_iter().collect();
    let times = plot("Response times over time", "response time (ms)", scale, times, limits);
    html! { div.charts { (chart(&rates, "live-rate")) (chart(&times, "live-times")) } }
}

fn plot(title: &str, y_label: &str, y_scale: Scale, series: Vec<LineSeries>, rules: Vec<Rule>) -> LineChart {
    LineChart {
        title: title.into(),
        description: format!("{title}; the figures are above."),
        x_label: "seconds since the measured part began".into(),
        y_label: y_label.into(),
        across: Across::Numbers(Scale::Linear),
        y_scale,
        series,
        rules,
    }
}

/// A chart, or nothing if it cannot be drawn: the figures are in the page too.
fn chart(chart: &LineChart, name: &str) -> Markup {
    html! { @if let Ok(picture) = drawn(chart, name) { figure { (picture) } } }
}

/// The experiments that have ended: the search so far.
fn search(name: &Name, ended: &[(u32, String, LiveVerdict)]) -> Markup {
    if ended.is_empty() {
        return html! {};
    }
    let numbers = ["experiment", "load", "operations/s", "p95", "% within", "unpredictable reads", "% unpredictable"];
    let columns: Vec<Column> = numbers.into_iter().map(Column::Number).chain([Column::Words("verdict")]).collect();
    let row = |(number, load, verdict): &(u32, String, LiveVerdict)| {
        let first = html! {
            a href=(link_to(name, *number)) { (number) } @if verdict.is_final { " final" }
        };
        let texts = [
            load.clone(),
            thousands(verdict.throughput_per_s.round() as u64),
            short_time(verdict.p95_ns),
            format!("{:.2}", verdict.within_percent),
            thousands(verdict.unpredictable_reads),
            format!("{:.3}", verdict.unpredictable_percent),
        ];
        let texts = texts.into_iter().map(|text| html! { (text) });
        std::iter::once(first).chain(texts).chain([ruling(verdict)]).collect::<Vec<Markup>>()
    };
    let rows: Vec<Vec<Markup>> = ended.iter().rev().map(row).collect();
    html! {
        h2 { "Search" }
        @if ended.len() > 1 { (by_load(name, ended)) }
        (table(&columns, &rows))
        @if let Some((.., verdict)) = ended.last() {
            (counters("Counters of the store in the last experiment that ended", &verdict.store_counters))
        }
    }
}

/// An experiment on the page of its run.
fn link_to(name: &Name, experiment: u32) -> String {
    format!("{}#{}", name.url(), experiment_id(experiment))
}

/// Throughput by load: what the search has found. Marks have the numbers of their experiments; the line is the mean of
/// the search's own.
fn by_load(name: &Name, ended: &[(u32, String, LiveVerdict)]) -> Markup {
    let load = |verdict: &LiveVerdict| verdict.rate_per_s.unwrap_or_else(|| f64::from(verdict.threads));
    let mut sorted: Vec<&(u32, String, LiveVerdict)> = ended.iter().collect();
    sorted.sort_by(|(.., a), (.., b)| load(a).total_cmp(&load(b)));
    let of = |label: &str, wanted: Ruling, mark: Mark, look: usize| {
        let own = || sorted.iter().filter(|(.., verdict)| verdict.ruling == wanted);
        let links = own().map(|(number, ..)| link_to(name, *number)).collect();
        let (names, points) = own()
            .map(|(number, _, own)| (number.to_string(), LinePoint { x: load(own), y: own.throughput_per_s, mark }))
            .unzip();
        let stroke = Stroke::Scattered;
        LineSeries { label: label.into(), points, names, links, stroke, look: Some(look), ..LineSeries::default() }
    };
    let searched: Vec<&LiveVerdict> = sorted.iter().map(|(.., own)| own).filter(|own| !own.is_final).collect();
    let same = searched.chunk_by(|a, b| load(a) == load(b));
    let points = same.map(|same| {
        let mean = same.iter().map(|own| own.throughput_per_s).sum::<f64>() / same.len() as f64;
        LinePoint { x: load(same[0]), y: mean, mark: Mark::Filled }
    });
    let (label, stroke) = ("search, mean".to_string(), Stroke::Plain);
    let means = LineSeries { label, points: points.collect(), stroke, look: Some(3), ..LineSeries::default() };
    let series = [
        means,
        of("passed", Ruling::Pass, Mark::Filled, 0),
        of("failed", Ruling::Fail, Mark::Hollow, 1),
        of("void", Ruling::Void, Mark::Hollow, 2),
    ];
    let series: Vec<LineSeries> = series.into_iter().filter(|series| !series.points.is_empty()).collect();
    let is_rate = ended.iter().any(|(.., verdict)| verdict.rate_per_s.is_some());
    let loads = series.iter().flat_map(|series| series.points.iter().map(|point| point.x));
    let across = Across::Numbers(Scale::suited_to(loads));
    let x_label = if is_rate { "sessions due per second" } else { "threads (T)" };
    let whole = plot("Throughput by load", "operations/s", Scale::Linear, series, Vec::new());
    chart(&LineChart { x_label: x_label.into(), across, ..whole }, "live-search")
}
