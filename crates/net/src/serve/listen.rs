//! The thread that listens on a flow.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use narrows_units::nanos;
use narrows_wire::{Handshake, Nonce, Probe, ProbeKind};

use super::collect::{Arrived, Collector};
use super::flow::Flow;
use super::session::{ServedSession, lock, same_socket};
use crate::clock;
use crate::pace::Payloads;
use crate::receive::{Datagram, Receiver};
use crate::socket::{ProbeSocket, SocketOptions};

/// Only headers are read; the kernel need not copy the padding.
const SLOT_OCTETS: usize = 64;
/// How often the thread looks whether it should end.
const POLL_NS: i64 = 50_000_000;
/// How often the thread's CPU time is noted.
const CPU_EVERY_NS: i64 = 20_000_000;
/// The largest UDP payload.
const LARGEST_PAYLOAD: usize = 65_507;

impl Flow {
    /// Opens the socket and starts the thread, which lives as long as the session.
    pub(super) fn open(
        session: &Arc<ServedSession>,
        local: SocketAddr,
        peer: SocketAddr,
        nonce: Nonce,
        number: u16,
        count: &Arc<AtomicUsize>,
    ) -> io::Result<Arc<Self>> {
        let options = SocketOptions { reuse_port: true, ..SocketOptions::default() };
        let socket = ProbeSocket::bind(local, &options)?;
        socket.connect(peer)?;
        let started = Handshake::Started { session: session.id, nonce, flow: number };
        let flow = Arc::new(Self::new(socket, peer, started.encode(), count));
        let (listener, session) = (Arc::clone(&flow), Arc::clone(session));
        thread::Builder::new().name(format!("flow-{number}")).spawn(move || listener.listen(&session))?;
        Ok(flow)
    }

    fn ended(&self, session: &ServedSession) -> bool {
        session.ended.load(Ordering::Relaxed) || self.replaced.load(Ordering::Relaxed)
    }

    fn listen(&self, session: &ServedSession) {
        let mut receiver = Receiver::new(&self.socket, SLOT_OCTETS);
        let mut reply = Payloads::new([LARGEST_PAYLOAD], session.id);
        let (mut noted_ns, mut heard) = (0, false);
        while !self.ended(session) {
            let now = clock::now_ns();
            if now - noted_ns >= CPU_EVERY_NS {
                noted_ns = now;
                let cpu = nanos(clock::thread_cpu());
                self.cpu_ns.store(cpu, Ordering::Relaxed);
            }
            // Trains need a stamp for each packet, loads a count of them.
            let (load, poll_interval_ns) = match &*lock(&self.collector) {
                Collector::Load(_) => (true, 0),
                Collector::Train(train) => (false, train.poll_interval_ns()),
                Collector::Idle => (false, 0),
            };
            receiver.rest(poll_interval_ns);
            receiver.gather(&self.socket, load);
            match receiver.receive(&self.socket, now + POLL_NS) {
                Ok(count) => {
                    let ours = self.take_batch(session, &mut receiver, count, reply.get_mut(0));
                    if ours && !heard {
                        heard = true;
                        tracing::info!(peer = %self.peer, session = session.id, "UDP passes");
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, peer = %self.peer, "flow ends");
                    return;
                }
            }
        }
    }

    /// Whether a probe of the session was among what arrived.
    fn take_batch(&self, session: &ServedSession, receiver: &mut Receiver, count: usize, reply: &mut [u8]) -> bool {
        let drops = receiver.take_drops(&self.socket);
        if count == 0 && drops == 0 {
            return false;
        }
        let (mut collected, mut ours) = (Vec::new(), false);
        for datagram in receiver.iter() {
            // Between bind and connect the kernel may have queued others' datagrams here.
            if datagram.from.is_some_and(|from| !same_socket(from, self.peer)) {
                continue;
            }
            match narrows_wire::Datagram::parse(datagram.payload) {
                Ok(narrows_wire::Datagram::Probe(probe)) if probe.tag == session.tag => {
                    ours = true;
                    match probe.kind {
                        ProbeKind::EchoRequest { .. } => self.echo(session, &probe, &datagram, reply),
                        ProbeKind::Train | ProbeKind::Load => {
                            collected.push((probe.kind, self.arrived(&probe, &datagram)));
                        }
                        ProbeKind::EchoReply { .. } | ProbeKind::Wake => {}
                    }
                }
                Ok(narrows_wire::Datagram::Handshake(Handshake::Start { token, .. })) if token == session.token => {
                    self.confirm();
                }
                _ => {}
            }
        }
        if ours {
            session.hear();
        }
        self.collect(&collected, drops);
        ours
    }

    fn arrived(&self, probe: &Probe, datagram: &Datagram<'_>) -> Arrived {
        Arrived {
            id: probe.id,
            seq: probe.seq,
            sent_ns: probe.stamp_ns,
            seen: datagram.seen,
            ip_octets: self.socket.ip_octets(datagram.payload_octets),
            hop_limit: datagram.hop_limit.unwrap_or(0),
            gathered: datagram.gathered,
        }
    }

    fn collect(&self, batch: &[(ProbeKind, Arrived)], drops: u32) {
        let of = |wanted: ProbeKind| batch.iter().filter(move |(kind, _)| *kind == wanted).map(|(_, arrived)| *arrived);
        match &mut *lock(&self.collector) {
            Collector::Idle => {}
            Collector::Train(train) => {
                train.add_drops(drops);
                of(ProbeKind::Train).for_each(|packet| train.take(packet));
                self.changed.notify_one();
            }
            Collector::Load(share) => share.take(of(ProbeKind::Load), drops),
        }
    }

    fn echo(&self, session: &ServedSession, probe: &Probe, datagram: &Datagram<'_>, reply: &mut [u8]) {
        let Some(octets) = probe.echo_octets(datagram.payload_octets) else {
            return;
        };
        let Some(reply) = reply.get_mut(..octets) else { return };
        if !session.admits(u64::from(self.socket.ip_octets(octets))) {
            return;
        }
        let answer = Probe { kind: ProbeKind::EchoReply { turned_ns: datagram.seen.best_ns() }, ..*probe };
        if answer.write(reply).is_some() {
            // What the host will not send is a lost echo, as the client sees it.
            let _ = self.socket.send(reply);
            session.note_use();
        }
    }
}
