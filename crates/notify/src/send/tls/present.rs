//! With the `tls` feature: rustls with aws-lc.

use std::path::Path;
use std::sync::Arc;

use lettre::transport::smtp::client::{Certificate as MailCertificate, CertificateStore, Tls, TlsParameters};
use lettre::transport::smtp::{Error as MailError, SmtpTransportBuilder};
use ureq::config::ConfigBuilder;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::AgentScope;

use crate::error::{SendError, SettingsError, causes};
use crate::secret::{Folders, file_error};
use crate::settings::{self, MailTls};

/// What a connection to a web server uses.
pub(in crate::send) fn web(
    channel: &str,
    hook: &settings::Webhook,
    _: bool,
    folders: Folders<'_>,
    builder: ConfigBuilder<AgentScope>,
) -> Result<ConfigBuilder<AgentScope>, SettingsError> {
    let roots = match &hook.ca_file {
        Some(file) => certificates(channel, &folders.find(file).0)?,
        None => RootCerts::WebPki,
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = TlsConfig::builder().root_certs(roots).unversioned_rustls_crypto_provider(provider).build();
    Ok(builder.tls_config(tls))
}

fn certificates(channel: &str, path: &Path) -> Result<RootCerts, SettingsError> {
    let wrong = |text: String| file_error(channel, path, text);
    let pem = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let mut found: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&pem) {
        if let PemItem::Certificate(one) = item.map_err(|error| wrong(error.to_string()))? {
            found.push(one);
        }
    }
    if found.is_empty() {
        return Err(wrong("has no certificate (PEM)".to_owned()));
    }
    Ok(RootCerts::new_with_certs(&found))
}

/// What a connection to a mail server uses.
pub(in crate::send) fn mail(
    channel: &str,
    mail: &settings::Smtp,
    host: &str,
    folders: Folders<'_>,
    transport: SmtpTransportBuilder,
) -> Result<SmtpTransportBuilder, SettingsError> {
    if mail.tls == MailTls::None {
        return Ok(transport.tls(Tls::None));
    }
    let mut builder = TlsParameters::builder(host.to_owned());
    if let Some(file) = &mail.ca_file {
        let path = folders.find(file).0;
        let wrong = |text: String| file_error(channel, &path, text);
        let pem = std::fs::read(&path).map_err(|error| wrong(error.to_string()))?;
        let certificate = MailCertificate::from_pem(&pem).map_err(|error| wrong(error.to_string()))?;
        builder = builder.certificate_store(CertificateStore::None).add_root_certificate(certificate);
    }
    let parameters = builder.build_rustls();
    let parameters =
        parameters.map_err(|error| SettingsError::Channel { channel: channel.to_owned(), text: error.to_string() })?;
    let is_wrapped = mail.tls == MailTls::Wrapped;
    Ok(transport.tls(if is_wrapped { Tls::Wrapper(parameters) } else { Tls::Required(parameters) }))
}

/// What went wrong, if it was TLS.
pub(in crate::send) fn fault_of_web(host: &str, error: &ureq::Error) -> Option<SendError> {
    let tls = match error {
        ureq::Error::Rustls(error) => error,
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref()?,
        _ => return None,
    };
    Some(match tls {
        rustls::Error::InvalidCertificate(why) => SendError::Settings(format!(
            "{host}: its certificate is not trusted ({why:?}); an authority of your own goes into ca_file"
        )),
        error => SendError::Protocol(format!("{host}: TLS: {error}")),
    })
}

/// What went wrong, described by `text`, if it was TLS.
pub(in crate::send) fn fault_of_mail(text: &str, error: &MailError) -> Option<SendError> {
    if is_certificate(error) {
        return Some(SendError::Settings(format!("{text}; an authority of your own goes into ca_file")));
    }
    (!error.is_client() && error.is_tls()).then(|| SendError::Protocol(text.to_owned()))
}

/// A certificate that nobody trusts shows only in the chain of causes.
fn is_certificate(error: &MailError) -> bool {
    causes(error).any(|cause| {
        let inner = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        let tls = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>()).or_else(|| cause.downcast_ref());
        matches!(tls, Some(rustls::Error::InvalidCertificate(_)))
    })
}
