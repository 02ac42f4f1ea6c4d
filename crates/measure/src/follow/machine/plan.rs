//! Rate, length and time of the next train.

use std::time::Duration;

use narrows_units::{Sender, Stamp};

use super::{ABOVE, FIRST_PACKETS, MIN_PACKETS, Machine, Mode, count};
use crate::follow::level::Now;
use narrows_probe::Step;

impl Machine {
    /// Rate and length of the next train.
    pub(super) fn plan(&mut self) {
        let scale = self.level.scale();
        let now = self.level.now(self.params.memory);
        let last = self.suspects.last().or_else(|| self.level.last()).copied();
        let wanted = match (self.mode, now, last) {
            (Mode::Ceiling, ..) => self.max_rate,
            (Mode::Follow, Some(now), _) if !self.searching() => {
                let own = self.scatter() / (self.usual_time().powf(1.5) * now.capacity.sqrt());
                let nearest = (3.0 * own.hypot(now.between / now.capacity)).clamp(0.08, 0.25);
                // A suspicion is settled by a train well above: it is overloaded beyond doubt, or
                // nothing has it overloaded.
                let far = if self.suspects.is_empty() { OFFSETS[self.step % OFFSETS.len()] } else { DECISIVE };
                let offset = nearest * far;
                self.step = self.step.wrapping_add(1);
                // Of a link that carries much the line's capacity is what growth is a share of; it
                // is not trusted too far.
                let most = scale.map_or(now.capacity, |scale| 4.0 * scale);
                Some(now.available + offset * now.capacity.min(most))
            }
            (_, _, Some(point)) if point.overloaded() || point.doubtful() => Some(point.out() * ABOVE),
            (_, _, Some(point)) => {
                let faster = point.rate * FASTER;
                // What came through an overloaded path is not far below what is available, once the
                // path is known.
                let bracketed = self.level.least_out().map(|out| (out * BRACKET).max(point.rate * ABOVE));
                Some(bracketed.map_or(faster, |bracketed| faster.min(bracketed)))
            }
            (_, _, None) => scale.map(|scale| scale * ABOVE).or(self.rate),
        };
        let below_max = |rate: f64| self.max_rate.map_or(rate, |max| rate.min(max));
        let floor = scale.map_or(1e4, |scale| 0.02 * scale);
        self.rate = wanted.map(|rate| below_max(rate.max(floor)));
        self.packets = self.length(now, scale);
    }

    /// The next train is to find where to look, not to add to what is known.
    pub(super) fn searching(&self) -> bool {
        self.mode == Mode::Seek || (self.certain && !self.suspects.is_empty())
    }

    /// Packets of the next train: what a share of the income pays for, no more queue than allowed,
    /// as many as batches ask for.
    pub(super) fn length(&self, now: Option<Now>, scale: Option<f64>) -> usize {
        let Some(scale) = scale else {
            return FIRST_PACKETS.max(self.least_packets.min(2 * FIRST_PACKETS));
        };
        let income = self.params.load * scale;
        let stretch = if self.searching() { self.stretch.min(SEARCH_STRETCH) } else { self.stretch };
        let affordable = income * stretch * self.params.period.as_secs_f64() / self.packet_bits();
        let mut packets = count(affordable).max(MIN_PACKETS);
        if self.searching() {
            // Half of it will do to tell an overload, or as much as what scatters the delays asks
            // for.
            packets = (packets / 2).max(MIN_PACKETS);
            let rate = self.rate.unwrap_or(scale);
            let telling = count(rate * self.telling_time(rate) / self.packet_bits());
            let most = count(self.burst(scale) * 8.0 / (self.feared(rate) * self.packet_bits()));
            // One that does not tell is sent for nothing: twice the queue is the lesser evil.
            packets = packets.max(telling).min(most.max(telling.min(2 * most)));
        }
        packets = packets.max(self.least_packets);
        if let (Some(rate), Some(now), false) = (self.rate, now, self.searching()) {
            let excess = (1.0 - now.available / rate).max(0.05);
            packets = packets.min(count(self.burst(scale) * 8.0 / (excess * self.packet_bits())));
        }
        packets.clamp(MIN_PACKETS, self.params.max_packets)
    }

    /// Seconds that a train lasts if only its cost limits it.
    fn usual_time(&self) -> f64 {
        self.params.load * self.params.period.as_secs_f64() * self.stretch
    }

    /// Seconds that a train at `rate` must last for its growth to be known to [`TELLING`].
    fn telling_time(&self, rate: f64) -> f64 {
        (self.scatter() / (TELLING * rate.sqrt())).powf(2.0 / 3.0)
    }

    /// Share of a searching train that may end in a queue.
    fn feared(&self, rate: f64) -> f64 {
        match self.level.last() {
            // What came through goes through again.
            Some(last) if !last.overloaded() => (1.0 - last.rate / rate).clamp(0.1, 0.5),
            Some(last) => {
                let available = self.level.available_by(last).unwrap_or(0.0);
                (1.0 - available / rate + 3.0 * last.error).clamp(0.1, 0.5)
            }
            None => 0.5,
        }
    }

    /// Waits until the next train is paid for.
    pub(super) fn pause(&mut self, now: Stamp<Sender>, urgent: bool) -> Step {
        let cost = self.packets as f64 * f64::from(self.packet_octets);
        let income = self.level.scale().map(|scale| self.params.load * scale / 8.0);
        self.token_pool.earn(now, income.unwrap_or(0.0));
        if self.mode == Mode::Follow && !std::mem::replace(&mut self.advanced, true) {
            self.token_pool.lend(now, ADVANCE);
        }
        let paid = self.token_pool.wait_for(now, cost).unwrap_or(BLIND);
        let usual = income.and_then(|income| Duration::try_from_secs_f64(cost / (USUAL * income)).ok());
        let usual = if urgent { None } else { usual };
        let until = (now + paid.min(LONGEST_WAIT)).max(self.train_began + usual.unwrap_or_default().min(LONGEST_WAIT));
        let end = self.began + self.params.duration;
        if until > now { Step::Wait { until: until.min(end.max(now)) } } else { self.send(now) }
    }

    /// Octets of queue that a train may build.
    pub(super) fn burst(&self, scale: f64) -> f64 {
        let usual =
            self.params.burst_octets.map_or_else(|| (scale / 8.0 * QUEUE.as_secs_f64()).max(LEAST_BURST), f64::from);
        usual * self.burst
    }

    pub(super) fn packet_bits(&self) -> f64 {
        8.0 * f64::from(self.packet_octets.max(1))
    }
}

/// Rates of the trains above what is available, in multiples of the least offset. The far ones fix
/// the capacity.
const OFFSETS: [f64; 5] = [1.0, 1.0, 2.5, 1.0, 1.5];
const DECISIVE: f64 = 2.5;
/// By how much the next train is faster while nothing overloads the path.
const FASTER: f64 = 2.0;
/// The same where another train has overloaded it, over what came out of that.
const BRACKET: f64 = 1.3;
/// Error of a growth that still tells an overload.
pub(super) const TELLING: f64 = 0.08;
/// Share of the income that is spent while nothing changes; the rest is kept for when something
/// does.
const USUAL: f64 = 0.85;
/// Income in advance, once there is something to follow: what is not spent of the rest has paid it
/// back after seven seconds.
const ADVANCE: Duration = Duration::from_secs(1);
/// The same of trains that search.
const SEARCH_STRETCH: f64 = 2.0;
/// Queue that a train may build, as time at the path's rate, and at least so many octets.
const QUEUE: Duration = Duration::from_micros(500);
const LEAST_BURST: f64 = 150_000.0;
/// Longest time without a train: the path may have changed.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Time before the next train where nothing is known of the path.
const BLIND: Duration = Duration::from_millis(300);
