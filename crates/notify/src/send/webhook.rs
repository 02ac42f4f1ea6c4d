//! A POST to a server.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use narrows_watch::WallTime;
use ureq::http::{Response, Uri};
use ureq::{Agent, Body, Proxy};

use super::{is_loopback, one_line, tls};
use crate::body::NoticeBody;
use crate::error::{SendError, SettingsError};
use crate::secret::{Folders, Secret};
use crate::settings::{self, Shape};
use crate::shape;

#[derive(Debug)]
pub(super) struct Webhook {
    agent: Agent,
    /// The address may be a secret: it is never shown.
    url: Secret,
    /// What is shown instead.
    host: String,
    topic: String,
    shape: Shape,
    token: Option<Secret>,
}

/// POSTs something else than a notice, by the same rules.
#[derive(Debug)]
pub struct Poster(Webhook);

impl Poster {
    /// To this address, `http://` or `https://`, each time within `limit`.
    pub fn new(url: &str, limit: Duration) -> Result<Self, SettingsError> {
        let hook = settings::Webhook {
            url: Some(url.to_owned()),
            url_file: None,
            shape: Shape::Json,
            token_file: None,
            ca_file: None,
            proxy: None,
        };
        let folders = Folders { settings: Path::new("."), credentials: None };
        Webhook::new(url, &hook, folders, limit).map(Self)
    }

    /// Says what the peer answered.
    pub fn post(&self, content_type: &str, body: &[u8]) -> Result<String, SendError> {
        self.0.post(content_type, body)
    }
}

impl Webhook {
    pub(super) fn new(
        channel: &str,
        hook: &settings::Webhook,
        folders: Folders<'_>,
        limit: Duration,
    ) -> Result<Self, SettingsError> {
        let wrong = |text: &str| SettingsError::Channel { channel: channel.to_owned(), text: text.to_owned() };
        let url = match (&hook.url, &hook.url_file) {
            (Some(url), None) => url.clone(),
            (None, Some(file)) => Secret::read(channel, file, folders)?.expose().to_owned(),
            _ => return Err(wrong("needs either url or url_file")),
        };
        let uri: Uri = url.parse().map_err(|_| wrong("url is no address: https://HOST/PATH"))?;
        let scheme = uri.scheme_str().unwrap_or_default();
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        if !["http", "https"].contains(&scheme) || authority.is_empty() {
            return Err(wrong("url must begin with https:// or http://"));
        }
        if authority.contains('@') {
            return Err(wrong("url has a password in it: use token_file, or url_file"));
        }
        let token = hook.token_file.as_ref().map(|file| Secret::read(channel, file, folders)).transpose()?;
        if token.is_some() && scheme == "http" && !uri.host().is_some_and(is_loopback) {
            return Err(wrong("token_file with http:// would show the token to the whole path: use https://"));
        }
        let (url, topic) = match hook.shape {
            Shape::Json | Shape::Slack => (url, String::new()),
            Shape::Ntfy => root_and_topic(&uri).ok_or_else(|| wrong("url of ntfy must end in a topic"))?,
            Shape::Alertmanager => (alerts_of(&uri), String::new()),
        };
        let agent = agent(channel, hook, scheme == "https", folders, limit)?;
        Ok(Self { agent, url: Secret::of(url), host: authority, topic, shape: hook.shape, token })
    }

    pub(super) const fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn send(&self, body: &NoticeBody, now: WallTime) -> Result<String, SendError> {
        let content = match self.shape {
            Shape::Json => shape::json(body),
            Shape::Slack => shape::slack(body),
            Shape::Ntfy => shape::ntfy(body, &self.topic),
            Shape::Alertmanager => shape::alertmanager(body, now),
        };
        self.post("application/json", content.to_string().as_bytes())
    }

    fn post(&self, content_type: &str, body: &[u8]) -> Result<String, SendError> {
        let mut request = self.agent.post(self.url.expose()).header("Content-Type", content_type);
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {}", token.expose()));
        }
        let response = request.send(body).map_err(|error| self.error(error))?;
        self.verdict(response)
    }

    fn verdict(&self, mut response: Response<Body>) -> Result<String, SendError> {
        let status = response.status();
        let mut said = Vec::new();
        // The status has come already: what cannot be read of the rest changes nothing.
        let _ = response.body_mut().as_reader().take(MOST_SHOWN).read_to_end(&mut said);
        let said = one_line(&said);
        let answer = if said.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {said}") };
        let text = format!("{}: {answer}", self.host);
        match status.as_u16() {
            200..=299 => Ok(answer),
            400 | 413 | 422 => Err(SendError::Refused(text)),
            300..=399 => Err(SendError::Settings(format!("{text}; the address has moved: write the new one"))),
            401 | 403 => Err(SendError::Settings(format!("{text}; is the token right?"))),
            402 | 404..=407 | 409..=412 => Err(SendError::Settings(format!("{text}; is the address right?"))),
            _ => {
                let seconds = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
                let retry_after = seconds.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
                Err(SendError::Busy { text, retry_after })
            }
        }
    }

    fn error(&self, error: ureq::Error) -> SendError {
        let host = &self.host;
        if let Some(tls) = tls::fault_of_web(host, &error) {
            return tls;
        }
        match error {
            ureq::Error::Timeout(_) => SendError::Silent(format!("{host} did not answer in time")),
            ureq::Error::HostNotFound => {
                SendError::Unreachable(format!("{host}: no address is known for this name; is DNS at work?"))
            }
            ureq::Error::Io(error) => SendError::Unreachable(format!("{host}: {error}")),
            ureq::Error::ConnectionFailed => SendError::Unreachable(format!("{host}: no connection")),
            ureq::Error::ConnectProxyFailed(why) => SendError::Unreachable(format!("{host}: the proxy says: {why}")),
            ureq::Error::Http(_) | ureq::Error::BadUri(_) => {
                SendError::Settings(format!("{host}: address or token has octets that HTTP does not allow"))
            }
            error => SendError::Protocol(format!("{host}: {error}")),
        }
    }
}

fn agent(
    channel: &str,
    hook: &settings::Webhook,
    is_https: bool,
    folders: Folders<'_>,
    limit: Duration,
) -> Result<Agent, SettingsError> {
    let wrong = |text: String| SettingsError::Channel { channel: channel.to_owned(), text };
    let proxy = hook.proxy.as_deref().map(Proxy::new).transpose();
    let proxy = proxy.map_err(|_| wrong("proxy is no address: http://HOST:PORT".to_owned()))?;
    let config = tls::web(channel, hook, is_https, folders, Agent::config_builder())?
        .proxy(proxy)
        .timeout_global(Some(limit))
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        // Minutes may pass between two notices: a kept connection is most likely dead.
        .max_idle_connections(0)
        .user_agent(concat!("narrows/", env!("CARGO_PKG_VERSION")))
        .build();
    Ok(Agent::new_with_config(config))
}

/// ntfy takes JSON at its root only: a topic's own address would show it as text.
fn root_and_topic(uri: &Uri) -> Option<(String, String)> {
    let path = uri.path().trim_end_matches('/');
    let (folder, topic) = path.rsplit_once('/')?;
    let root = format!("{}://{}{folder}/", uri.scheme_str()?, uri.authority()?);
    (!topic.is_empty()).then(|| (root, topic.to_owned()))
}

fn alerts_of(uri: &Uri) -> String {
    let path = uri.path().trim_end_matches('/');
    let path = path.strip_suffix(ALERTS).unwrap_or(path);
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    format!("{}://{authority}{path}{ALERTS}", uri.scheme_str().unwrap_or("http"))
}

const ALERTS: &str = "/api/v2/alerts";

/// How much of an answer is read.
const MOST_SHOWN: u64 = 2048;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_interfaces() {
        let topic = |url: &str| root_and_topic(&url.parse().unwrap());
        let is = |root: &str, topic: &str| Some((root.to_owned(), topic.to_owned()));
        assert_eq!(topic("https://ntfy.sh/office"), is("https://ntfy.sh/", "office"));
        assert_eq!(topic("http://x.example:81/ntfy/office/"), is("http://x.example:81/ntfy/", "office"));
        assert_eq!(topic("https://ntfy.sh/"), None);
        for url in ["http://am:9093", "http://am:9093/", "http://am:9093/api/v2/alerts"] {
            assert_eq!(alerts_of(&url.parse().unwrap()), "http://am:9093/api/v2/alerts", "{url}");
        }
        assert_eq!(alerts_of(&"https://x/am/".parse().unwrap()), "https://x/am/api/v2/alerts");
    }
}
