//! What limited a test, interval by interval, and by which evidence.

use std::cell::RefCell;
use std::time::Duration;

use narrows_diagnose::limits::{LimitingFactor, Limits, UdpStreamState, limits, udp_limits};
use narrows_net::iperf3::{Finished, Outline, Part, Snapshot, StreamPart, TestOptions};
use narrows_probe::PathFacts;
use narrows_probe::probes::{Congestion, StreamReport, TransferReport};
use narrows_units::Stamp;
use narrows_wire::iperf3::Transport;
use serde_json::{Value, json};

use super::ThroughputArgs;

/// A rate this close to the one asked for is set by it.
const ASKED: f64 = 0.95;

/// Loss below this does not hold back a congestion control that does not go by loss (ours: BBR v1
/// stands a hundred times as much).
const SLIGHT_LOSS: f64 = 0.001;

/// Judges intervals and tests.
pub(super) struct Judge {
    facts: PathFacts,
    transport: Transport,
    /// Payload rate asked for, per stream.
    rate_bps: u64,
    fq_rate_bps: u64,
    /// What the kernel really uses, once that is known.
    congestion: RefCell<Option<String>>,
}

/// A verdict.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LimitVerdict {
    /// `None`: this side cannot tell.
    pub(super) limited_by: Option<&'static str>,
    pub(super) evidence: Value,
}

impl Judge {
    pub(super) fn new(args: &ThroughputArgs, options: &TestOptions) -> Self {
        let mut facts = PathFacts::ideal(1500, Duration::ZERO);
        let mut found = std::net::ToSocketAddrs::to_socket_addrs(&(args.host.as_str(), options.port)).ok();
        if let Some(peer) = found.as_mut().and_then(Iterator::next)
            && let Some(interface) = narrows_net::host::Interface::towards(peer)
        {
            facts.ipv6 = peer.is_ipv6();
            facts.path_mtu = interface.mtu.and_then(|mtu| u16::try_from(mtu).ok()).unwrap_or(u16::MAX);
            facts.sender.interface_rate = interface.rate;
            facts.sender.virtual_interface = interface.is_virtual;
        }
        let parameters = &options.parameters;
        Self {
            facts,
            transport: parameters.transport,
            rate_bps: parameters.rate_bps,
            fq_rate_bps: parameters.fq_rate_bps,
            congestion: RefCell::new(parameters.congestion.clone()),
        }
    }

    /// Nominal rate of the interface towards the peer, if it is a real one.
    pub(super) fn interface_rate(&self) -> Option<narrows_units::BitRate> {
        let sender = &self.facts.sender;
        sender.interface_rate.filter(|_| !sender.virtual_interface)
    }

    /// Streams are open.
    pub(super) fn learn(&self, outline: &Outline) {
        let used = outline.streams.iter().find_map(|stream| stream.congestion.clone());
        if used.is_some() {
            self.congestion.replace(used);
        }
    }

    /// One interval.
    pub(super) fn part(&self, part: &Part) -> LimitVerdict {
        self.judge(&part.streams.iter().collect::<Vec<_>>(), part.to.saturating_sub(part.from))
    }

    /// The whole test, what was omitted left out; of two ways the first.
    pub(super) fn whole(&self, finished: &Finished) -> LimitVerdict {
        let sends = finished.outline.streams.iter().any(|stream| stream.sends);
        self.counted(finished, sends)
    }

    /// The remote host's sending, of a test of both ways: where the remote host tells, or, by UDP,
    /// as far as what was lost tells.
    pub(super) fn reverse(&self, finished: &Finished) -> Option<LimitVerdict> {
        let outlines = &finished.outline.streams;
        let both = outlines.iter().any(|stream| stream.sends) && outlines.iter().any(|stream| !stream.sends);
        let mut streams = finished.parts.iter().flat_map(|part| &part.streams);
        let reported =
            self.transport != Transport::Tcp || streams.any(|stream| !stream.from.sends && !stream.samples.is_empty());
        (both && reported).then(|| self.counted(finished, false))
    }

    /// One way of a test: that on which this host sends, or the other.
    fn counted(&self, finished: &Finished, sends: bool) -> LimitVerdict {
        let counted: Vec<&Part> = finished.parts.iter().filter(|part| !part.omitted).collect();
        let (Some(first), Some(last)) = (counted.first(), counted.last()) else {
            return unknown("nothing was counted");
        };
        let streams: Vec<StreamPart> = first
            .streams
            .iter()
            .zip(&last.streams)
            .enumerate()
            .map(|(index, (first, last))| StreamPart {
                from: first.from.clone(),
                to: last.to.clone(),
                samples: counted
                    .iter()
                    .filter_map(|part| part.streams.get(index))
                    .flat_map(|stream| stream.samples.iter().copied())
                    .collect(),
            })
            .collect();
        let time = last.to.saturating_sub(first.from);
        let these: Vec<&StreamPart> = streams.iter().filter(|stream| stream.from.sends == sends).collect();
        let mut verdict = self.judge(&these, time);
        self.add_losses(&mut verdict, finished, sends);
        verdict
    }

    fn judge(&self, streams: &[&StreamPart], time: Duration) -> LimitVerdict {
        // Of two ways the first: what limits them differs.
        let both = streams.iter().any(|stream| stream.from.sends);
        let sending: Vec<&StreamPart> =
            streams.iter().copied().filter(|stream| judged_here(stream) && (!both || stream.from.sends)).collect();
        if sending.is_empty() || time.is_zero() {
            return unknown("only the sending host can tell");
        }
        if self.transport == Transport::Tcp { self.tcp(&sending, time) } else { self.udp(&sending, time) }
    }

    fn tcp(&self, streams: &[&StreamPart], time: Duration) -> LimitVerdict {
        let congestion = Congestion::from_name(self.congestion.borrow().as_deref().unwrap_or(""));
        let by_loss = matches!(congestion, Congestion::Reno | Congestion::Cubic);
        let report = TransferReport {
            began: Stamp::from_nanos(streams.first().map_or(0, |stream| stream.from.at_ns)),
            ended: Stamp::from_nanos(streams.last().map_or(0, |stream| stream.to.at_ns)),
            streams: streams
                .iter()
                .map(|stream| StreamReport {
                    congestion: congestion.clone(),
                    granted_send_buffer_octets: None,
                    samples: unique(&stream.samples),
                })
                .collect(),
            remote_read: None,
            sender_cpu: Some(busiest(streams, time)),
            receiver_cpu: None,
        };
        let Some(limits) = limits(&report, &self.facts, None) else {
            return unknown("too few samples of TCP_INFO");
        };
        let per_stream = limits.acked_bps / streams.len() as f64;
        let met = |rate: u64| rate > 0 && per_stream >= ASKED * rate as f64;
        let limited_by = if met(self.rate_bps) {
            "asked rate"
        } else if met(self.fq_rate_bps) {
            "pacing"
        } else {
            let slight = !by_loss && limits.resent < SLIGHT_LOSS;
            let mut verdicts = limits.verdicts.iter().copied();
            verdicts
                .find(|verdict| !(slight && matches!(verdict, LimitingFactor::RandomLoss | LimitingFactor::Loss)))
                .map_or("path", LimitingFactor::name)
        };
        LimitVerdict { limited_by: Some(limited_by), evidence: tcp_evidence(&limits, busiest(streams, time)) }
    }

    fn udp(&self, streams: &[&StreamPart], time: Duration) -> LimitVerdict {
        let sum = |of: fn(&Snapshot) -> u64| -> u64 {
            streams.iter().map(|stream| of(&stream.to).saturating_sub(of(&stream.from))).sum()
        };
        let (octets, refused) = (sum(|s| s.octets), sum(|s| s.refused));
        let bps = octets as f64 * 8.0 / time.as_secs_f64();
        let asked = self.rate_bps as f64 * streams.len() as f64;
        // What was lost is known at the end: `add_losses`.
        let limited_by = udp_limits(&UdpStreamState {
            sent_bps: bps,
            requested_bps: Some(asked).filter(|&asked| asked > 0.0),
            refused,
            sender_cpu: busiest(streams, time),
            ..UdpStreamState::default()
        });
        LimitVerdict {
            limited_by: Some(limited_by.name()),
            evidence: json!({
                "sent_bps": bps.round(),
                "requested_bps": if asked > 0.0 { Value::from(asked) } else { Value::Null },
                "refused_packets": refused,
                "sender_cpu_ratio": busiest(streams, time),
            }),
        }
    }

    /// What whoever receives missed, and dropped itself, on one way.
    fn add_losses(&self, verdict: &mut LimitVerdict, finished: &Finished, sends: bool) {
        if self.transport == Transport::Tcp {
            return;
        }
        let (mut lost, mut sent) = (0u64, 0u64);
        for stream in finished.outline.streams.iter().filter(|stream| stream.sends == sends) {
            let side = if sends { &finished.theirs } else { &finished.ours };
            if let Some(counted) = side.stream(stream.id) {
                lost = lost.saturating_add(counted.lost);
                sent = sent.saturating_add(counted.datagrams);
            }
        }
        let drops = finished.parts.last().map_or(0, |newest| {
            let streams = newest.streams.iter().filter(|stream| stream.to.sends == sends);
            streams.map(|stream| stream.to.local_drops).sum::<u64>()
        });
        // Whoever receives drops: this host, or the peer where it runs `narrows serve` and reports.
        let (local, remote) = if sends { (0, drops) } else { (drops, 0) };
        let elsewhere = lost.saturating_sub(local).saturating_sub(remote);
        if let Value::Object(fields) = &mut verdict.evidence {
            fields.insert("lost_packets".to_owned(), lost.into());
            fields.insert("lost_in_this_host_packets".to_owned(), local.into());
            // A stock peer does not tell its own drops: they count as lost elsewhere.
            fields.insert("lost_in_remote_host_packets".to_owned(), remote.into());
            fields.insert("lost_elsewhere_packets".to_owned(), elsewhere.into());
        }
        let much = |packets: u64| sent > 0 && packets.saturating_mul(100) > sent;
        if much(elsewhere) && verdict.limited_by == Some("asked rate") {
            verdict.limited_by = Some("path");
        } else if much(remote) || (much(local) && verdict.limited_by.is_none()) {
            verdict.limited_by = Some("receiving host");
        }
    }
}

/// This side has the sender's samples, or is the sender.
fn judged_here(stream: &StreamPart) -> bool {
    stream.from.sends || !stream.samples.is_empty()
}

fn unknown(why: &'static str) -> LimitVerdict {
    LimitVerdict { limited_by: None, evidence: json!({ "reason": why }) }
}

/// The end of one interval is the begin of the next.
fn unique(samples: &[narrows_probe::probes::TcpSample]) -> Vec<narrows_probe::probes::TcpSample> {
    let mut all: Vec<narrows_probe::probes::TcpSample> = Vec::with_capacity(samples.len());
    for sample in samples {
        if all.last().is_none_or(|last| last.at.nanos() < sample.at.nanos()) {
            all.push(*sample);
        }
    }
    all
}

fn busiest(streams: &[&StreamPart], time: Duration) -> f32 {
    let used = streams.iter().map(|stream| stream.to.cpu.saturating_sub(stream.from.cpu)).max();
    (used.unwrap_or_default().as_secs_f32() / time.as_secs_f32().max(1e-9)).min(1.0)
}

fn tcp_evidence(limits: &Limits, cpu: f32) -> Value {
    let ratio = |value: f64| (value * 1e4).round() / 1e4;
    json!({
        "idle_ratio": ratio(limits.idle),
        "peer_window_ratio": ratio(limits.peer_window),
        "send_buffer_ratio": ratio(limits.send_buffer),
        "network_ratio": ratio(limits.network),
        "resent_ratio": limits.resent,
        "sender_cpu_ratio": ratio(cpu.into()),
        "acked_bps": limits.acked_bps.round(),
        "also": limits.verdicts.iter().skip(1).map(|verdict| verdict.name()).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use narrows_net::iperf3::Connected;
    use narrows_wire::iperf3::{Results, StreamResult};

    use super::*;

    /// A UDP test of ten seconds: for each stream whether this host sends, what was lost of a
    /// thousand, and what the receiver dropped of that.
    fn finished(streams: &[(bool, u64, u64)]) -> Finished {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let connected = |id, sends| Connected {
            id,
            sends,
            near: nowhere,
            remote: nowhere,
            mss_octets: None,
            send_buffer_octets: None,
            receive_buffer_octets: None,
            congestion: None,
        };
        let counted = |id, lost| StreamResult {
            id,
            octets: 1_000_000,
            retransmits: None,
            jitter_seconds: 0.0,
            lost,
            lost_omitted: None,
            datagrams: 1000,
            datagrams_omitted: None,
            span_seconds: None,
        };
        let numbered = || (1u32..).zip(streams);
        let results = |of: bool| Results {
            streams: numbered()
                .filter(|(_, stream)| stream.0 == of)
                .map(|(id, stream)| counted(id, stream.1))
                .collect(),
            ..Results::default()
        };
        let part = Part {
            from: Duration::ZERO,
            to: Duration::from_secs(10),
            omitted: false,
            streams: numbered()
                .map(|(id, &(sends, _, drops))| StreamPart {
                    from: Snapshot::nothing(id, sends),
                    to: Snapshot { octets: 1_000_000, local_drops: drops, ..Snapshot::nothing(id, sends) },
                    samples: Vec::new(),
                })
                .collect(),
        };
        Finished {
            outline: Outline {
                peer: nowhere,
                cookie: String::new(),
                streams: numbered().map(|(id, stream)| connected(id, stream.0)).collect(),
            },
            parts: vec![part],
            span: (Duration::ZERO, Duration::from_secs(10)),
            ours: results(false),
            theirs: results(true),
            spacing: Vec::new(),
            interrupted: false,
        }
    }

    fn judge() -> Judge {
        Judge {
            facts: PathFacts::ideal(1500, Duration::ZERO),
            transport: Transport::Udp(narrows_wire::iperf3::Counters::Bits64),
            rate_bps: 800_000,
            fq_rate_bps: 0,
            congestion: RefCell::new(None),
        }
    }

    fn lost(verdict: &LimitVerdict) -> [u64; 4] {
        ["packets", "in_this_host_packets", "in_remote_host_packets", "elsewhere_packets"]
            .map(|what| verdict.evidence[format!("lost_{what}")].as_u64().expect("a count"))
    }

    /// Of 30 lost on the forward direction the remote host dropped 10, of 200 on the reverse
    /// direction this one 150: neither way has any of the other's.
    #[test]
    fn each_way_has_its_own_losses() {
        let both = finished(&[(true, 30, 10), (false, 200, 150)]);
        let forward = judge().whole(&both);
        assert_eq!((lost(&forward), forward.limited_by), ([30, 0, 10, 20], Some("path")));
        let reverse = judge().reverse(&both).expect("both ways");
        assert_eq!((lost(&reverse), reverse.limited_by), ([200, 150, 0, 50], Some("receiving host")));
        assert_eq!(reverse.evidence["sent_bps"], Value::Null);
    }

    /// One way has no other.
    #[test]
    fn one_way_alone() {
        let forward = finished(&[(true, 30, 10), (true, 5, 5)]);
        assert_eq!(lost(&judge().whole(&forward)), [35, 0, 15, 20]);
        assert_eq!(judge().reverse(&forward), None);
        let reverse = finished(&[(false, 200, 150)]);
        assert_eq!(lost(&judge().whole(&reverse)), [200, 150, 0, 50]);
        assert_eq!(judge().reverse(&reverse), None);
    }
}
