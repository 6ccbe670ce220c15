//! A rate that is given at some points in time, for example in a CSV file. It is linear between them.

use std::path::Path;

use super::pieces::SHORTEST_S;
use super::profile::{DUE_S_MAX, Segment, fault};
use crate::words::thousands;

/// A time in seconds, and the rate then in sessions a second.
pub type Point = [f64; 2];

/// The most points.
const POINTS_MAX: usize = 100_000;

/// The header of a CSV file.
const HEADER: [&str; 2] = ["seconds", "rate"];

/// Reads the points of a CSV file. The error names the file and the line.
pub(super) fn read_csv(path: &Path) -> Result<Vec<Point>, String> {
    let file = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| format!("{file}: cannot be read: {e}"))?;
    parse_csv(&text).map_err(|(line, message)| format!("{file} line {line}: {message}"))
}

/// The points of a CSV text; the error has its line.
fn parse_csv(text: &str) -> Result<Vec<Point>, (u64, String)> {
    // Each record then ends where its line ends, which is what tells its number.
    let text = format!("{text}\n");
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .terminator(csv::Terminator::Any(b'\n'))
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes());
    let (mut points, mut lines) = (Vec::new(), Vec::new());
    let (mut record, mut has_header) = (csv::StringRecord::new(), false);
    loop {
        let read = reader.read_record(&mut record);
        let line = reader.position().line().saturating_sub(1).max(1);
        if !read.map_err(|e| (line, format!("is not CSV: {e}")))? {
            break;
        }
        let number = |text: &str| {
            let wrong = || format!("{text:?} is not a number; write seconds and sessions a second");
            text.parse::<f64>().map_err(|_| (line, wrong()))
        };
        let cells: Vec<&str> = record.iter().collect();
        match cells[..] {
            [""] => continue,
            _ if !has_header && cells == HEADER => has_header = true,
            _ if !has_header => {
                return Err((line, format!("the header is {:?}; write {:?}", cells.join(","), HEADER.join(","))));
            }
            [seconds, rate] => {
                points.push([number(seconds)?, number(rate)?]);
                lines.push(line);
            }
            _ => return Err((line, format!("has {} values; write a time and a rate", cells.len()))),
        }
    }
    match check(&points) {
        Ok(()) => Ok(points),
        Err((index, message)) => Err((lines.get(index).copied().unwrap_or(1), message)),
    }
}

/// Refuses points that are no rate over time; the error has the number of the point.
pub(super) fn check(points: &[Point]) -> Result<(), (usize, String)> {
    if points.is_empty() {
        return Err((0, "there is no point; give a time and a rate".into()));
    }
    if points.len() > POINTS_MAX {
        let most = thousands(POINTS_MAX as u64);
        return Err((POINTS_MAX, format!("there are {} points, at most {most} are possible", points.len())));
    }
    for (index, [seconds, rate]) in points.iter().enumerate() {
        let wrong = |message: String| Err((index, message));
        if !(0.0..=DUE_S_MAX).contains(seconds) {
            return wrong(format!("{seconds} s is no time; use 0 to {DUE_S_MAX} s"));
        }
        if let Some(fault) = fault(*rate) {
            return wrong(format!("the rate {rate} at {seconds} s {fault}; use a number of at least 0"));
        }
        let before = index.checked_sub(1).map(|before| points[before][0]);
        match before {
            None if *seconds > 0.0 => {
                return wrong(format!("the first point is at {seconds} s; begin with the rate at 0 s"));
            }
            Some(before) if *seconds < before => {
                return wrong(format!("{seconds} s comes after {before} s; sort the points by time"));
            }
            Some(before) if *seconds > before && seconds - before < SHORTEST_S => {
                return wrong(format!("{seconds} s is less than {SHORTEST_S} s after {before} s; use fewer points"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The segments between checked points, and the rate at the end. Two points with one time are a jump.
pub(super) fn segments(points: &[Point]) -> (Vec<Segment>, f64) {
    let between = |pair: &[Point]| {
        let ([start_s, from], [end_s, to]) = (pair[0], pair[1]);
        Segment { start_s, length_s: end_s - start_s, from, to }
    };
    let segments = points.windows(2).map(between).filter(|segment| segment.length_s > 0.0).collect();
    (segments, points.last().map_or(0.0, |[_, rate]| *rate))
}
