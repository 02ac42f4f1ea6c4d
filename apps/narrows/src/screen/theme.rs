//! Colours. Words and shapes say the same.

use narrows_report::screen::Tone;
use ratatui::style::{Color, Modifier, Style};

/// Which colours there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Theme {
    /// The terminal's own sixteen.
    Auto,
    /// Those of Okabe and Ito, which people who see colours differently can tell apart.
    Contrast,
    /// None: bold, faint, underlined.
    Mono,
}

impl Theme {
    /// As the user's environment asks for (<https://no-color.org>).
    pub(super) fn of_environment() -> Self {
        let mono = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if mono { Self::Mono } else { Self::Auto }
    }

    pub(super) fn next(self) -> Self {
        match self {
            Self::Auto => Self::Contrast,
            Self::Contrast => Self::Mono,
            Self::Mono => Self::Auto,
        }
    }

    pub(super) fn style(self, tone: Tone) -> Style {
        let style = Style::default();
        let style = match tone {
            Tone::Title => style.add_modifier(Modifier::BOLD),
            Tone::Marked => style.add_modifier(Modifier::UNDERLINED),
            Tone::Now | Tone::Doubt if self == Self::Mono => style.add_modifier(Modifier::BOLD),
            Tone::Faint | Tone::Shade if self == Self::Mono => style.add_modifier(Modifier::DIM),
            _ => style,
        };
        self.colour(tone).map_or(style, |colour| style.fg(colour))
    }

    fn colour(self, tone: Tone) -> Option<Color> {
        match self {
            Self::Mono => None,
            Self::Auto => match tone {
                Tone::Plain | Tone::Title => None,
                Tone::Faint => Some(Color::DarkGray),
                Tone::Now => Some(Color::Yellow),
                Tone::Good => Some(Color::Green),
                Tone::Doubt | Tone::Marked => Some(Color::Red),
                Tone::Value => Some(Color::Cyan),
                Tone::Shade => Some(Color::Blue),
            },
            Self::Contrast => match tone {
                Tone::Plain | Tone::Title => None,
                Tone::Faint => Some(Color::Gray),
                Tone::Now => Some(Color::Rgb(230, 159, 0)),
                Tone::Good => Some(Color::Rgb(0, 158, 115)),
                Tone::Doubt | Tone::Marked => Some(Color::Rgb(213, 94, 0)),
                Tone::Value => Some(Color::Rgb(86, 180, 233)),
                Tone::Shade => Some(Color::Rgb(0, 114, 178)),
            },
        }
    }
}
