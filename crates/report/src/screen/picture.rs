//! A screen as an SVG picture, for pages.

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
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"13\">\n<rect width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"#16181d\"/>\n"
    );
    for (row, line) in screen.lines.iter().enumerate() {
        let mut column = 0;
        for (tone, text) in line {
            let count = text.chars().count();
            if !text.trim().is_empty() {
                let (x, y) = (MARGIN + column * CELL.0, MARGIN + row * CELL.1 + 13);
                // Each piece is as wide as its cells, whatever the font.
                let wide = count * CELL.0;
                let text = escape(text);
                // Writing to a String cannot fail.
                let _ = writeln!(
                    out,
                    "<text x=\"{x}\" y=\"{y}\" textLength=\"{wide}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" {}>{text}</text>",
                    style(*tone)
                );
            }
            column += count;
        }
    }
    out + "</svg>\n"
}

fn style(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "fill=\"#d6dae2\"",
        Tone::Faint => "fill=\"#7d8696\"",
        Tone::Title => "fill=\"#ffffff\" font-weight=\"bold\"",
        Tone::Now => "fill=\"#e8c35a\"",
        Tone::Good => "fill=\"#6cc788\"",
        Tone::Doubt => "fill=\"#e8875a\"",
        Tone::Value => "fill=\"#5fb3e8\"",
        Tone::Shade => "fill=\"#3f6f8f\"",
        Tone::Marked => "fill=\"#e8875a\" text-decoration=\"underline\"",
    }
}
