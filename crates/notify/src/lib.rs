//! How `narrows watch` and the hub of a fleet reach people.
//!
//! * [`Channel`]: the settings of one channel, `[channel.NAME]` of `watch.toml`.
//! * [`NoticeBody`]: what is said; [`shape`] puts it into the words of Slack, ntfy, Alertmanager
//!   and of mail.
//! * [`Notifier`]: sends one notice by one channel, within a time limit, and says who can mend what
//!   went wrong.
//! * [`Outbox`] and [`Worker`]: keep notices until they are delivered, try again later and later,
//!   and give up after a day.
//!
//! Time is an argument, except for the time-outs of sockets and programs. A new kind of channel is
//! a variant of [`Channel`] in `settings.rs` and a file under `send/`; a new form of text is a
//! function in `shape.rs`.

mod body;
mod error;
mod outbox;
mod secret;
mod send;
mod settings;
pub mod shape;
mod worker;

pub use body::{NoticeBody, Value};
pub use error::{SendError, SettingsError};
pub use outbox::{Entry, Memory, Outbox, OutboxError, Undelivered, retry_after};
pub use secret::Folders;
pub use send::{Deliver, Limits, Notifier, Poster};
pub use settings::{Channel, Exec, MailTls, Shape, Smtp, Webhook};
pub use worker::{Answer, ChannelStatus, Status, Worker};
