//! A test against a server.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_wire::ndt7::{
    AppInfo, CLIENT_TIMEOUT, FIRST_OCTETS, LENGTH, Measurement, SUBPROTOCOL, Subtest, next_octets, payload_bps,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use tungstenite::client::ClientRequestBuilder;
use tungstenite::http::Uri;

use super::socket::{Broken, Carrier, Channel, Incoming, config, payload, shake};
use super::tls::Trust;
use crate::client::IpVersion;
use crate::clock::{self, nanos};
use crate::error::{Error, PathError, PeerError};

/// What to test.
#[derive(Debug, Clone)]
pub struct TestOptions {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Path and query.
    pub target: String,
    /// Which test that is.
    pub subtest: Subtest,
    /// Over TLS, believing these; plain TCP where that is `None`.
    pub trust: Option<Trust>,
    /// Length; a server ends what it sends by itself after some ten seconds.
    pub duration: Duration,
    /// IP version to use.
    pub version: IpVersion,
    /// Longest wait for a connection or the begin of the test.
    pub timeout: Duration,
    /// Ends the test early, with results.
    pub stop: Arc<AtomicBool>,
}

/// What was known at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Since the test began.
    pub at: Duration,
    /// Payload octets that this side had sent or received.
    pub octets: u64,
}

/// A finished test.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Which.
    pub subtest: Subtest,
    /// The server.
    pub peer: SocketAddr,
    /// This end.
    pub near: SocketAddr,
    /// Payload octets that this side sent or received.
    pub octets: u64,
    /// Time that took.
    pub elapsed: Duration,
    /// Quarters of a second.
    pub ticks: Vec<Tick>,
    /// The server's last word.
    pub theirs: Option<Measurement>,
    /// Ours.
    pub ours: Measurement,
    /// It lasted as long as it should.
    pub complete: bool,
}

impl Finished {
    /// What arrived, bit/s of payload: by the receiver's own count.
    pub fn received_bps(&self) -> Option<u64> {
        match self.subtest {
            Subtest::Download => {
                let octets = i64::try_from(self.octets).ok()?;
                payload_bps(octets, i64::try_from(self.elapsed.as_micros()).ok()?)
            }
            Subtest::Upload => {
                let theirs = self.theirs.as_ref()?;
                let by_program = theirs.app_info.map(|app| (app.num_bytes, app.elapsed_time));
                let by_kernel = theirs.tcp_info.and_then(|tcp| tcp.bytes_received.zip(tcp.elapsed_time));
                let (octets, micros) = by_program.filter(|(octets, _)| *octets > 0).or(by_kernel)?;
                payload_bps(octets, micros)
            }
        }
    }
}

/// Time between two ticks, and between two of a client's measurements.
const TICK_NS: i64 = 250_000_000;
/// Nobody waits longer than this for anything.
const POLL_NS: i64 = 20_000_000;
/// How long after the end a server may take to say what it counted.
pub(super) const ENDING_NS: i64 = 2_000_000_000;

/// How long what is on its way is taken after a test that was ended here.
const DRAINING_NS: i64 = 3_000_000_000;

/// Runs a test; `tick` is told on the way.
pub fn run(options: &TestOptions, tick: &mut dyn FnMut(&Tick)) -> Result<Finished, Error> {
    let mut last = None;
    for peer in crate::client::resolve(&options.host, options.port, options.version)? {
        match TcpStream::connect_timeout(&peer, options.timeout) {
            Ok(stream) => return Test::open(stream, peer, options)?.run(tick),
            // The first address is the preferred one: its error is the one to tell.
            Err(error) => last = last.or(Some(unreachable(peer, error, options.timeout))),
        }
    }
    Err(last.unwrap_or_else(|| Error::Host { doing: "look up that name", source: io::ErrorKind::NotFound.into() }))
}

fn unreachable(peer: SocketAddr, source: io::Error, waited: Duration) -> Error {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => PeerError::NoNdt7 { peer }.into(),
        io::ErrorKind::TimedOut => silent(peer, "connecting", waited),
        _ => PathError::Unreachable { peer, source }.into(),
    }
}

fn silent(peer: SocketAddr, doing: &'static str, waited: Duration) -> Error {
    PathError::Silent { peer, doing, waited }.into()
}

struct Test<'a> {
    channel: Channel,
    options: &'a TestOptions,
    peer: SocketAddr,
    near: SocketAddr,
    octets: u64,
    /// When the last octets came or left.
    last_ns: i64,
    ticks: Vec<Tick>,
    theirs: Option<Measurement>,
}

impl<'a> Test<'a> {
    fn open(stream: TcpStream, peer: SocketAddr, options: &'a TestOptions) -> Result<Self, Error> {
        let host = |doing| move |source| Error::Host { doing, source };
        let near = stream.local_addr().map_err(host("see its own address"))?;
        stream.set_nodelay(true).map_err(host("send at once"))?;
        stream.set_nonblocking(true).map_err(host("use a connection"))?;
        let handle = stream.try_clone().map_err(host("use a connection"))?;
        let wrong = |what: String| Error::from(PeerError::Protocol { peer, what });
        let scheme = if options.trust.is_some() { "wss" } else { "ws" };
        let bare = options.host.trim_start_matches('[').trim_end_matches(']');
        let authority =
            if bare.contains(':') { format!("[{bare}]:{}", options.port) } else { format!("{bare}:{}", options.port) };
        let uri: Uri = format!("{scheme}://{authority}{}", options.target)
            .parse()
            .map_err(|_| wrong("its address makes no request".to_owned()))?;
        let carrier = match &options.trust {
            None => Carrier::Plain(stream),
            Some(trust) => {
                let name = ServerName::try_from(bare.to_owned()).map_err(|error| wrong(error.to_string()))?;
                let tls = ClientConnection::new(Arc::clone(&trust.0), name);
                let tls = tls.map_err(|error| wrong(error.to_string()))?;
                Carrier::Client(Box::new(StreamOwned::new(tls, stream)))
            }
        };
        let request = ClientRequestBuilder::new(uri).with_sub_protocol(SUBPROTOCOL);
        let deadline_ns = clock::now_ns().saturating_add(nanos(options.timeout));
        let begun = tungstenite::client::client_with_config(request, carrier, Some(config()));
        let (socket, response) = shake(&handle, begun, deadline_ns).map_err(|broken| match broken {
            Broken::Closed => PeerError::Closed { peer }.into(),
            Broken::Protocol(what) => wrong(what),
            Broken::Refused(status) => PeerError::Refused { peer, reason: format!("it answers HTTP {status}") }.into(),
            Broken::Late => silent(peer, "waiting for the WebSocket", options.timeout),
        })?;
        let chosen = response.headers().get("Sec-WebSocket-Protocol");
        if chosen.is_none_or(|name| name.as_bytes() != SUBPROTOCOL.as_bytes()) {
            return Err(wrong("it chose no ndt7 for the WebSocket".to_owned()));
        }
        let channel = Channel::new(socket, handle);
        Ok(Self {
            last_ns: channel.began_ns(),
            channel,
            options,
            peer,
            near,
            octets: 0,
            ticks: Vec::new(),
            theirs: None,
        })
    }

    fn run(mut self, tick: &mut dyn FnMut(&Tick)) -> Result<Finished, Error> {
        let ended = match self.options.subtest {
            Subtest::Download => self.download(tick),
            Subtest::Upload => self.upload(tick),
        };
        if let Err(Broken::Protocol(what)) = ended {
            return Err(PeerError::Protocol { peer: self.peer, what }.into());
        }
        if self.octets == 0 {
            return Err(PeerError::Closed { peer: self.peer }.into());
        }
        let elapsed_ns = (self.last_ns - self.channel.began_ns()).max(0);
        let elapsed = Duration::from_nanos(u64::try_from(elapsed_ns).unwrap_or(0));
        let wanted = self.options.duration.min(LENGTH);
        Ok(Finished {
            subtest: self.options.subtest,
            peer: self.peer,
            near: self.near,
            octets: self.octets,
            elapsed,
            ours: self.measurement(),
            ticks: self.ticks,
            theirs: self.theirs,
            // Servers may end a little early by their own clocks.
            complete: elapsed.as_secs_f64() >= 0.9 * wanted.as_secs_f64(),
        })
    }

    fn measurement(&self) -> Measurement {
        let micros = (self.last_ns - self.channel.began_ns()).max(0) / 1_000;
        Measurement {
            app_info: Some(AppInfo { elapsed_time: micros, num_bytes: i64::try_from(self.octets).unwrap_or(i64::MAX) }),
            origin: Some("client".to_owned()),
            test: Some(self.options.subtest),
            tcp_info: self.channel.tcp_info(),
            ..Measurement::default()
        }
    }

    fn stopped(&self) -> bool {
        self.options.stop.load(Ordering::Relaxed)
    }

    /// Tells what is known every quarter of a second, the server as well.
    fn tick(&mut self, now: i64, due_ns: &mut i64, tell: &mut dyn FnMut(&Tick)) -> Result<(), Broken> {
        if now < *due_ns {
            return Ok(());
        }
        *due_ns = now + TICK_NS;
        let since = u64::try_from(now - self.channel.began_ns()).unwrap_or(0);
        let tick = Tick { at: Duration::from_nanos(since), octets: self.octets };
        tell(&tick);
        self.ticks.push(tick);
        let measurement = self.measurement();
        self.channel.send_measurement(&measurement)
    }

    /// Takes what came; `false`: the server has done.
    fn hear(&mut self) -> Result<bool, Broken> {
        match self.channel.hear()? {
            Incoming::Binary(_) if self.options.subtest == Subtest::Upload => {
                Err(Broken::Protocol("it sends though it should receive".to_owned()))
            }
            Incoming::Binary(octets) => {
                self.octets = self.octets.saturating_add(octets);
                self.last_ns = clock::now_ns();
                Ok(true)
            }
            Incoming::Text(text) => {
                // What makes no sense is the server's affair, and less than what made some.
                self.theirs = Measurement::parse(&text).or(self.theirs.take());
                Ok(true)
            }
            Incoming::Close => Ok(false),
            Incoming::Other => Ok(true),
            Incoming::Nothing => {
                self.channel.wait(clock::now_ns() + POLL_NS);
                Ok(true)
            }
        }
    }

    fn download(&mut self, tell: &mut dyn FnMut(&Tick)) -> Result<(), Broken> {
        let began_ns = self.channel.began_ns();
        // A server ends a whole test by itself.
        let whole = self.options.duration >= LENGTH;
        let end_ns = began_ns + nanos(if whole { CLIENT_TIMEOUT } else { self.options.duration });
        let mut due_ns = began_ns + TICK_NS;
        loop {
            let now = clock::now_ns();
            if now >= end_ns || self.stopped() {
                let _ = self.channel.close("enough");
                self.drain();
                return Ok(());
            }
            self.tick(now, &mut due_ns, tell)?;
            self.channel.is_clear()?;
            if !self.hear()? {
                let _ = self.channel.is_clear();
                return Ok(());
            }
        }
    }

    /// Takes what still comes, and counts nothing: with unread octets the kernel would answer the
    /// server with a reset, which may reach it before our good-bye does.
    fn drain(&mut self) {
        let deadline_ns = clock::now_ns() + DRAINING_NS;
        while clock::now_ns() < deadline_ns && self.channel.is_clear().is_ok() {
            match self.channel.hear() {
                Ok(Incoming::Close) | Err(_) => return,
                Ok(Incoming::Nothing) => self.channel.wait(clock::now_ns() + POLL_NS),
                Ok(_) => {}
            }
        }
    }

    fn upload(&mut self, tell: &mut dyn FnMut(&Tick)) -> Result<(), Broken> {
        let octets = payload().map_err(|error| Broken::Protocol(error.to_string()))?;
        let began_ns = self.channel.began_ns();
        let end_ns = began_ns + nanos(LENGTH.min(self.options.duration));
        let (mut due_ns, mut length) = (began_ns + TICK_NS, FIRST_OCTETS);
        loop {
            let now = clock::now_ns();
            if now >= end_ns || self.stopped() {
                break;
            }
            self.tick(now, &mut due_ns, tell)?;
            if self.channel.is_clear()? {
                self.channel.send_binary(octets.slice(..length))?;
                self.octets = self.octets.saturating_add(u64::try_from(length).unwrap_or(0));
                self.last_ns = clock::now_ns();
                length = next_octets(length, self.octets);
                self.listen()?;
            } else if !self.hear()? {
                return Ok(());
            }
        }
        let _ = self.channel.close("done");
        let deadline_ns = clock::now_ns() + ENDING_NS;
        while clock::now_ns() < deadline_ns {
            self.channel.is_clear()?;
            if !self.hear()? {
                break;
            }
        }
        Ok(())
    }

    /// Takes what has come, without waiting for more.
    fn listen(&mut self) -> Result<(), Broken> {
        match self.channel.hear()? {
            Incoming::Text(text) => {
                self.theirs = Measurement::parse(&text).or(self.theirs.take());
                Ok(())
            }
            Incoming::Binary(_) => Err(Broken::Protocol("it sends though it should receive".to_owned())),
            Incoming::Close => Err(Broken::Closed),
            Incoming::Other | Incoming::Nothing => Ok(()),
        }
    }
}
