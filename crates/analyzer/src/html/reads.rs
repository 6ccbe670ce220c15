//! Unpredictable reads: how many there are, and the worst of them in detail.

use maud::{Markup, html};
use schemas::sla::short_time;
use schemas::verdict::Verdict;

use super::RunData;
use super::figures::names;
use super::layout::{picture, statement};
use crate::chart::{Span, SpanChart};
use crate::error::AnalyzeError;
use crate::report::{Story, story, thousands as grouped, write_line};
use crate::witness::Offender;

/// Unpredictable reads by operation, and the worst of them in detail, with the writes that prove
/// them on a time axis.
pub(super) fn unpredictable_reads(
    data: &RunData<'_>,
    verdict: &Verdict,
    offenders: &[Offender],
) -> Result<Markup, AnalyzeError> {
    let figures = &verdict.figures;
    let mut worst = Vec::new();
    for (number, offender) in offenders.iter().enumerate() {
        let Story { heading, sentence, because } = story(data.family, offender);
        let timeline = timeline(data, number + 1, offender);
        worst.push(html! {
            figure {
                h3 { (number + 1) ". " (heading) }
                p { (sentence) }
                p.soft { (because) }
                @if let Some(timeline) = &timeline { (picture(timeline, &format!("read {}", number + 1))?) }
            }
        });
    }
    let by_operation = figures.by_operation.iter().filter(|(_, own)| own.unpredictable > 0);
    let by_operation = by_operation.map(|(operation, own)| format!("{operation}: {}", grouped(own.unpredictable)));
    let by_operation = by_operation.collect::<Vec<_>>().join(", ");
    let sql = format!(
        "SELECT operation, count(*) AS reads, count(*) FILTER (unpredictable) AS unpredictable\nFROM operations\n\
         WHERE experiment = {0} AND NOT warmup AND NOT drained AND counts_as = 'ok'\n  AND operation IN ({1})\nGROUP BY ALL ORDER BY ALL;\n\n\
         SELECT * FROM unpredictable AS u WHERE experiment = {0} AND NOT warmup AND NOT drained\n\
         ORDER BY {3} DESC NULLS FIRST, start_ns, fragment, session, step, item, element\n\
         LIMIT {2}",
        verdict.experiment,
        names(data, |kind| kind.reads),
        offenders.len().max(1),
        data.family.wrongness()
    );
    Ok(html! {
        p {
            (grouped(figures.unpredictable_reads)) " of " (grouped(figures.reads)) " reads ("
            (format!("{:.3}", figures.unpredictable_percent)) "%) returned stale or wrong data."
            @if !by_operation.is_empty() { " By operation: " (by_operation) "." }
        }
        @if let Some(closing) = &figures.closing {
            p { (sentence(&closing.in_words())) }
            @if let Some(sum) = &figures.sum { p { (sentence(&sum.in_words())) } }
            @for missing in &closing.missing { p.soft { (sentence(missing)) } }
        }
        @for read in worst { (read) }
        (statement(&sql))
    })
}

/// A text as a sentence.
fn sentence(text: &str) -> String {
    let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
    format!("{}{rest}.", first.to_uppercase())
}

/// The read and the writes around it; None if no write relates to it.
fn timeline(data: &RunData<'_>, number: usize, offender: &Offender) -> Option<SpanChart> {
    if offender.writes.is_empty() {
        return None;
    }
    let starts = offender.writes.iter().map(|write| write.start_ns).chain([offender.start_ns]);
    let zero = starts.min().unwrap_or(0);
    let ms = |ns: i64| (ns - zero) as f64 / 1e6;
    let mut all: Vec<Span> = offender
        .writes
        .iter()
        .map(|write| Span {
            label: write_line(data.family, write, offender),
            from: ms(write.start_ns),
            to: (write.outcome == schemas::oplog::Outcome::Ok).then(|| ms(write.end_ns)),
            is_subject: false,
        })
        .collect();
    all.reverse();
    all.push(Span {
        label: format!("the read: {}", short_time((offender.end_ns - offender.start_ns).max(0) as u64)),
        from: ms(offender.start_ns),
        to: Some(ms(offender.end_ns)),
        is_subject: true,
    });
    Some(SpanChart {
        title: format!("Read {number}: timeline"),
        description: all.iter().map(|span| span.label.clone()).collect::<Vec<_>>().join("; "),
        x_label: "milliseconds".into(),
        spans: all,
    })
}
