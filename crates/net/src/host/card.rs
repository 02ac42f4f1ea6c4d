//! What an interface's driver and slot say, by `SIOCETHTOOL` and `/sys/bus/pci`.

use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;

use narrows_diagnose::host::{
    CardFacts, Channels, CoalescingSettings, Offload, Pcie, Rings, StampCapability, payload_rate,
};

use super::{Interface, text};
use crate::sys::ethtool::{self, Answer, Question};

/// Asks everything. What the driver refuses to say is unknown.
pub(super) fn read(interface: &Interface, qdisc: Option<String>) -> CardFacts {
    let mut card = CardFacts {
        name: interface.name.clone(),
        mtu: interface.mtu,
        is_virtual: interface.is_virtual,
        driver: interface.driver.clone(),
        rate_bps: interface.rate.map(narrows_units::BitRate::bps),
        qdisc,
        ..CardFacts::default()
    };
    if let Ok(devices) = fs::read_to_string("/proc/thread-self/net/dev") {
        let drops = text::device_drops(&devices, &interface.name);
        card.receive_drops = drops.map(|[drops, ..]| drops);
        card.receive_fifo_errors = drops.map(|[_, fifo, _]| fifo);
        card.send_drops = drops.map(|[.., drops]| drops);
    }
    let Ok(socket) = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)) else {
        return card;
    };
    card.mtu = card.mtu.or_else(|| ethtool::mtu(socket.as_fd(), &interface.name).ok());
    card.wireless = Interface::folder(&interface.name, interface.index)
        .map(|folder| folder.join("wireless").exists() || folder.join("phy80211").exists());
    let ask = |question: Question| ethtool::ask(socket.as_fd(), &interface.name, question).ok();
    let bus = driver(&mut card, ask(Question::Driver));
    link(&mut card, ask(Question::Link));
    card.rate_max_bps = ask(Question::Modes).and_then(|answer| highest(&answer)).filter(|_| !card.is_virtual);
    card.carrier = ask(Question::Carrier).and_then(|answer| answer.number(4)).map(|value| value != 0);
    card.coalescing = ask(Question::Coalescing).and_then(|answer| coalescing(&answer));
    card.rings = ask(Question::Rings).and_then(|answer| rings(&answer));
    card.channels = ask(Question::Channels).and_then(|answer| channels(&answer));
    card.stamps = ask(Question::Stamps).and_then(|answer| stamps(&answer, ask(Question::StampsOn).as_ref()));
    card.offloads = offloads(ask);
    if let Some(bus) = bus.filter(|bus| text::is_pci_address(bus)) {
        (card.pcie, card.numa_node) = slot(&bus);
    }
    card
}

/// Names of driver, version and firmware; the slot's address.
fn driver(card: &mut CardFacts, answer: Option<Answer>) -> Option<String> {
    /// Octets of each text of `struct ethtool_drvinfo`, one behind the other.
    const TEXT: usize = 32;
    let answer = answer?;
    let words = |k: usize| text::clean(&answer.text(4 + k * TEXT, TEXT)?);
    card.driver = card.driver.take().or_else(|| words(0));
    (card.driver_version, card.firmware) = (words(1), words(2));
    words(3)
}

/// `struct ethtool_link_settings`: rate in Mbit/s, all ones if unknown.
fn link(card: &mut CardFacts, answer: Option<Answer>) {
    const UNKNOWN: u32 = u32::MAX;
    let Some(answer) = answer else { return };
    card.duplex = match answer.octet(8) {
        Some(0) => Some("half".to_owned()),
        Some(1) => Some("full".to_owned()),
        _ => None,
    };
    let megabits = answer.number(4).filter(|rate| *rate > 0 && *rate != UNKNOWN);
    // What a card without a wire says of its rate means nothing.
    if !card.is_virtual && card.rate_bps.is_none() {
        card.rate_bps = megabits.map(|rate| u64::from(rate) * 1_000_000);
    }
}

/// The highest of the rates that `struct ethtool_cmd` (the form with 32 bits, which every driver
/// still answers) says are supported. A card that has higher ones tells only those, so that this
/// may be too low, never too high.
fn highest(answer: &Answer) -> Option<u64> {
    /// Bits of `SUPPORTED_*` (linux/ethtool.h), and Mbit/s.
    const RATES: [(u32, u64); 8] = [
        (0b11, 10),
        (0b11 << 2, 100),
        (0b11 << 4 | 1 << 17, 1_000),
        (1 << 15, 2_500),
        (1 << 12 | 0b111 << 18, 10_000),
        (0b11 << 21, 20_000),
        (0b1111 << 23, 40_000),
        (0b1111 << 27, 56_000),
    ];
    let supported = answer.number(4)?;
    let rates = RATES.iter().filter(|(bits, _)| supported & bits != 0);
    rates.map(|(_, megabits)| megabits * 1_000_000).max()
}

fn coalescing(answer: &Answer) -> Option<CoalescingSettings> {
    Some(CoalescingSettings {
        receive_us: answer.number(4)?,
        receive_frames: answer.number(8)?,
        transmit_us: answer.number(20)?,
        transmit_frames: answer.number(24)?,
        adaptive_receive: answer.number(40)? != 0,
        adaptive_transmit: answer.number(44)? != 0,
    })
}

fn rings(answer: &Answer) -> Option<Rings> {
    Some(Rings {
        receive_max: answer.number(4)?,
        transmit_max: answer.number(16)?,
        receive: answer.number(20)?,
        transmit: answer.number(32)?,
    })
}

fn channels(answer: &Answer) -> Option<Channels> {
    Some(Channels {
        combined_max: answer.number(16)?,
        receive: answer.number(20)?,
        transmit: answer.number(24)?,
        combined: answer.number(32)?,
    })
}

/// `struct ethtool_ts_info` (bits of `SOF_TIMESTAMPING_*` and `HWTSTAMP_FILTER_*`), and
/// `struct hwtstamp_config`.
fn stamps(answer: &Answer, on: Option<&Answer>) -> Option<StampCapability> {
    const FILTER_ALL: u32 = 1;
    let modes = answer.number(4)?;
    let filters = answer.number(28)?;
    let clock = answer.number(8).map(u32::cast_signed).and_then(|clock| u32::try_from(clock).ok());
    Some(StampCapability {
        hardware_transmit: modes & (1 << 0) != 0,
        software_transmit: modes & (1 << 1) != 0,
        hardware_receive: modes & (1 << 2) != 0,
        all_packets: filters & (1 << FILTER_ALL) != 0,
        all_packets_on: on.and_then(|on| on.number(8)).map(|filter| filter == FILTER_ALL),
        clock,
    })
}

fn offloads(ask: impl Fn(Question) -> Option<Answer>) -> Vec<Offload> {
    /// Large receive, among the flags.
    const LARGE_RECEIVE: u32 = 1 << 15;
    let asked = [
        ("rx", Question::ReceiveChecksums, u32::MAX),
        ("tx", Question::SendChecksums, u32::MAX),
        ("sg", Question::ScatterGather, u32::MAX),
        ("tso", Question::Segmentation, u32::MAX),
        ("gso", Question::GenericSegmentation, u32::MAX),
        ("gro", Question::GenericReceive, u32::MAX),
        ("lro", Question::Flags, LARGE_RECEIVE),
    ];
    asked
        .into_iter()
        .filter_map(|(name, question, bits)| {
            let value = ask(question)?.number(4)?;
            Some(Offload { name, on: value & bits != 0 })
        })
        .collect()
}

fn slot(address: &str) -> (Option<Pcie>, Option<u32>) {
    let read = |file: &str| text::clean(&fs::read_to_string(format!("/sys/bus/pci/devices/{address}/{file}")).ok()?);
    let node = read("numa_node").and_then(|node| node.parse().ok());
    let (Some(transfers), Some(width)) = (read("current_link_speed"), read("current_link_width")) else {
        return (None, node);
    };
    let payload = payload_rate(&transfers, &width);
    let pcie = Pcie {
        payload_bps: payload.map(narrows_units::BitRate::bps),
        transfers_max: read("max_link_speed"),
        width_max: read("max_link_width"),
        transfers,
        width,
    };
    (Some(pcie), node)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(words: &[(usize, u32)]) -> Answer {
        let mut octets = vec![0; 64];
        for (at, word) in words {
            octets[*at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        Answer::from_octets(&octets)
    }

    #[test]
    fn drivers_answers() {
        let found = coalescing(&answer(&[(4, 50), (8, 64), (20, 72), (24, 128), (40, 1)])).unwrap();
        assert_eq!((found.receive_us, found.receive_frames, found.transmit_us), (50, 64, 72));
        assert!(found.adaptive_receive && !found.adaptive_transmit);
        let found = rings(&answer(&[(4, 4096), (16, 4096), (20, 256), (32, 512)])).unwrap();
        assert_eq!((found.receive, found.receive_max, found.transmit), (256, 4096, 512));
        let found = stamps(&answer(&[(4, 0x5f), (8, 3), (28, 3)]), Some(&answer(&[(8, 1)]))).unwrap();
        assert!(found.hardware_receive && found.all_packets && found.all_packets_on == Some(true));
        assert_eq!(found.clock, Some(3));
        let none = stamps(&answer(&[(4, 0x1a), (8, u32::MAX)]), None).unwrap();
        assert!(
            !none.hardware_receive && none.software_transmit && none.clock.is_none() && none.all_packets_on.is_none()
        );
    }

    /// A rate of all ones is unknown, and a card without a wire has none whatever it says.
    #[test]
    fn rates() {
        let mut card = CardFacts::default();
        link(&mut card, Some(answer(&[(4, u32::MAX), (8, 0xff)])));
        assert_eq!((card.rate_bps, card.duplex.as_deref()), (None, None));
        link(&mut card, Some(answer(&[(4, 25_000), (8, 1)])));
        assert_eq!((card.rate_bps, card.duplex.as_deref()), (Some(25_000_000_000), Some("full")));
        let mut software = CardFacts { is_virtual: true, ..CardFacts::default() };
        link(&mut software, Some(answer(&[(4, 10_000), (8, 1)])));
        assert_eq!(software.rate_bps, None);
    }

    #[test]
    fn the_highest_of_the_rates_that_a_card_has() {
        // Twisted pair up to 1 Gbit/s, with pause frames and so on in between; 10 Gbit/s; a card
        // that names none.
        assert_eq!(highest(&answer(&[(4, 0x62ef)])), Some(1_000_000_000));
        assert_eq!(highest(&answer(&[(4, 1 << 12 | 1 << 13)])), Some(10_000_000_000));
        assert_eq!(highest(&answer(&[(4, 1 << 7)])), None);
    }

    #[test]
    fn short_answers_say_nothing() {
        let short = Answer::from_octets(&[1, 2, 3]);
        assert_eq!(
            (coalescing(&short), rings(&short), channels(&short), stamps(&short, None)),
            (None, None, None, None)
        );
        assert_eq!(driver(&mut CardFacts::default(), Some(short)), None);
    }
}
