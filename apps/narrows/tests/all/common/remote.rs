//! A client that only enters, to hold a place at a server.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use narrows_wire::{ClientMessage, FrameCaps, FrameReader, Nonce, ServerMessage, SlotKind};

/// A session, and whatever slot it holds.
#[derive(Debug)]
pub(crate) struct SlotSession {
    stream: TcpStream,
    frames: FrameReader,
}

impl SlotSession {
    pub(crate) fn enter(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_read_timeout(Some(super::TIMEOUT)).expect("a timeout");
        let mut slot_session = Self { stream, frames: FrameReader::new(FrameCaps::SESSION) };
        slot_session.say(&ClientMessage::Hello {
            version: narrows_wire::VERSION,
            nonce: Nonce::new([7; Nonce::OCTETS]),
            key_name: None,
        });
        assert!(matches!(slot_session.hear(), ServerMessage::Welcome { .. }));
        assert!(matches!(slot_session.hear(), ServerMessage::Session { .. }));
        slot_session
    }

    /// Takes the slot that loads need.
    pub(crate) fn take_load_slot(&mut self) {
        let kind = SlotKind::Load;
        self.say(&ClientMessage::slot(kind));
        assert_eq!(self.hear(), ServerMessage::GrantedScheduling { kind });
    }

    fn say(&mut self, message: &ClientMessage) {
        self.stream.write_all(&message.frame()).expect("the server is there");
    }

    fn hear(&mut self) -> ServerMessage {
        let mut octets = [0; 4096];
        loop {
            if let Some(frame) = self.frames.next_frame().expect("the server's frames are whole") {
                return ServerMessage::parse(&frame.body).expect("the server's messages are well formed");
            }
            let count = self.stream.read(&mut octets).expect("the server answers");
            assert_ne!(count, 0, "the server ended the session");
            self.frames.push(&octets[..count]);
        }
    }
}
