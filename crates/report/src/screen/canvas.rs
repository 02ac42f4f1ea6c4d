//! A grid of characters, and what becomes of it.

/// What a piece of text is, for whoever gives it a colour. Words and shapes say it as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Tone {
    /// Ordinary.
    #[default]
    Plain,
    /// What one may skip: rules, axes, keys.
    Faint,
    /// Titles.
    Title,
    /// Under way.
    Now,
    /// Done, and as it should be.
    Good,
    /// Wants attention.
    Doubt,
    /// A value in a chart.
    Value,
    /// An interval in a chart.
    Shade,
    /// A value in a chart where something was lost.
    Marked,
}

/// Lines of a terminal, from above.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Screen {
    /// Each line's pieces, from the left. Together they are at most as wide as was asked for.
    pub lines: Vec<Vec<(Tone, String)>>,
}

impl Screen {
    /// Without tones, lines cut at their last character.
    pub fn text(&self) -> String {
        let line = |pieces: &Vec<(Tone, String)>| {
            let text: String = pieces.iter().map(|(_, text)| text.as_str()).collect();
            text.trim_end().to_owned() + "\n"
        };
        self.lines.iter().map(line).collect()
    }
}

/// Characters at places.
#[derive(Debug, Clone)]
pub(super) struct Canvas {
    pub(super) width: usize,
    pub(super) height: usize,
    cells: Vec<(char, Tone)>,
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize) -> Self {
        Self { width, height, cells: vec![(' ', Tone::Plain); width * height] }
    }

    /// Text from a place on; what does not fit is cut.
    pub(super) fn put(&mut self, x: usize, y: usize, tone: Tone, text: &str) {
        self.put_within(x, y, self.width, tone, text);
    }

    /// The same up to a column.
    pub(super) fn put_within(&mut self, x: usize, y: usize, end: usize, tone: Tone, text: &str) {
        let end = end.min(self.width);
        let room = end.saturating_sub(x);
        let long = text.chars().count() > room;
        for (offset, c) in text.chars().take(room).enumerate() {
            let last = long && offset + 1 == room;
            self.set(x + offset, y, tone, if last && c != ' ' { '…' } else { c });
        }
    }

    /// Text that ends before a column.
    pub(super) fn put_right(&mut self, end: usize, y: usize, tone: Tone, text: &str) {
        self.put(end.saturating_sub(text.chars().count()), y, tone, text);
    }

    pub(super) fn set(&mut self, x: usize, y: usize, tone: Tone, c: char) {
        if x < self.width && y < self.height {
            self.cells[y * self.width + x] = (c, tone);
        }
    }

    /// A horizontal rule over some columns.
    pub(super) fn rule(&mut self, y: usize, from: usize, to: usize) {
        (from..to).for_each(|x| self.set(x, y, Tone::Faint, '─'));
    }

    /// A vertical rule over some rows.
    pub(super) fn fence(&mut self, x: usize, from: usize, to: usize) {
        (from..to).for_each(|y| self.set(x, y, Tone::Faint, '│'));
    }

    /// Blanks over a rectangle.
    pub(super) fn clear(&mut self, (x, y): (usize, usize), (width, height): (usize, usize)) {
        for row in y..y + height {
            (x..x + width).for_each(|column| self.set(column, row, Tone::Plain, ' '));
        }
    }

    pub(super) fn finish(self, ascii: bool) -> Screen {
        let mut lines = Vec::with_capacity(self.height);
        for row in self.cells.chunks(self.width.max(1)) {
            let mut pieces: Vec<(Tone, String)> = Vec::new();
            for &(c, tone) in row {
                let c = if ascii { plain(c) } else { c };
                match pieces.last_mut() {
                    Some((last, text)) if *last == tone => text.push(c),
                    _ => pieces.push((tone, c.to_string())),
                }
            }
            lines.push(pieces);
        }
        Screen { lines }
    }
}

/// What ASCII has for it.
fn plain(c: char) -> char {
    match c {
        '─' | '–' | '╭' | '╮' | '╰' | '╯' => '-',
        '│' | '╎' => '|',
        '┤' | '└' => '+',
        '░' => '.',
        '▒' => ':',
        '█' | '▄' | '▅' | '▆' | '▇' => '#',
        // Less than half of a cell.
        '▁' | '▂' | '▃' => ' ',
        '●' => '*',
        '◀' | '≤' => '<',
        '≥' => '>',
        '…' | '±' => '~',
        'µ' => 'u',
        c if c.is_ascii() => c,
        _ => '?',
    }
}
