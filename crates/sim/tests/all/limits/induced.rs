//! Limits induced over simulated paths, and what is said of them: shared by the test whose matrix
//! stands in `docs/results/verdicts.md` and by the example that tries paths which no threshold was
//! set by.

#[path = "beside.rs"]
pub(crate) mod beside;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use narrows_diagnose::limits::{LimitingFactor, Limits, limits};
use narrows_host_profile::HostProfile;
use narrows_probe::probes::{Congestion, Then, Transfer};
use narrows_probe::{Event, Probe, World};
use narrows_scenario::{Hop, Loss, PathDirection, Queue, Reorder, Router, Scenario, TokenBucket};
use narrows_sim::SimWorld;
use narrows_units::{BitRate, Octets};

/// A path and what is asked of it.
pub(crate) struct Case {
    scenario: Scenario,
    pacing: Option<BitRate>,
    length: Duration,
    congestion: Congestion,
    streams: u16,
}

/// Payload of a full segment, and its IP packet.
const MSS: f64 = 1448.0;

/// Congestion controls that the simulator has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    Reno,
    Cubic,
    Bbr,
}

/// One of the paths over which a limit is induced, and who sends over it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Base {
    pub(crate) mbps: f64,
    pub(crate) rtt_ms: f64,
    /// Its queue, in products of rate and round trip; at least ten packets.
    pub(crate) queue: f64,
    pub(crate) control: Control,
    pub(crate) streams: u16,
    /// Length of the test, seconds.
    pub(crate) length: f64,
    pub(crate) seed: u64,
}

impl Base {
    fn rate(self, share: f64) -> BitRate {
        BitRate::from_bps(whole(self.mbps * 1e6 * share))
    }

    /// A share, 0..1, that follows from the seed.
    fn share(self) -> f64 {
        (self.seed * 7919 % 101) as f64 / 101.0
    }

    fn seconds(self) -> f64 {
        self.rtt_ms / 1e3
    }

    /// Octets that fill the path over one round trip.
    fn product(self) -> f64 {
        self.mbps * 1e6 * self.seconds() / 8.0
    }

    fn hop(self) -> Hop {
        Hop::rate(self.rate(1.0))
            .delay(Duration::from_secs_f64(self.seconds() / 2.0))
            .queue(Queue::Octets(Octets::new(whole(self.product() * self.queue).max(15_000))))
    }

    fn scenario(self) -> Scenario {
        roomy(Scenario::new("limits").hop(self.hop()))
    }

    #[expect(clippy::unnecessary_wraps, reason = "what induces a limit may have none to give")]
    fn case(self, scenario: Scenario) -> Option<Case> {
        Some(Case {
            scenario,
            pacing: None,
            length: Duration::from_secs_f64(self.length),
            congestion: match self.control {
                Control::Reno => Congestion::Reno,
                Control::Cubic => Congestion::Cubic,
                Control::Bbr => Congestion::Bbr,
            },
            streams: self.streams,
        })
    }

    /// A share of the rate for each connection.
    fn each(self, share: f64) -> BitRate {
        self.rate(share / f64::from(self.streams))
    }

    /// A receive buffer that no round trip fills and that a program which reads too slowly does
    /// fill within the test.
    fn unread(self) -> u32 {
        let filled = self.mbps * 1e6 * 0.6 * self.length / 4.0 / 8.0;
        let product = 2.0 * self.product();
        narrow((product.max(filled.min(1e6)) / f64::from(self.streams)).max(64e3))
    }

    /// Time that a segment takes of each connection's thread, so that all together get a share of
    /// the rate.
    fn segment_time(self, share: f64) -> Duration {
        Duration::from_secs_f64(MSS * 8.0 * f64::from(self.streams) / (self.mbps * 1e6 * share))
    }

    /// A third of what fills the path, for each connection; `None` where that is not even a few
    /// segments.
    fn small_window(self) -> Option<u32> {
        let window = self.product() / 3.0 / f64::from(self.streams);
        (window >= 4.0 * MSS).then(|| narrow(window))
    }

    /// Loss at which the connections get a share of the rate, by the laws of Reno (`1.22 / sqrt(p)`
    /// segments) and CUBIC (RFC 9438 §5.1); `None` where it would strike a test less than ten times
    /// or be no loss but a broken path, and for BBR, which does not mind it.
    fn loss(self, share: f64) -> Option<f64> {
        let window = self.mbps * 1e6 * share * self.seconds() / 8.0 / MSS / f64::from(self.streams);
        let reno = (1.22 / window).powi(2);
        let ratio = match self.control {
            Control::Reno => reno,
            Control::Cubic => reno.max((1.054 * self.seconds().powf(0.75) / window).powf(4.0 / 3.0)),
            Control::Bbr => return None,
        };
        let packets = self.mbps * 1e6 * share * self.length / 8.0 / MSS;
        (ratio <= 0.02 && ratio * packets >= 10.0).then_some(ratio)
    }

    fn bucket(self, share: f64, seconds: f64, queue: Option<Queue>) -> Option<Case> {
        let bucket = TokenBucket {
            rate: self.rate(share),
            burst: Octets::new(whole(self.mbps * 1e6 * (1.0 - share) * seconds / 8.0).max(6_000)),
            queue,
            timer: Duration::ZERO,
        };
        self.case(roomy(Scenario::new("bucket").hop(self.hop().bucket(bucket))))
    }
}

fn roomy(mut scenario: Scenario) -> Scenario {
    scenario.receiver.tcp_receive_octets = 1 << 30;
    scenario
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small positive figures of this file")]
fn whole(value: f64) -> u64 {
    value as u64
}

fn narrow(value: f64) -> u32 {
    u32::try_from(whole(value)).expect("small")
}

/// What is induced, what is right to say of it, and how it is induced.
/// (`None`: on this path it would not bind).
pub(crate) type Induced = (&'static str, LimitingFactor, fn(Base) -> Option<Case>);

/// Beside the limits of which the test keeps count: policers of other depths, losses in bursts
/// (which neither chance of each segment nor a rate explains), and random loss under BBR, which
/// holds it not.
pub(crate) const FURTHER: [Induced; 3] = [
    ("policer of any depth", LimitingFactor::Policer, |base| base.bucket(0.4, 0.01 * 50f64.powf(base.share()), None)),
    ("loss in bursts", LimitingFactor::Loss, |base| {
        let mean_burst = 3.0 * 8f64.powf(base.share());
        let loss = Loss::Bursty { ratio: (base.loss(0.4)? * mean_burst).min(0.02), mean_burst };
        base.case(roomy(Scenario::new("bursts").hop(base.hop().loss(loss))))
    }),
    ("1 % loss under BBR", LimitingFactor::Queue, |base| {
        let base = Base { control: Control::Bbr, ..base };
        base.case(roomy(Scenario::new("loss").hop(base.hop().loss(Loss::Random { ratio: 0.01 }))))
    }),
];

pub(crate) const INDUCED: [Induced; 15] = [
    ("MTU black hole", LimitingFactor::MtuBlackHole, |base| {
        let silent = Router { answers: false, ..Router::default() };
        let narrow = Hop::rate(base.rate(1.0)).mtu(1400);
        base.case(roomy(Scenario::new("mtu").hop(base.hop().router(silent)).hop(narrow)))
    }),
    ("sending processor", LimitingFactor::SendingHost, |base| {
        let mut scenario = base.scenario();
        scenario.sender.tcp.segment_cost = base.segment_time(0.5);
        base.case(scenario)
    }),
    ("application", LimitingFactor::Application, |base| {
        let mut scenario = base.scenario();
        scenario.sender.tcp.writes = Some(base.each(0.4));
        base.case(scenario)
    }),
    ("receiving processor", LimitingFactor::ReceivingHost, |base| {
        let mut scenario = base.scenario();
        scenario.receiver.tcp.segment_cost = base.segment_time(0.5);
        scenario.receiver.tcp_receive_octets = base.unread();
        base.case(scenario)
    }),
    ("slow reader", LimitingFactor::ReceivingHost, |base| {
        let mut scenario = base.scenario();
        scenario.receiver.tcp.reads = Some(base.each(0.4));
        scenario.receiver.tcp_receive_octets = base.unread();
        base.case(scenario)
    }),
    ("receive window", LimitingFactor::PeerWindow, |base| {
        let mut scenario = base.scenario();
        scenario.receiver.tcp_receive_octets = base.small_window()?;
        base.case(scenario)
    }),
    ("send buffer", LimitingFactor::SendBuffer, |base| {
        let mut scenario = base.scenario();
        scenario.sender.tcp.send_octets = Some(base.small_window()?);
        base.case(scenario)
    }),
    ("pacing", LimitingFactor::Pacing, |base| {
        Some(Case { pacing: Some(base.each(0.5)), ..base.case(base.scenario())? })
    }),
    ("interface", LimitingFactor::Interface, |base| {
        let mut scenario = roomy(Scenario::new("interface").hop(Base { mbps: 4.0 * base.mbps, ..base }.hop()));
        scenario.sender.interface_rate = Some(base.rate(1.0));
        base.case(scenario)
    }),
    ("reordering", LimitingFactor::Reordering, |base| {
        // Linux bears 300 segments of it: only a fast path has more within half its round trip.
        // Reno's reductions are taken back in full when they turn out to be needless; CUBIC has
        // lost its place by then. BBR makes none.
        let fast = Base {
            mbps: base.mbps + 500.0,
            rtt_ms: base.rtt_ms.clamp(20.0, 40.0),
            length: base.length.min(4.0),
            control: Control::Cubic,
            streams: 1,
            ..base
        };
        let reorder = Reorder { ratio: 0.01, by: Duration::from_millis(12) };
        fast.case(roomy(Scenario::new("reordering").hop(fast.hop().reorder(reorder))))
    }),
    ("shaper", LimitingFactor::Shaper, |base| {
        let queue = Queue::Octets(Octets::new(whole(base.product()).max(60_000)));
        base.bucket(0.4, base.length / 5.0, Some(queue))
    }),
    ("policer", LimitingFactor::Policer, |base| base.bucket(0.4, 0.05, None)),
    ("drop-tail queue", LimitingFactor::Queue, |base| base.case(base.scenario())),
    ("random loss", LimitingFactor::RandomLoss, |base| {
        let loss = Loss::Random { ratio: base.loss(0.4)? };
        base.case(roomy(Scenario::new("loss").hop(base.hop().loss(loss))))
    }),
    ("test too short", LimitingFactor::Growing, |base| {
        let long = Base {
            mbps: 1000.0,
            rtt_ms: 100.0 + base.rtt_ms,
            length: 0.9,
            control: if base.control == Control::Bbr { Control::Cubic } else { base.control },
            streams: 1,
            ..base
        };
        long.case(long.scenario())
    }),
];

/// All that is said of the whole test; no verdict: nothing but the path.
pub(crate) fn judged(case: &Case, seed: u64) -> Limits {
    judged_between(case, seed, None)
}

/// The same between hosts of a profile.
fn judged_between(case: &Case, seed: u64, hosts: Option<&Arc<HostProfile>>) -> Limits {
    let scenario = case.scenario.clone();
    let scenario = hosts.map_or(scenario.clone(), |profile| scenario.hosts(profile));
    let scenario = scenario.validate().expect("the scenario makes sense");
    let mut world = SimWorld::new(&scenario, PathDirection::Forward, seed);
    let facts = world.facts();
    let transfer = Transfer {
        streams: case.streams,
        congestion: Some(case.congestion.clone()),
        window_octets: None,
        pacing: case.pacing,
        duration: case.length,
        sample_every: Duration::from_millis(100),
        then: Then::Continue,
    };
    let Ok(Event::Transfer(report)) = world.send(Probe::Transfer(transfer)) else {
        panic!("no report");
    };
    if std::env::var_os("SHOW_LIMITS").is_some() {
        dump(&report);
    }
    limits(&report, &facts, case.pacing).expect("there are samples")
}

#[expect(clippy::print_stderr, reason = "asked for")]
fn dump(report: &narrows_probe::probes::TransferReport) {
    for stream in &report.streams {
        for pair in stream.samples.windows(2) {
            let mbps = (pair[1].acked_octets - pair[0].acked_octets) as f64 * 8.0 / 0.1 / 1e6;
            let lost = pair[1].retransmitted_segments - pair[0].retransmitted_segments;
            eprint!("{mbps:.1}/{:.1}/{lost} ", pair[1].rtt.as_secs_f64() * 1e3);
        }
        eprintln!();
    }
}

/// What is said where the samples do not tell. A shaper's bits wait in a queue: that is said where
/// both fit.
fn is_unclear(right: LimitingFactor, first: Option<LimitingFactor>) -> bool {
    let both_fit = right == LimitingFactor::Shaper && first == Some(LimitingFactor::Queue);
    both_fit || matches!(first, None | Some(LimitingFactor::Loss))
}

/// Whether a window that still grows keeps the transfer below the induced limit, so that this limit
/// does not bind yet: hosts that stand still end slow start early, and what is carried is less than
/// nine tenths of what ideal hosts carry under the same limit (ours).
fn is_not_reached(case: &Case, seed: u64, said: &Limits) -> bool {
    said.verdicts.first() == Some(&LimitingFactor::Growing) && said.acked_bps < 0.9 * judged(case, seed).acked_bps
}

/// What was said of one limit over all paths on which it binds.
#[derive(Default)]
pub(crate) struct Counted {
    /// By what was said first; last: nothing.
    said: [u32; LimitingFactor::ALL.len() + 1],
    pub(crate) right: u32,
    pub(crate) unclear: u32,
    /// Every miss, with all that was said.
    pub(crate) misses: Vec<String>,
}

impl Counted {
    pub(crate) fn runs(&self) -> u32 {
        self.said.iter().sum()
    }

    pub(crate) fn wrong(&self) -> u32 {
        self.runs() - self.right - self.unclear
    }
}

/// Induces one limit over all paths. Misses that begin with `WRONG` say something else than what is
/// right, and not that it is unclear.
pub(crate) fn counted(
    &(name, right, induce): &Induced,
    bases: &[Base],
    hosts: Option<&Arc<HostProfile>>,
    reported: &mut dyn FnMut(&str),
) -> Counted {
    let mut counted = Counted::default();
    for base in bases {
        let Some(case) = induce(*base) else { continue };
        let said = judged_between(&case, base.seed, hosts);
        let first = said.verdicts.first().copied();
        let place = LimitingFactor::ALL.iter().position(|limiting_factor| Some(*limiting_factor) == first);
        counted.said[place.unwrap_or(LimitingFactor::ALL.len())] += 1;
        if std::env::var_os("SHOW_LIMITS").is_some() {
            reported(&format!("{name} at {base:?}: {said:?}"));
        }
        // BBR fills a link without overflowing its queue: that nothing but the path holds it is as
        // right.
        let path = right == LimitingFactor::Queue && base.control == Control::Bbr && first.is_none();
        if first == Some(right) || path {
            counted.right += 1;
            continue;
        }
        let unclear = is_unclear(right, first) || (hosts.is_some() && is_not_reached(&case, base.seed, &said));
        counted.unclear += u32::from(unclear);
        let miss = if unclear { "unclear" } else { "WRONG" };
        counted.misses.push(format!("{miss}: {name} at {base:?}: {said:?}"));
    }
    let (runs, right, unclear, wrong) = (counted.runs(), counted.right, counted.unclear, counted.wrong());
    reported(&format!("{name}: of {runs} right {right}, unclear {unclear}, wrong {wrong}"));
    counted
}

/// Rows: induced; columns: what was said first. And every miss.
pub(crate) fn matrix(all: &[Induced], bases: &[Base], reported: &mut dyn FnMut(&str)) -> (String, Vec<String>) {
    let mut text = String::from("| induced | runs | right | unclear | wrong |");
    for limiting_factor in LimitingFactor::ALL {
        let _ = write!(text, " {} |", limiting_factor.name());
    }
    text.push_str(" path |\n|---|--:|--:|--:|--:|");
    text.push_str(&"--:|".repeat(LimitingFactor::ALL.len() + 1));
    text.push('\n');
    let mut misses = Vec::new();
    let only = std::env::var("ONLY_LIMIT").ok();
    for induced in all.iter().filter(|(name, ..)| only.as_ref().is_none_or(|only| only == name)) {
        let counted = counted(induced, bases, None, reported);
        let (runs, right, unclear, wrong) = (counted.runs(), counted.right, counted.unclear, counted.wrong());
        let _ = write!(text, "| {} | {runs} | {right} | {unclear} | {wrong} |", induced.0);
        for count in counted.said {
            let cell = if count == 0 { String::new() } else { count.to_string() };
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
        misses.extend(counted.misses);
    }
    (text, misses)
}

/// Puts a matrix into `docs/results/verdicts.md` between its marks, if that is asked for; returns
/// the page as it is and as it should be.
pub(crate) fn page(mark: &str, text: &str) -> (String, String) {
    let (begin, end) = (format!("<!-- {mark}: begin -->\n"), format!("<!-- {mark}: end -->\n"));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/verdicts.md");
    let page = std::fs::read_to_string(path).expect("docs/results/verdicts.md");
    let (head, rest) = page.split_once(&begin).expect("the page has a begin");
    let (_, tail) = rest.split_once(&end).expect("the page has an end");
    let renewed = format!("{head}{begin}{text}{end}{tail}");
    if std::env::var_os("UPDATE_VERDICTS").is_some() {
        std::fs::write(path, &renewed).expect("docs/results/verdicts.md");
    }
    (page, renewed)
}
