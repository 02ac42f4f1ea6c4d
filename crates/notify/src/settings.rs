//! `[channel.NAME]` of `watch.toml`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One way to reach somebody.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Channel {
    /// A POST to a server.
    Webhook(Webhook),
    /// A program of the user's.
    Exec(Exec),
    /// Mail.
    Smtp(Smtp),
}

/// A POST to a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Where to.
    pub url: Option<String>,
    /// A file with the address, where the address itself is a secret.
    pub url_file: Option<PathBuf>,
    /// The words in which the server wants it.
    #[serde(default)]
    pub shape: Shape,
    /// A file with a token, sent as `Authorization: Bearer`.
    pub token_file: Option<PathBuf>,
    /// Certificates (PEM) of the authorities that may vouch for the server; else the public ones.
    pub ca_file: Option<PathBuf>,
    /// `http://HOST:PORT` of a proxy.
    pub proxy: Option<String>,
}

/// The words in which a server wants a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Every field by its name (`narrows.notice/1`).
    #[default]
    Json,
    /// Slack, and what understands its incoming webhooks.
    Slack,
    /// ntfy.
    Ntfy,
    /// Prometheus Alertmanager, API version 2.
    Alertmanager,
}

/// A program of the user's. It gets the notice as JSON on its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// The program and its arguments; no shell reads them.
    pub command: Vec<String>,
}

/// Mail.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Smtp {
    /// `HOST` or `HOST:PORT`; the port is 587, 465 or 25, as `tls` has it.
    pub server: String,
    /// The sender.
    pub from: String,
    /// The recipients.
    pub to: Vec<String>,
    /// The account, where the server wants one.
    pub user: Option<String>,
    /// A file with its password.
    pub password_file: Option<PathBuf>,
    /// How the connection is encrypted.
    #[serde(default)]
    pub tls: MailTls,
    /// Certificates (PEM) of the authorities that may vouch for the server; else the public ones.
    pub ca_file: Option<PathBuf>,
}

/// How a connection for mail is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailTls {
    /// By STARTTLS, or not at all sent.
    #[default]
    Starttls,
    /// From the first octet.
    Wrapped,
    /// Not.
    None,
}

impl Channel {
    /// `webhook`, `exec` or `smtp`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Webhook(_) => "webhook",
            Self::Exec(_) => "exec",
            Self::Smtp(_) => "smtp",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Channel, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn every_kind_is_read() {
        let hook = parse("kind = \"webhook\"\nurl = \"https://ntfy.example/x\"\nshape = \"ntfy\"\ntoken_file = \"t\"");
        let Channel::Webhook(hook) = hook.unwrap() else { panic!("a webhook") };
        assert_eq!((hook.shape, hook.token_file), (Shape::Ntfy, Some(PathBuf::from("t"))));
        let exec = parse("kind = \"exec\"\ncommand = [\"/bin/page\", \"-u\"]").unwrap();
        assert_eq!(exec, Channel::Exec(Exec { command: vec!["/bin/page".to_owned(), "-u".to_owned()] }));
        let mail = parse("kind = \"smtp\"\nserver = \"mail.example\"\nfrom = \"a@x.example\"\nto = [\"b@x.example\"]");
        let Channel::Smtp(mail) = mail.unwrap() else { panic!("mail") };
        assert_eq!((mail.tls, mail.user), (MailTls::Starttls, None));
    }

    #[test]
    fn what_nobody_knows_is_refused() {
        for (text, named) in [
            ("kind = \"webhook\"\nurl = \"http://x\"\ntoken = \"s3cret\"", "`token`"),
            ("kind = \"webhook\"\nurl = \"http://x\"\nshape = \"teams\"", "`teams`"),
            ("kind = \"exec\"\ncommand = [\"x\"]\nshell = true", "`shell`"),
            ("kind = \"exec\"\ncommand = \"x\"", "sequence"),
            ("kind = \"smtp\"\nserver = \"x\"\nfrom = \"a\"\nto = [\"b\"]\npassword = \"x\"", "`password`"),
            ("kind = \"pager\"", "`pager`"),
            ("url = \"http://x\"", "`kind`"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(named) && !error.contains("s3cret"), "{text}: {error}");
        }
    }
}
