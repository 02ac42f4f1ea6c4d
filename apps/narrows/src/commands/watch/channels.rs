//! Notices on their way to people: the outbox of the store, and the channels of the settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use narrows_notify::{
    Channel, Entry, Folders, Limits, Memory, NoticeBody, Notifier, Outbox, OutboxError, SettingsError, Undelivered,
    Worker,
};
use narrows_store::{Error, Writer};
use narrows_watch::WallTime;
use narrows_web::{Links, Live};

use super::keep::Notices;
use super::{clocks, events};
use crate::commands::alerts::refusal;
use crate::exit::Failure;

/// Tells by channels.
pub(super) struct Channels {
    worker: Worker,
    links: Option<Links>,
    settings: Option<PathBuf>,
}

impl Channels {
    /// Reads the channels and begins with what the outbox holds. Notices link to pages that are
    /// served.
    pub(super) fn start(
        channels: &toml::Table,
        settings: Option<&Path>,
        (writer, live): (Option<&Writer>, &Live),
        links: Option<Links>,
    ) -> Result<Self, Failure> {
        let notifier = notifier(channels, settings)?;
        let outbox: Arc<dyn Outbox> = match writer {
            Some(writer) => Arc::new(Stored { writer: writer.clone(), live: live.clone() }),
            None => Arc::new(Memory::telling(|of| crate::output::complain(&of.to_string()))),
        };
        live.metrics().host_may(&crate::environment::hostname(), UNDELIVERED);
        let worker = Worker::start(outbox, Arc::new(notifier), || clocks::now().wall);
        let worker = worker.map_err(|error| Failure::host(format!("cannot start a thread: {error}")))?;
        Ok(Self { worker, links, settings: settings.map(Path::to_owned) })
    }
}

/// Whether the channels make sense. That a secret is missing is only said: a service may be handed
/// it.
pub(super) fn check(channels: &toml::Table, settings: Option<&Path>) -> Result<(), Failure> {
    match read(&parsed(channels)?, settings) {
        Err(error @ SettingsError::WithoutTls { .. }) => Err(refusal(&error)),
        Err(error) => {
            crate::output::complain(&error.to_string());
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

fn parsed(channels: &toml::Table) -> Result<BTreeMap<String, Channel>, Failure> {
    channels.clone().try_into().map_err(|error| Failure::usage(format!("[channel]: {error}")))
}

fn notifier(channels: &toml::Table, settings: Option<&Path>) -> Result<Notifier, Failure> {
    read(&parsed(channels)?, settings).map_err(|error| refusal(&error))
}

fn read(channels: &BTreeMap<String, Channel>, settings: Option<&Path>) -> Result<Notifier, SettingsError> {
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    let folder = settings.and_then(Path::parent).unwrap_or(Path::new("."));
    let folders = Folders { settings: folder, credentials: credentials.as_deref() };
    Notifier::new(channels, folders, Limits::default())
}

impl Notices for Channels {
    fn use_channels(&mut self, channels: &toml::Table) -> Result<(), Failure> {
        self.worker.reload(Arc::new(notifier(channels, self.settings.as_deref())?));
        Ok(())
    }

    fn tell(&mut self, channels: &[String], body: NoticeBody) {
        let page = self.links.as_ref().map(|links| links.target(&body.target));
        let body = NoticeBody { page, ..body };
        for channel in channels {
            if let Err(error) = self.worker.push(channel, &body, body.at) {
                tracing::warn!(%error, channel, "a notice is not in the outbox");
            }
        }
    }
}

/// The table `outbox`, and where it is said what was given up.
struct Stored {
    writer: Writer,
    live: Live,
}

fn outbox_error(error: &Error) -> OutboxError {
    OutboxError(error.to_string())
}

impl Outbox for Stored {
    fn push(&self, channel: &str, body: &str, made: WallTime) -> Result<i64, OutboxError> {
        self.writer.push(channel, body, made).map_err(|error| outbox_error(&error))
    }

    fn due(&self, now: WallTime) -> Result<Vec<Entry>, OutboxError> {
        let rows = self.writer.due(now).map_err(|error| outbox_error(&error))?;
        let entry = |row: narrows_store::records::OutboxRow| Entry {
            id: row.id,
            channel: row.channel,
            body: row.body,
            made: row.made,
            due: row.due,
            tries: row.tries,
        };
        Ok(rows.into_iter().map(entry).collect())
    }

    fn retry(&self, id: i64, due: WallTime) -> Result<(), OutboxError> {
        self.writer.retry(id, due).map_err(|error| outbox_error(&error))
    }

    fn done(&self, id: i64, at: WallTime) -> Result<(), OutboxError> {
        self.writer.done(id, at).map_err(|error| outbox_error(&error))
    }

    fn give_up(&self, of: &Undelivered) -> Result<(), OutboxError> {
        self.writer.give_up(of.id, of.at).map_err(|error| outbox_error(&error))?;
        crate::output::complain(&of.to_string());
        let mut event = events::now(None, UNDELIVERED, of.at, of.to_string());
        if let Err(error) = self.writer.event(&mut event) {
            tracing::warn!(%error, "the event waits in memory");
        }
        self.live.metrics().host_event(&crate::environment::hostname(), UNDELIVERED);
        self.live.event(None, &event);
        Ok(())
    }
}

/// The kind of the event that tells of a notice that was given up.
const UNDELIVERED: &str = "undelivered";

#[cfg(test)]
mod tests {
    use narrows_store::records::Span;
    use narrows_store::{Options, Store};

    use super::*;

    /// The event, the metric, the row of the outbox: each says it.
    #[test]
    fn a_notice_that_is_given_up_is_an_event_and_a_number() {
        let at = WallTime::from_millis;
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("watch.db"), Options::new(at(0))).unwrap();
        let (live, _posts) = Live::new();
        let outbox = Stored { writer: store.writer(), live: live.clone() };
        let id = outbox.push("ops", "{}", at(0)).unwrap();
        let [channel, rule, target, why] = ["ops", "uplink-low", "office", "no answer in 10 s"].map(str::to_owned);
        outbox.give_up(&Undelivered { id, channel, rule, target, made: at(0), at: at(86_400_000), why }).unwrap();
        assert_eq!(outbox.due(at(90_000_000)).unwrap(), []);
        let span = Span { since: at(0), until: at(90_000_000) };
        let [event] = &store.reader().events(None, span, 9).unwrap()[..] else { panic!("one event") };
        assert_eq!((&*event.kind, event.target), ("undelivered", None));
        let said = "channel ops: the notice about office (rule uplink-low) was given up after 24 h: no answer in 10 s";
        assert_eq!(event.text, said);
        let text = live.metrics().text(at(90_000_000)).unwrap();
        let counted =
            format!("narrows_events_total{{source=\"{}\",kind=\"undelivered\"}} 1", crate::environment::hostname());
        assert!(text.contains(&counted), "{text}");
    }
}
