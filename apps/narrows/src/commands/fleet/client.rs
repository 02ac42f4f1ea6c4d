//! Requests to a hub that is known by the hash of its key.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use narrows_hub::HubFile;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use serde_json::Value;

use super::place::state_of;
use crate::exit::{Exit, Failure};
use crate::key;

/// Which hub.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct HubArgs {
    /// State directory of a hub on this machine
    #[arg(long, value_name = "DIR", conflicts_with = "hub")]
    state: Option<PathBuf>,
    /// Address of a hub elsewhere, such as `https://10.0.0.1:8622`
    #[arg(long, value_name = "URL", requires_all = ["key_hash", "token_file"])]
    hub: Option<String>,
    /// Hash of its key: the second part of a join token
    #[arg(long, value_name = "HEX", requires = "hub")]
    key_hash: Option<String>,
    /// File with its view.token; to read alone, its read.token
    #[arg(long, value_name = "FILE", requires = "hub")]
    token_file: Option<PathBuf>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct Unanswered {
    pub(crate) failure: Failure,
    /// The same may be answered later: the hub starts again, or has too much to do.
    pub(crate) passes: bool,
}

impl Unanswered {
    /// For whoever does not ask again.
    fn last(self) -> Failure {
        self.failure
    }
}

/// A hub that answers requests.
#[derive(Debug)]
pub(crate) struct Client {
    url: String,
    authority: String,
    key_hash: [u8; 32],
    token: Option<String>,
}

impl Client {
    pub(crate) fn new(args: &HubArgs) -> Result<Self, Failure> {
        let (url, hash, token) = if let (Some(url), Some(hash)) = (&args.hub, &args.key_hash) {
            (url.clone(), hash.clone(), args.token_file.clone())
        } else {
            let folder = args.state.clone().unwrap_or_else(|| state_of("hub"));
            let file = HubFile::read(&folder).map_err(|error| {
                Failure::usage(format!("{error}: no hub ran here; --hub, --key-hash and --token-file name another"))
            })?;
            (file.url, file.key_hash, Some(folder.join("view.token")))
        };
        let token = token.map(|path| key::token(&path)).transpose()?;
        let authority = url.strip_prefix("https://").map(|rest| rest.trim_end_matches('/').to_owned());
        let authority = authority.ok_or_else(|| Failure::usage(format!("\"{url}\" does not begin with https://")))?;
        let key_hash = octets(&hash).ok_or_else(|| Failure::usage("--key-hash: 64 hexadecimal digits"))?;
        Ok(Self { url, authority, key_hash, token })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value, Failure> {
        self.try_get(path).map_err(Unanswered::last)
    }

    /// The same for whoever may ask again.
    pub(crate) fn try_get(&self, path: &str) -> Result<Value, Unanswered> {
        let body = self.ask("GET", path, "")?;
        self.json(&body).map_err(|failure| Unanswered { failure, passes: false })
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.json(&self.ask("POST", path, &body.to_string()).map_err(Unanswered::last)?)
    }

    /// The body as it is.
    pub(crate) fn text(&self, path: &str) -> Result<String, Failure> {
        self.ask("GET", path, "").map_err(Unanswered::last)
    }

    fn json(&self, body: &str) -> Result<Value, Failure> {
        serde_json::from_str(body).map_err(|error| self.fault(Exit::Protocol, &error.to_string()))
    }

    fn fault(&self, exit: Exit, why: &str) -> Failure {
        Failure { exit, who: "peer", text: format!("{}: {why}", self.url) }
    }

    /// One request of HTTP/1.1 over a connection of its own.
    fn ask(&self, method: &str, path: &str, body: &str) -> Result<String, Unanswered> {
        let octets = self.exchange(method, path, body).map_err(|error| {
            if narrows_bus::has_other_key(&error) {
                let failure = Failure { who: "caller", ..self.fault(Exit::Refused, OTHER_KEY) };
                Unanswered { failure, passes: false }
            } else {
                Unanswered { failure: self.fault(Exit::Unreachable, &error.to_string()), passes: true }
            }
        })?;
        let text = String::from_utf8_lossy(&octets);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status: u16 = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        if (200..300).contains(&status) {
            return Ok(body.to_owned());
        }
        let problem: Value = serde_json::from_str(body).unwrap_or_default();
        let why = problem["detail"].as_str().unwrap_or("it does not answer as a hub does").to_owned();
        let exit = match status {
            400 | 404 | 409 => Exit::Usage,
            401 | 403 | 429 | 503 => Exit::Refused,
            _ => Exit::Protocol,
        };
        Err(Unanswered { failure: self.fault(exit, &why), passes: matches!(status, 429 | 502..=504) })
    }

    fn exchange(&self, method: &str, path: &str, body: &str) -> std::io::Result<Vec<u8>> {
        let host = self.authority.rsplit_once(':').map_or(self.authority.as_str(), |(host, _)| host);
        let tcp = TcpStream::connect(&self.authority)?;
        tcp.set_read_timeout(Some(TIMEOUT))?;
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned()).map_err(std::io::Error::other)?;
        let tls = Arc::new(narrows_bus::pinned(self.key_hash));
        let connection = ClientConnection::new(tls, name).map_err(std::io::Error::other)?;
        let mut stream = StreamOwned::new(connection, tcp);
        let token = self.token.as_ref().map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\n{token}content-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n",
            self.authority
        );
        // In one: what follows on its own would wait for an acknowledgement that the peer delays.
        stream.write_all((head + body).as_bytes())?;
        let mut octets = Vec::new();
        match stream.read_to_end(&mut octets) {
            // A server that closes without TLS's own farewell has said all that it will.
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof && !octets.is_empty() => Ok(octets),
            Err(error) => Err(error),
            Ok(_) => Ok(octets),
        }
    }
}

fn octets(text: &str) -> Option<[u8; 32]> {
    let mut octets = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (octet, at) in octets.iter_mut().zip((0..).step_by(2)) {
        *octet = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(octets)
}

const OTHER_KEY: &str = "its certificate is not of the hub that --key-hash or hub.json names: another hub answers at \
    this address, or somebody is in between";
const TIMEOUT: Duration = Duration::from_secs(30);
