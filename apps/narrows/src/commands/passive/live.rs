//! An interface.

use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use narrows_capture::Analysis;
use narrows_capture::filter::{Filter, FilterError, Tags};
use narrows_capture::packet::{LinkType, RawPacket};
use narrows_capture::write::PcapWriter;
use narrows_net::listen::{HEAD_OCTETS, Heading, Incoming, ListenOptions, Listener};
use narrows_net::ring::{FilterInstruction, RingFrame};

use super::{PassiveArgs, Read, files};
use crate::exit::{Exit, Failure};
use crate::interrupt;
use crate::progress::Progress;

/// Longest sleep between looks at interrupts and the clock.
const POLL: Duration = Duration::from_millis(50);
/// Frames that are taken between such looks.
const BATCH: usize = 4_096;

type Pcap = PcapWriter<BufWriter<File>>;

/// Listens until the time is up, an interrupt comes or the interface goes.
pub(super) fn listen(
    args: &PassiveArgs,
    interface: &str,
    filter: Option<&Filter>,
    mut analysis: Analysis,
) -> Result<Read, Failure> {
    let heading = Heading::of(interface);
    let link = match heading {
        Heading::Ethernet | Heading::Loopback => LinkType::ETHERNET,
        Heading::Ip => LinkType::RAW,
        Heading::Other(number) => {
            let why = format!("{interface}: frames of its kind (ARP hardware type {number}) are not understood");
            return Err(Failure::usage(why));
        }
    };
    let program = filter.map(|filter| program(filter, link)).transpose();
    let program = program.map_err(|error| Failure::usage(error.to_string()))?;
    let mut pcap = args.write.as_ref().map(|path| begin(path, link)).transpose()?;
    let stop = interrupt::flag()?;
    let options = ListenOptions { filter: program.as_deref(), all_stations: args.promiscuous };
    let mut listener = Listener::open(interface, &options).map_err(|error| refused(interface, &error))?;
    let progress = Progress::new(args.quiet);
    progress.say(format!("listening on {interface}"));
    let ended = hear(&mut listener, &mut analysis, &mut pcap, (heading, link, args.duration, stop));
    progress.finish();
    if let Ok(counts) = listener.counts() {
        analysis.set_dropped(counts.dropped);
    }
    let mut failure = match ended {
        Ok(Incoming::Gone) => {
            Some(Failure::host(format!("{interface} went away or down; packets captured before are shown")))
        }
        Ok(Incoming::Frames | Incoming::Silence) => None,
        Err(failure) => Some(failure),
    };
    if let (Some(pcap), Some(path)) = (pcap, &args.write) {
        let finished = pcap.finish();
        failure = failure.or(finished.err().map(|error| Failure::host(format!("{}: {error}", path.display()))));
    }
    Ok(Read {
        inputs: vec![interface.to_owned()],
        findings: analysis.finish(),
        damages: vec![files::undamaged(interface)],
        matched: 0,
        failure,
    })
}

fn hear(
    listener: &mut Listener,
    analysis: &mut Analysis,
    pcap: &mut Option<Pcap>,
    (heading, link, duration, stop): (Heading, LinkType, Option<Duration>, &AtomicBool),
) -> Result<Incoming, Failure> {
    let longest = i64::try_from(duration.unwrap_or(Duration::MAX).as_nanos()).unwrap_or(i64::MAX);
    let end_ns = narrows_net::clock::now_ns().saturating_add(longest);
    loop {
        let left = end_ns.saturating_sub(narrows_net::clock::now_ns());
        if left <= 0 || stop.load(Ordering::Relaxed) {
            return Ok(Incoming::Silence);
        }
        let nap = POLL.min(Duration::from_nanos(u64::try_from(left).unwrap_or(0)).max(Duration::from_millis(1)));
        let incoming = listener.wait(nap).map_err(|error| Failure::host(error.to_string()))?;
        let mut fault = None;
        for _ in 0..BATCH {
            let seen = listener.receive(|frame| see(&frame, (heading, link), analysis, pcap));
            match seen {
                None => break,
                Some(Ok(())) => {}
                Some(Err(error)) => fault = Some(error),
            }
        }
        if let Some(error) = fault {
            return Err(Failure::host(format!("--write: {error}; listening ended there")));
        }
        if incoming == Incoming::Gone {
            return Ok(incoming);
        }
    }
}

fn see(
    frame: &RingFrame<'_>,
    (heading, link): (Heading, LinkType),
    analysis: &mut Analysis,
    pcap: &mut Option<Pcap>,
) -> io::Result<()> {
    let twice = heading == Heading::Loopback;
    if twice && frame.outgoing {
        return Ok(());
    }
    let (seconds, nanos) = frame.stamp;
    let raw = RawPacket {
        at_ns: Some(i64::from(seconds) * 1_000_000_000 + i64::from(nanos)),
        link,
        octets: frame.octets,
        whole_octets: u32::try_from(frame.whole_octets).unwrap_or(u32::MAX),
        vlan: frame.vlan.map(|(_, tag)| tag),
        outgoing: (!twice).then_some(frame.outgoing),
    };
    analysis.see(&raw);
    match pcap {
        Some(pcap) => pcap.write(&raw),
        None => Ok(()),
    }
}

fn program(filter: &Filter, link: LinkType) -> Result<Vec<FilterInstruction>, FilterError> {
    let kept = u32::try_from(HEAD_OCTETS).unwrap_or(u32::MAX);
    let program = filter.compile(link, Tags::Beside, kept)?;
    let instructions = program.instructions().iter().map(|instruction| FilterInstruction {
        code: instruction.code,
        if_true: instruction.if_true,
        if_false: instruction.if_false,
        operand: instruction.operand,
    });
    Ok(instructions.collect())
}

fn begin(path: &std::path::Path, link: LinkType) -> Result<Pcap, Failure> {
    let refuse = |error: io::Error| Failure::usage(format!("--write {}: {error}", path.display()));
    let file = File::create(path).map_err(refuse)?;
    let kept = u32::try_from(HEAD_OCTETS).unwrap_or(u32::MAX);
    PcapWriter::new(BufWriter::new(file), link, kept).map_err(refuse)
}

fn refused(interface: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Failure {
            exit: Exit::Privilege,
            who: "host",
            text: format!(
                "listening on {interface} needs CAP_NET_RAW: run it as root, or give it to the program (setcap)"
            ),
        },
        _ if error.raw_os_error() == Some(nix::libc::ENODEV) => {
            Failure::usage(format!("there is no interface {interface}"))
        }
        _ => Failure::host(format!("{interface}: {error}")),
    }
}
