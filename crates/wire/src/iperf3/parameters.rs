//! What a client asks for.

use serde_json::{Map, Value};

use super::datagram::Counters;
use super::json::{Fields, JsonError};

/// Streams of one test and direction at most.
pub const MOST_STREAMS: u16 = 128;
/// Octets of one write at most.
const MOST_BLOCK: u32 = 1 << 20;
/// Payload of one UDP datagram at most, as stock programs have it.
pub const MOST_UDP_BLOCK: u32 = 65_507;
const MOST_WINDOW: u32 = 512 << 20;
const MOST_SECONDS: u32 = 86_400;
const MOST_OMIT_SECONDS: u32 = 600;

/// What carries the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP, with counters of this width.
    Udp(Counters),
}

/// Which way the streams go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// The client sends.
    Forward,
    /// The server sends.
    Reverse,
    /// Both, each on as many streams.
    Both,
}

impl Flow {
    /// For each stream in the order in which they are opened, whether the client sends on it.
    pub fn client_sends(self, streams: u16) -> Vec<bool> {
        let one = usize::from(streams);
        match self {
            Self::Forward => vec![true; one],
            Self::Reverse => vec![false; one],
            Self::Both => [vec![true; one], vec![false; one]].concat(),
        }
    }
}

/// The parameters of a test.
#[expect(clippy::struct_excessive_bools, reason = "the protocol's own switches")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    /// What carries the streams.
    pub transport: Transport,
    /// Which way they go.
    pub flow: Flow,
    /// Streams per direction.
    pub streams: u16,
    /// Seconds before counting begins.
    pub omit_seconds: u32,
    /// Length of the test; 0: until something else ends it.
    pub seconds: u32,
    /// Payload octets of all streams after which the test ends; 0: no such end.
    pub octets: u64,
    /// The same in blocks.
    pub blocks: u64,
    /// Octets of one write, or payload of one datagram.
    pub block_octets: u32,
    /// Payload rate per stream, bit/s; 0: as much as goes.
    pub rate_bps: u64,
    /// Pacing by the kernel, payload bit/s per stream; 0: none.
    pub fq_rate_bps: u64,
    /// Blocks that leave at a time where there is a rate; 0: one.
    pub burst: u32,
    /// Socket buffer to ask for; `None`: autotuned.
    pub window_octets: Option<u32>,
    /// Largest TCP segment to ask for.
    pub mss_octets: Option<u32>,
    /// Nagle's algorithm is off.
    pub no_delay: bool,
    /// Octet behind version and length in every IP header: DSCP and two bits of ECN.
    pub tos: u8,
    /// Flow label of IPv6.
    pub flow_label: u32,
    /// Congestion control by its kernel name.
    pub congestion: Option<String>,
    /// The sender does not copy what it sends.
    pub zero_copy: bool,
    /// Datagrams must not be cut.
    pub dont_fragment: bool,
    /// The server shall send its own output with the results.
    pub server_output: bool,
    /// For the user's own use.
    pub title: Option<String>,
    /// Likewise.
    pub extra_data: Option<String>,
    /// Name and password, encrypted for the server.
    pub auth_token: Option<String>,
    /// What the client says it is.
    pub client_version: Option<String>,
}

impl Default for Parameters {
    /// TCP, one stream, ten seconds, 128 KiB a write.
    fn default() -> Self {
        Self {
            transport: Transport::Tcp,
            flow: Flow::Forward,
            streams: 1,
            omit_seconds: 0,
            seconds: 10,
            octets: 0,
            blocks: 0,
            block_octets: 128 << 10,
            rate_bps: 0,
            fq_rate_bps: 0,
            burst: 0,
            window_octets: None,
            mss_octets: None,
            no_delay: false,
            tos: 0,
            flow_label: 0,
            congestion: None,
            zero_copy: false,
            dont_fragment: false,
            server_output: false,
            title: None,
            extra_data: None,
            auth_token: None,
            client_version: None,
        }
    }
}

impl Parameters {
    /// Streams over both directions.
    pub fn all_streams(&self) -> usize {
        self.flow.client_sends(self.streams).len()
    }

    /// Payload rate of all streams together, if each has one.
    pub fn total_rate_bps(&self) -> Option<u64> {
        (self.rate_bps > 0).then(|| self.rate_bps.saturating_mul(self.all_streams() as u64))
    }

    /// Reads what a client sent.
    pub fn parse(octets: &[u8]) -> Result<Self, JsonError> {
        let fields = Fields::parse(octets)?;
        if fields.switch("sctp")? {
            return Err(JsonError::Impossible("sctp"));
        }
        let udp = fields.switch("udp")?;
        if udp && fields.switch("tcp")? {
            return Err(JsonError::Impossible("udp"));
        }
        let transport = match (udp, fields.switch("udp_counters_64bit")?) {
            (false, _) => Transport::Tcp,
            (true, false) => Transport::Udp(Counters::Bits32),
            (true, true) => Transport::Udp(Counters::Bits64),
        };
        let flow = match (fields.switch("reverse")?, fields.switch("bidirectional")?) {
            (false, false) => Flow::Forward,
            (true, false) => Flow::Reverse,
            (false, true) => Flow::Both,
            (true, true) => return Err(JsonError::Impossible("reverse")),
        };
        let streams = fields.count("parallel", MOST_STREAMS)?.unwrap_or(1);
        if streams == 0 {
            return Err(JsonError::Impossible("parallel"));
        }
        let positive = |value: Option<u32>| value.filter(|&value| value > 0);
        let parameters = Self {
            transport,
            flow,
            streams,
            omit_seconds: fields.count("omit", MOST_OMIT_SECONDS)?.unwrap_or(0),
            seconds: fields.count("time", MOST_SECONDS)?.unwrap_or(0),
            octets: fields.count("num", u64::MAX)?.unwrap_or(0),
            blocks: fields.count("blockcount", u64::MAX)?.unwrap_or(0),
            block_octets: block(&fields, transport)?,
            rate_bps: fields.count(RATE, u64::MAX)?.unwrap_or(0),
            fq_rate_bps: fields.count("fqrate", u64::MAX)?.unwrap_or(0),
            burst: fields.count("burst", 1_000)?.unwrap_or(0),
            window_octets: positive(fields.count("window", MOST_WINDOW)?),
            mss_octets: positive(fields.count("MSS", 9 * 1024)?),
            no_delay: fields.switch("nodelay")?,
            tos: fields.count("TOS", 255u8)?.unwrap_or(0),
            flow_label: fields.count("flowlabel", 0xf_ffff)?.unwrap_or(0),
            congestion: fields.text("congestion", 16)?.filter(|name| is_name(name)),
            zero_copy: fields.switch("zerocopy")?,
            dont_fragment: fields.switch("dont_fragment")?,
            server_output: fields.switch("get_server_output")?,
            title: fields.text("title", 1_024)?,
            extra_data: fields.text("extra_data", 4_096)?,
            auth_token: fields.text("authtoken", 4_096)?,
            client_version: fields.text("client_version", 64)?,
        };
        Ok(parameters)
    }

    /// The text that says all this.
    pub fn to_json(&self) -> String {
        let mut fields = Map::new();
        let udp = self.transport != Transport::Tcp;
        fields.insert(if udp { "udp" } else { "tcp" }.to_owned(), Value::Bool(true));
        let numbers = [
            ("omit", Some(self.omit_seconds.into())),
            ("time", Some(self.seconds.into())),
            ("num", Some(self.octets)),
            ("blockcount", Some(self.blocks)),
            ("MSS", self.mss_octets.map(u64::from)),
            ("parallel", Some(self.streams.into())),
            ("window", self.window_octets.map(u64::from)),
            ("len", Some(self.block_octets.into())),
            (RATE, (self.rate_bps > 0).then_some(self.rate_bps)),
            ("fqrate", (self.fq_rate_bps > 0).then_some(self.fq_rate_bps)),
            ("pacing_timer", Some(1_000)),
            ("burst", (self.burst > 0).then_some(self.burst.into())),
            ("TOS", (self.tos > 0).then_some(self.tos.into())),
            ("flowlabel", (self.flow_label > 0).then_some(self.flow_label.into())),
            ("get_server_output", self.server_output.then_some(1)),
            ("udp_counters_64bit", (self.transport == Transport::Udp(Counters::Bits64)).then_some(1)),
            ("dont_fragment", self.dont_fragment.then_some(1)),
            ("zerocopy", self.zero_copy.then_some(1)),
        ];
        for (name, number) in numbers {
            if let Some(number) = number {
                fields.insert(name.to_owned(), number.into());
            }
        }
        let switches = [
            ("nodelay", self.no_delay),
            ("reverse", self.flow == Flow::Reverse),
            ("bidirectional", self.flow == Flow::Both),
        ];
        for (name, _) in switches.into_iter().filter(|(_, on)| *on) {
            fields.insert(name.to_owned(), Value::Bool(true));
        }
        let texts = [
            ("title", &self.title),
            ("extra_data", &self.extra_data),
            ("congestion", &self.congestion),
            ("authtoken", &self.auth_token),
            ("client_version", &self.client_version),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                fields.insert(name.to_owned(), text.as_str().into());
            }
        }
        Value::Object(fields).to_string()
    }
}

/// The protocol's own word for a rate.
const RATE: &str = "bandwidth";

fn block(fields: &Fields, transport: Transport) -> Result<u32, JsonError> {
    let (default, least, most) = match transport {
        Transport::Tcp => (128 << 10, 1, MOST_BLOCK),
        // Stock programs ask for at least 16 octets, which holds either head.
        Transport::Udp(_) => (1460, 16, MOST_UDP_BLOCK),
    };
    let octets = fields.count("len", most)?.filter(|&octets| octets > 0).unwrap_or(default);
    if octets < least {
        return Err(JsonError::Impossible("len"));
    }
    Ok(octets)
}

/// What a congestion control may be called: it goes to the kernel.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|octet| octet.is_ascii_alphanumeric() || octet == b'_' || octet == b'-')
}
