//! A world that answers with anything, for the tests of bursts, loads and transfers: whatever comes
//! back, a method ends without a panic, and what it says is in order.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::time::Duration;

use narrows_stat::SplitMix64;
use narrows_units::{BitRate, Clock, Sender, Stamp};
use proptest::prelude::*;

use narrows_probe::budget::Budget;
use narrows_probe::contract::{Event, Refusal};
use narrows_probe::facts::{PathFacts, StampSource};
use narrows_probe::outcome::{Diagnostic, Outcome};
use narrows_probe::probes::{
    Arrival, Congestion, Fate, HopReply, HopReplyKind, Load, LoadReport, LoadStatus, PacingCheck, PeerKind, Probe,
    StreamReport, TcpMarks, TcpSample, TcpState, Train, TrainReport, Transfer, TransferReport,
};
use narrows_probe::registry::RawParams;
use narrows_probe::world::{World, drive};

struct MisbehavingWorld {
    random: SplitMix64,
    now: i64,
}

impl MisbehavingWorld {
    /// Mostly small numbers, at times huge ones.
    fn number(&mut self) -> u64 {
        let word = self.random.next_u64();
        word >> (word % 64)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.next_u64() % end
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn stamp<C: Clock>(&mut self) -> Stamp<C> {
        let shift = self.below(63);
        let nanos = i64::from_ne_bytes(self.random.next_u64().to_ne_bytes()) >> shift;
        Stamp::from_nanos(nanos)
    }

    fn time(&mut self) -> Duration {
        Duration::from_nanos(self.number())
    }

    fn narrow(&mut self) -> u32 {
        u32::try_from(self.number() & 0xffff_ffff).unwrap()
    }

    fn share(&mut self) -> Option<f32> {
        [None, Some(f32::NAN), Some(0.5), Some(7.0)][usize::try_from(self.below(4)).unwrap()]
    }

    fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.chance(70) { Some(value(self)) } else { None }
    }

    fn train(&mut self, train: &Train) -> Event {
        let rows = (0u32..).zip(&train.packets).map(|(seq, packet)| Arrival {
            seq,
            departed: self.stamp(),
            ip_octets: packet.ip_octets,
            fate: if self.chance(80) { self.fate(train.peer_kind) } else { Fate::Lost },
        });
        let mut arrivals: Vec<_> = rows.collect();
        if self.chance(20) {
            arrivals.truncate(usize::try_from(self.below(3)).unwrap());
        }
        Event::Train(TrainReport {
            id: train.id,
            arrivals,
            reordered: self.narrow(),
            duplicates: self.narrow(),
            local_drops: if self.chance(70) { 0 } else { self.narrow() },
            departed_by: StampSource::User,
            arrived_by: StampSource::User,
            pacing: PacingCheck::Unknown,
        })
    }

    fn fate(&mut self, peer_kind: PeerKind) -> Fate {
        match peer_kind {
            PeerKind::Receiver => Fate::Received(self.stamp()),
            PeerKind::Echo | PeerKind::EchoSized(_) => {
                Fate::Echoed { returned: self.stamp(), turned: self.maybe(Self::stamp) }
            }
            PeerKind::ClosedPort | PeerKind::TcpSyn => {
                let kinds = [HopReplyKind::PortUnreachable, HopReplyKind::TcpAnswer, HopReplyKind::TimeExceeded];
                Fate::Answered(HopReply {
                    from: Ipv4Addr::LOCALHOST.into(),
                    returned: self.stamp(),
                    reply_ip_octets: u16::try_from(self.number() & 0xffff).unwrap(),
                    kind: kinds[usize::try_from(self.below(3)).unwrap()],
                })
            }
        }
    }

    fn load(&mut self, _: &Load) -> Event {
        let count = self.below(14);
        let statuses = (0..count).map(|_| LoadStatus {
            from: self.stamp(),
            to: self.stamp(),
            packets: self.number() >> 8,
            ip_octets: self.number() >> 8,
            lost: self.number() >> 8,
            reordered: self.number() >> 8,
            duplicates: self.number() >> 8,
            local_drops: self.number() >> 8,
            delay_above_min: self.maybe(|misbehaving| (misbehaving.time(), misbehaving.time(), misbehaving.time())),
        });
        let statuses = statuses.collect();
        Event::Load(LoadReport {
            began: self.stamp(),
            ended: self.stamp(),
            sent_packets: self.number(),
            sent_ip_octets: self.number(),
            send_failures: self.number(),
            sender_cpu: self.share(),
            held_up: Duration::ZERO,
            statuses,
        })
    }

    fn sample(&mut self) -> TcpSample {
        TcpSample {
            at: self.stamp(),
            state: [TcpState::Open, TcpState::Recovery][usize::try_from(self.below(2)).unwrap()],
            rtt: self.time(),
            rtt_var: self.time(),
            min_rtt: self.maybe(Self::time),
            mss_octets: self.narrow(),
            cwnd_segments: self.narrow(),
            ssthresh_segments: self.maybe(Self::narrow),
            in_flight_segments: self.narrow(),
            acked_octets: self.number() >> 8,
            sent_octets: self.maybe(|misbehaving| misbehaving.number() >> 8),
            retransmitted_octets: self.maybe(|misbehaving| misbehaving.number() >> 8),
            retransmitted_segments: self.narrow(),
            timeouts: self.maybe(Self::narrow),
            delivery_rate: self.maybe(|misbehaving| (BitRate::from_bps(misbehaving.number()), misbehaving.chance(50))),
            pacing_rate: self.maybe(|misbehaving| BitRate::from_bps(misbehaving.number())),
            peer_window_octets: self.maybe(Self::narrow),
            unsent_octets: self.maybe(Self::narrow),
            busy: self.maybe(Self::time),
            limited_by_receive_window: self.maybe(Self::time),
            limited_by_send_buffer: self.maybe(Self::time),
            bbr_pacing_gain: self.maybe(Self::narrow),
            marks: TcpMarks {
                window_scaled: self.maybe(|misbehaving| misbehaving.narrow() % 2 == 0),
                reordered: self.maybe(Self::narrow),
                needless: self.maybe(Self::narrow),
                path_mtu_octets: self.maybe(Self::narrow),
            },
        }
    }

    fn transfer(&mut self, transfer: &Transfer) -> Event {
        let streams = if self.chance(90) { u64::from(transfer.streams) } else { self.below(3) };
        let orderly = self.chance(50);
        let streams = (0..streams).map(|_| {
            let count = if self.chance(90) { 11 } else { self.below(3) };
            let mut samples: Vec<_> = (0..count).map(|_| self.sample()).collect();
            if orderly {
                samples.sort_by_key(|sample| sample.at);
                for (sample, acked_octets) in samples.iter_mut().zip((0..).step_by(100_000)) {
                    sample.acked_octets = acked_octets;
                }
            }
            let names = ["reno", "cubic", "bbr", "vegas"];
            StreamReport {
                congestion: Congestion::from_name(names[usize::try_from(self.below(4)).unwrap()]),
                granted_send_buffer_octets: self.maybe(Self::narrow),
                samples,
            }
        });
        let streams = streams.collect();
        Event::Transfer(TransferReport {
            began: self.stamp(),
            ended: self.stamp(),
            streams,
            remote_read: self.maybe(|misbehaving| (misbehaving.number() >> 8, misbehaving.time())),
            sender_cpu: self.share(),
            receiver_cpu: self.share(),
        })
    }
}

impl World for MisbehavingWorld {
    type Fault = Infallible;

    fn now(&self) -> Stamp<Sender> {
        Stamp::from_nanos(self.now)
    }

    fn facts(&self) -> PathFacts {
        PathFacts::ideal(1500, Duration::from_millis(3))
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Infallible> {
        self.now += 1_000_000 + i64::try_from(self.below(200_000_000)).unwrap();
        if self.chance(3) {
            return Ok(Event::Refused(match self.below(4) {
                0 => Refusal::NotOffered,
                1 => Refusal::ForbiddenByPeer,
                2 => Refusal::TooSmall { min_ip_octets: 1400 },
                _ => Refusal::TooLarge { max_ip_octets: 1400 },
            }));
        }
        Ok(match probe {
            Probe::Train(train) => self.train(&train),
            Probe::Load(load) => self.load(&load),
            Probe::Transfer(transfer) => self.transfer(&transfer),
            Probe::Capture(_) => Event::TimerFired,
        })
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Infallible> {
        self.now = self.now.max(until.nanos());
        Ok(())
    }
}

/// Every way to begin each of the methods.
const WAYS: &[(&str, &[(&str, &str)])] = &[
    ("signature", &[]),
    ("signature", &[("flows", "64"), ("trains", "3"), ("longest", "64")]),
    ("shaper", &[]),
    ("shaper", &[("preset", "faithful"), ("settle_below_bps", "18 Ebit/s")]),
    ("shaper", &[("probe_time", "20 s"), ("bin", "100 ms"), ("quiet", "0 s")]),
    ("fac2", &[]),
    ("fac2", &[("peer_kind", "echo"), ("trains", "20")]),
    ("fac2", &[("peer_kind", "reflector"), ("capacity", "100M")]),
    ("pathload", &[("streams", "3")]),
    ("pathload", &[("peer_kind", "echo"), ("full-size", "false")]),
    ("pathload", &[("peer_kind", "reflector"), ("quick", "true")]),
    ("burst", &[]),
    ("burst", &[("rates", "10M,50M,1G"), ("confirm", "3"), ("bursts", "5")]),
    ("burst", &[("detail", "true"), ("load", "0.05")]),
    ("burst", &[("detail", "true"), ("peer_kind", "echo"), ("small_octets", "64")]),
    ("track", &[("duration", "5 s")]),
    ("track", &[("period", "10 ms"), ("capacity", "50M"), ("duration", "2 s"), ("stale", "100 ms")]),
    ("bart", &[("duration", "5 s")]),
    ("bart", &[("max-rate", "50M"), ("duration", "2 s"), ("packets", "3")]),
    ("udp", &[]),
    ("udp", &[("start_bps", "50M"), ("streams", "2")]),
    ("tcp", &[]),
    ("tcp", &[("rule", "seed003")]),
    ("tcp", &[("mode", "full"), ("pacing_bps", "1M")]),
    ("streams", &[]),
    ("streams", &[("available_bps", "50M"), ("single_bps", "1M")]),
    ("streams", &[("thorough", "true"), ("available_bps", "50M"), ("max_time", "60 s")]),
    ("streams", &[("thorough", "true"), ("buffers", "true"), ("beyond", "20"), ("max_time", "60 s")]),
    ("pathchirp", &[]),
    ("pathchirp", &[("preset", "tool")]),
    ("pathchirp", &[("low", "1M"), ("high", "1G"), ("group", "3"), ("tick", "10 us")]),
    ("assolo", &[]),
    ("assolo", &[("preset", "tool"), ("filter", "vhf-source")]),
    ("rapid", &[]),
    ("rapid", &[("packets", "16"), ("group", "2"), ("batch", "100")]),
    ("nettimer", &[]),
    ("nettimer", &[("preset", "tool"), ("via", "tcp_syn")]),
    ("nettimer", &[("end", "receiver"), ("pairs", "20")]),
    ("nettimer", &[("stamps", "returned"), ("framing", "bare")]),
    ("bprobe", &[("rounds", "3"), ("tolerance", "0.3")]),
    ("bprobe", &[("stamps", "returned"), ("via", "closed_port")]),
    ("sprobe", &[]),
    ("tailgate", &[("hops", "3")]),
    ("bing", &[("hops", "3"), ("repeats", "4")]),
    ("quartets", &[("hops", "3")]),
    ("quartets", &[("rounds", "12"), ("hops", "2"), ("head_start", "1 ms")]),
    ("pathneck", &[]),
    ("pipechar", &[("hops", "3"), ("trains", "5")]),
    ("pipechar", &[("hops", "4"), ("packets", "6"), ("least", "2"), ("every", "2")]),
    ("pathneck", &[("preset", "tool"), ("hops", "4"), ("runs", "5"), ("load", "10")]),
    ("bing", &[("hops", "4"), ("sizes", "2"), ("passes", "20"), ("repeats", "2")]),
    ("tailgate", &[("rounds", "8"), ("hops", "1")]),
    ("window", &[("available_bps", "50M"), ("burst_octets", "10 kB")]),
    ("window", &[("available_bps", "18 Ebit/s"), ("rtt", "100 s")]),
    ("capprobe", &[("most_pairs", "20"), ("stable", "5")]),
    ("capprobe", &[("preset", "kernel"), ("peer_kind", "echo"), ("most_pairs", "130")]),
    ("capprobe", &[("peer_kind", "reflector"), ("clean", "1"), ("tolerance", "1"), ("agree", "1")]),
    ("pbprobe", &[("bulks", "12"), ("stable", "3"), ("most_packets", "100")]),
    ("pbprobe", &[("peer_kind", "syn"), ("bulks", "12"), ("tolerance", "1"), ("most_packets", "20")]),
    ("igi", &[]),
    ("igi", &[("preset", "faithful"), ("train", "8")]),
    ("igi", &[("capacity", "100M"), ("framing", "bare"), ("trains", "2"), ("train", "10")]),
    ("ptr", &[]),
    ("ptr", &[("preset", "faithful"), ("trains", "2"), ("train", "10"), ("size", "1500")]),
    ("spruce", &[]),
    ("spruce", &[("capacity", "100M"), ("pairs", "10")]),
    ("spruce", &[("preset", "faithful"), ("capacity", "1G"), ("pairs", "20")]),
    ("topp", &[]),
    ("topp", &[("train", "10"), ("levels", "6"), ("first", "1")]),
    ("diettopp", &[]),
    ("diettopp", &[("train", "10"), ("levels", "6"), ("first", "1")]),
    ("wbest", &[]),
    ("wbest", &[("capacity", "100M"), ("packets", "10"), ("trains", "3")]),
    ("wbest", &[("preset", "faithful"), ("pairs", "10"), ("packets", "10")]),
    ("yaz", &[]),
    ("yaz", &[("preset", "tool"), ("max-rounds", "10")]),
    ("yaz", &[("start", "18 Ebit/s"), ("allowance", "0"), ("resolution", "18 Ebit/s")]),
    ("kite", &[]),
    ("kite", &[("factor", "0.1"), ("start", "1k"), ("streams", "1")]),
    ("kite2", &[]),
    ("kite2", &[("mode", "trains"), ("iterations", "20")]),
    ("kite2", &[("preset", "tool"), ("pairs", "10")]),
    ("abing", &[]),
    ("abing", &[("gap", "0"), ("capacity", "18 Ebit/s"), ("measurements", "3")]),
    ("cprobe", &[]),
    ("cprobe", &[("capacity", "1M"), ("symmetric", "true"), ("dropped", "0")]),
    ("asymprobe", &[("most_pairs", "12"), ("stable", "3")]),
    ("asymprobe", &[("tolerance", "1"), ("clean", "1"), ("moved", "0.01"), ("most_pairs", "12")]),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every method of the registry with its defaults, whatever comes back: it ends, within its
    /// budget, and in order.
    #[test]
    fn every_method_ends_within_its_budget(seed: u64, which in 0..super::METHODS.len()) {
        let method = super::METHODS[which];
        let mut estimator = method.begin(&RawParams::new()).unwrap();
        let mut world = MisbehavingWorld { random: SplitMix64::new(seed), now: 0 };
        let own = method.info().imposes.budget();
        let budget = Budget { steps: own.steps.min(3000), ..own };
        let Ok(measured) = drive(&mut world, estimator.as_mut(), budget);
        let samples = measured.cost.samples;
        // What loads and transfers carried is this world's invention, told when they are over.
        let own = samples.loads + samples.transfers == 0;
        prop_assert!(!own || measured.cost.octets <= budget.octets, "{} {:?}", method.info().name, measured.cost);
        if let Outcome::Estimated(estimate) = measured.outcome {
            prop_assert!(estimate.in_unit().low <= estimate.in_unit().value && estimate.in_unit().value <= estimate.in_unit().high, "{:?}", estimate);
        }
    }
}

proptest! {
    #[test]
    fn whatever_comes_back_a_method_ends_in_order(seed: u64, way in 0..WAYS.len()) {
        let (name, params) = WAYS[way];
        let mut raw = RawParams::new();
        for (name, value) in params {
            raw.set(*name, if *value == "18 Ebit/s" { "18000000000000000000" } else { *value });
        }
        let mut method = super::find(name).unwrap().begin(&raw).unwrap();
        let mut world = MisbehavingWorld { random: SplitMix64::new(seed), now: 0 };
        let budget = Budget { octets: u64::MAX, ..Budget::default() };
        let Ok(measured) = drive(&mut world, method.as_mut(), budget);
        if let Outcome::Estimated(estimate) = measured.outcome {
            for one in std::iter::once(&*estimate).chain(&estimate.also) {
                prop_assert!(one.in_unit().low <= one.in_unit().value && one.in_unit().value <= one.in_unit().high, "{:?}", one);
            }
            for (name, value) in estimate.diagnostics.iter() {
                if let Diagnostic::Number(number) = value {
                    prop_assert!(!number.is_nan(), "{} {}", name, number);
                }
            }
        }
    }
}
