//! Colours. Words and shapes say the same.

use crossterm::style::{Attribute, Color, ContentStyle, Stylize as _};
use narrows_report::screen::Tone;

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

    pub(super) fn style(self, tone: Tone) -> ContentStyle {
        let style = ContentStyle::default();
        let style = match tone {
            Tone::Title => style.attribute(Attribute::Bold),
            Tone::Marked => style.attribute(Attribute::Underlined),
            Tone::Now | Tone::Doubt if self == Self::Mono => style.attribute(Attribute::Bold),
            Tone::Faint | Tone::Shade if self == Self::Mono => style.attribute(Attribute::Dim),
            _ => style,
        };
        self.colour(tone).map_or(style, |colour| style.with(colour))
    }

    fn colour(self, tone: Tone) -> Option<Color> {
        match self {
            Self::Mono => None,
            Self::Auto => match tone {
                Tone::Plain | Tone::Title => None,
                Tone::Faint => Some(Color::DarkGrey),
                Tone::Now => Some(Color::DarkYellow),
                Tone::Good => Some(Color::DarkGreen),
                Tone::Doubt | Tone::Marked => Some(Color::DarkRed),
                Tone::Value => Some(Color::DarkCyan),
                Tone::Shade => Some(Color::DarkBlue),
            },
            Self::Contrast => match tone {
                Tone::Plain | Tone::Title => None,
                Tone::Faint => Some(Color::Grey),
                Tone::Now => Some(rgb(230, 159, 0)),
                Tone::Good => Some(rgb(0, 158, 115)),
                Tone::Doubt | Tone::Marked => Some(rgb(213, 94, 0)),
                Tone::Value => Some(rgb(86, 180, 233)),
                Tone::Shade => Some(rgb(0, 114, 178)),
            },
        }
    }
}

const fn rgb(r: u8, g: u8, b: u8) -> Color {
    Color::Rgb { r, g, b }
}
