//! Live screens: whether there can be one, and the thread that paints it.

#[cfg(feature = "tui")]
mod keys;
#[cfg(feature = "tui")]
mod painter;
#[cfg(feature = "tui")]
mod terminal;
#[cfg(feature = "tui")]
mod theme;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use narrows_probe::progress::Timed;

use crate::painting::Shared;

/// What a user says of live screens.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct ScreenArgs {
    /// No live screen, also where the terminal could show one (so too with `NARROWS_TUI=0`)
    #[arg(long)]
    pub(crate) no_tui: bool,
    /// Nothing beyond ASCII (so too where TERM is dumb or the locale is not UTF-8)
    #[arg(long)]
    pub(crate) ascii: bool,
}

impl ScreenArgs {
    /// Whether a live screen is wanted and possible, and if so, whether its glyphs are ASCII.
    /// `plain`: something else than text for people is printed, or nothing.
    pub(crate) fn wanted(self, plain: bool) -> Option<bool> {
        let on = !plain && !self.no_tui && possible();
        on.then(|| self.ascii || !is_utf8(|name| std::env::var(name).ok()))
    }
}

fn possible() -> bool {
    let off = std::env::var("NARROWS_TUI").is_ok_and(|value| value == "0");
    let dumb = std::env::var("TERM").map_or(true, |term| term == "dumb");
    let terminals = io::stdin().is_terminal() && io::stdout().is_terminal();
    // Logs would be written across it.
    let logs = tracing::enabled!(tracing::Level::INFO);
    // One that paints, one that measures.
    !off && !dumb && terminals && !logs && narrows_net::thread_scheduling::allowed_cpus() >= 2 && is_large()
}

#[cfg(feature = "tui")]
fn is_large() -> bool {
    let least = narrows_report::screen::LEAST;
    crossterm::terminal::size().is_ok_and(|(columns, rows)| columns >= least.0 && rows >= least.1)
}

#[cfg(not(feature = "tui"))]
fn is_large() -> bool {
    false
}

/// As locales have it: the first of these that is set decides.
fn is_utf8(variable: impl Fn(&str) -> Option<String>) -> bool {
    let mut set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(variable).filter(|value| !value.is_empty());
    set.next().is_some_and(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// Opens the screen and paints what comes, until the last event. `None`: the terminal cannot.
#[cfg(feature = "tui")]
pub(crate) fn start(events: Receiver<Timed>, shared: Arc<Shared>, ascii: bool) -> Option<JoinHandle<()>> {
    painter::start(events, shared, ascii)
}

/// This build has none.
#[cfg(not(feature = "tui"))]
pub(crate) fn start(_: Receiver<Timed>, _: Arc<Shared>, _: bool) -> Option<JoinHandle<()>> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_decides() {
        let of = |set: &[(&str, &str)]| {
            is_utf8(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        assert!(of(&[("LANG", "en_GB.UTF-8")]) && of(&[("LC_CTYPE", "C.utf8"), ("LANG", "C")]));
        assert!(!of(&[]) && !of(&[("LC_ALL", "C"), ("LANG", "en_GB.UTF-8")]));
        assert!(of(&[("LC_ALL", ""), ("LANG", "en_GB.UTF-8")]));
    }
}
