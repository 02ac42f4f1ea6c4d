//! The paths of one alert.

use narrows_watch::alert::{NoticeKind, Rule, State};
use narrows_watch::explain::Interval;
use narrows_watch::{Reading, Signal, WallTime, Zone};
use serde::{Deserialize, Serialize};

use super::path::PathState;
use super::{Link, Notice, Subject, text};
use crate::keys::Name;

/// An alert: its paths, and what people know of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Group {
    pub(super) state: State,
    /// Those that fire; of one that is over, those that did last.
    pub(super) paths: Vec<(Name, Name)>,
    /// The link, as it was last located.
    link: Option<Link>,
    /// The worst value of its paths.
    reading: Option<(Signal, Reading)>,
}

impl Group {
    /// Takes the paths that belong to it now; `None`: none.
    pub(super) fn update<'a>(
        &mut self,
        rule: &Rule,
        paths: Option<Vec<(Name, Name)>>,
        link: Option<&Link>,
        state: impl Fn(&(Name, Name)) -> Option<&'a PathState>,
        now: WallTime,
    ) {
        if let Some(link) = link {
            self.link = Some(link.clone());
        }
        let since = |path: &(Name, Name)| state(path).and_then(|path| path.state.since());
        let fires = paths.is_some();
        if let Some(paths) = paths {
            self.paths = paths;
        }
        let since = self.paths.iter().filter_map(since);
        // It fires since its first path does, and is over once its last one is.
        let turned = if fires { since.min_by_key(|one| one.high) } else { since.max_by_key(|one| one.high) };
        let turned = turned.filter(|turned| turned.high <= now).unwrap_or(Interval { low: now, high: now });
        self.state.turn(fires, turned, now);
        let readings = self.paths.iter().filter_map(|path| state(path)?.newest);
        let worst = readings.reduce(|one, other| if text::is_worse(rule, other.1, one.1) { other } else { one });
        self.reading = worst.or(self.reading);
    }

    /// What it is about, for people.
    pub(super) fn title(&self, subject: &Subject) -> String {
        match (subject, &self.link) {
            (Subject::Path(source, target), _) => format!("{source} to {target}"),
            (Subject::Link(_), Some(link)) => link.name.clone(),
            (Subject::Link(id), None) => format!("link {id}"),
        }
    }

    /// All of it in one line.
    pub(super) fn text(&self, rule: &Rule, subject: &Subject, now: WallTime, zone: &Zone) -> String {
        let about = text::About {
            title: self.title(subject),
            reading: self.shown(subject),
            paths: if matches!(subject, Subject::Link(_)) { &self.paths } else { &[] },
            state: &self.state,
        };
        about.line(rule, now, zone)
    }

    pub(super) fn notice(
        &self,
        rule: &Rule,
        subject: &Subject,
        kind: NoticeKind,
        moved_to: Option<&str>,
        now: WallTime,
        zone: &Zone,
    ) -> Notice {
        let mut text = self.text(rule, subject, now, zone);
        if let Some(link) = moved_to.filter(|_| kind == NoticeKind::Resolved) {
            text = format!("{}: is part of the alert of {link} now.", self.title(subject));
        }
        Notice {
            rule: rule.name.clone(),
            subject: subject.clone(),
            title: self.title(subject),
            kind,
            since: self.state.since(),
            fired: self.state.fired().filter(|_| kind == NoticeKind::Resolved),
            text,
            reading: self.shown(subject),
            notify: rule.notify.clone(),
        }
    }

    /// What is shown of a link while its paths fire is what the link has.
    fn shown(&self, subject: &Subject) -> Option<(Signal, Reading)> {
        let (signal, reading) = self.reading?;
        let link = self.link.as_ref().filter(|_| matches!(subject, Subject::Link(_)) && self.state.is_firing());
        let of = |link: &Link| Reading::estimate(reading.at, link.value, link.low, link.high);
        Some((signal, link.map_or(reading, of)))
    }
}
