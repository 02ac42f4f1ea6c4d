//! The alerts of the fleet's configuration: results in, notices out.

use std::sync::{Mutex, MutexGuard, PoisonError};

use narrows_fleet::alert::{Alerts, Firing, Link, Notice, Silence, Subject};
use narrows_fleet::config::PathRule;
use narrows_fleet::keys::Name;
use narrows_fleet::message::Run;
use narrows_fleet::tomography::Finding;
use narrows_notify::{NoticeBody, Value};
use narrows_record::NewNotice;
use narrows_units::BitRate;
use narrows_watch::alert::NoticeKind;
use narrows_watch::explain::Interval;
use narrows_watch::{Signal, WallTime};

use crate::error::{Error, Result};
use crate::hub::bottlenecks;
use crate::hub::give::Terms;
use crate::hub::tomography::Findings;
use crate::hub::{HUB, Hub};

/// Rules and their states; the record has them too.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    alerts: Mutex<Alerts>,
    /// Notices that the record did not take yet.
    unkept: Mutex<Vec<NewNotice>>,
}

impl Rules {
    pub(crate) fn new(alerts: Alerts) -> Self {
        Self { alerts: Mutex::new(alerts), unkept: Mutex::default() }
    }

    pub(crate) fn set(&self, rules: Vec<PathRule>) {
        self.lock().set_rules(rules);
    }

    fn lock(&self) -> MutexGuard<'_, Alerts> {
        self.alerts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    /// Takes new results in.
    pub(crate) fn judge_rules(&self, runs: &[Run], now: i64) {
        let mut alerts = self.rules.lock();
        for run in runs {
            alerts.observe(run, WallTime::from_millis(now));
        }
    }

    /// The same for loops: nothing is lost by a fault, and the next turn tries again.
    pub(crate) async fn tell_alerts_or_say(&self) {
        if let Err(error) = self.tell_alerts().await {
            tracing::warn!(%error, "alerts were not told");
        }
    }

    /// Tells what is to be told now, by the newest findings.
    pub(crate) async fn tell_alerts(&self) -> Result<()> {
        let (now, found) = (self.now(), self.tomography.found());
        // Another hub over the same record may have made one.
        let silences = self.record.silences(now).await?;
        let wall = WallTime::from_millis(now);
        let (notices, states) = {
            let mut alerts = self.rules.lock();
            alerts.set_silences(silences);
            let held_by = |source: &Name, target: &Name, signal| held_by(&found, source, target, signal);
            let notices = alerts.decide(wall, &self.zone, held_by);
            (notices, alerts.take_unsaved())
        };
        let links = self.alerts.take_unsaved();
        let states = [states, links].concat();
        let mut kept = std::mem::take(&mut *self.rules.unkept.lock().unwrap_or_else(PoisonError::into_inner));
        let bodies: Vec<(String, NoticeBody)> = notices.iter().flat_map(|notice| self.bodies(notice, now)).collect();
        let row = |(channel, body): &(String, NoticeBody)| {
            let (channel, body) = (channel.clone(), serde_json::to_string(body).unwrap_or_default());
            NewNotice { channel, body, made_ms: now }
        };
        kept.extend(bodies.iter().map(row));
        self.look_again(now).await;
        if kept.is_empty() && states.is_empty() {
            return Ok(());
        }
        // States and notices are kept together: whoever was told is known to have been.
        if let Err(error) = self.record.keep_alerts(&states, &kept).await {
            self.rules.lock().put_back(&states);
            self.alerts.put_back(&states);
            *self.rules.unkept.lock().unwrap_or_else(PoisonError::into_inner) = kept;
            return Err(error.into());
        }
        for (channel, body) in bodies {
            self.telling.still(&channel, &body, now);
        }
        self.telling.wake();
        for notice in &notices {
            self.tell("alert", &serde_json::json!({ "rule": notice.rule, "state": notice.kind, "text": notice.text }));
        }
        Ok(())
    }

    /// Where one value says that an alert begins or ends, and the next one decides, the mesh would
    /// come back in hours: a light run is ordered a minute after the value.
    async fn look_again(&self, now: i64) {
        let doubted = self.rules.lock().doubted();
        let is_new = |(source, target, kind): &(Name, Name, &str)| !self.orders.is_open_over(source, target, kind, now);
        for (source, target, kind) in doubted.into_iter().filter(is_new).take(MOST_LOOKS) {
            // A host may have left meanwhile.
            let terms = Terms { earliest: Some(now + AGAIN_MS), ..Terms::default() };
            if let Err(error) = self.order_at(&source, &target, kind, HUB, terms).await {
                tracing::debug!(%error, %source, %target, "not measured again");
            }
        }
    }

    /// What fires by the rules of the configuration.
    pub(crate) fn firing(&self) -> Vec<Firing> {
        self.rules.lock().firing(WallTime::from_millis(self.now()), &self.zone)
    }

    /// Alerts that people were told of before this hub began: channels that want them each minute
    /// get them again.
    pub(crate) fn still_firing(&self) {
        let now = self.now();
        for one in self.firing().into_iter().filter(|one| one.announced) {
            let since = Some(Interval { low: one.since, high: one.since });
            let (rule, subject, title, text, notify) = (one.rule, one.subject, one.title, one.text, one.notify);
            let (kind, fired, reading) = (NoticeKind::Repeated, None, None);
            let notice = Notice { rule, subject, title, kind, since, fired, text, reading, notify };
            for (channel, body) in self.bodies(&notice, now) {
                self.telling.still(&channel, &body, now);
            }
        }
    }

    /// Channels that the hub does not have would tell nobody.
    pub(crate) fn has_channels(&self, rules: &[PathRule]) -> Result<()> {
        for one in rules.iter().map(|one| &one.rule) {
            if let Some(missing) = one.notify.iter().find(|name| !self.telling.names().contains(*name)) {
                let text = format!("alert {:?}: notify: the hub's own file has no [channel.{missing}]", one.name);
                return Err(Error::Request(text));
            }
        }
        Ok(())
    }

    /// Holds notices back from now on. Returns the silence with its number.
    pub async fn silence(&self, wanted: Silence) -> Result<Silence> {
        let now = self.now();
        if wanted.ends_ms <= wanted.begins_ms.max(now) {
            return Err(Error::Request("a silence ends after it begins, and not before now".to_owned()));
        }
        if wanted.ends_ms - now > LONGEST_MS {
            return Err(Error::Request("a silence ends within 35 days".to_owned()));
        }
        let id = self.record.add_silence(&wanted).await?;
        self.record.audit(&wanted.who, "silence.made", &about(&wanted), now).await?;
        self.tell_alerts().await?;
        Ok(Silence { id, ..wanted })
    }

    /// Ends a silence now.
    pub async fn end_silence(&self, id: u64, who: &str) -> Result<()> {
        let now = self.now();
        self.record.end_silence(id, now).await?;
        self.record.audit(who, "silence.ended", &format!("silence {id}"), now).await?;
        self.tell_alerts().await
    }

    fn bodies(&self, notice: &Notice, now: i64) -> Vec<(String, NoticeBody)> {
        let link = matches!(notice.subject, Subject::Link(_));
        let value = notice.reading.map(|(signal, reading)| Value {
            signal: signal.name().to_owned(),
            claim: reading.claim,
            value: reading.value,
            low: reading.low,
            high: reading.high,
            unit: signal.unit().to_owned(),
            usual: None,
        });
        let (host, page) = match &notice.subject {
            Subject::Link(id) => (id.clone(), format!("{}/bottlenecks#{id}", self.url)),
            Subject::Path(source, target) => (source.to_string(), format!("{}/pair/{source}/{target}", self.url)),
        };
        let body = NoticeBody {
            rule: notice.rule.clone(),
            target: notice.title.clone(),
            host,
            state: notice.kind,
            at: WallTime::from_millis(now),
            since: notice.since.map(|since| since.high),
            since_low: notice.since.map(|since| since.low),
            since_high: notice.since.map(|since| since.high),
            lasted_ms: notice
                .fired
                .map(|over| u64::try_from(over.high.since(over.low).as_millis()).unwrap_or(u64::MAX)),
            text: notice.text.clone(),
            value,
            cause: link.then(|| format!("link {}", notice.title)),
            page: Some(page),
        };
        notice.notify.iter().map(|channel| (channel.clone(), body.clone())).collect()
    }
}

/// The link that a path is held back by, if one is located.
fn held_by(found: &Findings, source: &Name, target: &Name, signal: Signal) -> Option<Link> {
    let located = if signal == Signal::Capacity { &found.capacity } else { &found.available };
    let pair = found.network.pair(source, target)?;
    let Finding::Located { segment, .. } = located.estimate.findings().get(&pair)? else { return None };
    let value = located.estimate.value(*segment)?;
    let [value, low, high] = [value.value, value.low, value.high].map(BitRate::as_f64);
    let (id, name) = (bottlenecks::id(&found.network, *segment), bottlenecks::name(&found.network, *segment));
    Some(Link { id, name, value, low, high })
}

/// What a silence holds back, for the audit.
fn about(silence: &Silence) -> String {
    let Silence { rule, source, target, link, ends_ms, reason, .. } = silence;
    let host = |word: &str, host: &Option<Name>| host.as_ref().map(|host| format!("{word} {host}"));
    let named = [
        rule.as_ref().map(|rule| format!("alert {rule}")),
        host("from", source),
        host("to", target),
        link.as_ref().map(|link| format!("link {link}")),
    ];
    let named: Vec<String> = named.into_iter().flatten().collect();
    let what = if named.is_empty() { "everything".to_owned() } else { named.join(", ") };
    let until = narrows_units::format_rfc_3339(ends_ms / 1_000);
    format!("{what} until {until}{}{reason}", if reason.is_empty() { "" } else { ": " })
}

/// After a value that is to be confirmed. Ours: long enough for a burst to be over.
const AGAIN_MS: i64 = 60_000;
/// Runs ordered at a time, each half a minute: 80 MB a minute in the whole fleet at most.
const MOST_LOOKS: usize = 10;
/// As long as the record keeps one.
const LONGEST_MS: i64 = 35 * 86_400_000;
