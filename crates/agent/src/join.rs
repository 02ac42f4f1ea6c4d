//! How a host joins a fleet: one request to a hub whose key the token names.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use narrows_bus::{Key, has_other_key, pinned};
use narrows_fleet::message::{Join, Joined};
use rustls::pki_types::ServerName;
use serde::Deserialize;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::error::{Error, Result};
use crate::state::Membership;
use narrows_units::hex;

/// Where a hub is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubAddress {
    /// Its name or address, an IPv6 address without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// The port of a hub.
pub const HUB_PORT: u16 = 8622;

/// A join token: `nw1.<SHA-256 of the hub's key>.<20 secret octets>`, both in hexadecimal.
#[derive(Clone)]
pub struct Token {
    pub(crate) text: String,
    pub(crate) key_hash: [u8; 32],
}

impl FromStr for HubAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = || Error::Url(text.to_owned());
        let rest = match text.split_once("://") {
            Some(("https", rest)) => rest,
            Some(_) => return Err(wrong()),
            None => text,
        };
        let rest = rest.trim_end_matches('/');
        let number = |port: &str| port.parse().map_err(|_| wrong());
        let (host, port) = match (rest.strip_prefix('['), rest.rsplit_once(':')) {
            (Some(inner), _) => match inner.split_once(']').ok_or_else(wrong)? {
                (host, "") => (host, HUB_PORT),
                (host, port) => (host, number(port.strip_prefix(':').ok_or_else(wrong)?)?),
            },
            // More than one colon: an IPv6 address without brackets.
            (None, Some((host, port))) if !host.contains(':') => (host, number(port)?),
            (None, _) => (rest, HUB_PORT),
        };
        let fine = !host.is_empty() && !host.contains(['/', ' ', '?', '#', '@']);
        fine.then(|| Self { host: host.to_owned(), port }).ok_or_else(wrong)
    }
}

impl std::fmt::Display for HubAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(f, "https://[{host}]:{port}") } else { write!(f, "https://{host}:{port}") }
    }
}

impl FromStr for Token {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = text.trim().split('.');
        let (version, hash, secret) = (parts.next(), parts.next(), parts.next());
        let hash = hash.and_then(hex::to_array::<32>);
        let secret = secret.and_then(hex::to_array::<20>);
        match (version, hash, secret, parts.next()) {
            (Some("nw1"), Some(key_hash), Some(_), None) => Ok(Self { text: text.trim().to_owned(), key_hash }),
            _ => Err(Error::Token),
        }
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Token({})", hex::to_text(&self.key_hash))
    }
}

/// Joins. The agent's name is the hub's to give: it may have added a number.
pub async fn join(hub: &HubAddress, token: &Token, mut wish: Join, key: &Key) -> Result<Membership> {
    token.text.clone_into(&mut wish.token);
    wish.public_key = key.public();
    match ask(hub, token, &wish).await? {
        (200, answer) => membership(hub, token, wish.port, &answer),
        (code, answer) => Err(Error::Refused(complaint(code, &answer))),
    }
}

/// What a hub answered is a membership.
pub(crate) fn membership(hub: &HubAddress, token: &Token, port: u16, answer: &[u8]) -> Result<Membership> {
    let joined: Joined = serde_json::from_slice(answer).map_err(|error| Error::Protocol(error.to_string()))?;
    Ok(Membership { hub: hub.to_string(), key_hash: hex::to_text(&token.key_hash), port, joined })
}

/// Asks the hub whose key the token names. The answer's code and body.
pub(crate) async fn ask(hub: &HubAddress, token: &Token, wish: &Join) -> Result<(u16, Vec<u8>)> {
    let body = serde_json::to_vec(wish).map_err(|error| Error::Protocol(error.to_string()))?;
    let unreachable = |why: String| Error::Unreachable { hub: hub.to_string(), why };
    let asked = tokio::time::timeout(PATIENCE, post(hub, token.key_hash, "/api/v1/join", &body));
    let answered = asked.await.map_err(|_| unreachable(format!("nothing came within {PATIENCE:?}")))?;
    let why = |error: std::io::Error| {
        if has_other_key(&error) { Error::OtherKey(hub.to_string()) } else { unreachable(error.to_string()) }
    };
    answered.map_err(why)
}

/// One request of HTTP/1.1 (RFC 9112) over a connection of its own, to the server with this key.
/// The answer's code and body.
async fn post(hub: &HubAddress, key_hash: [u8; 32], path: &str, body: &[u8]) -> std::io::Result<(u16, Vec<u8>)> {
    let tcp = TcpStream::connect((hub.host.as_str(), hub.port)).await?;
    let name = ServerName::try_from(hub.host.clone()).map_err(std::io::Error::other)?;
    let mut tls = TlsConnector::from(Arc::new(pinned(key_hash))).connect(name, tcp).await?;
    let authority = hub.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        authority.trim_start_matches("https://"),
        body.len()
    );
    tls.write_all(head.as_bytes()).await?;
    tls.write_all(body).await?;
    tls.flush().await?;
    let mut octets = Vec::new();
    // A server that closes without TLS's own farewell has still said all that its length promises.
    let read = (&mut tls).take(MOST_OCTETS).read_to_end(&mut octets).await;
    match (answer(&octets), read) {
        (Some(answer), _) => Ok(answer),
        (None, Err(error)) => Err(error),
        (None, Ok(_)) => Err(std::io::Error::other("this is no answer of a hub")),
    }
}

/// Code and body of an answer that is whole; `None` otherwise.
fn answer(octets: &[u8]) -> Option<(u16, Vec<u8>)> {
    let end = octets.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&octets[..end]).ok()?;
    let mut lines = head.split("\r\n");
    let mut status = lines.next()?.split(' ');
    let code = status.next().filter(|version| version.starts_with("HTTP/1."))?;
    let code = status.next().filter(|_| !code.is_empty())?.parse().ok()?;
    let length = lines.filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    let body = octets.get(end + 4..)?;
    (body.len() >= length).then(|| (code, body[..length].to_vec()))
}

/// What a hub says when it refuses: a problem (RFC 9457), or text of a proxy before it.
pub(crate) fn complaint(code: u16, body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Problem {
        detail: String,
    }
    let text = String::from_utf8_lossy(body);
    let said = serde_json::from_str(&text).map_or_else(|_| text.trim().to_owned(), |Problem { detail }| detail);
    let brief: String = said.chars().filter(|letter| !letter.is_control()).take(300).collect();
    if brief.is_empty() { format!("code {code}") } else { brief }
}

const PATIENCE: Duration = Duration::from_secs(20);
const MOST_OCTETS: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_is_named_by_a_url_or_an_address() {
        for (text, shown) in [
            ("https://10.0.0.1:8622", "https://10.0.0.1:8622"),
            ("https://hub.example/", "https://hub.example:8622"),
            ("hub", "https://hub:8622"),
            ("hub:99", "https://hub:99"),
            ("[2001:db8::1]:99", "https://[2001:db8::1]:99"),
            ("https://[2001:db8::1]", "https://[2001:db8::1]:8622"),
            ("2001:db8::1", "https://[2001:db8::1]:8622"),
        ] {
            assert_eq!(text.parse::<HubAddress>().unwrap().to_string(), shown);
        }
        for text in ["", "http://hub", "https://", "hub:", "hub:70000", "[::1", "[::1]x", "a b", "https://hub/x"] {
            assert!(text.parse::<HubAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_token_has_three_parts_and_is_never_printed() {
        let token = format!("nw1.{}.{}", "ab".repeat(32), "cd".repeat(20));
        let read: Token = token.parse().unwrap();
        assert_eq!((read.text.as_str(), read.key_hash), (token.as_str(), [0xab; 32]));
        assert!(!format!("{read:?}").contains("cdcd"));
        for wrong in ["nw2", "", "nw1.ab.cd", &token[..token.len() - 1], &format!("{token}.x")] {
            assert!(wrong.parse::<Token>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_answer_counts_when_it_is_whole() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(answer(whole), Some((200, b"{}".to_vec())));
        assert_eq!(answer(&whole[..whole.len() - 1]), None);
        assert_eq!(answer(b"SSH-2.0-x\r\n\r\n"), None);
    }

    #[test]
    fn a_refusal_says_what_the_hub_says() {
        let problem = serde_json::to_vec(&narrows_site::Problem::bad_request("this token is not valid")).unwrap();
        assert_eq!(complaint(400, &problem), "this token is not valid");
        assert_eq!(complaint(502, b"Bad Gateway\r\n"), "Bad Gateway");
        assert_eq!(complaint(500, b""), "code 500");
    }
}
