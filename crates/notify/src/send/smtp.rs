//! Mail.

use std::error::Error as _;
use std::io::ErrorKind;
use std::time::{Duration, SystemTime};

use lettre::message::Mailbox;
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::transport::smtp::authentication::Credentials;
use lettre::{Message, SmtpTransport, Transport};
use narrows_watch::WallTime;

use super::{is_loopback, tls};
use crate::body::NoticeBody;
use crate::error::{SendError, SettingsError, causes};
use crate::secret::{Folders, Secret};
use crate::settings::{self, MailTls};
use crate::shape;

#[derive(Debug)]
pub(super) struct Smtp {
    transport: SmtpTransport,
    server: String,
    from: Mailbox,
    to: Vec<Mailbox>,
}

impl Smtp {
    pub(super) fn new(
        channel: &str,
        mail: &settings::Smtp,
        folders: Folders<'_>,
        limit: Duration,
    ) -> Result<Self, SettingsError> {
        let wrong = |text: String| SettingsError::Channel { channel: channel.to_owned(), text };
        let (host, port) =
            host_and_port(&mail.server, mail.tls).ok_or_else(|| wrong("server is HOST or HOST:PORT".to_owned()))?;
        let mailbox = |text: &String| -> Result<Mailbox, SettingsError> {
            text.parse().map_err(|error| wrong(format!("{text:?} is no mail address: {error}")))
        };
        let to = mail.to.iter().map(mailbox).collect::<Result<Vec<_>, _>>()?;
        if to.is_empty() {
            return Err(wrong("to is empty: nobody would get the mail".to_owned()));
        }
        let mut builder = SmtpTransport::builder_dangerous(&host).port(port).timeout(Some(limit));
        builder = match (&mail.user, &mail.password_file) {
            (Some(_), Some(_)) if mail.tls == MailTls::None && !is_loopback(&host) => {
                return Err(wrong("tls = \"none\" would show the password to the whole path".to_owned()));
            }
            (Some(user), Some(file)) => {
                let password = Secret::read(channel, file, folders)?;
                builder.credentials(Credentials::new(user.clone(), password.expose().to_owned()))
            }
            (None, None) => builder,
            _ => return Err(wrong("user and password_file belong together".to_owned())),
        };
        builder = tls::mail(channel, mail, &host, folders, builder)?;
        let server = format!("{host}:{port}");
        Ok(Self { transport: builder.build(), server, from: mailbox(&mail.from)?, to })
    }

    pub(super) fn send(&self, body: &NoticeBody) -> Result<String, SendError> {
        let message = self.message(body)?;
        let response = self.transport.send(&message).map_err(|error| self.error(&error))?;
        let said = response.message().collect::<Vec<_>>().join(" ");
        Ok(format!("SMTP {} {}", response.code(), super::one_line(said.as_bytes())))
    }

    fn message(&self, body: &NoticeBody) -> Result<Message, SendError> {
        let (subject, text) = shape::mail(body);
        let mut builder = Message::builder()
            .from(self.from.clone())
            .date(system_time(body.at))
            .message_id(None)
            .subject(subject)
            .header(ContentType::TEXT_PLAIN);
        for to in &self.to {
            builder = builder.to(to.clone());
        }
        // Nobody's holiday notice shall answer (RFC 3834 §5).
        let name = HeaderName::new_from_ascii_str("Auto-Submitted");
        builder = builder.raw_header(HeaderValue::new(name, "auto-generated".to_owned()));
        builder.body(text).map_err(|error| SendError::Settings(error.to_string()))
    }

    fn error(&self, error: &lettre::transport::smtp::Error) -> SendError {
        let mut text = format!("{}: {error}", self.server);
        if let Some(source) = error.source().map(ToString::to_string).filter(|source| !text.contains(source)) {
            text = format!("{text}: {source}");
        }
        let text = super::one_line(text.as_bytes());
        match error.status().map(u16::from) {
            Some(530 | 534 | 535 | 538) => SendError::Settings(format!("{text}; are user and password right?")),
            Some(_) if error.is_transient() => SendError::Busy { text, retry_after: None },
            Some(_) => SendError::Refused(text),
            None if is_late(error) => SendError::Silent(format!("{} did not answer in time", self.server)),
            None => tls::fault_of_mail(&text, error).unwrap_or_else(|| match error {
                error if error.is_client() => SendError::Settings(text),
                error if error.is_response() => SendError::Protocol(text),
                _ => SendError::Unreachable(text),
            }),
        }
    }
}

/// A socket's time limit shows as `WouldBlock`, a connection's as `TimedOut`.
fn is_late(error: &lettre::transport::smtp::Error) -> bool {
    causes(error).any(|cause| {
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        matches!(kind, Some(ErrorKind::TimedOut | ErrorKind::WouldBlock))
    })
}

/// `HOST`, `HOST:PORT`, `[::1]` or `[::1]:PORT`.
fn host_and_port(server: &str, tls: MailTls) -> Option<(String, u16)> {
    let usual = match tls {
        MailTls::Starttls => 587,
        MailTls::Wrapped => 465,
        MailTls::None => 25,
    };
    let (host, port) = match server.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (server, usual),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_host = !host.is_empty() && !host.contains(['/', '@', ' ']);
    is_host.then(|| (host.to_owned(), port))
}

fn system_time(at: WallTime) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(at.millis()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_the_port_of_its_encryption() {
        let is = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(host_and_port("mail.example", MailTls::Starttls), is("mail.example", 587));
        assert_eq!(host_and_port("mail.example:2525", MailTls::Wrapped), is("mail.example", 2525));
        assert_eq!(host_and_port("[::1]", MailTls::Wrapped), is("::1", 465));
        assert_eq!(host_and_port("[::1]:26", MailTls::None), is("::1", 26));
        for wrong in ["", "smtp://mail.example", "mail.example:x", ":25"] {
            assert_eq!(host_and_port(wrong, MailTls::None), None, "{wrong}");
        }
    }
}
