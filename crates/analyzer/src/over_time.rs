//! The course of an experiment as text: throughput, the timeline as sparklines, and the freshness
//! of reads.

use std::fmt::Write;

use schemas::sla::{Sla, short_time};
use schemas::verdict::{Figures, Freshness, Slice, Spread};
use schemas::words::{plural, rate, thousands};

use crate::consistency_words::sentence;
use crate::shares::percent;
use crate::tables::new_table;

/// The most characters of a sparkline.
const MOST_COLUMNS: usize = 60;

/// Operations and sessions a second, and the operations that are not counted.
pub(crate) fn throughput(figures: &Figures) -> String {
    let (operations, sessions) = (figures.throughput_per_s, figures.sessions_per_s);
    let mut out = format!("throughput       {} operations/s, {} sessions/s", rate(operations), rate(sessions));
    if figures.noops > 0 {
        let all = thousands(figures.sessions + figures.noops);
        let _ = write!(out, " ({} of {all} sessions were no-operations)", thousands(figures.noops));
    }
    out.push('\n');
    if figures.warmup_operations > 0 {
        let operations = plural(figures.warmup_operations, "operation");
        let _ = writeln!(out, "warm-up          {operations}, not counted");
    }
    if figures.drained_operations > 0 {
        let operations = plural(figures.drained_operations, "operation");
        let _ = writeln!(out, "after the end    {operations} to finish running sessions, not counted");
    }
    out
}

/// A few slices of the timeline, next to each other.
struct Column {
    seconds: f64,
    ok: u64,
    errors: u64,
    unpredictable: u64,
    /// M of its slices together, in percent; not a number without operations.
    met_percent: f64,
    sessions: u64,
    /// Open loop: the mean arrival rate that was asked for.
    due_per_s: Option<f64>,
    /// The highest of its slices: percentiles of slices cannot be combined.
    p99_ns: u64,
    /// A stalled store holds up only the few operations that are under way, so percentiles need
    /// not show the stall. The maximum does.
    max_ns: u64,
    /// The same of service times.
    service_p99_ns: u64,
    service_max_ns: u64,
}

impl Column {
    fn of(slices: &[Slice], seconds: f64) -> Column {
        let sum = |of: fn(&Slice) -> u64| -> u64 { slices.iter().map(of).sum() };
        let due: Option<Vec<f64>> = slices.iter().map(|slice| slice.due_per_s).collect();
        let all = sum(|slice| slice.ok + slice.errors);
        Column {
            seconds,
            ok: sum(|slice| slice.ok),
            errors: sum(|slice| slice.errors),
            unpredictable: sum(|slice| slice.unpredictable),
            met_percent: sum(|slice| slice.met) as f64 * 100.0 / all as f64,
            sessions: sum(|slice| slice.sessions),
            due_per_s: due.map(|rates| rates.iter().sum::<f64>() / rates.len() as f64),
            p99_ns: slices.iter().map(|slice| slice.p99_ns).max().unwrap_or(0),
            max_ns: slices.iter().map(|slice| slice.max_ns).max().unwrap_or(0),
            service_p99_ns: slices.iter().map(|slice| slice.service_times().p99_ns).max().unwrap_or(0),
            service_max_ns: slices.iter().map(|slice| slice.service_times().max_ns).max().unwrap_or(0),
        }
    }
}

/// The timeline, one line per figure; empty if there is none.
pub(crate) fn timeline(figures: &Figures) -> String {
    let timeline = &figures.timeline;
    let slices_per_column = timeline.slices.len().div_ceil(MOST_COLUMNS).max(1);
    let column_s = slices_per_column as f64 * timeline.slice_s;
    let elapsed_s = figures.elapsed_ns as f64 / 1e9;
    let mut columns: Vec<Column> = Vec::new();
    for (index, slices) in timeline.slices.chunks(slices_per_column).enumerate() {
        let seconds = (elapsed_s - index as f64 * column_s).min(column_s);
        // The rate at the end, when threads stop one after the other, says little.
        if index == 0 || seconds * 2.0 >= column_s {
            columns.push(Column::of(slices, seconds));
        }
    }
    if columns.is_empty() {
        return String::new();
    }
    let mut out = format!("timeline         one column = {}\n", short_time((column_s * 1e9) as u64));
    let per_s = |of: fn(&Column) -> u64| -> Vec<f64> {
        columns.iter().map(|column| of(column) as f64 / column.seconds.max(1e-9)).collect()
    };
    // Both rates of an open loop have one scale, so that their lines can be compared.
    let due: Option<Vec<f64>> = columns.iter().map(|column| column.due_per_s).collect();
    let mut rates = vec![("ok/s", per_s(|column| column.ok), None)];
    if let Some(due) = due {
        let sessions = per_s(|column| column.sessions);
        let high = bounds(&sessions).1.max(bounds(&due).1);
        rates.extend([("due/s", due, Some(high)), ("achieved/s", sessions, Some(high))]);
    }
    for (name, rates, scale) in rates {
        let (low, high) = bounds(&rates);
        let line = sparkline(&rates, scale.unwrap_or(high));
        let _ = writeln!(out, "  {name:<13}  {line}  {} to {}", rate(low), rate(high));
    }
    let of = |time: fn(&Column) -> u64| columns.iter().map(|column| time(column) as f64).collect::<Vec<f64>>();
    let mut lines = vec![("p99", of(|column| column.p99_ns)), ("max", of(|column| column.max_ns))];
    if timeline.slices.iter().any(|slice| slice.service.is_some()) {
        lines.push(("service p99", of(|column| column.service_p99_ns)));
        lines.push(("service max", of(|column| column.service_max_ns)));
    }
    for (name, times) in lines {
        // A column without an answer has no response time.
        let answered: Vec<f64> = times.iter().copied().filter(|time| *time > 0.0).collect();
        if !answered.is_empty() {
            let (low, high) = bounds(&answered);
            let (from, to) = (short_time(low as u64), short_time(high as u64));
            let _ = writeln!(out, "  {name:<13}  {}  {from} to {to}", sparkline(&times, high));
        }
    }
    let met: Vec<f64> = columns.iter().map(|column| column.met_percent).collect();
    let (low, high) = bounds(&met);
    if low < 100.0 && figures.met_percent.is_some() {
        let _ =
            writeln!(out, "  M              {}  {}% to {}%", sparkline(&met, 100.0), two_digits(low), two_digits(high));
    }
    let errors: Vec<f64> = columns.iter().map(|column| column.errors as f64).collect();
    let unpredictable = columns.iter().map(|column| column.unpredictable as f64).collect();
    for (name, values) in [("errors", errors), ("unpredictable", unpredictable)] {
        let (low, high) = bounds(&values);
        if high > 0.0 {
            let (low, most) = (thousands(low as u64), thousands(high as u64));
            let _ = writeln!(out, "  {name:<13}  {}  {low} to {most}", sparkline(&values, high));
        }
    }
    out
}

/// A share of operations that met both limits. It is rounded down: 100 means all of them.
fn two_digits(percent: f64) -> String {
    format!("{:.2}", (percent * 100.0).floor() / 100.0)
}

/// M in words; empty without operations.
pub(crate) fn met(figures: &Figures, sla: &Sla) -> String {
    figures.met_percent.map_or(String::new(), |percent| {
        let (percent, beta) = (two_digits(percent), short_time(sla.beta_ns));
        let fresh = match sla.gamma {
            None => "not unpredictable".to_string(),
            Some(gamma) => format!("not stale by more than {}", short_time(gamma.limit_ns)),
        };
        format!("M                {percent}% of the operations within {beta} and {fresh}\n")
    })
}

/// How consistent the registers were, with Γ over time; empty without registers.
pub(crate) fn consistency(figures: &Figures) -> String {
    let Some(found) = &figures.consistency else { return String::new() };
    let mut out = format!("consistency      {}\n", sentence(found));
    let slices = figures.timeline.slices.len().max(found.over_time.len());
    let slices_per_column = slices.div_ceil(MOST_COLUMNS).max(1);
    // The highest of its slices: percentiles cannot be combined.
    let highest = |of: fn(&Spread) -> u64| -> Vec<f64> {
        found
            .over_time
            .chunks(slices_per_column)
            .map(|slices| slices.iter().map(of).max().unwrap_or(0) as f64)
            .collect()
    };
    for (name, line) in [("Γ p95", highest(|slice| slice.p95)), ("Γ max", highest(|slice| slice.max))] {
        let (low, high) = bounds(&line);
        if high > 0.0 {
            let (from, to) = (short_time(low as u64), short_time(high as u64));
            let _ = writeln!(out, "  {name:<13}  {}  {from} to {to}", sparkline(&line, high));
        }
    }
    out
}

fn bounds(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0), |(low, high), value| (value.min(low), value.max(high)))
}

/// One character per value, as high as its share of the highest; a dot for 0.
fn sparkline(values: &[f64], high: f64) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let height = |value: &f64| match (value / high * HEIGHTS.len() as f64).ceil() {
        height if *value > 0.0 => HEIGHTS[(height as usize).clamp(1, HEIGHTS.len()) - 1],
        _ => '·',
    };
    values.iter().map(height).collect()
}

/// How often reads showed all completed updates, by age; empty if no item that was read had been
/// updated.
pub(crate) fn freshness(freshness: &[Freshness]) -> String {
    if freshness.is_empty() {
        return String::new();
    }
    let mut table = new_table(&["time since last update", "items read", "% fresh"], 0);
    let time = |us: u64| short_time(us.saturating_mul(1000));
    for bucket in freshness {
        let age = match bucket.from_us {
            0 => format!("less than {}", time(bucket.to_us)),
            from => format!("{} to {}", time(from), time(bucket.to_us)),
        };
        // Rounded down: 100 means always fresh.
        let share = (percent(bucket.fresh, bucket.reads) * 100.0).floor() / 100.0;
        table.add_row([age, thousands(bucket.reads), format!("{share:.2}")]);
    }
    format!("freshness        share of items read that showed all completed updates\n{}\n", table.trim_fmt())
}

#[cfg(test)]
mod tests {
    use schemas::verdict::{SliceServiceTimes, Timeline};

    use super::*;

    fn figures(slice_s: f64, elapsed_s: f64, slices: Vec<Slice>) -> Figures {
        let timeline = Timeline { slice_s, slices };
        Figures { elapsed_ns: (elapsed_s * 1e9) as u64, timeline, ..Figures::default() }
    }

    fn slice(ok: u64, p99_ns: u64) -> Slice {
        Slice { ok, p99_ns, max_ns: 2 * p99_ns, ..Slice::default() }
    }

    #[test]
    fn a_stall_is_a_gap_with_a_peak_after_it() {
        let mut slices = vec![slice(100, 2_000_000); 8];
        (slices[3], slices[4]) = (slice(0, 0), slice(50, 800_000_000));
        (slices[4].errors, slices[5].errors, slices[6].unpredictable) = (4, 8, 2);
        insta::assert_snapshot!(timeline(&figures(1.0, 8.0, slices)), @r"
        timeline         one column = 1s
          ok/s           ███·▄███  0.0 to 100.0
          p99            ▁▁▁·█▁▁▁  2ms to 800ms
          max            ▁▁▁·█▁▁▁  4ms to 1.6s
          errors         ····▄█··  0 to 8
          unpredictable  ······█·  0 to 2
        ");
    }

    #[test]
    fn many_slices_share_columns_and_a_short_rest_is_left_out() {
        let mut slices: Vec<Slice> = (0..130).map(|i| slice(i, 1000)).collect();
        (slices[1].p99_ns, slices[1].max_ns) = (8000, 16_000);
        insta::assert_snapshot!(timeline(&figures(2.0, 259.0, slices)), @r"
        timeline         one column = 6s
          ok/s           ▁▁▁▁▁▂▂▂▂▂▂▃▃▃▃▃▄▄▄▄▄▅▅▅▅▅▅▆▆▆▆▆▇▇▇▇▇██████  0.5 to 63.5
          p99            █▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁  1us to 8us
          max            █▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁  2us to 16us
        ");
        assert_eq!(timeline(&Figures::default()), "");
    }

    #[test]
    fn freshness_says_100_only_when_all_was_fresh() {
        let bucket = |from_us, to_us, reads, fresh| Freshness { from_us, to_us, reads, fresh };
        let found = [bucket(0, 1, 12, 3), bucket(512, 1024, 100_000, 99_999), bucket(1 << 20, 1 << 21, 7, 7)];
        insta::assert_snapshot!(freshness(&found), @r"
        freshness        share of items read that showed all completed updates
         time since last update  items read  % fresh
        ──────────────────────────────────────────────
         less than 1us                   12    25.00
         512us to 1.02ms            100,000    99.99
         1.05s to 2.1s                    7   100.00
        ");
        assert_eq!(freshness(&[]), "");
    }

    /// The rate falls behind what is due in a stall, and catches up after it.
    #[test]
    fn an_open_loop_shows_due_and_achieved_rates_on_one_scale() {
        let service = Some(SliceServiceTimes { p99_ns: 1_000_000, max_ns: 3_000_000, ..SliceServiceTimes::default() });
        let due_per_s = Some(100.0);
        let due = |sessions, met| Slice { sessions, met, due_per_s, service, ..slice(sessions.max(1), 2_000_000) };
        let mut slices = vec![due(100, 100); 6];
        (slices[2], slices[3]) = (due(25, 25), due(175, 75));
        let mut figures = figures(1.0, 6.0, slices);
        figures.met_percent = Some(83.339);
        insta::assert_snapshot!(timeline(&figures), @r"
        timeline         one column = 1s
          ok/s           ▅▅▂█▅▅  25.0 to 175.0
          due/s          ▅▅▅▅▅▅  100.0 to 100.0
          achieved/s     ▅▅▂█▅▅  25.0 to 175.0
          p99            ██████  2ms to 2ms
          max            ██████  4ms to 4ms
          service p99    ██████  1ms to 1ms
          service max    ██████  3ms to 3ms
          M              ███▄██  42.85% to 100.00%
        ");
        assert_eq!(
            met(&figures, &Sla::default()),
            "M                83.33% of the operations within 100ms and not unpredictable\n"
        );
    }

    #[test]
    fn throughput_names_what_it_counts() {
        let mut figures =
            Figures { throughput_per_s: 1_954_721.2, sessions_per_s: 12.5, sessions: 120, ..Figures::default() };
        assert_eq!(throughput(&figures), "throughput       1,954,721 operations/s, 12.5 sessions/s\n");
        (figures.noops, figures.warmup_operations) = (5, 40);
        insta::assert_snapshot!(throughput(&figures), @r"
        throughput       1,954,721 operations/s, 12.5 sessions/s (5 of 125 sessions were no-operations)
        warm-up          40 operations, not counted
        ");
    }
}
