//! Charts of characters: intervals with a value, and bars.

use narrows_units::{rounded, to_usize};

use super::canvas::{Canvas, Tone};

/// One column of a chart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Column {
    /// Lower and upper end of what is shaded.
    pub(super) shade: Option<(f64, f64)>,
    /// The value.
    pub(super) value: Option<f64>,
    /// Something was lost or sent again.
    pub(super) marked: bool,
}

/// Where a chart stands, its axis included.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    /// Rows, the axis below included.
    pub(super) height: usize,
}

/// Columns that labels of the axis take.
pub(super) const LABEL: usize = 5;

impl Place {
    /// Columns that data have.
    pub(super) fn columns(self) -> usize {
        self.width.saturating_sub(LABEL + 1)
    }
}

/// A scale from zero to a round number, in a unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    pub(super) top: f64,
    unit: f64,
    pub(super) name: &'static str,
}

const RATES: [(f64, &str); 4] = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
const TIMES: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];

impl Scale {
    /// For bit/s up to `most`.
    pub(super) fn rates(most: f64) -> Self {
        Self::new(most, &RATES)
    }

    /// For nanoseconds up to `most`.
    pub(super) fn times(most: f64) -> Self {
        Self::new(most, &TIMES)
    }

    fn new(most: f64, units: &[(f64, &'static str)]) -> Self {
        let most = if most.is_finite() && most > 0.0 { most } else { units[units.len() - 1].0 };
        let power = 10f64.powf(most.log10().floor());
        let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
        let top = steps.into_iter().map(|step| step * power).find(|&top| top >= most * 0.999).unwrap_or(10.0 * power);
        let (unit, name) = units.iter().copied().find(|(unit, _)| top >= *unit).unwrap_or(units[units.len() - 1]);
        Self { top, unit, name }
    }

    fn label(self, value: f64) -> String {
        let value = value / self.unit;
        let text = if value < 9.95 && value > 0.0 { format!("{value:.2}") } else { format!("{value:.0}") };
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }
}

/// Labels at the top, in the middle and at the bottom, and the line below.
fn axis(canvas: &mut Canvas, place: Place, scale: Scale) -> usize {
    let rows = place.height.saturating_sub(1).max(1);
    // An odd number has a middle.
    let rows = if rows > 3 { rows - (rows + 1) % 2 } else { rows };
    let middle = (rows - 1) / 2;
    for row in 0..rows {
        let y = place.y + row;
        let share = 1.0 - row as f64 / (rows - 1).max(1) as f64;
        let labelled = row == 0 || row + 1 == rows || (rows >= 5 && row == middle);
        canvas.set(place.x + LABEL, y, Tone::Faint, if labelled { '┤' } else { '│' });
        if labelled {
            canvas.put_right(place.x + LABEL, y, Tone::Faint, &scale.label(scale.top * share));
        }
    }
    canvas.set(place.x + LABEL, place.y + rows, Tone::Faint, '└');
    canvas.rule(place.y + rows, place.x + LABEL + 1, place.x + place.width);
    rows
}

/// The row of a value, from above.
fn row_of(value: f64, scale: Scale, rows: usize) -> usize {
    let share = (value / scale.top).clamp(0.0, 1.0);
    rows - 1 - to_usize(rounded(share * (rows - 1) as f64)).min(rows - 1)
}

/// Intervals as shades, values as dots.
pub(super) fn bands(canvas: &mut Canvas, place: Place, scale: Scale, columns: &[Column]) {
    let rows = axis(canvas, place, scale);
    let newest = columns.iter().skip(columns.len().saturating_sub(place.columns()));
    for (offset, column) in newest.enumerate() {
        let x = place.x + LABEL + 1 + offset;
        if let Some((low, high)) = column.shade {
            for row in row_of(high, scale, rows)..=row_of(low, scale, rows) {
                canvas.set(x, place.y + row, Tone::Shade, '░');
            }
        }
        if let Some(value) = column.value {
            let tone = if column.marked { Tone::Marked } else { Tone::Value };
            canvas.set(x, place.y + row_of(value, scale, rows), tone, '●');
        }
    }
}

const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Values as bars of eighths of a row. The top row is full at the top of the scale.
pub(super) fn bars(canvas: &mut Canvas, place: Place, scale: Scale, columns: &[Column]) {
    let rows = axis(canvas, place, scale);
    let newest = columns.iter().skip(columns.len().saturating_sub(place.columns()));
    for (offset, column) in newest.enumerate() {
        let x = place.x + LABEL + 1 + offset;
        let Some(value) = column.value else { continue };
        let share = (value / scale.top).clamp(0.0, 1.0);
        let eighths = to_usize(rounded(share * (rows * 8) as f64));
        for row in 0..rows {
            let here = eighths.saturating_sub(8 * row).min(8);
            let lowest = row == 0;
            let tone = if column.marked && lowest { Tone::Marked } else { Tone::Value };
            // Something came, however little.
            let here = if lowest && value > 0.0 { here.max(1) } else { here };
            if here > 0 {
                canvas.set(x, place.y + rows - 1 - row, tone, EIGHTHS[here]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        for (most, top, name) in
            [(97.7e6, 100e6, "Mbit/s"), (101e6, 120e6, "Mbit/s"), (0.98e9, 1e9, "Gbit/s"), (0.0, 1.0, "bit/s")]
        {
            let scale = Scale::rates(most);
            assert!((scale.top / top - 1.0).abs() < 1e-9 && scale.name == name, "{most}: {scale:?}");
        }
        assert_eq!(Scale::rates(97e6).label(50e6), "50");
        assert_eq!(Scale::times(1.5e6).label(0.8e6), "0.8");
    }

    #[test]
    fn bars_are_as_high_as_their_values() {
        let column = |value| Column { shade: None, value: Some(value), marked: false };
        let mut canvas = Canvas::new(10, 4);
        let place = Place { x: 0, y: 0, width: 10, height: 4 };
        bars(&mut canvas, place, Scale::rates(100.0), &[column(100.0), column(50.0), column(25.0 / 8.0), column(0.0)]);
        let text = canvas.finish(false).text();
        assert_eq!(text, "  100┤█\n     │█▄\n    0┤██▁\n     └────\n");
    }

    #[test]
    fn dots_lie_within_their_shades() {
        let column = |low, value, high| Column { shade: Some((low, high)), value: Some(value), marked: false };
        let mut canvas = Canvas::new(8, 6);
        let place = Place { x: 0, y: 0, width: 8, height: 6 };
        bands(&mut canvas, place, Scale::rates(100.0), &[column(0.0, 50.0, 100.0), column(60.0, 80.0, 90.0)]);
        let text = canvas.finish(true).text();
        assert_eq!(text, "  100+..\n     |.*\n   50+*.\n     |.\n    0+.\n     +--\n");
    }
}
