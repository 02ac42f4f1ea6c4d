//! Open-loop cross traffic.

use narrows_scenario::{Arrivals, Cross, SizeMix, Source as Traffic};
use narrows_units::{BitRate, nanos};

use crate::NEVER;
use crate::rng::{Purpose, Stream, round_ns};

/// One packet of open-loop traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it comes, in nanoseconds since the traffic's time zero.
    pub at_ns: u64,
    /// Its size.
    pub ip_octets: u16,
}

/// The packets of open-loop cross traffic, in order of time, as every world has them: the
/// simulator's path takes them from here, and so does who sends real packets. The same traffic,
/// seed and index give the same packets. Endless unless the traffic ends.
///
/// ```
/// use narrows_scenario::{Arrivals, Cross, SizeMix};
/// use narrows_units::BitRate;
///
/// let cross = Cross::on_hop(0, Arrivals::Cbr, BitRate::from_mbps(12), SizeMix::constant(1500));
/// let mut stream = narrows_sim::ArrivalStream::new(&cross, 1, 0).expect("open-loop traffic");
/// let (first, second) = (stream.next(), stream.next());
/// assert_eq!(second.map(|arrival| arrival.at_ns), first.map(|arrival| arrival.at_ns + 1_000_000));
/// ```
#[derive(Debug)]
pub struct ArrivalStream(Source);

impl ArrivalStream {
    /// Of this traffic; `index` is its position in the scenario. `None` for elastic traffic, which
    /// comes as its peer allows, and for a rate of zero.
    pub fn new(cross: &Cross, seed: u64, index: usize) -> Option<Self> {
        let Traffic::Open { arrivals, rate, sizes } = &cross.source else {
            return None;
        };
        (rate.bps() > 0).then(|| Self(Source::new(cross, *arrivals, *rate, sizes, seed, index)))
    }

    /// When the next packet comes, without taking it.
    pub fn peek_ns(&self) -> Option<u64> {
        (self.0.next < NEVER).then_some(self.0.next)
    }
}

impl Iterator for ArrivalStream {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        let at_ns = self.peek_ns()?;
        let ip_octets = self.0.ip_octets;
        self.0.step();
        Some(Arrival { at_ns, ip_octets })
    }
}

/// A source of packets: the next one, and how the one after it comes.
#[derive(Debug)]
pub(super) struct Source {
    /// When the next packet comes; [`NEVER`] if there is none.
    pub(super) next: u64,
    /// Its size.
    pub(super) ip_octets: u16,
    /// The last hop it crosses.
    pub(super) exit: u16,
    /// Its index in the scenario: all its packets are of one flow.
    pub(super) index: usize,
    /// No packet comes from then on.
    until: u64,
    process: Process,
    sizes: Sizes,
    rng: Stream,
}

#[derive(Debug)]
enum Process {
    Cbr(Pacer),
    Poisson { mean_ns: f64 },
    OnOff(OnOff),
}

impl Source {
    pub(super) fn new(
        cross: &Cross,
        arrivals: Arrivals,
        rate: BitRate,
        sizes: &SizeMix,
        seed: u64,
        index: usize,
    ) -> Self {
        let mut rng = Stream::new(seed, Purpose::Source(index));
        let sizes = Sizes::new(sizes);
        let ip_octets = sizes.draw(&mut rng);
        let from = nanos(cross.from);
        let (process, first) = match arrivals {
            Arrivals::Cbr => {
                let mut pacer = Pacer::new(rate);
                let phase = rng.below(pacer.step(ip_octets));
                (Process::Cbr(Pacer::new(rate)), from.saturating_add(phase))
            }
            Arrivals::Poisson => {
                let mean_ns = sizes.mean * 8.0e9 / rate.as_f64();
                let gap = round_ns(rng.exponential() * mean_ns);
                (Process::Poisson { mean_ns }, from.saturating_add(gap))
            }
            Arrivals::ParetoOnOff { shape, mean_on, peak } => {
                let mut process = OnOff::new(shape, nanos(mean_on) as f64, rate, peak, from, &mut rng);
                let phase = rng.below(Pacer::new(peak).step(ip_octets));
                let first = process.advance(from, phase, &mut rng);
                (Process::OnOff(process), first)
            }
        };
        let until = cross.until.map_or(NEVER, nanos);
        Self {
            next: if first < until { first } else { NEVER },
            ip_octets,
            exit: u16::try_from(cross.last_hop).unwrap_or(u16::MAX),
            index,
            until,
            process,
            sizes,
            rng,
        }
    }

    /// Goes on to the packet after the next.
    #[inline]
    pub(super) fn step(&mut self) {
        let next = match &mut self.process {
            Process::Poisson { mean_ns } => self.next.saturating_add(round_ns(self.rng.exponential() * *mean_ns)),
            Process::Cbr(pacer) => self.next.saturating_add(pacer.step(self.ip_octets)),
            Process::OnOff(process) => process.follow(self.next, self.ip_octets, &mut self.rng),
        };
        self.ip_octets = self.sizes.draw(&mut self.rng);
        self.next = if next < self.until { next } else { NEVER };
    }
}

/// Whole gaps at an exact rate: the remainder is carried from packet to packet.
#[derive(Debug)]
struct Pacer {
    rate_bps: u64,
    part: u64,
}

impl Pacer {
    fn new(rate: BitRate) -> Self {
        Self { rate_bps: rate.bps().max(1), part: 0 }
    }

    fn step(&mut self, ip_octets: u16) -> u64 {
        let bit_nanos = u128::from(ip_octets) * 8_000_000_000 + u128::from(self.part);
        self.part = u64::try_from(bit_nanos % u128::from(self.rate_bps)).unwrap_or(0);
        u64::try_from(bit_nanos / u128::from(self.rate_bps)).unwrap_or(NEVER)
    }
}

/// Pareto on- and off-times. The packets come evenly on a clock that runs only while the source is
/// on, so a gap that an off-time cuts goes on after it and the long-run rate is exact at any packet
/// size. The source begins on with the probability that it has in the long run.
#[derive(Debug)]
struct OnOff {
    pacer: Pacer,
    exponent: f64,
    on_scale: f64,
    off_scale: f64,
    /// When the present on-time ends.
    on_until: u64,
    /// When the next on-time begins.
    resumes: u64,
}

impl OnOff {
    fn new(shape: f64, mean_on: f64, rate: BitRate, peak: BitRate, from: u64, rng: &mut Stream) -> Self {
        let on_share = rate.as_f64() / peak.as_f64();
        let scale = |mean: f64| mean * (shape - 1.0) / shape;
        let mut process = Self {
            pacer: Pacer::new(peak),
            exponent: -1.0 / shape,
            on_scale: scale(mean_on),
            off_scale: scale(mean_on * (1.0 - on_share) / on_share),
            on_until: from,
            resumes: from,
        };
        if !rng.chance(on_share) {
            process.resumes = from.saturating_add(process.pareto(process.off_scale, rng));
        }
        process
    }

    fn pareto(&self, scale: f64, rng: &mut Stream) -> u64 {
        round_ns(scale * rng.unit().powf(self.exponent))
    }

    fn follow(&mut self, last: u64, ip_octets: u16, rng: &mut Stream) -> u64 {
        let gap = self.pacer.step(ip_octets);
        self.advance(last, gap, rng)
    }

    /// The time that is `gap` of on-time after `at`.
    fn advance(&mut self, mut at: u64, mut gap: u64, rng: &mut Stream) -> u64 {
        while at.saturating_add(gap) >= self.on_until && self.resumes < NEVER {
            gap -= self.on_until.saturating_sub(at).min(gap);
            at = self.resumes;
            self.on_until = at.saturating_add(self.pareto(self.on_scale, rng).max(1));
            self.resumes = self.on_until.saturating_add(self.pareto(self.off_scale, rng));
        }
        at.saturating_add(gap)
    }
}

/// How sizes are drawn.
#[derive(Debug)]
struct Sizes {
    mean: f64,
    draw: Draw,
}

#[derive(Debug)]
enum Draw {
    /// By their cumulative shares of 2^64: upper bounds of all sizes but the last, and the sizes.
    Weighted { bounds: Vec<u64>, octets: Vec<u16> },
    /// The smallest, and how many there are.
    Uniform { low: u16, count: u64 },
}

/// From so many bounds on, searching is quicker than counting.
const MANY_BOUNDS: usize = 32;

impl Sizes {
    fn new(mix: &SizeMix) -> Self {
        let mean = mix.mean_ip_octets();
        if let Some((low, high)) = mix.uniform_range() {
            let count = u64::from(high.saturating_sub(low)) + 1;
            return Self { mean, draw: Draw::Uniform { low, count } };
        }
        let shares: Vec<(u16, f64)> = mix.shares().collect();
        let mut sum = 0.0;
        let bounds = shares.iter().take(shares.len().saturating_sub(1)).map(|&(_, share)| {
            sum += share;
            round_ns(sum * 2f64.powi(64))
        });
        Self {
            mean,
            draw: Draw::Weighted {
                bounds: bounds.collect(),
                octets: shares.iter().map(|&(octets, _)| octets).collect(),
            },
        }
    }

    #[inline]
    fn draw(&self, rng: &mut Stream) -> u16 {
        match &self.draw {
            Draw::Weighted { bounds, octets } if bounds.is_empty() => octets.first().copied().unwrap_or(0),
            Draw::Weighted { bounds, octets } => {
                let bits = rng.bits();
                // Counting, unlike searching, needs no branch that the processor would guess wrong
                // every other time.
                let below = if bounds.len() < MANY_BOUNDS {
                    bounds.iter().filter(|bound| bits >= **bound).count()
                } else {
                    bounds.partition_point(|bound| bits >= *bound)
                };
                octets[below]
            }
            Draw::Uniform { low, count } => low.saturating_add(u16::try_from(rng.below(*count)).unwrap_or(u16::MAX)),
        }
    }
}

#[cfg(test)]
mod tests;
