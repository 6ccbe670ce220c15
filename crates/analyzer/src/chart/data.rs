//! The same charts as data: what the script of a page needs to draw them again, with a crosshair, a legend that
//! hides and shows, and a zoom.

use serde_json::{Value, json};

use super::axis::Axis;
use super::bars::BarChart;
use super::frame;
use super::heat::{HEAT_COLOURS, HeatMap};
use super::lines::{Across, LineChart, LineSeries, Mark, Rule, Stroke};

/// An axis: its label, the values at its ends, and whether it is logarithmic.
fn axis(label: &str, axis: &Axis) -> Value {
    let (low, high) = axis.range();
    json!({ "label": label, "range": [low, high], "log": axis.is_log() })
}

/// A number with as many digits as a picture can show. JSON has no infinity and no NaN.
fn short(value: f64) -> Value {
    match value.is_finite() {
        true => format!("{value:.5e}").parse::<f64>().map_or(Value::Null, Value::from),
        false => Value::Null,
    }
}

fn shorts(values: impl Iterator<Item = f64>) -> Value {
    values.map(short).collect::<Vec<_>>().into()
}

/// The chart as an object of JSON. The axis across is None where points have names.
pub(super) fn lines(chart: &LineChart, x: Option<&Axis>, y: &Axis) -> Value {
    let mut out = json!({
        "kind": "lines",
        "title": chart.title,
        "x": match (&chart.across, x) {
            (Across::Points(names), _) => json!({ "label": chart.x_label, "names": names }),
            (Across::Numbers(_), Some(x)) => axis(&chart.x_label, x),
            (Across::Numbers(_), None) => json!({ "label": chart.x_label, "range": [0, 1] }),
        },
        "y": axis(&chart.y_label, y),
        "rules": chart.rules.iter().map(rule).collect::<Vec<_>>(),
        "band": frame::hex(frame::colour(super::lines::BAND_LOOK)),
        "series": chart.series.iter().enumerate().map(|(order, own)| series(chart, order, own)).collect::<Vec<_>>(),
    });
    if let Some((label, right)) = chart.right_axis() {
        out["right"] = axis(label, &right);
    }
    out
}

fn rule(rule: &Rule) -> Value {
    json!({ "y": rule.y, "label": rule.label, "band": rule.band.map(|(low, high)| [low, high]) })
}

fn series(chart: &LineChart, order: usize, own: &LineSeries) -> Value {
    let look = chart.look(order);
    let mut out = json!({
        "label": own.label,
        "colour": frame::hex(frame::colour(look)),
        "look": look % frame::SHAPES,
        "line": own.stroke != Stroke::Scattered,
        "marks": own.stroke != Stroke::Plain,
        "x": shorts(own.points.iter().map(|point| point.x)),
        "y": shorts(own.points.iter().map(|point| point.y)),
    });
    if own.points.iter().any(|point| point.mark != Mark::Filled) {
        let sign = |mark| match mark {
            Mark::Filled => 'f',
            Mark::Hollow => 'h',
            Mark::Ring => 'r',
        };
        out["signs"] = own.points.iter().map(|point| sign(point.mark)).collect::<String>().into();
    }
    // The script words the values of a plain line itself; there are many.
    if own.stroke != Stroke::Plain && !own.tooltips.is_empty() {
        out["tips"] = own.tooltips.clone().into();
    }
    for (name, texts) in [("names", &own.names), ("links", &own.links)] {
        if !texts.is_empty() {
            out[name] = texts.clone().into();
        }
    }
    if own.on_right.is_some() {
        out["right"] = true.into();
    }
    if own.is_off {
        out["off"] = true.into();
    }
    out
}

/// The same for bars.
pub(super) fn bars(chart: &BarChart, y: &Axis) -> Value {
    let series = chart.series.iter().enumerate().map(|(order, own)| {
        let mut out = json!({
            "label": own.label,
            "colour": frame::hex(frame::colour(order)),
            "x": (0..own.bars.len()).collect::<Vec<_>>(),
            "y": shorts(own.bars.iter().map(|bar| bar.value.unwrap_or(f64::NAN))),
            "tips": own.bars.iter().map(|bar| bar.label.as_str()).collect::<Vec<_>>(),
        });
        if own.bars.iter().any(|bar| bar.interval.is_some()) {
            let ends = own.bars.iter().map(|bar| bar.interval.map(|(low, high)| [low, high]));
            out["intervals"] = json!(ends.collect::<Vec<_>>());
        }
        if !own.links.is_empty() {
            out["links"] = own.links.clone().into();
        }
        out
    });
    json!({
        "kind": "bars",
        "title": chart.title,
        "x": { "label": chart.x_label, "names": chart.groups },
        "y": axis(&chart.y_label, y),
        "rules": [],
        "series": series.collect::<Vec<_>>(),
    })
}

/// The same for a heat map: the cells as left and right, lower and upper end, count and step of the colours.
pub(super) fn heat(chart: &HeatMap, x: &Axis, y: &Axis, step: impl Fn(u64) -> usize) -> Value {
    let mut columns: Vec<(f64, f64)> = chart.cells.iter().map(|cell| cell.x).collect();
    columns.sort_by(|a, b| a.0.total_cmp(&b.0));
    columns.dedup();
    let place = |x: (f64, f64)| columns.iter().position(|own| *own == x).unwrap_or(0);
    let cells = chart
        .cells
        .iter()
        .map(|cell| json!([place(cell.x), short(cell.y.0), short(cell.y.1), cell.count, step(cell.count)]));
    json!({
        "kind": "heat",
        "title": chart.title,
        "x": axis(&chart.x_label, x),
        "y": axis(&chart.y_label, y),
        "rules": [],
        "steps": HEAT_COLOURS.len(),
        "columns": columns.iter().map(|(from, to)| json!([short(*from), short(*to)])).collect::<Vec<_>>(),
        "cells": cells.collect::<Vec<_>>(),
    })
}
