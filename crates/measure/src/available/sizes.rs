//! How long trains are, how far apart, and at which rate the next goes out.

use std::time::Duration;

use narrows_train::train_method::whole_packets;

use super::params::Params;

/// Packets of the first trains, whose rates may be far too high (ours).
pub(super) const FIRST_PACKETS: usize = 50;
/// Fewest packets of a train, unless losses shorten it (ours).
const MIN_PACKETS: usize = 60;
/// Fewest packets to which losses shorten a train.
pub(super) const SHORTEST: usize = 16;
/// Octets that a run spends at least, and at least for this much of the path's time (ours: at 100
/// Mbit/s Poisson traffic of 60 Mbit/s leaves a standard error of 2 % of the capacity after that).
const SPEND_OCTETS: f64 = 880_000.0;
const SPEND_TIME: f64 = 0.055;
/// Times the octets after which a run ends if it is fair that one which is not goes on for: on slow
/// links, and on fast ones.
const EXTENDED: f64 = 12.0;
const EXTENDED_FAST: f64 = 2.0;
/// Trains for that.
const SHARES: f64 = 9.0;
/// Queue that a train may build by default: this many octets, and this much of the path's time
/// (ours: a third of the smallest buffers of gigabit switches; losses lower it).
const BURST_OCTETS: f64 = 100_000.0;
const BURST_TIME: f64 = 0.000_5;
/// Mean load: what spends the octets within this time, in this range (ours).
const SPEND_WITHIN: f64 = 2.4;
const LOAD: (f64, f64) = (0.027, 0.2);
/// Least overload of the trains at the highest rate, as a share of the path's rate (ours), and its
/// range.
const OVERLOAD: (f64, f64) = (0.04, 0.12);
/// It is at least so many standard deviations of a train's own estimate, so that hardly a train
/// finds the link idle (ours).
const CLEAR: f64 = 0.3;
/// Their overload at most; that of the others beside traffic that does not vary, and by how much
/// less it is at most where it does; by how much low trains stay below at least (ours).
const HIGHEST: f64 = 0.5;
const MIDDLE: f64 = 0.032;
const DRAIN: f64 = 0.15;
const LOW: f64 = 0.04;
/// Spread of single trains from which bursts are what is to be met, as a share of the path's rate
/// (ours).
const BURSTY: f64 = 0.2;
/// The head of a train builds a queue of so many standard deviations of what the traffic of others
/// adds or takes within the train (ours: one drains by plan, the others seldom let the link run
/// idle), and of a share of the queue allowed at most.
const PRIMING_BURST: f64 = 3.0;
const PRIMING_BURST_SHARE: f64 = 0.5;
/// On slow links, where so many octets take longer, that queue delays others by this much at most,
/// or by the time of so many packets (ours): transfers of others whose round trips grow by much
/// send less, and what they leave reads as free.
const PRIMING_BURST_DELAY: f64 = 0.01;
const PRIMING_BURST_PACKETS: f64 = 8.0;
/// Rate of the head, relative to the path's (ours). Little above it: what the narrow link cannot
/// pass queues before it, and goes while a tight link behind it should fill.
const PRIMING_BURST_RATE: f64 = 1.4;
/// Most that the load grows to where trains disagree, as a share (ours).
const MOST_LOAD: f64 = 0.25;
/// Trains are up to so many times as long where they disagree, from this spread on, as a share of
/// the path's rate (ours).
const LONGER: f64 = 2.0;
const DISAGREE: f64 = 0.1;
/// Spacing varies around its mean by this share either way (ours), in steps of the golden section,
/// which keep no step with anything.
const UNEVEN: f64 = 0.4;
const GOLDEN: f64 = 0.618_034;
/// Fewest packets of a head.
const PRIMING_BURST_LEAST: f64 = 4.0;

/// What lengths and pauses depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// The path's rate, bit/s.
    pub(super) rate: f64,
    /// Bits of a packet.
    pub(super) packet: f64,
}

impl Scale {
    /// Octets after which a run ends if its interval is fair.
    pub(super) fn octets(self, params: &Params) -> f64 {
        let default = SPEND_OCTETS.max(SPEND_TIME * self.rate / 8.0);
        params.octets.map_or(default, |octets| octets as f64)
    }

    /// Octets after which every run ends: many times the usual ones where those are few, and twice
    /// where they are many.
    pub(super) fn most_octets(self, params: &Params) -> f64 {
        let usual = self.octets(params);
        let least = if params.octets.is_some() { usual } else { SPEND_OCTETS };
        (EXTENDED * least).max(EXTENDED_FAST * usual)
    }

    /// Bits of queue that a train may build.
    pub(super) fn burst(self, params: &Params) -> f64 {
        let default = BURST_OCTETS.max(BURST_TIME * self.rate / 8.0);
        params.burst_octets.map_or(default, |octets| octets as f64) * 8.0
    }

    /// Mean load, as a share.
    pub(super) fn load(self, params: &Params) -> f64 {
        let default = self.octets(params) * 8.0 / (SPEND_WITHIN * self.rate);
        params.load.unwrap_or(default.clamp(LOAD.0, LOAD.1))
    }

    /// Packets of a train at `rate`, which exceeds what is available by `over`: as many as share
    /// the octets out, as stamps and batches (`least`) ask for, more where single trains' estimates
    /// spread by `spread`, and no more than what fills the allowed queue.
    pub(super) fn packets(
        self,
        params: &Params,
        rate: f64,
        over: f64,
        least: usize,
        queue: Allowed,
        spread: f64,
    ) -> usize {
        let Allowed { burst, hard } = queue;
        let longer = (spread / (DISAGREE * self.rate)).clamp(1.0, LONGER);
        let share = whole_packets(longer * self.octets(params) * 8.0 / SHARES / self.packet);
        let wanted = share.max(MIN_PACKETS).max(least).min(params.max_packets);
        let growth = over.max(0.02 * self.rate) / rate.max(1.0);
        let allowed = whole_packets(burst / self.packet / growth.min(1.0));
        let extra = if hard { 0 } else { least };
        wanted.min(allowed.max(extra).max(SHORTEST))
    }

    /// Time from the `index`-th train's begin to the next one's, where the load is to be `more`
    /// times the usual.
    pub(super) fn period(self, params: &Params, octets: u64, more: f64, index: usize) -> Duration {
        let usual = self.load(params);
        let load = (usual * more).min(MOST_LOAD).max(usual);
        let uneven = 1.0 + UNEVEN * (2.0 * (GOLDEN * index as f64).fract() - 1.0);
        let seconds = uneven * octets as f64 * 8.0 / (load * self.rate.max(1.0));
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::from_secs(1)).min(Duration::from_secs(5))
    }

    /// Overload of the `index`-th train near the turning point, bit/s. Two capacities of the tight
    /// link that explain the same trains differ at rates far apart, so every fourth train goes at
    /// the highest rate that the narrow link surely passes (`room` above the turning point). The
    /// others let the queue of their priming burst drain again, by `drain`: burst and rest together
    /// go about as fast as the turning point, where a wrong capacity matters least, and their
    /// difference tells the capacity. Every fourth goes below it in any case: a link that it finds
    /// idle carries more. `spread` is that of single trains' estimates.
    pub(super) fn overload(self, index: usize, spread: f64, room: f64, drain: f64) -> f64 {
        // Beside bursts trains near the estimate find the link idle, and bursts outweigh what a
        // wrong capacity does.
        let bursty = spread > BURSTY * self.rate;
        let drained = (MIDDLE - (drain / self.rate).min(DRAIN)) * self.rate;
        match index % 4 {
            0 => room.min(HIGHEST * self.rate).max(self.least_overload(spread)),
            2 if bursty => -LOW * self.rate,
            _ if bursty => self.least_overload(spread),
            2 => drained.min(-LOW * self.rate),
            _ => drained,
        }
    }

    /// Overload of which hardly a train finds the link idle, bit/s.
    pub(super) fn least_overload(self, spread: f64) -> f64 {
        (CLEAR * spread / self.rate).clamp(OVERLOAD.0, OVERLOAD.1) * self.rate
    }

    /// Packets to send at `rate` at the head of a train of `length` seconds, where delays wander by
    /// `wander` per second; and the delay that they build, seconds.
    pub(super) fn priming_packets(
        self,
        available: f64,
        rate: f64,
        length: f64,
        wander: f64,
        burst: f64,
    ) -> (usize, f64) {
        let unfelt = (PRIMING_BURST_PACKETS * self.packet / self.rate).max(PRIMING_BURST_DELAY);
        let slow = PRIMING_BURST_SHARE * 8.0 * BURST_OCTETS / self.rate > unfelt;
        let allowed = PRIMING_BURST_SHARE * burst / self.rate;
        let most = if slow { allowed.min(unfelt) } else { allowed };
        let delay = (PRIMING_BURST * (wander * length).sqrt()).min(most);
        let kept = (1.0 - available / rate).max(0.05);
        let packets = (delay * self.rate / self.packet / kept).max(PRIMING_BURST_LEAST);
        (whole_packets(packets), delay)
    }

    /// Rate of a head.
    pub(super) fn priming_burst_rate(self, most: Option<f64>) -> f64 {
        let rate = PRIMING_BURST_RATE * self.rate;
        most.map_or(rate, |most| rate.min(most))
    }
}

/// The queue that a train may build.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed {
    /// Bits of it.
    pub(super) burst: f64,
    /// Losses have shown where it ends.
    pub(super) hard: bool,
}
