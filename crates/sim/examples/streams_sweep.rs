//! `streams` over drawn paths: 2 to 200 Mbit/s, 2 to 120 ms, queues of a tenth to two products of
//! rate and round trip, and of each kind: windows that hold a connection, random loss, Poisson or
//! TCP traffic beside it, a policer over all, a shaper for each connection. Truth is one long
//! transfer (30 s and 200 round trips at least) for each number, judged by the definitions of
//! `docs/guide/streams.md` without any chance.
//!
//! `cargo run --release -p narrows-sim --example streams_sweep --
//! [seed=N] [paths=N] [known] [quick]`;
//! with `known` the method is told what is available (no paths with TCP beside it then). `*` marks
//! wrong numbers that do not say that they are unsure.

#![expect(clippy::print_stdout, reason = "a program that prints a table")]

use std::collections::BTreeMap;
use std::time::Duration;

use narrows_methods as methods;
use narrows_probe::probes::{Congestion, Then, Transfer};
use narrows_probe::{BoundKind, Budget, Diagnostic, Estimate, Event, Probe, RawParams, World};
use narrows_scenario::{
    Arrivals, Channels, Cross, Dealing, Elastic, ElasticControl, Hop, Loss, PathDirection, Queue, Scenario, Service,
    SizeMix, TokenBucket,
};
use narrows_sim::SimWorld;
use narrows_stat::SplitMix64;
use narrows_units::{BitRate, Framing, Layer, Octets};

const KINDS: [&str; 7] = ["plain", "window", "random loss", "poisson", "tcp", "policer", "per flow"];
const CONTROLS: [&str; 3] = ["reno", "cubic", "bbr"];
/// Numbers that the method tries, as its page says.
const LADDER: [u16; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
/// The page's numbers: what fills, what is a gain, what is harm.
const FILLED: f64 = 0.95;
const GAIN: f64 = 0.10;
const HARM: f64 = 0.97;
/// How near to such a limit a true figure must be for either answer to be right.
const NEAR: f64 = 0.03;

struct Dice(SplitMix64);

impl Dice {
    fn next(&mut self) -> f64 {
        self.0.next_unit()
    }

    /// Even on the scale of decades.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.next())
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(whole(self.next() * all.len() as f64)).unwrap_or(0).min(all.len() - 1)]
    }
}

/// A path, who sends over it, and what is available on it (payload bit/s) if that can be said.
struct Drawn {
    text: String,
    kind: &'static str,
    control: &'static str,
    rtt: f64,
    scenario: Scenario,
    available: Option<BitRate>,
}

/// What a path is made of.
struct Parts {
    bps: f64,
    /// Octets that fill it over one round trip.
    product: f64,
    hop: Hop,
    window: u32,
    cross: Option<Cross>,
    /// A second hop, which shapes each connection.
    each: Option<Hop>,
}

impl Parts {
    fn rate(&self, share: f64) -> BitRate {
        BitRate::from_bps(whole(self.bps * share))
    }

    /// Makes a path of that kind of it, by two shares that were drawn; says by which figures.
    fn turn_to(&mut self, kind: &str, one: f64, two: f64) -> Option<String> {
        let product = self.product;
        Some(match kind {
            "window" => {
                self.window = u32::try_from(whole((product * 0.08 * 12f64.powf(one)).max(6_000.0))).ok()?;
                format!("{} octets", self.window)
            }
            "random loss" => {
                let ratio = 1e-4 * 30f64.powf(one);
                self.hop = self.hop.clone().loss(Loss::Random { ratio });
                format!("{:.3} %", ratio * 100.0)
            }
            "poisson" => {
                let share = 0.1 + 0.5 * one;
                let rate = self.rate(0.975 * share);
                self.cross = Some(Cross::on_hop(0, Arrivals::Poisson, rate, SizeMix::constant(1500)));
                format!("{share:.2} taken")
            }
            "tcp" => {
                let flows = [1, 2, 4][usize::try_from(whole(one * 3.0)).ok()?.min(2)];
                let controls = [ElasticControl::Reno, ElasticControl::Cubic];
                let elastic = Elastic::greedy(flows, controls[usize::from(two >= 0.5)]);
                self.cross = Some(Cross::elastic_on_hop(0, elastic));
                format!("{flows} others")
            }
            "policer" => {
                let (share, burst) = (0.3 + 0.5 * one, (product * 0.1 * 20f64.powf(two)).max(9_000.0));
                let bucket = TokenBucket {
                    rate: self.rate(share),
                    burst: Octets::new(whole(burst)),
                    queue: None,
                    timer: Duration::ZERO,
                };
                self.hop = self.hop.clone().bucket(bucket);
                format!("{share:.2}, {burst:.0} octets")
            }
            "per flow" => {
                let share = 0.1 + 0.6 * one;
                let queue = Queue::Octets(Octets::new(whole((product * share).max(30_000.0))));
                let channels = Channels { count: 256, by: Dealing::Flow };
                let shaper = Hop::rate(self.rate(share)).queue(queue);
                self.each = Some(shaper.service(Service::Channels(channels)));
                format!("{share:.2} each")
            }
            _ => String::new(),
        })
    }
}

fn drawn(place: u64, dice: &mut Dice) -> Option<Drawn> {
    let kind = KINDS[usize::try_from(place).ok()? % KINDS.len()];
    let (mbps, rtt) = (dice.between(2.0, 200.0), dice.between(0.002, 0.12));
    let (queue, control) = (dice.between(0.1, 2.0), dice.one_of(&CONTROLS));
    let (one, two) = (dice.next(), dice.next());
    let bps = mbps * 1e6;
    let product = bps * rtt / 8.0;
    let room = Queue::Octets(Octets::new(whole((product * queue).max(12_000.0))));
    let mut parts = Parts {
        bps,
        product,
        hop: Hop::rate(BitRate::from_bps(whole(bps))).delay(Duration::from_secs_f64(rtt / 2.0)).queue(room),
        window: 64 << 20,
        cross: None,
        each: None,
    };
    let what = parts.turn_to(kind, one, two)?;
    let mut scenario = Scenario::new("streams").hop(parts.hop);
    scenario.receiver.tcp_receive_octets = parts.window;
    if let Some(cross) = parts.cross {
        scenario = scenario.cross(cross);
    }
    let link = scenario.clone().validate().ok()?;
    let available = link.truth(PathDirection::Forward).available(1500);
    if let Some(each) = parts.each {
        scenario = scenario.hop(each);
    }
    Some(Drawn {
        text: format!("{mbps:6.1} Mbit/s {:5.1} ms queue {queue:.2} {control:5} {kind:11} {what:22}", rtt * 1e3),
        kind,
        control,
        rtt,
        scenario: scenario.validate().ok()?,
        available,
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small positive figures of this file")]
fn whole(value: f64) -> u64 {
    value as u64
}

/// What a long transfer over that many connections shows.
#[derive(Debug, Clone, Copy)]
struct Long {
    bps: f64,
    rtt: f64,
    resent: f64,
}

/// Long transfers over a path, each made once.
struct Truth<'a> {
    path: &'a Drawn,
    seed: u64,
    known: BTreeMap<u16, Long>,
}

impl Truth<'_> {
    fn at(&mut self, streams: u16) -> Long {
        let (path, seed) = (self.path, self.seed);
        *self.known.entry(streams).or_insert_with(|| long(path, streams, seed))
    }

    /// The filling number: the smallest that reaches what is available, else the smallest whose
    /// next step is no gain. `None`: none of the ladder's.
    fn fill(&mut self, available: Option<f64>) -> Option<u16> {
        if let Some(available) = available {
            for streams in LADDER {
                if self.at(streams).bps >= FILLED * available {
                    return Some(streams);
                }
                // What three steps in a row leave as it was does not rise any more.
                let index = LADDER.iter().position(|rung| *rung == streams)?;
                if index >= 3 && self.at(streams).bps < (1.0 + GAIN) * self.at(LADDER[index - 3]).bps {
                    break;
                }
            }
        }
        let pairs = LADDER.windows(2);
        pairs.into_iter().find(|pair| self.at(pair[1]).bps < (1.0 + GAIN) * self.at(pair[0]).bps).map(|pair| pair[0])
    }

    /// Whether a number is the filling one, or is as nearly as no limit of the definition can tell.
    fn is_fill(&mut self, streams: u16, available: Option<f64>) -> bool {
        if self.fill(available) == Some(streams) {
            return true;
        }
        let index = LADDER.iter().position(|rung| *rung >= streams).unwrap_or(LADDER.len() - 1);
        let below = index.checked_sub(1).map(|index| LADDER[index]);
        if let Some(available) = available
            && self.at(streams).bps >= (FILLED - NEAR) * available
        {
            return below.is_none_or(|below| self.at(below).bps < (FILLED + NEAR) * available);
        }
        let above = LADDER[(index + 1).min(LADDER.len() - 1)];
        self.at(above).bps < (1.0 + GAIN + NEAR) * self.at(streams).bps
            && (1..=index).all(|k| self.at(LADDER[k]).bps >= (1.0 + GAIN - NEAR) * self.at(LADDER[k - 1]).bps)
    }

    /// The smallest number up to `last` beyond `fill` that shows two signs, with limits so much
    /// wider or narrower.
    fn intrusive(&mut self, fill: u16, last: u16, available: Option<f64>, by: f64) -> Option<u16> {
        let (one, filling) = (self.at(1), self.at(fill));
        LADDER.windows(2).find_map(|pair| {
            if pair[1] <= fill || pair[1] > last {
                return None;
            }
            let (less, more) = (self.at(pair[0]), self.at(pair[1]));
            let gain = (more.bps - less.bps) / (f64::from(pair[1] - pair[0]) * one.bps);
            let signs = [
                available.is_some_and(|available| more.bps > (1.02 + by) * available),
                more.rtt > (1.5 + 3.0 * by) * filling.rtt,
                more.resent > (2.0 + 5.0 * by) * filling.resent && more.resent > 0.001,
                more.bps / f64::from(pair[1]) < (0.8 - by) * one.bps,
                gain < 0.5 - by && more.bps > (1.0 + by.max(0.0)) * less.bps,
            ];
            (signs.iter().filter(|sign| **sign).count() >= 2).then_some(pair[1])
        })
    }

    /// The smallest number up to `last` whose sum is below so much of the best before.
    fn harmful(&mut self, last: u16, share: f64) -> Option<u16> {
        let mut best = 0.0_f64;
        for streams in LADDER.into_iter().filter(|rung| *rung <= last) {
            let sum = self.at(streams).bps;
            if sum < share * best {
                return Some(streams);
            }
            best = best.max(sum);
        }
        None
    }
}

fn long(path: &Drawn, streams: u16, seed: u64) -> Long {
    let mut world = SimWorld::new(&path.scenario, PathDirection::Forward, seed);
    let seconds = 30f64.max(200.0 * path.rtt);
    let mut transfer = |seconds: f64, then| {
        let duration = Duration::from_secs_f64(seconds);
        let asked = Transfer {
            streams,
            congestion: Some(Congestion::from_name(path.control)),
            window_octets: None,
            pacing: None,
            duration,
            sample_every: duration / 100,
            then,
        };
        match world.send(Probe::Transfer(asked)) {
            Ok(Event::Transfer(report)) => Some(report),
            _ => None,
        }
    };
    let nothing = Long { bps: 0.0, rtt: 0.0, resent: 0.0 };
    // What the method leaves out, too.
    if transfer(0.3f64.max(10.0 * path.rtt), Then::Continue).is_none() {
        return nothing;
    }
    let Some(report) = transfer(seconds, Then::Finish) else {
        return nothing;
    };
    let (mut acked, mut sent, mut resent, mut trips) = (0.0, 0.0, 0.0, Vec::new());
    for stream in &report.streams {
        let (Some(from), Some(to)) = (stream.samples.first(), stream.samples.last()) else {
            continue;
        };
        let passed = |of: fn(&narrows_probe::probes::TcpSample) -> Option<u64>| {
            of(to).unwrap_or(0).saturating_sub(of(from).unwrap_or(0)) as f64
        };
        acked += (to.acked_octets - from.acked_octets) as f64;
        sent += passed(|sample| sample.sent_octets);
        resent += passed(|sample| sample.retransmitted_octets);
        trips.extend(stream.samples.iter().map(|sample| sample.rtt.as_secs_f64()));
    }
    Long {
        bps: acked * 8.0 / seconds,
        rtt: narrows_stat::median(&trips).unwrap_or(0.0),
        resent: resent / f64::max(sent, 1.0),
    }
}

/// Counts over paths: right, off but unsure or a bound that holds, wrong.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    right: u32,
    unsure: u32,
    wrong: u32,
}

impl Counts {
    fn add(&mut self, right: bool, unsure: bool) -> &'static str {
        let (count, mark) = match (right, unsure) {
            (true, _) => (&mut self.right, ""),
            (false, true) => (&mut self.unsure, " ~"),
            (false, false) => (&mut self.wrong, " *"),
        };
        *count += 1;
        mark
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let word = |name: &str| args.iter().find_map(|arg| arg.strip_prefix(name)?.strip_prefix('='));
    let number = |name: &str, usual: u64| word(name).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let flag = |name: &str| args.iter().any(|arg| arg == name);
    let seed = number("seed", 2026);
    let mut dice = Dice(SplitMix64::new(seed));
    let mut sums: BTreeMap<&str, [Counts; 3]> = BTreeMap::new();
    for place in 0..number("paths", 42) {
        let Some(path) = drawn(place, &mut dice) else { continue };
        if (flag("known") && path.available.is_none()) || word("only").is_some_and(|only| only != path.kind) {
            continue;
        }
        let marks = judged(&path, seed + place, flag("known"), flag("quick"));
        let all = sums.entry(path.kind).or_default();
        let reported = marks.map(|(index, right, unsure, text)| text + all[index].add(right, unsure));
        println!("{}: {}", path.text, reported.join("; "));
    }
    println!("| path | runs | fill: right, unsure, wrong | intrusive | harmful |\n|---|--:|--:|--:|--:|");
    let mut total = [Counts::default(); 3];
    let row = |name: &str, counts: &[Counts; 3]| {
        let cells = counts.map(|count| format!("{}, {}, {}", count.right, count.unsure, count.wrong));
        let runs = counts[0].right + counts[0].unsure + counts[0].wrong;
        println!("| {name} | {runs} | {} |", cells.join(" | "));
    };
    for (kind, counts) in &sums {
        row(kind, counts);
        for (sum, count) in total.iter_mut().zip(counts) {
            sum.right += count.right;
            sum.unsure += count.unsure;
            sum.wrong += count.wrong;
        }
    }
    row("all", &total);
}

/// The method over a path, and the truth of its three numbers: (which, right, says that it is
/// unsure, text).
fn judged(path: &Drawn, seed: u64, is_known: bool, is_quick: bool) -> [(usize, bool, bool, String); 3] {
    let reported = path.available.filter(|_| is_known);
    let payload = |rate: BitRate| {
        let payload = Framing::BARE.convert(rate, Layer::Ip, Layer::TcpPayload, 1500, false);
        payload.map_or(0.0, BitRate::as_f64)
    };
    let available = reported.map(payload);
    let mut truth = Truth { path, seed: seed + 1_000_003, known: BTreeMap::new() };
    let Some(estimate) = measured(path, reported, is_quick, seed) else {
        return [0, 1, 2].map(|index| (index, false, true, "inconclusive".to_owned()));
    };
    let value = u16::try_from(estimate.in_unit().value).unwrap_or(u16::MAX);
    let number = |name: &str| {
        let number = named(&estimate.diagnostics, name).and_then(Diagnostic::as_f64);
        number.and_then(|number| u16::try_from(whole(number)).ok())
    };
    let last = match named(&estimate.diagnostics, "streams_tried") {
        Some(Diagnostic::Series(tried)) => tried.last().map_or(1, |last| u16::try_from(whole(*last)).unwrap_or(1)),
        _ => value,
    };
    let right = truth.fill(available);
    let unsure = estimate.confidence == narrows_probe::Confidence::Low
        || (estimate.verdict() == BoundKind::LowerBound && right.is_none_or(|right| right >= value));
    let fill = (
        0,
        truth.is_fill(value, available),
        unsure,
        format!("fill {value} ({right:?}) {:?} {:?}", estimate.verdict(), estimate.confidence),
    );
    let filling = right.unwrap_or(value);
    let intrusive = number("intrusive_streams");
    let bounds = [-NEAR, 0.0, NEAR].map(|by| truth.intrusive(filling, last, available, by));
    let fits = bounds.contains(&intrusive) || intrusive.is_some() && within(intrusive, bounds[0], bounds[2]);
    let intrusive = (1, fits, false, format!("intrusive {intrusive:?} ({:?})", bounds[1]));
    let harmful = number("harmful_streams");
    let bounds = [HARM + 0.015, HARM, HARM - NEAR].map(|share| truth.harmful(last, share));
    let fits = bounds.contains(&harmful) || harmful.is_some() && within(harmful, bounds[0], bounds[2]);
    let harmful = (2, fits, false, format!("harmful {harmful:?} ({:?})", bounds[1]));
    [fill, intrusive, harmful]
}

/// Between a truth of wider limits and one of narrower ones, which may be none.
fn within(said: Option<u16>, first: Option<u16>, last: Option<u16>) -> bool {
    let (Some(said), Some(first)) = (said, first) else {
        return false;
    };
    first <= said && last.is_none_or(|last| said <= last)
}

fn measured(path: &Drawn, available: Option<BitRate>, is_quick: bool, seed: u64) -> Option<Estimate> {
    let mut raw = vec![("congestion".to_owned(), path.control.to_owned())];
    if !is_quick {
        raw.push(("thorough".to_owned(), "true".to_owned()));
    }
    if let Some(available) = available {
        raw.push(("available_bps".to_owned(), available.bps().to_string()));
    }
    let raw: RawParams = raw.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let budget = Budget { octets: 1_000_000_000_000, time: Duration::from_secs(3600), ..Budget::default() };
    let mut world = SimWorld::new(&path.scenario, PathDirection::Forward, seed);
    let mut method = methods::find("streams")?.begin(&raw).ok()?;
    let Ok(measured) = narrows_probe::drive(&mut world, method.as_mut(), budget);
    measured.outcome.estimate().cloned()
}

/// One of what is told to people.
fn named<'a>(diagnostics: &'a narrows_probe::Diagnostics, name: &str) -> Option<&'a Diagnostic> {
    let mut all = diagnostics.iter();
    all.find(|(own, _)| *own == name).map(|(_, value)| value)
}
