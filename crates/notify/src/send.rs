//! Sends one notice by one channel.

mod exec;
mod smtp;
mod tls;
mod webhook;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_watch::WallTime;
pub use webhook::Poster;

use crate::body::NoticeBody;
use crate::error::{SendError, SettingsError};
use crate::secret::Folders;
use crate::settings::{Channel, Shape};

/// What delivers notices, for the worker. It may take as long as its limits allow.
pub trait Deliver: Send + Sync {
    /// Sends; returns what the peer answered.
    fn send(&self, channel: &str, body: &NoticeBody, now: WallTime) -> Result<String, SendError>;

    /// Whether a firing alert is to be sent again each minute by this channel.
    fn repeats(&self, channel: &str) -> bool;

    /// Ends what can be ended: programs that run.
    fn stop(&self);
}

/// How long a peer may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A webhook, from the name's resolution to the end of the answer.
    pub webhook: Duration,
    /// Each answer of a mail server.
    pub smtp: Duration,
    /// A program.
    pub exec: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { webhook: Duration::from_secs(20), smtp: Duration::from_secs(20), exec: Duration::from_secs(30) }
    }
}

/// All channels, with their secrets read.
#[derive(Debug)]
pub struct Notifier {
    senders: BTreeMap<String, Sender>,
    stop: Arc<AtomicBool>,
}

#[derive(Debug)]
enum Sender {
    Webhook(webhook::Webhook),
    Exec(exec::Exec),
    Smtp(Box<smtp::Smtp>),
}

impl Notifier {
    /// Reads secrets and certificates.
    pub fn new(
        channels: &BTreeMap<String, Channel>,
        folders: Folders<'_>,
        limits: Limits,
    ) -> Result<Self, SettingsError> {
        let stop = Arc::new(AtomicBool::new(false));
        let mut senders = BTreeMap::new();
        for (name, channel) in channels {
            let sender = match channel {
                Channel::Webhook(hook) => Sender::Webhook(webhook::Webhook::new(name, hook, folders, limits.webhook)?),
                Channel::Exec(exec) => {
                    Sender::Exec(exec::Exec::new(name, exec, (folders, limits.exec), Arc::clone(&stop))?)
                }
                Channel::Smtp(mail) => Sender::Smtp(Box::new(smtp::Smtp::new(name, mail, folders, limits.smtp)?)),
            };
            senders.insert(name.clone(), sender);
        }
        Ok(Self { senders, stop })
    }
}

impl Deliver for Notifier {
    fn send(&self, channel: &str, body: &NoticeBody, now: WallTime) -> Result<String, SendError> {
        match self.senders.get(channel) {
            Some(Sender::Webhook(hook)) => hook.send(body, now),
            Some(Sender::Exec(exec)) => exec.send(body),
            Some(Sender::Smtp(mail)) => mail.send(body),
            None => Err(SendError::Settings(format!("there is no channel {channel:?}"))),
        }
    }

    fn repeats(&self, channel: &str) -> bool {
        matches!(self.senders.get(channel), Some(Sender::Webhook(hook)) if hook.shape() == Shape::Alertmanager)
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// What a peer said, in one line that fits a table.
fn one_line(octets: &[u8]) -> String {
    let text = String::from_utf8_lossy(octets);
    let words: Vec<&str> = text.split(|letter: char| letter.is_whitespace() || letter.is_control()).collect();
    let line = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    line.chars().take(200).collect()
}

/// Whether a host is this machine by its name or address.
fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests;
