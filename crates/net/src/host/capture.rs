//! How much a capture takes without loss, measured on loopback: a ring of frames behind a filter,
//! as `narrows passive` has.

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use narrows_diagnose::host::CaptureMeasured;
use narrows_units::BitRate;

use super::bench::{PAYLOAD, loopback};
use crate::clock;
use crate::ring::{FilterInstruction, PacketRing, RingOptions};

/// Each try lasts for this long.
const LASTS_NS: i64 = 100_000_000;
/// Tries, each at this part of the one before, until nothing is lost.
const TRIES: u32 = 8;
const SLOWER: f64 = 0.7;
const RING_FRAMES: usize = 8192;
/// IP octets of a datagram.
const IP_OCTETS: u64 = PAYLOAD as u64 + 28;

/// What a ring on `lo` takes of full-size datagrams, of each at most `snap_octets`. Needs
/// `CAP_NET_RAW`. Sending and receiving share this host's processors, so that a card that is fed by
/// others may do better.
pub fn capture(snap_octets: usize) -> io::Result<CaptureMeasured> {
    let remote = UdpSocket::bind(loopback())?;
    let near = UdpSocket::bind(loopback())?;
    near.connect(remote.local_addr()?)?;
    let options = RingOptions { frames: RING_FRAMES, snap_octets, outgoing: false };
    let program = datagrams_to(remote.local_addr()?.port(), u32::try_from(snap_octets).unwrap_or(u32::MAX));
    let mut pace = None;
    let mut tries = 0;
    loop {
        tries += 1;
        // A ring of its own for each try: what an earlier one left would count as lost.
        let mut ring = PacketRing::open_filtered("lo", &options, Some(&program))?;
        let attempt = attempt(&near, &mut ring, pace)?;
        let rate = BitRate::over(attempt.sent.saturating_mul(IP_OCTETS), attempt.lasted);
        let lost = attempt.sent.saturating_sub(attempt.captured);
        let over = lost == 0 || tries == TRIES;
        if over || rate.is_none() {
            return Ok(CaptureMeasured {
                rate_bps: rate.filter(|_| lost == 0).map(BitRate::bps),
                packets_per_second: (lost == 0 && !attempt.lasted.is_zero())
                    .then(|| attempt.sent as f64 / attempt.lasted.as_secs_f64()),
                as_fast_as_sent: lost == 0 && tries == 1,
                tries,
                last_lost: lost,
                ring_octets: (ring.capacity() as u64).saturating_mul(snap_octets as u64),
            });
        }
        pace = rate.and_then(|rate| rate.scaled(SLOWER)).and_then(|rate| rate.time_for(IP_OCTETS));
    }
}

struct Attempt {
    sent: u64,
    captured: u64,
    lasted: Duration,
}

/// Sends for a while, each packet `gap` after the one before, or as fast as it goes, while another
/// thread empties the ring.
fn attempt(near: &UdpSocket, ring: &mut PacketRing, gap: Option<Duration>) -> io::Result<Attempt> {
    let over = AtomicBool::new(false);
    let payload = [1; PAYLOAD];
    thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut captured = 0u64;
            loop {
                let ended = over.load(Ordering::Acquire);
                let mut any = false;
                while ring.receive(|_| ()).is_some() {
                    captured += 1;
                    any = true;
                }
                if ended && !any {
                    return captured;
                }
                // Where sender and reader share a processor, a reader that spins would keep it.
                thread::yield_now();
            }
        });
        let begun = clock::now_ns();
        let (mut sent, mut result) = (0u64, Ok(()));
        let mut due = begun;
        while clock::now_ns().saturating_sub(begun) < LASTS_NS {
            if let Some(gap) = gap {
                due = due.saturating_add(clock::nanos(gap));
                while clock::now_ns() < due {
                    std::hint::spin_loop();
                }
            }
            match near.send(&payload) {
                Ok(_) => sent += 1,
                // Nobody empties the socket that they are for, which the ring does not mind.
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused) => {}
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        let lasted = u64::try_from(clock::now_ns().saturating_sub(begun)).unwrap_or(0);
        // Receiving on loopback may be left to a softirq of a busy processor.
        clock::sleep_until_ns(clock::now_ns() + 5_000_000);
        over.store(true, Ordering::Release);
        let captured = reading.join().map_err(|_| io::Error::other("a measuring thread panicked"))?;
        result?;
        Ok(Attempt { sent, captured, lasted: Duration::from_nanos(lasted) })
    })
}

/// A classic filter: IPv4 datagrams to this UDP port that are no fragments, each cut to
/// `snap_octets`.
fn datagrams_to(port: u16, snap_octets: u32) -> [FilterInstruction; 11] {
    /// `BPF_LD + BPF_H + BPF_ABS`.
    const LOAD_HALF: u16 = 0x28;
    /// `BPF_LD + BPF_B + BPF_ABS`.
    const LOAD_OCTET: u16 = 0x30;
    /// `BPF_LDX + BPF_B + BPF_MSH`: four times the low half of an octet.
    const LOAD_HEADER_LENGTH: u16 = 0xb1;
    /// `BPF_LD + BPF_H + BPF_IND`.
    const LOAD_HALF_BEHIND: u16 = 0x48;
    /// `BPF_JMP + BPF_JEQ + BPF_K`.
    const IF_EQUAL: u16 = 0x15;
    /// `BPF_JMP + BPF_JSET + BPF_K`.
    const IF_ANY_BIT: u16 = 0x45;
    /// `BPF_RET + BPF_K`.
    const RETURN: u16 = 0x06;
    let step = |code, operand, if_true, if_false| FilterInstruction { code, if_true, if_false, operand };
    [
        step(LOAD_HALF, 12, 0, 0),
        step(IF_EQUAL, 0x0800, 0, 8),
        step(LOAD_OCTET, 23, 0, 0),
        step(IF_EQUAL, 17, 0, 6),
        step(LOAD_HALF, 20, 0, 0),
        step(IF_ANY_BIT, 0x1fff, 4, 0),
        step(LOAD_HEADER_LENGTH, 14, 0, 0),
        step(LOAD_HALF_BEHIND, 16, 0, 0),
        step(IF_EQUAL, u32::from(port), 0, 1),
        step(RETURN, snap_octets, 0, 0),
        step(RETURN, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many octets of a frame the filter lets through, by the kernel's rules (`bpf(2)`,
    /// classic): the program is carried out, as an octet beyond the frame refuses it.
    fn kept(program: &[FilterInstruction], frame: &[u8]) -> u32 {
        let octet = |at: usize| frame.get(at).copied().map(u32::from);
        let half = |at: usize| Some(octet(at)? << 8 | octet(at + 1)?);
        let (mut accumulator, mut index, mut at) = (0u32, 0u32, 0);
        loop {
            let step = &program[at];
            at += 1;
            let place = step.operand as usize;
            let loaded = match step.code {
                0x28 => half(place),
                0x30 => octet(place),
                0x48 => half(place + index as usize),
                0xb1 => {
                    let Some(octet) = octet(place) else { return 0 };
                    index = 4 * (octet & 0xf);
                    Some(accumulator)
                }
                0x15 | 0x45 => {
                    let holds = match step.code {
                        0x15 => accumulator == step.operand,
                        _ => accumulator & step.operand != 0,
                    };
                    at += usize::from(if holds { step.if_true } else { step.if_false });
                    Some(accumulator)
                }
                0x06 => return step.operand,
                code => panic!("no such instruction: {code:#x}"),
            };
            let Some(loaded) = loaded else { return 0 };
            accumulator = loaded;
        }
    }

    /// Ethernet, IPv4 with so many words of header, and the first octets of UDP.
    fn frame(ether_type: u16, words: u8, protocol: u8, fragment: u16, port: u16) -> Vec<u8> {
        let mut frame = vec![0; 14 + 4 * usize::from(words) + 8];
        frame[12..14].copy_from_slice(&ether_type.to_be_bytes());
        frame[14] = 0x40 | words;
        frame[20..22].copy_from_slice(&fragment.to_be_bytes());
        frame[23] = protocol;
        let udp = 14 + 4 * usize::from(words);
        frame[udp + 2..udp + 4].copy_from_slice(&port.to_be_bytes());
        frame
    }

    #[test]
    fn datagrams_to_the_port_are_kept_and_nothing_else() {
        let kept = |frame: &[u8]| kept(&datagrams_to(9, 96), frame);
        assert_eq!(kept(&frame(0x0800, 5, 17, 0, 9)), 96);
        assert_eq!(kept(&frame(0x0800, 15, 17, 0, 9)), 96, "options in front of the datagram");
        assert_eq!(kept(&frame(0x0800, 5, 17, 0x4000, 9)), 96, "may not be fragmented");
        for (what, other) in [
            ("IPv6", frame(0x86dd, 5, 17, 0, 9)),
            ("TCP", frame(0x0800, 5, 6, 0, 9)),
            ("a later fragment", frame(0x0800, 5, 17, 0x00b9, 9)),
            ("another port", frame(0x0800, 5, 17, 0, 10)),
            ("half a header", frame(0x0800, 5, 17, 0, 9)[..20].to_vec()),
        ] {
            assert_eq!(kept(&other), 0, "{what}");
        }
    }

    #[test]
    #[ignore = "lab: needs root"]
    fn a_ring_on_loopback_is_measured() {
        let found = capture(96).unwrap();
        assert!(found.tries >= 1 && found.tries <= TRIES);
        // A machine that lost packets at each rate says so, and names none.
        assert_eq!(found.rate_bps.is_some(), found.last_lost == 0);
        if let Some(rate) = found.rate_bps {
            assert!(rate > 100_000 && rate < 10_000_000_000_000, "{found:?}");
        }
    }
}
