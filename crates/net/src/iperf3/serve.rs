//! A server for stock iperf3 clients, several at once.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use super::listen_socket;
use super::options::Iperf3Options;
use super::shared::Shared;

/// A running server. Dropping it ends every test.
#[derive(Debug)]
pub struct Iperf3Server {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    addresses: Vec<SocketAddr>,
}

impl Iperf3Server {
    /// Opens all sockets, and serves.
    pub fn start(options: Iperf3Options) -> io::Result<Self> {
        let (listen_sockets, addresses) = listen_socket::open_all(&options.listen, options.port)?;
        let shared = Arc::new(Shared::new(options));
        let mut server = Self { shared: Arc::clone(&shared), threads: Vec::new(), addresses };
        for listen_socket in listen_sockets {
            let (tcp, udp) = (Arc::clone(&shared), Arc::clone(&shared));
            let (listener, greetings) = (listen_socket.tcp, listen_socket.udp);
            let named = |name: &str| std::thread::Builder::new().name(name.to_owned());
            server.threads.push(named("iperf3-tcp").spawn(move || listen_socket::attend(&listener, &tcp))?);
            server.threads.push(named("iperf3-udp").spawn(move || listen_socket::greet(&greetings, &udp))?);
        }
        Ok(server)
    }

    /// Where it listens, TCP and UDP alike.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Tests under way.
    pub fn sessions(&self) -> usize {
        self.shared.sessions().len()
    }
}

impl Drop for Iperf3Server {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended too.
            let _ = thread.join();
        }
        // Sessions look at the flag every 20 ms; whoever drops the server may count on its traffic
        // having stopped.
        let deadline = crate::clock::now_ns() + 2_000_000_000;
        while self.sessions() > 0 && crate::clock::now_ns() < deadline {
            crate::clock::sleep_until_ns(crate::clock::now_ns() + 5_000_000);
        }
    }
}
