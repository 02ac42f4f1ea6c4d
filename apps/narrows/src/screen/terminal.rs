//! The terminal as a screen: its other page, no echo, no cursor. It is as it was when that is over,
//! also where the program panics.

use std::io::{self, Write};
use std::sync::Once;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::style::{ContentStyle, PrintStyledContent, StyledContent};
use crossterm::terminal::{
    self, BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
    EnterAlternateScreen, LeaveAlternateScreen,
};
use crossterm::{execute, queue};

/// Pieces of text, each in its style.
pub(super) type Line = Vec<(ContentStyle, String)>;

/// What the terminal shows of us.
#[derive(Debug)]
pub(super) struct Terminal {
    size: (u16, u16),
    shown: Vec<Line>,
}

impl Terminal {
    pub(super) fn open() -> io::Result<Self> {
        static RESTORES: Once = Once::new();
        RESTORES.call_once(|| {
            let usual = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                usual(panic);
            }));
        });
        terminal::enable_raw_mode()?;
        let opened = execute!(io::stdout(), EnterAlternateScreen, Hide, DisableLineWrap, Clear(ClearType::All));
        match opened.and_then(|()| terminal::size()) {
            Ok(size) => Ok(Self { size, shown: Vec::new() }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    /// Columns and rows now. If they have changed, nothing counts as shown.
    pub(super) fn size(&mut self) -> io::Result<(u16, u16)> {
        let size = terminal::size()?;
        if size != self.size {
            self.shown.clear();
            self.size = size;
        }
        Ok(size)
    }

    /// Shows these lines, at once. Those that are shown already are not written again: the screen
    /// may be at the other end of the measured path.
    pub(super) fn draw(&mut self, lines: Vec<Line>) -> io::Result<()> {
        let picture = picture(&self.shown, &lines)?;
        self.shown = lines;
        let mut out = io::stdout().lock();
        out.write_all(&picture)?;
        out.flush()
    }
}

/// What changes the one picture into the other.
fn picture(shown: &[Line], lines: &[Line]) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    queue!(out, BeginSynchronizedUpdate)?;
    if shown.is_empty() {
        queue!(out, Clear(ClearType::All))?;
    }
    for (row, line) in (0..).zip(lines) {
        if shown.get(usize::from(row)) == Some(line) {
            continue;
        }
        // Cleared first: behind a full line the cursor stands on its last letter.
        queue!(out, MoveTo(0, row), Clear(ClearType::UntilNewLine))?;
        for (style, text) in line {
            queue!(out, PrintStyledContent(StyledContent::new(*style, text)))?;
        }
    }
    queue!(out, EndSynchronizedUpdate)?;
    Ok(out)
}

/// The terminal as it was. It may be gone.
pub(super) fn restore() {
    let _ = terminal::disable_raw_mode();
    let _ = execute!(io::stdout(), EnableLineWrap, LeaveAlternateScreen, Show);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_changed_are_written() {
        let line = |text: &str| vec![(ContentStyle::default(), text.to_owned())];
        let of = |shown: &[Line], lines: &[Line]| String::from_utf8(picture(shown, lines).unwrap()).unwrap();
        let (old, new) = ([line("one"), line("two")], [line("one"), line("three")]);
        let first = of(&[], &old);
        assert!(first.contains("one") && first.contains("two") && first.contains("\x1b[2J"), "{first:?}");
        let second = of(&old, &new);
        assert!(!second.contains("one") && second.contains("\x1b[2;1H\x1b[Kthree"), "{second:?}");
        assert!(!of(&new, &new).contains("three"));
    }
}
