//! The port: connections are taken in, packets counted.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use narrows_net::clock;
use narrows_net::receive::{Datagram, Receiver};
use narrows_net::socket::ProbeSocket;

use super::session;
use super::state::{Account, Shared, Tables, lock, same_host};
use crate::control::is_passing;
use crate::packet::Header;

/// Takes connections in until the sink stops; a thread for each, up to the limit.
pub(super) fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    while !shared.stop.load(Ordering::Relaxed) {
        match listener.accept() {
            Ok((stream, client)) => take_in(shared, stream, client),
            Err(error) if is_passing(&error) => {}
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            // Out of descriptors, most likely: connections that end give some back.
            Err(_) => clock::sleep_until_ns(clock::now_ns() + 50_000_000),
        }
    }
}

fn take_in(shared: &Arc<Shared>, stream: TcpStream, client: SocketAddr) {
    /// Takes the connection off the count whatever becomes of its thread.
    struct Counted(Arc<Shared>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.connections.fetch_sub(1, Ordering::AcqRel);
        }
    }
    if shared.connections.fetch_add(1, Ordering::AcqRel) >= shared.options.limits.connections {
        shared.connections.fetch_sub(1, Ordering::AcqRel);
        return;
    }
    let counted = Counted(Arc::clone(shared));
    // If there can be no thread, the connection closes, and the peer sees that.
    let _ = std::thread::Builder::new()
        .name("sink-session".to_owned())
        .spawn(move || session::serve(&counted.0, &stream, client));
}

/// Counts datagrams until the sink stops.
pub(super) fn count(shared: &Shared, socket: &ProbeSocket) {
    const POLL_NS: i64 = 20_000_000;
    /// Room for the header; the padding is not read.
    const SLOT_OCTETS: usize = 64;
    let mut packets = Receiver::new(socket, SLOT_OCTETS);
    while !shared.stop.load(Ordering::Relaxed) {
        let Ok(count) = packets.receive(socket, clock::now_ns() + POLL_NS) else {
            // An error of the socket itself shows as silence; it must not become a spin.
            clock::sleep_until_ns(clock::now_ns() + POLL_NS);
            continue;
        };
        let drops = u64::from(packets.take_drops(socket));
        if drops > 0 {
            shared.local_drops.fetch_add(drops, Ordering::Relaxed);
        }
        if count > 0 {
            let tables = lock(&shared.tables);
            for datagram in packets.iter() {
                enter(&tables, socket, &datagram);
            }
        }
    }
}

/// Enters a datagram into its flow's account, if it has one.
fn enter(tables: &Tables, socket: &ProbeSocket, datagram: &Datagram<'_>) {
    let Some((header, from)) = Header::read(datagram.payload).zip(datagram.from) else {
        return;
    };
    let Some((session, flow)) = tables.cookies.get(&header.cookie) else {
        return;
    };
    if !same_host(session.client.ip(), from.ip()) {
        return;
    }
    let at_ns = datagram.seen.best_ns();
    let mut traffic = lock(&session.traffic);
    let since = traffic.since(at_ns);
    if let Some(Account::Udp(account)) = traffic.flows.get_mut(*flow) {
        let octets = socket.ip_octets(datagram.payload_octets);
        account.packet(header, at_ns, since, octets, datagram.seen.kernel_ns.is_some());
    }
}
