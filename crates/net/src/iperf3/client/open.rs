//! Opening the streams of a test, one behind the other.

use std::io::Write;
use std::sync::Arc;

use narrows_wire::iperf3::{Counters, GREETING, Transport, is_greeting_reply, stream_id};

use super::super::connect::{self, Near};
use super::super::link::Link;
use super::super::stream::{Carrier, Stream};
use super::super::udp;
use super::super::worker::Early;
use super::{Connected, Test, host_cannot};
use crate::clock::{self, nanos};
use crate::error::{Error, PathError};
use crate::receive::Receiver;

impl Test<'_> {
    pub(super) fn open_streams(&mut self) -> Result<(), Error> {
        let sends = self.parameters.flow.client_sends(self.parameters.streams);
        for (index, sends) in (0u16..).zip(sends) {
            let near = Near {
                address: self.options.near,
                port: self.options.near_port.map(|port| port.saturating_add(index)),
            };
            let mut early = Vec::new();
            let carrier = match self.parameters.transport {
                Transport::Tcp => self.open_tcp(near)?,
                Transport::Udp(_) => self.open_udp(near, &mut early)?,
            };
            let id = stream_id(index.into());
            let mut stream =
                Stream::new(id, sends, carrier, self.counters()).map_err(host_cannot("prepare a data stream"))?;
            stream.shared.count_early(&early);
            if !sends {
                let block = usize::try_from(self.parameters.block_octets).unwrap_or(0);
                let crowded = udp::crowded(&self.parameters);
                stream.receive(block, crowded).map_err(host_cannot("start a thread"))?;
            }
            let (near, remote) = stream.ends().unwrap_or((self.peer, self.peer));
            let (mss_octets, send_buffer_octets, receive_buffer_octets) = stream.granted();
            self.outline.streams.push(Connected {
                id,
                sends,
                near,
                remote,
                mss_octets,
                send_buffer_octets,
                receive_buffer_octets,
                congestion: stream.congestion().map(str::to_owned),
            });
            self.streams.push(stream);
        }
        Ok(())
    }

    pub(super) fn counters(&self) -> Counters {
        match self.parameters.transport {
            Transport::Udp(counters) => counters,
            Transport::Tcp => Counters::Bits64,
        }
    }

    fn open_tcp(&self, near: Near) -> Result<Carrier, Error> {
        let mut stream = connect::stream(self.peer, near, &self.parameters, self.options.timeout)
            .map_err(|(doing, source)| Error::Host { doing, source })?;
        stream.write_all(self.cookie.octets()).map_err(host_cannot("greet on a data connection"))?;
        Ok(Carrier::Tcp(Arc::new(stream)))
    }

    /// A stock server takes up one UDP stream at a time, and every greeting that finds it ready is
    /// one: it is sent again only after so long that the first must be lost.
    fn open_udp(&self, near: Near, early: &mut Vec<Early>) -> Result<Carrier, Error> {
        const AGAIN_NS: i64 = 2_000_000_000;
        let open = || {
            let near = connect::near_of(near, self.peer);
            connect::datagrams(near, self.peer, &self.parameters, false)
        };
        let socket = open().map_err(host_cannot("open a UDP socket"))?;
        let mut packets = Receiver::new(&socket, 64);
        let deadline = clock::now_ns() + nanos(self.options.timeout);
        let mut again = 0;
        while clock::now_ns() < deadline {
            if clock::now_ns() >= again {
                again = clock::now_ns() + AGAIN_NS;
                socket.send(&GREETING).map_err(host_cannot("send a UDP datagram"))?;
            }
            let count = packets.receive(&socket, again.min(deadline));
            let count = count.map_err(host_cannot("receive a UDP datagram"))?;
            let mut answered = false;
            for datagram in packets.iter() {
                answered = true;
                if !(datagram.payload_octets == GREETING.len() && is_greeting_reply(datagram.payload)) {
                    // In reverse tests data may come with the answer or overtake it, and then is as
                    // good as it.
                    early.push(Early {
                        head: datagram.payload.to_vec(),
                        octets: datagram.payload_octets as u64,
                        seen_ns: datagram.seen.best_ns(),
                    });
                }
            }
            if count > 0 && answered {
                return Ok(Carrier::Udp(Arc::new(socket)));
            }
        }
        Err(PathError::UdpBlocked { peer: self.peer }.into())
    }
}

/// The longest datagram that the path takes uncut, as the control connection's segments show it.
pub(super) fn datagram_octets(link: &Link) -> u32 {
    const FALLBACK: u32 = 1460;
    let info = crate::transfer::TcpInfo::read(link.stream(), "");
    let mss = info.map_or(0, |info| info.sample(0).mss_octets);
    // UDP's header is shorter than TCP's by twelve octets and more; stock programs take the segment
    // size all the same.
    if mss < 16 { FALLBACK } else { mss.min(narrows_wire::iperf3::MOST_UDP_BLOCK) }
}
