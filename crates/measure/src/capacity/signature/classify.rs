//! From trains to a signature.

use std::time::Duration;

use narrows_units::{BitRate, nanos_f64};

use super::batches::{self, Profile, Split};
use super::cause::{Cause, Rung, Signature, Spread};
use super::trains::{Came, Kind, TrainLog, quantile, rate};
use super::{grants, rungs, trains, turning_point};
use narrows_probe::facts::PathFacts;
use narrows_probe::outcome::Confidence;
use narrows_probe::probes::TrainReport;

/// What these trains say of the path that they crossed. Pure; any trains towards a receiver, in any
/// order, of any method: the more kinds there are (lengths from 2 to some hundreds, two sizes,
/// sizes mixed in one train, single packets far apart, a train paced below the path's rate) the
/// more causes can be told apart. What cannot is [`Cause::Batches`] or [`Cause::Unclear`], never a
/// guess.
pub fn classify(facts: &PathFacts, reports: &[TrainReport]) -> Signature {
    let seen = trains::seen(reports);
    let came: usize = seen.iter().map(|train| train.came.len()).sum();
    let reordered: f64 = seen.iter().map(|train| f64::from(train.reordered)).sum();
    let rates = rungs::rungs(&seen);
    let full_size = rungs::full_size(&seen).unwrap_or(0);
    let host = &facts.receiver;
    let noise_ns = [host.stamp_error, host.clock_resolution].map(nanos_f64).into_iter().fold(1.0, f64::max);
    let path = Path { trains: &seen, rates: &rates, full_size, noise_ns };
    let batched = batches::profile(&seen, Kind::Pushed, full_size, noise_ns);
    let (cause, confidence) = match &batched {
        Some(profile) => path.cause_of_batches(profile),
        None => path.cause_without_batches(),
    };
    let (cause, confidence) = match cause {
        Cause::ParallelLinks { channels, .. } => {
            let whole = path.rate(cause, batched.is_some()).map_or(0, |rate| rate.median.bps());
            let each = BitRate::from_bps(whole / u64::from(channels.max(1)));
            (Cause::ParallelLinks { channels, each }, confidence)
        }
        other => (other, confidence),
    };
    Signature {
        cause,
        confidence,
        rate: path.rate(cause, batched.is_some()),
        inside: path.inside(batched.as_ref()),
        batch_packets: batched.as_ref().map(|profile| profile.packets),
        loaded: path.is_loaded(batched.as_ref()),
        reordered: (reordered / (came as f64).max(1.0)).min(1.0),
        rates,
    }
}

/// What is known of the path.
struct Path<'a> {
    trains: &'a [TrainLog],
    rates: &'a [Rung],
    /// IP octets of the packets that speak of the rate.
    full_size: u16,
    /// Error of one arrival stamp.
    noise_ns: f64,
}

impl Path<'_> {
    /// Batches: slots, channels, the receiver, or bursts of the medium.
    fn cause_of_batches(&self, large: &Profile) -> (Cause, Confidence) {
        let period = duration(large.period_ns);
        let unknown = (Cause::Batches { period }, Confidence::Low);
        if let Some(slot) = grants::slot_ns(self.trains, &[large.period_ns], self.noise_ns) {
            let grant = duration(self.grant_latency_ns(slot));
            let slot = duration(slot);
            return (Cause::Grants { slot, grant }, Confidence::High);
        }
        if large.spaced && self.is_loaded(Some(large)) == Some(true) {
            // What comes regularly between packets that are spaced as they are sent may as well be
            // others'.
            return (Cause::CrossTraffic, Confidence::Medium);
        }
        let channels = self.channels(large);
        if let Some(channels) = channels
            && self.overtaking() >= OVERTAKING
        {
            return (parallel(channels), Confidence::High);
        }
        // What follows rests on trains below the path's rate, and on single packets.
        let Some(slow) = self.slowest_paced() else {
            return unknown;
        };
        let profile = batches::profile(self.trains, Kind::Paced, slow.ip_octets, self.noise_ns);
        let spread = grants::spread_ns(self.trains);
        let blurred = 8.0 * self.noise_ns > large.period_ns;
        match (profile, spread) {
            (Some(slow), Some(_)) if is_timer(large, &slow) && !blurred => {
                (Cause::ReceiveBatching { period }, Confidence::Medium)
            }
            (Some(slow), _) if is_count(large, &slow) => (Cause::ReceiveBatching { period }, Confidence::Medium),
            (Some(slow), Some(spread)) if slow.period_ns < SHRUNK * large.period_ns && self.is_spread(spread) => {
                (aggregation(large), Confidence::Medium)
            }
            (None, Some(spread)) if !self.is_spread(spread) => match channels {
                Some(channels) => (parallel(channels), Confidence::Medium),
                None => unknown,
            },
            (None, Some(spread)) if self.is_spread(spread) && channels.is_none() => {
                (aggregation(large), Confidence::Medium)
            }
            _ => unknown,
        }
    }

    /// Single packets met something random.
    fn is_spread(&self, spread_ns: f64) -> bool {
        spread_ns > RANDOM * self.noise_ns
    }

    /// As many packets per batch whatever their size, and the period in proportion: as many
    /// channels.
    fn channels(&self, large: &Profile) -> Option<u16> {
        let sizes = self.trains.iter().filter(|train| train.uniform && train.kind == Kind::Pushed);
        let small = sizes.map(|train| train.ip_octets).min()?;
        if f64::from(small) > SMALLER * f64::from(large.ip_octets) || large.alike < ALIKE || large.usual < 2 {
            return None;
        }
        let small = batches::profile(self.trains, Kind::Pushed, small, self.noise_ns)?;
        let ratio = small.period_ns / large.period_ns;
        let framed = |octets: u16, framing: f64| f64::from(octets) + framing;
        let lowest = framed(small.ip_octets, 0.0) / framed(large.ip_octets, 0.0);
        let highest = framed(small.ip_octets, MOST_FRAMING) / framed(large.ip_octets, MOST_FRAMING);
        let in_proportion = (lowest * 0.95..highest * 1.05).contains(&ratio);
        (in_proportion && small.usual == large.usual && small.alike >= ALIKE)
            .then(|| u16::try_from(large.usual).unwrap_or(u16::MAX))
    }

    /// Share of the packets that overtook in trains of mixed sizes, sent back to back.
    fn overtaking(&self) -> f64 {
        let mixed = self.trains.iter().filter(|train| !train.uniform && train.kind != Kind::Sparse);
        let (late, all) = mixed
            .fold((0.0, 0.0), |(late, all), train| (late + f64::from(train.reordered), all + train.came.len() as f64));
        if all > 0.0 { late / all } else { 0.0 }
    }

    /// How much longer than single packets of a running train its first took; zero if it did not.
    fn grant_latency_ns(&self, slot_ns: f64) -> f64 {
        let firsts: Vec<f64> = self
            .trains
            .iter()
            .filter(|train| train.kind == Kind::Sparse)
            .flat_map(|train| train.came.iter().map(|packet| packet.delay_ns))
            .collect();
        let running = self
            .trains
            .iter()
            .filter(|train| train.kind == Kind::Paced)
            .flat_map(|train| train.came.iter().skip(train.came.len() / 2).map(|packet| packet.delay_ns));
        let least = running.fold(f64::INFINITY, f64::min);
        match quantile(&firsts, 0.5) {
            // Half a slot of waiting is common to both.
            Some(first) if least.is_finite() => (first - least - slot_ns / 2.0).max(0.0),
            _ => 0.0,
        }
    }

    /// The paced train of the lowest rate that is long enough to show batches.
    fn slowest_paced(&self) -> Option<&TrainLog> {
        let paced = self.trains.iter().filter(|train| train.kind == Kind::Paced && train.came.len() >= 24);
        paced.min_by(|a, b| a.departure_bps().total_cmp(&b.departure_bps()))
    }

    /// No batches: one link, a bucket, a slow start, other traffic, or the sender.
    fn cause_without_batches(&self) -> (Cause, Confidence) {
        if self.is_sender_limited() {
            return (Cause::SenderLimited, Confidence::Medium);
        }
        // Slots that hold hardly a packet make no batches; single packets tell all the same.
        if let Some(slot) = grants::slot_ns(self.trains, &[], self.noise_ns) {
            let grant = duration(self.grant_latency_ns(slot));
            let slot = duration(slot);
            return (Cause::Grants { slot, grant }, Confidence::Medium);
        }
        if let Some((turning_point, all)) = turning_point::common(self.trains) {
            let confidence = if all.len() >= 3 { Confidence::High } else { Confidence::Medium };
            let turning_point_octets = rate(turning_point.octets).bps();
            let peak = rate(turning_point.peak_bps);
            return (Cause::TokenBucket { turning_point_octets, peak }, confidence);
        }
        if let Some(channels) = self.saw_tooth() {
            return (parallel(channels), Confidence::High);
        }
        if self.is_cut() {
            return (Cause::Unclear, Confidence::Low);
        }
        let whole = self.whole_bps();
        let Some(long) = quantile(&whole, 0.5) else {
            return (Cause::Unclear, Confidence::Low);
        };
        if self.is_flat(long) {
            let confidence = match self.is_loaded(None) {
                Some(false) => Confidence::High,
                Some(true) => return (Cause::CrossTraffic, Confidence::Medium),
                None => Confidence::Medium,
            };
            return (Cause::SingleLink, confidence);
        }
        if self.rises_to(long) {
            return (Cause::Startup, Confidence::Medium);
        }
        if self.scatters(long) || self.is_loaded(None) == Some(true) {
            return (Cause::CrossTraffic, Confidence::Medium);
        }
        (Cause::Unclear, Confidence::Low)
    }

    fn is_sender_limited(&self) -> bool {
        let stretch: Vec<f64> = self
            .long()
            .filter(|train| train.departed_ns > 0.0)
            .map(|train| train.span_ns() / train.departed_ns)
            .collect();
        quantile(&stretch, 0.5).is_some_and(|stretch| stretch < SENDER)
    }

    /// Pushed trains of full-size packets that are long.
    fn long(&self) -> impl Iterator<Item = &TrainLog> {
        let pushed = || {
            self.trains
                .iter()
                .filter(|train| train.uniform && train.kind == Kind::Pushed && train.ip_octets == self.full_size)
        };
        let longest = pushed().map(|train| train.sent).max().unwrap_or(0);
        pushed().filter(move |train| 2 * train.sent > longest && train.came.len() >= LONG)
    }

    fn whole_bps(&self) -> Vec<f64> {
        self.long().filter_map(|train| train.rate_bps(0, train.came.len() - 1)).collect()
    }

    /// Over as many packets as make whole groups.
    fn whole_groups_bps(&self, channels: usize) -> Vec<f64> {
        let rate = |train: &TrainLog| {
            let last = train.came.len() - 1;
            train.rate_bps(0, last - last % channels.max(1))
        };
        self.long().filter_map(rate).collect()
    }

    /// The error of a rate over so many packets, at this rate.
    fn error(&self, packets: u32, bps: f64) -> f64 {
        let span_ns = f64::from(packets.saturating_sub(1).max(1)) * f64::from(self.full_size) * 8e9 / bps;
        2.0 * self.noise_ns / span_ns
    }

    /// All lengths have one rate, and nearly all trains.
    fn is_flat(&self, long_bps: f64) -> bool {
        let near = |rate: BitRate, packets: u32| {
            (rate.as_f64() / long_bps - 1.0).abs() <= FLAT + self.error(packets, long_bps)
        };
        self.rates.len() >= 3
            && self.rates.iter().all(|rung| near(rung.median, rung.packets))
            && self
                .rates
                .iter()
                .filter(|rung| rung.packets > 4)
                .all(|rung| near(rung.low, rung.packets) && near(rung.high, rung.packets))
    }

    /// The ends of trains agree on a rate that short trains do not reach.
    fn rises_to(&self, long_bps: f64) -> bool {
        let tails = self.tails_bps();
        let steady = tails.len() >= 2 && narrows_stat::coefficient_of_variation(&tails).is_none_or(|cv| cv < FLAT);
        let tail = quantile(&tails, 0.5).unwrap_or(long_bps);
        let short: Vec<f64> =
            self.rates.iter().filter(|rung| rung.packets <= 5).map(|rung| rung.high.as_f64()).collect();
        let rising = self.rates.windows(2).all(|two| two[1].median.as_f64() > 0.97 * two[0].median.as_f64());
        steady && rising && short.len() >= 2 && short.iter().all(|rate| *rate < RISES * tail)
    }

    fn tails_bps(&self) -> Vec<f64> {
        let tail = |train: &TrainLog| train.rate_bps(train.came.len() / 2, train.came.len() - 1);
        self.long().filter_map(tail).collect()
    }

    /// Short trains scatter, and most of them are no slower than long ones: what is between their
    /// packets is others'.
    fn scatters(&self, long_bps: f64) -> bool {
        let short = || self.rates.iter().filter(|rung| rung.packets <= 10);
        let high = short().map(|rung| rung.high.as_f64()).fold(0.0, f64::max);
        let low = short().map(|rung| rung.low.as_f64()).fold(f64::INFINITY, f64::min);
        short().count() >= 2 && high >= long_bps && high > (1.0 + 2.0 * FLAT) * low
    }

    /// Whether others' packets come between those of a train paced just below the rate found: it
    /// then arrives slower than it left. `None` without such a train.
    fn is_loaded(&self, batched: Option<&Profile>) -> Option<bool> {
        // Bursts grow until they carry the rate, and their ends are as far apart as they are long.
        let (from, period_ns) = batched.map_or((0, 0.0), |profile| (1, profile.period_ns));
        let checks: Vec<f64> =
            self.checks(batched.is_some()).filter_map(|train| growth(train, from, period_ns)).collect();
        quantile(&checks, 0.5).map(|growth| growth > GROWS)
    }

    /// Trains paced just below the rate found.
    fn checks(&self, batched: bool) -> impl Iterator<Item = &TrainLog> {
        let long = if batched { self.batch_rates(false) } else { self.whole_bps() };
        let found = quantile(&long, 0.5).unwrap_or(0.0);
        self.trains
            .iter()
            .filter(|train| train.kind == Kind::Paced && train.uniform && train.came.len() >= LONG)
            .filter(move |train| (CHECKED * found..found).contains(&train.departure_bps()))
    }

    /// Trains just below the rate found lose packets: it is not the rate of a link.
    fn is_cut(&self) -> bool {
        let lost: Vec<f64> = self.checks(false).map(TrainLog::loss).collect();
        quantile(&lost, 0.5).is_some_and(|lost| lost > CUT)
    }

    /// Channels whose packets overtake, and whose groups show in the gaps' period alone.
    fn saw_tooth(&self) -> Option<u16> {
        let teeth: Vec<usize> = self.long().filter_map(batches::tooth).collect();
        let first = *teeth.first().filter(|_| self.overtaking() >= OVERTAKING)?;
        let same = teeth.iter().filter(|tooth| **tooth == first).count();
        (2 * same > self.long().count()).then(|| u16::try_from(first).unwrap_or(u16::MAX))
    }

    fn batch_rates(&self, by_slope: bool) -> Vec<f64> {
        let rate = |train: &TrainLog| {
            let split: Split = batches::split(train, self.noise_ns)?;
            let long = split.count() >= SLOPE_BATCHES && by_slope;
            let slope = if long { split.slope_bps(train) } else { None };
            slope.or_else(|| split.rate_bps(train))
        };
        self.long().filter_map(rate).collect()
    }

    /// The rate under load, by what the cause asks for.
    fn rate(&self, cause: Cause, batched: bool) -> Option<Spread> {
        let by_slope = matches!(cause, Cause::Grants { .. });
        let rates = match cause {
            Cause::TokenBucket { .. } => {
                let (_, turning_points) = turning_point::common(self.trains)?;
                turning_points.iter().map(|turning_point| turning_point.sustained_bps).collect()
            }
            Cause::Startup => self.tails_bps(),
            Cause::ParallelLinks { channels, .. } if !batched => self.whole_groups_bps(usize::from(channels)),
            _ if batched => self.batch_rates(by_slope),
            Cause::Unclear => return None,
            _ => self.whole_bps(),
        };
        let whole = match cause {
            Cause::TokenBucket { .. } => turning_point::common(self.trains)
                .map_or(0.0, |(turning_point, _)| 1.0 / turning_point.behind.max(1) as f64),
            _ => 0.0,
        };
        Some(Spread {
            low: rate(quantile(&rates, 0.1)? * (1.0 - whole)),
            median: rate(quantile(&rates, 0.5)?),
            high: rate(quantile(&rates, 0.9)? * (1.0 + whole)),
            trains: u32::try_from(rates.len()).unwrap_or(u32::MAX),
        })
    }

    fn inside(&self, batched: Option<&Profile>) -> Option<BitRate> {
        let gap = batched?.inner_ns;
        (gap > self.noise_ns).then(|| rate(f64::from(self.full_size) * 8e9 / gap))
    }
}

/// Growth of the delay over a train, as a share of its time, less what half a period makes of it.
fn growth(train: &TrainLog, from: usize, period_ns: f64) -> Option<f64> {
    let third = train.came.len() / 3;
    let median = |part: &[Came]| {
        let delays: Vec<f64> = part.iter().map(|packet| packet.delay_ns).collect();
        quantile(&delays, 0.5)
    };
    let (first, last) = (train.came.get(from * third..(from + 1) * third)?, train.came.get(2 * third..)?);
    let time = train.departed_ns * (2 - from) as f64 / 3.0;
    (time > 0.0).then_some((median(last)? - median(first)? - period_ns / 2.0) / time)
}

/// The period stays when packets come slower: a timer. Each batch waits for its first packet.
fn is_timer(large: &Profile, slow: &Profile) -> bool {
    let gap = slow.period_ns / slow.packets.max(1.0);
    (0.75 * large.period_ns..1.35 * large.period_ns + gap).contains(&slow.period_ns)
}

/// As many packets when they come slower: the receiver counts.
fn is_count(large: &Profile, slow: &Profile) -> bool {
    large.usual == slow.usual && large.alike >= ALIKE && slow.alike >= ALIKE && slow.period_ns > 1.35 * large.period_ns
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate, and the value is a count"
)]
fn aggregation(large: &Profile) -> Cause {
    Cause::MacAggregation { frames: large.packets.round() as u16, period: duration(large.period_ns) }
}

fn parallel(channels: u16) -> Cause {
    Cause::ParallelLinks { channels, each: BitRate::ZERO }
}

fn duration(ns: f64) -> Duration {
    Duration::try_from_secs_f64(ns * 1e-9).unwrap_or(Duration::ZERO)
}

/// Share of packets of mixed trains that overtake on channels.
const OVERTAKING: f64 = 0.05;
/// Share of batches with just as many packets.
const ALIKE: f64 = 0.6;
/// Small packets are at most this share of the large ones.
const SMALLER: f64 = 0.6;
/// No link puts more octets around a packet.
const MOST_FRAMING: f64 = 66.0;
/// A period below this share of that under load has shrunk.
const SHRUNK: f64 = 0.7;
/// Delays of single packets this many stamp errors apart differ.
const RANDOM: f64 = 6.0;
/// Long trains have at least so many packets.
const LONG: usize = 32;
/// Trains that take this little more time to arrive than to leave were not pushed against the path.
const SENDER: f64 = 1.05;
/// Rates this near are one.
const FLAT: f64 = 0.03;
/// Short trains of a slow start stay below this share.
const RISES: f64 = 0.85;
/// A train paced between this share of the rate found and the rate itself checks it.
const CHECKED: f64 = 0.88;
/// Delays of such a train grow by more than this share of its time if others' packets come between.
const GROWS: f64 = 0.03;
/// Trains just below a link's rate lose less.
const CUT: f64 = 0.05;
/// From so many whole batches on a line is better than two ends.
const SLOPE_BATCHES: usize = 8;
