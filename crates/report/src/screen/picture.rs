//! A screen as an SVG picture, for pages.
//!
//! Bars, lines and points are drawn, not written: a reader's font would leave gaps between rows.

use std::fmt::Write as _;

use super::{Screen, Tone};
use crate::picture::escape;

/// Size of a character's cell, in pixels.
const CELL: (usize, usize) = (8, 17);
const MARGIN: usize = 10;

/// The picture of a screen, dark as most terminals are.
pub fn svg(screen: &Screen) -> String {
    let columns = screen.lines.iter().map(|line| line.iter().map(|(_, text)| text.chars().count()).sum()).max();
    let (width, height) = (columns.unwrap_or(0) * CELL.0 + 2 * MARGIN, screen.lines.len() * CELL.1 + 2 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"13\" shape-rendering=\"crispEdges\">\n<rect width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"#16181d\"/>\n"
    );
    for (row, line) in screen.lines.iter().enumerate() {
        let mut column = 0;
        for (tone, text) in line {
            piece(&mut out, (column, row), text, *tone);
            column += text.chars().count();
        }
    }
    out + "</svg>\n"
}

/// A piece of one tone: drawn characters in runs of the same one, all else as words.
fn piece(out: &mut String, (column, row): (usize, usize), text: &str, tone: Tone) {
    let letters: Vec<char> = text.chars().collect();
    let mut from = 0;
    while from < letters.len() {
        let first = letters[from];
        let is_drawn = mark(first).is_some();
        let is_same = |letter: &&char| if is_drawn { **letter == first } else { mark(**letter).is_none() };
        let count = letters[from..].iter().take_while(is_same).count();
        let place = (MARGIN + (column + from) * CELL.0, MARGIN + row * CELL.1);
        match mark(first) {
            Some(mark) => draw(out, mark, place, count, tone),
            None => write(out, &letters[from..from + count].iter().collect::<String>(), place, tone),
        }
        from += count;
    }
}

/// What is drawn in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// A bar from below, in eighths of the cell.
    Bar(usize),
    /// All of the cell, in percent of the colour.
    Shade(usize),
    /// A line to the edges of the cell: left, right, up, down.
    Line([bool; 4]),
    Point,
}

fn mark(letter: char) -> Option<Mark> {
    Some(match letter {
        '▁' => Mark::Bar(1),
        '▂' => Mark::Bar(2),
        '▃' => Mark::Bar(3),
        '▄' => Mark::Bar(4),
        '▅' => Mark::Bar(5),
        '▆' => Mark::Bar(6),
        '▇' => Mark::Bar(7),
        '█' => Mark::Bar(8),
        '░' => Mark::Shade(45),
        '▒' => Mark::Shade(70),
        '─' => Mark::Line([true, true, false, false]),
        '│' => Mark::Line([false, false, true, true]),
        '└' => Mark::Line([false, true, true, false]),
        '┤' => Mark::Line([true, false, true, true]),
        '●' => Mark::Point,
        _ => return None,
    })
}

/// `count` cells with the same mark, one beside the other.
fn draw(out: &mut String, mark: Mark, (x, y): (usize, usize), count: usize, tone: Tone) {
    let (wide, high) = (count * CELL.0, CELL.1);
    let colour = colour(tone);
    // Writing to a String cannot fail.
    let _ = match mark {
        Mark::Bar(eighths) => {
            let top = y + high - (high * eighths).div_ceil(8);
            let high = y + high - top;
            let line = if tone == Tone::Marked {
                format!("<path d=\"M{x} {}h{wide}\" stroke=\"#ffffff\"/>", top + high)
            } else {
                String::new()
            };
            writeln!(out, "<rect x=\"{x}\" y=\"{top}\" width=\"{wide}\" height=\"{high}\" fill=\"{colour}\"/>{line}")
        }
        Mark::Shade(percent) => writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" fill=\"{colour}\" opacity=\"0.{percent}\"/>"
        ),
        Mark::Line(to) => {
            let (centre, middle) = (CELL.0 / 2, y + high / 2);
            let mut path = String::new();
            if to[0] || to[1] {
                let (from, to) = (if to[0] { x } else { x + centre }, if to[1] { x + wide } else { x + wide - centre });
                let _ = write!(path, "M{from} {middle}H{to}");
            }
            for cell in 0..if to[2] || to[3] { count } else { 0 } {
                let (from, to) = (if to[2] { y } else { middle }, if to[3] { y + high } else { middle });
                let _ = write!(path, "M{} {from}V{to}", x + cell * CELL.0 + centre);
            }
            writeln!(out, "<path d=\"{path}\" stroke=\"{colour}\" fill=\"none\"/>")
        }
        Mark::Point => (0..count).try_for_each(|cell| {
            let (x, y) = (x + cell * CELL.0 + CELL.0 / 2, y + high / 2);
            writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"3.5\" shape-rendering=\"auto\" fill=\"{colour}\"/>")
        }),
    };
}

/// Words, without the blanks around them; as wide as their cells, whatever the font.
fn write(out: &mut String, text: &str, (x, y): (usize, usize), tone: Tone) {
    let words = text.trim();
    if words.is_empty() {
        return;
    }
    let before = text.chars().take_while(|letter| letter.is_whitespace()).count();
    let (x, y, wide) = (x + before * CELL.0, y + 13, words.chars().count() * CELL.0);
    let (words, colour) = (escape(words), colour(tone));
    let more = match tone {
        Tone::Title => " font-weight=\"bold\"",
        Tone::Marked => " text-decoration=\"underline\"",
        _ => "",
    };
    let _ = writeln!(
        out,
        "<text x=\"{x}\" y=\"{y}\" textLength=\"{wide}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" fill=\"{colour}\"{more}>{words}</text>"
    );
}

fn colour(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "#d6dae2",
        Tone::Faint => "#7d8696",
        Tone::Title => "#ffffff",
        Tone::Now => "#e8c35a",
        Tone::Good => "#6cc788",
        Tone::Doubt | Tone::Marked => "#e8875a",
        Tone::Value => "#5fb3e8",
        Tone::Shade => "#3f6f8f",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_drawn_and_words_written() {
        let mut out = String::new();
        piece(&mut out, (2, 1), " a b ██▄", Tone::Value);
        assert_eq!(
            out.lines().collect::<Vec<_>>(),
            [
                "<text x=\"34\" y=\"40\" textLength=\"24\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" fill=\"#5fb3e8\">a b</text>",
                "<rect x=\"66\" y=\"27\" width=\"16\" height=\"17\" fill=\"#5fb3e8\"/>",
                "<rect x=\"82\" y=\"35\" width=\"8\" height=\"9\" fill=\"#5fb3e8\"/>",
            ]
        );
        let mut out = String::new();
        piece(&mut out, (0, 0), "└─", Tone::Faint);
        assert!(out.contains("\"M14 18H18M14 10V18\"") && out.contains("\"M18 18H26\""), "{out}");
    }
}
