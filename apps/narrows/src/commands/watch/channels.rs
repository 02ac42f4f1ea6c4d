//! Notices on their way to people: the outbox of the store, and the channels of the settings.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use narrows_notify::{
    Channel, Entry, Folders, Limits, Memory, NoticeBody, Notifier, Outbox, OutboxError, SettingsError, Worker,
};
use narrows_store::{Error, Writer};
use narrows_watch::WallTime;
use narrows_web::Links;

use super::clocks;
use super::keep::Notices;
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
        writer: Option<&Writer>,
        links: Option<Links>,
    ) -> Result<Self, Failure> {
        let notifier = notifier(channels, settings)?;
        let outbox: Arc<dyn Outbox> = match writer {
            Some(writer) => Arc::new(Stored(writer.clone())),
            None => Arc::new(Memory::default()),
        };
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

/// The table `outbox`.
struct Stored(Writer);

fn outbox_error(error: &Error) -> OutboxError {
    OutboxError(error.to_string())
}

impl Outbox for Stored {
    fn push(&self, channel: &str, body: &str, made: WallTime) -> Result<i64, OutboxError> {
        self.0.push(channel, body, made).map_err(|error| outbox_error(&error))
    }

    fn due(&self, now: WallTime) -> Result<Vec<Entry>, OutboxError> {
        let rows = self.0.due(now).map_err(|error| outbox_error(&error))?;
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
        self.0.retry(id, due).map_err(|error| outbox_error(&error))
    }

    fn done(&self, id: i64, at: WallTime) -> Result<(), OutboxError> {
        self.0.done(id, at).map_err(|error| outbox_error(&error))
    }
}
