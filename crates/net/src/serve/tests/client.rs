//! The least that a client can be.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use narrows_wire::{
    ClientMessage, Datagram, Frame, FrameCaps, FrameKind, FrameReader, Handshake, HostFacts, Nonce, Probe, Psk, Rows,
    ServerMessage, SessionLimits, SlotKind, Token,
};

pub(super) const NONCE: Nonce = Nonce::new([5; 16]);
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(super) struct Client {
    pub(super) tcp: TcpStream,
    pub(super) address: SocketAddr,
    frames: FrameReader,
    pub(super) session: u64,
    pub(super) token: Token,
    pub(super) limits: SessionLimits,
    pub(super) host: HostFacts,
}

impl Client {
    pub(super) fn dial(address: SocketAddr) -> Self {
        let tcp = TcpStream::connect(address).unwrap();
        tcp.set_read_timeout(Some(TIMEOUT)).unwrap();
        Self {
            tcp,
            address,
            frames: FrameReader::new(FrameCaps::SESSION),
            session: 0,
            token: Token::new([0; 16]),
            limits: SessionLimits::default(),
            host: super::host(),
        }
    }

    pub(super) fn hello(&mut self) {
        self.hello_as(None);
    }

    pub(super) fn hello_as(&mut self, key_name: Option<&str>) {
        let key_name = key_name.map(str::to_owned);
        self.say(&ClientMessage::Hello { version: narrows_wire::VERSION, nonce: NONCE, key_name });
    }

    /// A whole handshake, or what the server said instead.
    pub(super) fn enter(address: SocketAddr, psk: Option<&Psk>) -> Result<Self, Box<ServerMessage>> {
        Self::enter_as(address, None, psk)
    }

    /// The same with a key that has a name.
    pub(super) fn enter_as(
        address: SocketAddr,
        key_name: Option<&str>,
        psk: Option<&Psk>,
    ) -> Result<Self, Box<ServerMessage>> {
        let mut client = Self::dial(address);
        client.hello_as(key_name);
        let ours = match client.hear() {
            ServerMessage::Welcome { nonce, .. } => nonce,
            other => return Err(Box::new(other)),
        };
        if let Some(psk) = psk {
            client.say(&ClientMessage::Prove { proof: psk.client_proof(&NONCE, &ours) });
        }
        match client.hear() {
            ServerMessage::Session { session, token, proof, limits, host } => {
                assert_eq!(proof, psk.map(|psk| psk.server_proof(&NONCE, &ours)));
                (client.session, client.token, client.limits, client.host) = (session, token, limits, host);
                Ok(client)
            }
            other => Err(Box::new(other)),
        }
    }

    pub(super) fn say(&mut self, message: &ClientMessage) {
        self.tcp.write_all(&message.frame()).unwrap();
    }

    /// The same as text, as a peer of another age may.
    pub(super) fn say_text(&mut self, text: &str) {
        let frame = narrows_wire::encode_frame(FrameKind::Json, text.as_bytes()).unwrap();
        self.tcp.write_all(&frame).unwrap();
    }

    /// The next message, as it is.
    pub(super) fn hear_value(&mut self) -> serde_json::Value {
        let frame = self.frame().expect("a message, not the end");
        serde_json::from_slice(&frame.body).unwrap()
    }

    fn frame(&mut self) -> Option<Frame> {
        let mut octets = [0; 4096];
        loop {
            if let Some(frame) = self.frames.next_frame().unwrap() {
                return Some(frame);
            }
            match self.tcp.read(&mut octets) {
                Ok(0) => return None,
                Ok(count) => self.frames.push(&octets[..count]),
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "nothing heard");
                    return None;
                }
            }
        }
    }

    /// The next message that says something.
    pub(super) fn hear(&mut self) -> ServerMessage {
        loop {
            let frame = self.frame().expect("a message, not the end");
            assert_eq!(frame.kind, FrameKind::Json);
            match ServerMessage::parse(&frame.body).unwrap() {
                ServerMessage::Alive => {}
                message => return message,
            }
        }
    }

    pub(super) fn hear_rows(&mut self) -> Rows {
        let frame = self.frame().expect("a table, not the end");
        assert_eq!(frame.kind, FrameKind::Rows);
        Rows::parse(&frame.body).unwrap()
    }

    /// The server closes the connection; words before that are passed over.
    pub(super) fn is_closed(&mut self) -> bool {
        while self.frame().is_some() {}
        true
    }

    pub(super) fn take_slot(&mut self, kind: SlotKind) {
        self.say(&ClientMessage::slot(kind));
        assert_eq!(self.hear(), ServerMessage::GrantedScheduling { kind });
    }

    /// A connected socket at the server's UDP port.
    pub(super) fn socket(&self) -> UdpSocket {
        let socket = UdpSocket::bind((self.address.ip(), 0)).unwrap();
        socket.connect(self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        socket
    }

    /// Asks until answered, as a real client does.
    pub(super) fn ask(socket: &UdpSocket, question: Handshake) -> Handshake {
        for _ in 0..20 {
            socket.send(&question.encode()).unwrap();
            let mut octets = [0; 2048];
            if let Ok(count) = socket.recv(&mut octets) {
                match Datagram::parse(&octets[..count]) {
                    Ok(Datagram::Handshake(answer)) => return answer,
                    other => panic!("{other:?}"),
                }
            }
        }
        panic!("no answer to {question:?}");
    }

    /// A validated flow.
    pub(super) fn flow(&self, flow: u16) -> UdpSocket {
        let socket = self.socket();
        let (session, nonce) = (self.session, NONCE);
        let Handshake::Cookie { cookie, .. } = Self::ask(&socket, Handshake::Hello { session, nonce }) else {
            panic!("no cookie");
        };
        let start = Handshake::Start { session, nonce, cookie, token: self.token, flow };
        // A cookie that came twice may still wait.
        let mut answer = Self::ask(&socket, start);
        while matches!(answer, Handshake::Cookie { .. }) {
            answer = Self::ask(&socket, start);
        }
        assert_eq!(answer, Handshake::Started { session, nonce, flow });
        socket
    }

    pub(super) fn probe(&self, kind: narrows_wire::ProbeKind, id: u32, seq: u32) -> Probe {
        Probe { kind, tag: self.token.tag(), id, seq, stamp_ns: crate::clock::now_ns() }
    }

    pub(super) fn datagram(probe: &Probe, octets: usize) -> Vec<u8> {
        let mut datagram = vec![0; octets];
        probe.write(&mut datagram).unwrap();
        datagram
    }
}
