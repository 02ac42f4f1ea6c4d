//! One test of a client, from its request to its end.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use narrows_wire::ndt7::{
    AppInfo, ConnectionInfo, FIRST_OCTETS, LENGTH, Measurement, SERVER_TIMEOUT, SUBPROTOCOL, Subtest, Target,
    TargetError, check_target, measure_after, next_octets,
};
use rustls::{ServerConnection, StreamOwned};
use tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tungstenite::http::{HeaderValue, StatusCode};

use super::listen_socket::{SessionEnd, SessionSummary, Shared};
use super::socket::{Broken, Carrier, Channel, Incoming, config, payload, shake};
use crate::clock::{self, nanos};

/// How long a request may take, TLS included.
const REQUEST_NS: i64 = 5_000_000_000;
/// How often a session looks at the flag.
const POLL_NS: i64 = 20_000_000;
/// How long a client may take to answer the end.
const CLOSING_NS: i64 = 2_000_000_000;
/// Texts and pings of a client in a test: four times what it may send on average (10 a second).
const MOST_WORDS: u32 = 400;

/// Conducts a test, whatever the client does.
pub(super) fn conduct(shared: &Arc<Shared>, stream: TcpStream, peer: SocketAddr) {
    let mut summary = SessionSummary { peer, subtest: None, octets: 0, end: SessionEnd::Vanished };
    summary.end = match Ndt7Session::open(shared, stream, peer) {
        Ok(mut session) => {
            summary.subtest = Some(session.target.subtest);
            let end = session.test();
            summary.octets = session.octets;
            end
        }
        Err(broken) => end_of(broken),
    };
    (shared.options.on_end)(&summary);
}

/// Says that there is no place, to whoever can hear that without more ado.
pub(super) fn turn_away(mut stream: &TcpStream, tls: bool) {
    if !tls {
        // Whether the client hears it is its own affair.
        let _ = stream.write(b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 10\r\n\r\n");
    }
}

fn end_of(broken: Broken) -> SessionEnd {
    match broken {
        Broken::Closed => SessionEnd::Vanished,
        Broken::Late => SessionEnd::Late,
        Broken::Protocol(why) => SessionEnd::Refused(why),
        Broken::Refused(status) => SessionEnd::Refused(format!("HTTP {status}")),
    }
}

struct Ndt7Session<'a> {
    shared: &'a Arc<Shared>,
    channel: Channel,
    target: Target,
    ends: ConnectionInfo,
    octets: u64,
    words: u32,
    introduced: bool,
}

fn examine(request: &Request, mut response: Response, found: &mut Option<Target>) -> Result<Response, ErrorResponse> {
    let refuse = |status: StatusCode, why: &str| {
        let mut refusal = ErrorResponse::new(Some(why.to_owned()));
        *refusal.status_mut() = status;
        Err(refusal)
    };
    let offered = request.headers().get_all("Sec-WebSocket-Protocol");
    let mut names = offered.iter().filter_map(|names| names.to_str().ok()).flat_map(|names| names.split(','));
    if !names.any(|name| name.trim() == SUBPROTOCOL) {
        return refuse(StatusCode::BAD_REQUEST, "Sec-WebSocket-Protocol must be net.measurementlab.ndt.v7");
    }
    let uri = request.uri();
    match check_target(uri.path(), uri.query()) {
        Ok(target) => *found = Some(target),
        Err(TargetError::Path) => return refuse(StatusCode::NOT_FOUND, "no such test"),
        Err(error) => return refuse(StatusCode::BAD_REQUEST, &error.to_string()),
    }
    let chosen = HeaderValue::from_static(SUBPROTOCOL);
    response.headers_mut().insert("Sec-WebSocket-Protocol", chosen);
    Ok(response)
}

impl<'a> Ndt7Session<'a> {
    fn open(shared: &'a Arc<Shared>, stream: TcpStream, peer: SocketAddr) -> Result<Self, Broken> {
        let gone = |_| Broken::Closed;
        stream.set_nodelay(true).map_err(gone)?;
        let handle = stream.try_clone().map_err(gone)?;
        let server = stream.local_addr().map_err(gone)?;
        let carrier = match &shared.options.identity {
            None => Carrier::Plain(stream),
            Some(identity) => {
                let tls = ServerConnection::new(Arc::clone(&identity.0));
                let tls = tls.map_err(|error| Broken::Protocol(error.to_string()))?;
                Carrier::Server(Box::new(StreamOwned::new(tls, stream)))
            }
        };
        let plain = matches!(carrier, Carrier::Plain(_));
        let mut target = None;
        let poll = |request: &Request, response: Response| examine(request, response, &mut target);
        let deadline_ns = clock::now_ns() + REQUEST_NS;
        let begun = tungstenite::accept_hdr_with_config(carrier, poll, Some(config()));
        let shaken = shake(&handle, begun, deadline_ns);
        if let (Err(Broken::Protocol(_)), true) = (&shaken, plain) {
            // No request for a WebSocket: the library closes without a word.
            let _ = (&handle).write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        }
        let socket = shaken?;
        let target = target.ok_or(Broken::Closed)?;
        let mut name = [0; 8];
        // A connection without a name of its own is still one.
        let _ = getrandom::fill(&mut name);
        Ok(Self {
            shared,
            channel: Channel::new(socket, handle),
            target,
            ends: ConnectionInfo {
                client: peer.to_string(),
                server: server.to_string(),
                uuid: format!("narrows_{:016x}", u64::from_be_bytes(name)),
            },
            octets: 0,
            words: 0,
            introduced: false,
        })
    }

    fn test(&mut self) -> SessionEnd {
        let ended = match self.target.subtest {
            Subtest::Download => self.download(),
            Subtest::Upload => self.upload(),
        };
        match ended {
            Ok(end) => end,
            Err(broken) => end_of(broken),
        }
    }

    fn measurement(&mut self) -> Measurement {
        let introduction = (!self.introduced).then(|| self.ends.clone());
        self.introduced = true;
        Measurement {
            app_info: Some(AppInfo {
                elapsed_time: self.channel.elapsed(),
                num_bytes: i64::try_from(self.octets).unwrap_or(i64::MAX),
            }),
            connection_info: introduction,
            origin: Some("server".to_owned()),
            test: Some(self.target.subtest),
            tcp_info: self.channel.tcp_info(),
        }
    }

    /// Says what is measured when that is due, with a ping whose answer shows that the client still
    /// is there.
    fn tick(&mut self, now: i64, due_ns: &mut i64) -> Result<(), Broken> {
        if now < *due_ns {
            return Ok(());
        }
        let mut random = [0; 4];
        // Without random numbers measurements come evenly.
        let _ = getrandom::fill(&mut random);
        let uniform = f64::from(u32::from_ne_bytes(random)) / f64::from(u32::MAX);
        *due_ns = now + nanos(measure_after(uniform));
        let measurement = self.measurement();
        self.channel.send_measurement(&measurement)?;
        self.channel.ping()
    }

    fn stopped(&self) -> bool {
        self.shared.ended.load(Ordering::Relaxed)
    }

    /// Takes one message; `None`: there is none.
    fn hear(&mut self) -> Result<Option<Incoming>, Broken> {
        let incoming = self.channel.hear()?;
        match &incoming {
            Incoming::Nothing => return Ok(None),
            Incoming::Text(_) | Incoming::Other => {
                self.words += 1;
                if self.words > MOST_WORDS {
                    return Err(Broken::Protocol("more words than a test has".to_owned()));
                }
            }
            Incoming::Binary(octets) if self.target.subtest == Subtest::Upload => {
                self.octets = self.octets.saturating_add(*octets);
            }
            Incoming::Binary(_) => return Err(Broken::Protocol("it sends though it should receive".to_owned())),
            Incoming::Close => {}
        }
        Ok(Some(incoming))
    }

    fn download(&mut self) -> Result<SessionEnd, Broken> {
        let octets = payload().map_err(|error| Broken::Protocol(error.to_string()))?;
        let began_ns = self.channel.began_ns();
        let (end_ns, late_ns) = (began_ns + nanos(LENGTH), began_ns + nanos(SERVER_TIMEOUT));
        let (mut due_ns, mut length) = (began_ns, FIRST_OCTETS);
        let enough = self.target.most_octets.unwrap_or(u64::MAX);
        loop {
            let now = clock::now_ns();
            if self.stopped() {
                return Ok(SessionEnd::ServerEnds);
            }
            if now >= end_ns {
                break;
            }
            self.tick(now, &mut due_ns)?;
            if self.channel.is_clear()? {
                if self.octets >= enough && self.acknowledged() >= enough {
                    break;
                }
                self.channel.send_binary(octets.slice(..length))?;
                self.octets = self.octets.saturating_add(u64::try_from(length).unwrap_or(0));
                length = next_octets(length, self.octets);
            } else {
                self.channel.wait(now + POLL_NS);
            }
            if self.hear()? == Some(Incoming::Close) {
                // It has all it wants.
                let _ = self.channel.is_clear();
                return Ok(SessionEnd::Complete);
            }
        }
        let last = self.measurement();
        self.channel.send_measurement(&last)?;
        self.finish(late_ns)
    }

    fn acknowledged(&self) -> u64 {
        let acked = self.channel.tcp_info().and_then(|info| info.bytes_acked);
        acked.and_then(|acked| u64::try_from(acked).ok()).unwrap_or(0)
    }

    fn upload(&mut self) -> Result<SessionEnd, Broken> {
        let began_ns = self.channel.began_ns();
        let late_ns = began_ns + nanos(SERVER_TIMEOUT);
        let mut due_ns = began_ns;
        loop {
            let now = clock::now_ns();
            if self.stopped() {
                return Ok(SessionEnd::ServerEnds);
            }
            if now >= late_ns {
                return Ok(SessionEnd::Late);
            }
            self.tick(now, &mut due_ns)?;
            self.channel.is_clear()?;
            match self.hear()? {
                None => self.channel.wait(now + POLL_NS),
                Some(Incoming::Close) => {
                    let _ = self.channel.is_clear();
                    return Ok(SessionEnd::Complete);
                }
                Some(_) => {}
            }
        }
    }

    /// Says that it is over, and waits until the client has heard so.
    fn finish(&mut self, late_ns: i64) -> Result<SessionEnd, Broken> {
        self.channel.close("Done sending")?;
        let deadline_ns = late_ns.min(clock::now_ns() + CLOSING_NS);
        while clock::now_ns() < deadline_ns && !self.stopped() {
            let clear = self.channel.is_clear();
            if matches!(clear, Err(Broken::Closed)) {
                return Ok(SessionEnd::Complete);
            }
            clear?;
            match self.hear() {
                Ok(None) => self.channel.wait(clock::now_ns() + POLL_NS),
                Ok(Some(Incoming::Close)) | Err(Broken::Closed) => return Ok(SessionEnd::Complete),
                Ok(Some(_)) => {}
                Err(broken) => return Err(broken),
            }
        }
        // What it was sent is with its kernel, or it never reads it.
        Ok(SessionEnd::Late)
    }
}
