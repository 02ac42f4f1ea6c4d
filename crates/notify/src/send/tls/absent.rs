//! Without the `tls` feature.

use lettre::transport::smtp::{Error as MailError, SmtpTransportBuilder};
use ureq::config::ConfigBuilder;
use ureq::typestate::AgentScope;

use crate::error::{SendError, SettingsError};
use crate::secret::Folders;
use crate::settings::{self, MailTls};

/// Refuses what this build cannot do.
pub(in crate::send) fn web(
    channel: &str,
    hook: &settings::Webhook,
    is_https: bool,
    _: Folders<'_>,
    builder: ConfigBuilder<AgentScope>,
) -> Result<ConfigBuilder<AgentScope>, SettingsError> {
    let encrypted_proxy = hook.proxy.as_ref().is_some_and(|proxy| proxy.to_ascii_lowercase().starts_with("https:"));
    match (is_https, encrypted_proxy, &hook.ca_file) {
        (true, ..) => Err(without(channel, "url is https://")),
        (_, true, _) => Err(without(channel, "proxy is https://")),
        (.., Some(_)) => Err(without(channel, "ca_file is given")),
        _ => Ok(builder),
    }
}

/// Refuses what this build cannot do.
pub(in crate::send) fn mail(
    channel: &str,
    mail: &settings::Smtp,
    _: &str,
    _: Folders<'_>,
    builder: SmtpTransportBuilder,
) -> Result<SmtpTransportBuilder, SettingsError> {
    match mail.tls {
        MailTls::None => Ok(builder),
        MailTls::Starttls => Err(without(channel, "tls is \"starttls\"")),
        MailTls::Wrapped => Err(without(channel, "tls is \"wrapped\"")),
    }
}

/// There are no such faults.
pub(in crate::send) fn fault_of_web(_: &str, _: &ureq::Error) -> Option<SendError> {
    None
}

/// There are no such faults.
pub(in crate::send) fn fault_of_mail(_: &str, _: &MailError) -> Option<SendError> {
    None
}

fn without(channel: &str, what: &'static str) -> SettingsError {
    SettingsError::WithoutTls { channel: channel.to_owned(), what }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn what_needs_tls_is_refused() {
        let folders = || Folders { settings: Path::new("/"), credentials: None };
        let agent = ureq::Agent::config_builder;
        let refused = |result: Result<_, SettingsError>| result.map(drop).unwrap_err().to_string();
        let hook = |more: &str| -> settings::Webhook { toml::from_str(more).unwrap() };
        for (text, is_https, what) in [
            ("", true, "url is https://"),
            ("proxy = \"HTTPS://p:1\"", false, "proxy is https://"),
            ("ca_file = \"x\"", false, "ca_file is given"),
        ] {
            let refused = refused(web("ops", &hook(text), is_https, folders(), agent()));
            assert!(refused.starts_with("channel.ops: ") && refused.contains(what), "{refused}");
        }
        assert!(web("ops", &hook("proxy = \"http://p:1\""), false, folders(), agent()).is_ok());
        for (tls, taken) in [("starttls", false), ("wrapped", false), ("none", true)] {
            let text = format!("server = \"x\"\nfrom = \"a\"\nto = []\ntls = \"{tls}\"");
            let builder = lettre::SmtpTransport::builder_dangerous("x");
            assert_eq!(mail("ops", &toml::from_str(&text).unwrap(), "x", folders(), builder).is_ok(), taken, "{tls}");
        }
    }
}
