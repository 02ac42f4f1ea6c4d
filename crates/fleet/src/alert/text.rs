//! An alert in one line.

use narrows_watch::alert::{AlertText, Condition, Rule, State, lasted_text, since_text};
use narrows_watch::detect::Side;
use narrows_watch::{Reading, Signal, WallTime, Zone};

use crate::keys::Name;

/// What a line is about.
pub(super) struct About<'a> {
    pub(super) title: String,
    pub(super) reading: Option<(Signal, Reading)>,
    /// Of a link: those that it holds back.
    pub(super) paths: &'a [(Name, Name)],
    pub(super) state: &'a State,
}

impl About<'_> {
    /// `a to b: available 12 Mbit/s (11..13), since 19:42 (+-40 s).`
    pub(super) fn line(&self, rule: &Rule, now: WallTime, zone: &Zone) -> String {
        let is_firing = self.state.is_firing();
        let since = self.state.since().filter(|_| is_firing);
        let when = since.map(|since| format!(" {}", since_text(since, now, zone))).unwrap_or_default();
        let title = &self.title;
        let mut line = match (rule.when, self.reading) {
            (Condition::RouteChanged, _) => format!("{title}: the route changed{when}."),
            (Condition::Silent(_), _) if is_firing => format!("{title}: no answer{when}."),
            (Condition::Silent(_), _) => format!("{title}: answers again."),
            (_, Some((signal, reading))) => {
                AlertText { target: title, signal, reading: &reading, usual: None, since, zone, explanation: None }
                    .to_string()
            }
            (Condition::Beyond(signal, _) | Condition::Changed(signal, _), None) => format!("{title}: {signal}{when}."),
        };
        if let (true, Some((source, target))) = (is_firing, self.paths.first()) {
            let more = match self.paths.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            line = format!("{line} Holds back {source} to {target}{more}.");
        }
        match self.state.fired() {
            Some(fired) if rule.when != Condition::RouteChanged => format!("{line} {}", lasted_text(fired, now, zone)),
            _ => line,
        }
    }
}

/// Whether a value is further beyond the rule's threshold than another one.
pub(super) fn is_worse(rule: &Rule, one: Reading, other: Reading) -> bool {
    match rule.when {
        Condition::Beyond(_, beyond) | Condition::Changed(_, beyond) if beyond.side == Side::Up => {
            one.value > other.value
        }
        _ => one.value < other.value,
    }
}
