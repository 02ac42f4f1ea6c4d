//! Which notice goes next, and what an answer means. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use narrows_watch::WallTime;
use narrows_watch::alert::NoticeKind;

use crate::body::NoticeBody;
use crate::error::SendError;
use crate::outbox::{Entry, Undelivered, is_due, retry_after};

/// One attempt.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Delivery {
    pub(super) channel: String,
    pub(super) body: NoticeBody,
    /// Its row of the outbox, and when it was made and how often it was tried. Alerts that
    /// are repeated each minute have none, nor has what the outbox did not take.
    entry: Option<(i64, WallTime, u32)>,
}

/// What is to be written into the outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Delivered, or no notice.
    Done(WallTime),
    /// Given up.
    GivenUp(Undelivered),
    /// To be tried again then.
    Retry(WallTime),
}

/// What waits for a retry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Held {
    /// The whole channel: its peer is away.
    Channel(String),
    /// All notices about one alert, so that they arrive in their order.
    Alert(Alert),
}

/// Channel, rule, target.
type Alert = (String, String, String);

#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Channels with an attempt under way.
    busy: BTreeSet<String>,
    held: BTreeMap<Held, WallTime>,
    /// Alerts that fire, where a channel wants them each minute, and when they were sent last.
    firing: BTreeMap<Alert, (NoticeBody, WallTime)>,
    unsettled: BTreeMap<i64, Outcome>,
    /// What the outbox did not take: tried once.
    unsaved: Vec<(String, NoticeBody)>,
}

impl Plan {
    /// At most one attempt for each idle channel; the oldest notice goes first.
    pub(super) fn ready(&mut self, mut due: Vec<Entry>, now: WallTime) -> Vec<Delivery> {
        self.held.retain(|_, until| !is_due(*until, now));
        due.sort_by_key(|entry| (entry.made, entry.id));
        let mut ready = Vec::new();
        for Entry { id, channel, body, made, tries, .. } in due {
            if self.unsettled.contains_key(&id) || self.is_closed(&channel) {
                continue;
            }
            // Only a damaged store can hold what is no notice.
            let Ok(body) = serde_json::from_str::<NoticeBody>(&body) else {
                self.unsettled.insert(id, Outcome::Done(now));
                continue;
            };
            if self.held.contains_key(&Held::Alert(alert(&channel, &body))) {
                continue;
            }
            self.busy.insert(channel.clone());
            ready.push(Delivery { channel, body, entry: Some((id, made, tries)) });
        }
        let waiting = std::mem::take(&mut self.unsaved);
        for (channel, body) in waiting {
            if self.is_closed(&channel) {
                self.unsaved.push((channel, body));
            } else {
                self.busy.insert(channel.clone());
                ready.push(Delivery { channel, body, entry: None });
            }
        }
        self.repeats(now, &mut ready);
        ready
    }

    /// Alerts whose minute has passed.
    fn repeats(&mut self, now: WallTime, ready: &mut Vec<Delivery>) {
        let wanted: Vec<Alert> = self
            .firing
            .iter()
            .filter(|(_, (_, last))| is_due(last.after(MINUTE), now))
            .map(|(alert, _)| alert.clone())
            .collect();
        for alert in wanted {
            if self.is_closed(&alert.0) || self.held.contains_key(&Held::Alert(alert.clone())) {
                continue;
            }
            if let Some((body, last)) = self.firing.get_mut(&alert) {
                *last = now;
                let delivery = Delivery { channel: alert.0.clone(), body: body.clone(), entry: None };
                self.busy.insert(alert.0);
                ready.push(delivery);
            }
        }
    }

    /// Takes note of what fires, for channels that want it each minute.
    pub(super) fn noted(&mut self, channel: &str, body: NoticeBody, repeats: bool, now: WallTime) {
        let alert = alert(channel, &body);
        if repeats && body.state != NoticeKind::Resolved {
            self.firing.insert(alert, (body, now));
        } else {
            self.firing.remove(&alert);
        }
    }

    /// Takes what the outbox did not.
    pub(super) fn unsaved(&mut self, channel: String, body: NoticeBody) {
        self.unsaved.push((channel, body));
    }

    /// An attempt ended. Returns whether the notice stays undelivered.
    pub(super) fn tried(&mut self, delivery: &Delivery, error: Option<&SendError>, now: WallTime) -> bool {
        self.busy.remove(&delivery.channel);
        let Some((id, made, tries)) = delivery.entry else { return false };
        let Some(error) = error else {
            self.unsettled.insert(id, Outcome::Done(now));
            return false;
        };
        let asked = if let SendError::Busy { retry_after, .. } = error { *retry_after } else { None };
        let again = now.after(retry_after(tries + 1, asked));
        let held = if error.is_of_this_notice() {
            Held::Alert(alert(&delivery.channel, &delivery.body))
        } else {
            Held::Channel(delivery.channel.clone())
        };
        let is_undelivered = now.since(made) >= GIVE_UP_AFTER;
        if !is_undelivered || matches!(held, Held::Channel(_)) {
            self.held.insert(held, again);
        }
        let outcome = if is_undelivered {
            let NoticeBody { rule, target, .. } = delivery.body.clone();
            let (channel, why) = (delivery.channel.clone(), error.to_string());
            Outcome::GivenUp(Undelivered { id, channel, rule, target, made, at: now, why })
        } else {
            Outcome::Retry(again)
        };
        self.unsettled.insert(id, outcome);
        is_undelivered
    }

    pub(super) fn unsettled(&self) -> Vec<(i64, Outcome)> {
        self.unsettled.iter().map(|(id, outcome)| (*id, outcome.clone())).collect()
    }

    pub(super) fn settled(&mut self, id: i64) {
        self.unsettled.remove(&id);
    }

    pub(super) fn is_busy(&self) -> bool {
        !self.busy.is_empty()
    }

    /// How long nothing happens by itself. What an earlier program left for later is found within a
    /// minute.
    pub(super) fn wait(&self, now: WallTime) -> Duration {
        let retries = self.held.values().copied();
        let repeats = self.firing.values().map(|(_, last)| last.after(MINUTE));
        // A channel that is busy with a repeat comes back by its answer.
        let waits = retries.chain(repeats).map(|at| at.since(now)).filter(|wait| !wait.is_zero());
        waits.min().unwrap_or(MINUTE).min(MINUTE)
    }

    fn is_closed(&self, channel: &str) -> bool {
        self.busy.contains(channel) || self.held.contains_key(&Held::Channel(channel.to_owned()))
    }
}

fn alert(channel: &str, body: &NoticeBody) -> Alert {
    (channel.to_owned(), body.rule.clone(), body.target.clone())
}

const MINUTE: Duration = Duration::from_secs(60);

/// A notice of yesterday helps nobody.
const GIVE_UP_AFTER: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests;
