//! What small packets between the trains add to what the trains say.

use std::time::Duration;

use narrows_probe::{Confidence, Estimate};
use narrows_units::{BitRate, Metric};

use super::super::bursts::{self, Bursts, Outside};
use super::super::busy::Busy;
use super::super::levels::NORMAL;
use super::super::pooled::{PooledEstimate, SURE};
use super::doubts::STOOD;
use super::{FLOOR, RANGE, RunAccount};

/// Growth of delay that is known so well tells how fast a link drains (ours).
const SLACK: f64 = 0.2;
/// Trains that came through at rates this alike agree, and how many do (ours).
const ALIKE: f64 = 0.02;
const AGREE: usize = 3;
/// The narrow link's rate may exceed that at which any train was carried by so much: the first
/// packets of a train may wait behind other traffic (ours).
const SHOWN: f64 = 1.25;

impl RunAccount {
    /// What bursts took of the tight link: by small packets, else by trains that met one.
    pub(super) fn bursts(&self, pooled: &PooledEstimate, busy: Option<Busy>, halves: (f64, f64)) -> Bursts {
        if let Some(busy) = busy {
            let path = self.scale().unwrap_or(pooled.capacity);
            let trains = Outside { available: pooled.available, halves };
            return self.taken(trains, path, busy);
        }
        let time = self.trains.iter().map(|train| train.send_time).sum();
        let (load, error) = self.jumps.load(pooled.capacity, time).unwrap_or_default();
        let half = NORMAL * error;
        Bursts {
            outside: pooled.available,
            load,
            halves: (halves.0.hypot(half), halves.1.hypot(half)),
            doubtful: load > 0.0,
            by_watch: false,
        }
    }

    /// What bursts took that small packets saw, where the narrow link carries `path`. A token
    /// bucket hides the begin of each: that of a full one is added, and the interval has room for
    /// bursts that found it empty, and for those that it hid as a whole.
    fn taken(&self, trains: Outside, path: f64, busy: Busy) -> Bursts {
        let hosts = self.hosts_paused(busy);
        let hidden = self.bucket_octets.map_or(0.0, |octets| busy.hidden_by(octets, path));
        let busy_for = Busy { share: busy.share + hidden, ..busy };
        // Behind a bucket long trains are what tells even traffic from none.
        let met = if self.bucket_known { busy_for.met_within(self.train_length()) } else { 0.0 };
        let of = (busy_for, hosts, met);
        let mut bursts = bursts::taken(trains, (path, self.found_on()), of, SURE * FLOOR * path);
        bursts.halves = (bursts.halves.0 + hidden * path, bursts.halves.1 + hidden * path);
        bursts.doubtful |= hidden > 0.0;
        if self.is_in_doubt(busy) {
            bursts.halves.1 = bursts.halves.1.max(bursts.load);
            bursts.doubtful = true;
        }
        self.within_twice(bursts)
    }

    /// The time over which a train that met no burst's queue when it came says what is free, s.
    fn train_length(&self) -> f64 {
        let kept = self.trains.iter().filter(|train| !train.met_burst);
        narrows_stat::median(&kept.map(|train| train.backlogged_time).collect::<Vec<_>>()).unwrap_or(0.0)
    }

    /// Whether a pause of a host may have been what packets waited for. A bucket that is known to
    /// be there hands over small packets in one moment as well, so that this is no sign of a host.
    fn hosts_paused(&self, busy: Busy) -> bool {
        self.slept() || (busy.may_be_hosts() && !(busy.is_together() && (self.bucket_known || self.ran(busy))))
    }

    /// Whether trains show that the receiving host ran: pauses as long and as many as packets
    /// waited for would have met some.
    fn ran(&self, busy: Busy) -> bool {
        let seconds = self.trains.iter().map(|train| train.send_time).sum();
        self.met_no_pause() && busy.would_meet(self.trains.len(), seconds)
    }

    /// Whether more trains would show that.
    pub(in super::super) fn is_in_doubt(&self, busy: Busy) -> bool {
        busy.is_together() && self.met_no_pause() && !self.ran(busy)
    }

    /// A jump of the clock that threw a train away may have been a pause.
    fn met_no_pause(&self) -> bool {
        self.clock_steps == 0 && !self.slept()
    }

    pub(super) fn slept(&self) -> bool {
        self.trains.iter().any(|train| train.slept)
    }

    /// The fastest link on which a train can have found a burst's queue, bit/s: behind a train that
    /// left at `R` its delay grew by `(R + X)/C - 1`.
    fn found_on(&self) -> Option<f64> {
        let found = self.trains.iter().filter(|train| train.found_burst && train.growth_error <= SLACK);
        found.map(|train| train.rate / (1.0 + train.growth).max(SLACK)).reduce(f64::max)
    }

    /// Where neither the narrow link is known nor several trains came through at the same highest
    /// rate, it may be twice as fast as that.
    fn within_twice(&self, mut bursts: Bursts) -> Bursts {
        if bursts.by_watch && !self.is_rate_shown() {
            bursts.halves.1 = bursts.halves.1.max(bursts.outside - bursts.load);
            bursts.doubtful = true;
        }
        bursts
    }

    /// Whether the path's rate is known, or several trains came through at the same highest rate.
    fn is_rate_shown(&self) -> bool {
        let scale = self.scale().unwrap_or(0.0);
        let alike = self.trains.iter().filter(|train| train.rate_out >= (1.0 - ALIKE) * scale).count();
        self.narrow.or(self.capacity).is_some() || alike >= AGREE
    }

    /// The time for which small packets and trains went: the search was coarse at first, but small
    /// packets saw others' bursts from the begin.
    pub(super) fn watched_time(&self) -> Option<Duration> {
        let began = self.trains.iter().map(|train| train.at).chain(self.began).min()?;
        Some(self.ended?.since(began))
    }

    /// What small packets say alone, where no train that met no burst reached the turning point.
    /// They say it of the narrow link's rate, so trains must have shown that: a host that was held
    /// up stamps the packets of a train in one moment, as if the path were fast, and makes a train
    /// that it holds up as slow as it is itself.
    pub(super) fn watched(&self, busy: Busy) -> Option<Estimate> {
        if (self.stalled() > STOOD && !self.is_rate_shown()) || self.is_hosts_rate() {
            return None;
        }
        let carried = self.most_carried()?;
        let scale = self.scale().filter(|scale| *scale <= SHOWN * carried)?;
        let outside = Outside::by_free(busy, scale, SURE * FLOOR * scale);
        let bursts = self.taken(outside, scale, busy);
        let available = outside.available - bursts.load;
        let (low, high) = (available - bursts.halves.0, available + bursts.halves.1);
        let rate = |bps: f64| BitRate::from_bps_f64(bps.max(0.0));
        let mut estimate = Estimate::ip_rate(Metric::AvailableIpCapacity, rate(available)?, rate(low)?, rate(high)?)
            .with("path_rate_bps", scale)
            .with("bursts_bps", bursts.load);
        estimate.interval = self.watched_time();
        if bursts.doubtful {
            estimate.confidence = Confidence::Low;
        }
        (outside.width() <= RANGE * scale).then_some(estimate)
    }
}
