//! What a key does.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use narrows_report::screen::{Over, ScreenView};

/// What a key asks for beyond another look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Nothing.
    Nothing,
    /// The end; for the second time, at once.
    End,
    /// A pause, or that it goes on.
    Pause,
    /// Other colours.
    Theme,
    /// To be put in the background.
    Suspend,
}

/// Changes the look. `entries`: how many hops or lines there are.
pub(super) fn press(key: KeyEvent, look: &mut ScreenView, entries: usize) -> Asked {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Asked::End,
            KeyCode::Char('z') => Asked::Suspend,
            _ => Asked::Nothing,
        };
    }
    let last = entries.saturating_sub(1);
    match key.code {
        KeyCode::Char('q') => return Asked::End,
        KeyCode::Up => look.selected = look.selected.min(last).saturating_sub(1),
        KeyCode::Down => look.selected = (look.selected + 1).min(last),
        _ if look.over == Over::Help => look.over = Over::Nothing,
        KeyCode::Esc => look.over = Over::Nothing,
        KeyCode::Char('p') => return Asked::Pause,
        KeyCode::Char('t') => return Asked::Theme,
        KeyCode::Char('f') => look.frozen = !look.frozen,
        KeyCode::Char('d') => look.over = if look.over == Over::Doubts { Over::Nothing } else { Over::Doubts },
        KeyCode::Char('n') => look.addresses = !look.addresses,
        KeyCode::Char('?' | 'h') => look.over = Over::Help,
        _ => {}
    }
    Asked::Nothing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_change_the_look_or_ask() {
        let mut look = ScreenView::default();
        let mut key = |code: KeyCode| press(KeyEvent::new(code, KeyModifiers::NONE), &mut look, 3);
        assert_eq!(key(KeyCode::Char('q')), Asked::End);
        assert_eq!(key(KeyCode::Char('p')), Asked::Pause);
        (0..5).for_each(|_| assert_eq!(key(KeyCode::Down), Asked::Nothing));
        assert_eq!(key(KeyCode::Up), Asked::Nothing);
        assert_eq!(key(KeyCode::Char('d')), Asked::Nothing);
        assert_eq!((look.selected, look.over), (1, Over::Doubts));
        let mut key = |code: KeyCode| press(KeyEvent::new(code, KeyModifiers::NONE), &mut look, 3);
        key(KeyCode::Char('?'));
        // The key that closes the help does nothing else.
        assert_eq!(key(KeyCode::Char('p')), Asked::Nothing);
        assert_eq!(look.over, Over::Nothing);
        let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(press(control, &mut look, 0), Asked::End);
    }
}
