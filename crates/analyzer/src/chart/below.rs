//! What is written below the horizontal axis: numbers, or the names of points and groups.

use plotters::style::text_anchor::HPos;

use super::axis::tick_label;
use super::frame::{self, Drawn, Frame, LABEL_LINE, Shape, Surface, fitted, width_px, wrapped};

/// The most room for upright names, in pixels.
const UPRIGHT_MAX: i32 = 130;

/// Writes the ticks of a horizontal axis of numbers. A label without room is omitted.
pub fn ticks(surface: &Surface, frame: &Frame, ticks: impl Iterator<Item = (i32, f64)>) -> Drawn {
    const SIZE: i32 = 12;
    let mut written_to = i32::MIN;
    for (at, value) in ticks {
        frame::tick(surface, frame, at)?;
        let label = tick_label(value);
        let half = width_px(&label, SIZE) / 2;
        // The last label stays inside the picture.
        let middle = at.min(frame.shape.width() - half - 3);
        if middle - half > written_to {
            frame::text(surface, &label, (middle, frame.bottom + 17), SIZE, HPos::Center)?;
            written_to = middle + half + 4;
        }
    }
    Ok(())
}

/// How the names of groups or points are written below the horizontal axis.
pub struct Names {
    lines: Vec<Vec<String>>,
    is_upright: bool,
    /// The room that they need beyond one line, in pixels.
    pub foot: i32,
}

impl Names {
    /// In as many lines as they need. They are upright if one of them does not fit even so.
    pub fn new(names: &[String], slot_px: i32, shape: Shape) -> Names {
        let size = shape.text_size();
        let lines: Vec<Vec<String>> = names.iter().map(|name| wrapped(name, size, slot_px - 4)).collect();
        let is_cut = lines.iter().zip(names).any(|(lines, name)| lines.join(" ") != name.trim());
        if is_cut {
            let lines: Vec<Vec<String>> = names.iter().map(|name| vec![fitted(name, size, UPRIGHT_MAX)]).collect();
            let widest = lines.iter().flatten().map(|name| width_px(name, size)).max().unwrap_or(0);
            return Names { lines, is_upright: true, foot: (widest - LABEL_LINE).max(0) };
        }
        let most = lines.iter().map(Vec::len).max().unwrap_or(1) as i32;
        Names { lines, is_upright: false, foot: (most - 1) * LABEL_LINE }
    }

    /// Writes the names around these horizontal positions.
    pub fn write(&self, surface: &Surface, frame: &Frame, middles: impl Iterator<Item = i32>) -> Drawn {
        let size = frame.shape.text_size();
        for (lines, at) in self.lines.iter().zip(middles) {
            frame::tick(surface, frame, at)?;
            for (row, name) in lines.iter().enumerate() {
                if self.is_upright {
                    frame::text_upwards(surface, name, (at, frame.bottom + 8), size, HPos::Right)?;
                } else {
                    let below = frame.bottom + 17 + row as i32 * LABEL_LINE;
                    frame::text(surface, name, (at, below), size, HPos::Center)?;
                }
            }
        }
        Ok(())
    }
}
