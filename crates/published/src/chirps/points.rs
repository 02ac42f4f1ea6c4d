//! What of a chirp's report can be believed. Times in ns, octets at the IP layer, rates in bit/s.

use narrows_probe::probes::{Arrival, PacingCheck, Train, TrainReport};
use narrows_train::train_method::arrived_ns;

/// A packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// When it left, from the first packet's departure on.
    pub(crate) departed: f64,
    /// When it arrived, from the first arrival on.
    pub(crate) arrived: f64,
    /// Octets that had left with it, the first packet's not counted; of lost packets, too: they
    /// were offered.
    pub(crate) offered: f64,
    /// Which of the rates it ends or is on its way to end: packets of one rate share it.
    pub(crate) rung: usize,
}

/// Growth of delays that is taken for the drift of two clocks, as a share of time (ours: ten times
/// that of a poor clock; it hides an overload of a thousandth of the capacity).
const DRIFT: f64 = 0.001;

/// A chirp, read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chirp {
    /// Packets whose stamps say when they came: all, or the last of each batch.
    pub(crate) points: Vec<Point>,
    /// All packets that arrived.
    pub(crate) packets: Vec<Point>,
    /// The departures kept their plan.
    pub(crate) kept: bool,
    /// Stamps are off by this much, ns.
    pub(crate) noise: f64,
    /// Share of packets that are in a batch and not its end.
    pub(crate) batched: f64,
    /// Typical distance of batches, ns.
    pub(crate) period: f64,
    /// Drift is left in the delays, as the tool does.
    pub(crate) raw: bool,
}

/// Why a chirp says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Flaw {
    /// Too many packets were lost.
    Lost,
    /// Packets changed order.
    Disordered,
    /// The sender left its plan.
    Pacing,
    /// A clock was set.
    ClockStep,
    /// A host did not run for a while.
    Asleep,
    /// Too few batches.
    Batched,
    /// The method could make nothing of it.
    Unread,
}

/// How reports are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reader {
    /// Arrivals closer than this come from the host.
    pub(crate) short_ns: f64,
    /// Stamps are cut to multiples of this.
    pub(crate) tick_ns: f64,
    /// What a stamp is off by.
    pub(crate) noise_ns: f64,
    /// Share of packets that may be lost.
    pub(crate) loss: f64,
    /// The tool's rule: marked packets are left out, and two in a row end the chirp.
    pub(crate) tool: bool,
    /// Packets per rate; the last that can be believed stands for them, as in the tool's `-J`.
    pub(crate) group: usize,
}

/// A chirp needs so many points (ours: twice the length of an excursion that counts).
pub(crate) const LEAST_POINTS: usize = 10;
/// Share of packets that are held back from which on the receiver counts as batching (ours, as for
/// fac2).
pub(crate) const BATCHED: f64 = 0.25;
/// Arrivals closer than this share of their departures were held back, or left a queue that drains
/// (portable rule).
const HELD: f64 = 0.4;
/// Batches of so many packets blur single rates only (§11.3's limit for small ones).
const SMALL_BATCH: usize = 5;
/// Larger ones that a chirp must see (ours: between two of forty the rate grows by a few per cent).
const LEAST_BATCHES: usize = 40;
/// A batch that took longer than this to leave is a host that slept (ours, as for pathload).
const ASLEEP_NS: f64 = 500_000.0;

impl Reader {
    pub(crate) fn read(&self, asked: &Train, report: &TrainReport) -> Result<Chirp, Flaw> {
        let rows = &report.arrivals;
        let sane = rows.len() == asked.packets.len() && ordered(rows);
        if !sane {
            return Err(Flaw::Unread);
        }
        let rows = self.before_overflow(rows);
        let packets = self.packets(rows);
        let lost = rows.len() - packets.len();
        if packets.len() < LEAST_POINTS || lost as f64 > self.loss * rows.len() as f64 {
            return Err(Flaw::Lost);
        }
        if report.reordered > 0 {
            return Err(Flaw::Disordered);
        }
        if packets.windows(2).any(|two| two[1].arrived < two[0].arrived) {
            return Err(Flaw::ClockStep);
        }
        let kept = !matches!(report.pacing, PacingCheck::Broken { .. });
        if !kept && broken(asked, rows) {
            return Err(Flaw::Pacing);
        }
        let credible = if self.tool {
            self.marked(&packets)
        } else {
            let large = self.ends(&packets, HELD)?;
            if packets.len() > SMALL_BATCH * large.len() {
                large
            } else {
                // So few may as well have left a queue that drains.
                self.ends(&packets, 0.0)?
            }
        };
        let batched = 1.0 - credible.len() as f64 / packets.len() as f64;
        let large = packets.len() > SMALL_BATCH * credible.len();
        if !self.tool && large && credible.len() < LEAST_BATCHES {
            return Err(Flaw::Batched);
        }
        let points = last_of_rungs(&credible);
        let spacings: Vec<f64> = credible.windows(2).map(|two| two[1].arrived - two[0].arrived).collect();
        let chirp = Chirp {
            kept,
            noise: self.noise_ns.max(self.tick_ns),
            batched,
            period: narrows_stat::median(&spacings).unwrap_or(0.0),
            raw: self.tool,
            points,
            packets,
        };
        if chirp.points.len() < if self.tool { 2 } else { LEAST_POINTS } {
            return Err(Flaw::Batched);
        }
        Ok(chirp)
    }

    /// Without the end of a chirp that a full queue dropped: the longest beginning, of half of it
    /// at least, in which no more is lost than may be. That the queue filled shows in the delays
    /// before (ours; the tool leaves out the whole chirp).
    fn before_overflow<'r>(&self, rows: &'r [Arrival]) -> &'r [Arrival] {
        let mut lost = 0usize;
        let mut longest = rows.len();
        let mut fits = false;
        for (index, row) in rows.iter().enumerate() {
            lost += usize::from(arrived_ns(row).is_none());
            let so_far = index + 1;
            if lost as f64 <= self.loss * so_far as f64 && 2 * so_far >= rows.len() {
                longest = so_far;
                fits = true;
            }
        }
        if self.tool || !fits { rows } else { &rows[..longest] }
    }

    fn packets(&self, rows: &[Arrival]) -> Vec<Point> {
        let first_out = rows.first().map_or(0, |row| row.departed.nanos());
        let first_in = rows.iter().find_map(arrived_ns).unwrap_or(0);
        let cut = |ns: i64| {
            let ns = ns as f64;
            if self.tick_ns > 0.0 { (ns / self.tick_ns).floor() * self.tick_ns } else { ns }
        };
        let mut offered = 0.0;
        let mut packets = Vec::with_capacity(rows.len());
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                offered += f64::from(row.ip_octets);
            }
            if let Some(arrived) = arrived_ns(row) {
                packets.push(Point {
                    departed: cut(row.departed.nanos().saturating_sub(first_out)),
                    arrived: cut(arrived.saturating_sub(first_in)),
                    offered,
                    rung: index.div_ceil(self.group.max(1)),
                });
            }
        }
        packets
    }

    /// The last packet of each batch: it waited least (`[PJD04]`). `share` of its sending gap
    /// within which a packet was held back with the one before it, whatever the anchor said.
    fn ends(&self, packets: &[Point], share: f64) -> Result<Vec<Point>, Flaw> {
        let duration = packets.last().map_or(0.0, |last| last.departed);
        let (mut ends, mut spans) = (Vec::with_capacity(packets.len()), Vec::new());
        let mut open_since = None;
        for (index, point) in packets.iter().enumerate() {
            let since = *open_since.get_or_insert(point.departed);
            let held = packets.get(index + 1).is_some_and(|next| {
                next.arrived - point.arrived < self.short_ns.max(share * (next.departed - point.departed))
            });
            if !held {
                ends.push(*point);
                spans.push(point.departed - since);
                open_since = None;
            }
        }
        let longest = spans.iter().copied().fold(0.0, f64::max);
        let usual = narrows_stat::median(&spans).unwrap_or(0.0);
        if longest > ASLEEP_NS && longest > 4.0 * usual && longest > duration / 8.0 {
            return Err(Flaw::Asleep);
        }
        Ok(ends)
    }

    /// The tool's rule: a packet that comes less than 10 us behind another is marked and left out,
    /// two marks in a row end the chirp at the packet before them.
    fn marked(&self, packets: &[Point]) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::with_capacity(packets.len());
        let mut marks = 0;
        let mut last = f64::NEG_INFINITY;
        for point in packets {
            let marked = point.arrived - last < self.short_ns;
            last = point.arrived;
            marks = if marked { marks + 1 } else { 0 };
            if marks >= 2 && points.len() >= 2 {
                break;
            }
            if !marked {
                points.push(*point);
            }
        }
        points
    }
}

/// Of the points of each rate the last.
fn last_of_rungs(points: &[Point]) -> Vec<Point> {
    let last = |at: usize| points.get(at + 1).is_none_or(|next| next.rung != points[at].rung);
    (0..points.len()).filter(|at| last(*at)).map(|at| points[at]).collect()
}

/// Departures that run backwards are no departures.
fn ordered(rows: &[Arrival]) -> bool {
    rows.windows(2).all(|two| two[0].departed <= two[1].departed)
}

/// The sender paused for longer than three gaps and 200 us, or was a tenth too slow over the
/// fastest third (ours).
fn broken(asked: &Train, rows: &[Arrival]) -> bool {
    let gaps: Vec<(f64, f64)> = asked.packets[1..]
        .iter()
        .zip(rows.windows(2))
        .map(|(plan, two)| (plan.gap.as_secs_f64() * 1e9, (two[1].departed - two[0].departed).as_f64()))
        .collect();
    let paused = gaps.iter().any(|(plan, real)| *real > 3.0 * plan + 200_000.0);
    let last = &gaps[gaps.len() - gaps.len().div_ceil(3)..];
    let sum = |pick: fn(&(f64, f64)) -> f64| last.iter().map(pick).sum::<f64>();
    paused || sum(|gap| gap.1) > 1.1 * sum(|gap| gap.0)
}

impl Chirp {
    /// One-way delays of the points, without the drift that two clocks may have.
    pub(crate) fn delays(&self) -> Vec<f64> {
        let drift = if self.raw { 0.0 } else { DRIFT };
        let delay = |point: &Point| point.arrived - point.departed * (1.0 + drift);
        self.points.iter().map(delay).collect()
    }

    /// Rates at which the steps from point to point left. Of a sender that did not keep its gaps
    /// over five steps each, for its rate is known no finer.
    pub(crate) fn rates(&self) -> Vec<f64> {
        let reach = if self.kept { 0 } else { 2 };
        let last = self.points.len() - 1;
        (0..last).map(|step| self.rate(step.saturating_sub(reach), (step + 1 + reach).min(last))).collect()
    }

    /// Rate at which what lies between two points left.
    pub(crate) fn rate(&self, from: usize, to: usize) -> f64 {
        let (from, to) = (&self.points[from], &self.points[to]);
        let time = (to.departed - from.departed).max(1.0);
        (to.offered - from.offered) * 8e9 / time
    }

    /// Rate at which packets left around gap `gap`: over five gaps, or as many as there are.
    pub(crate) fn sent_at(&self, gap: usize) -> f64 {
        let last = self.packets.len() - 1;
        let (from, to) = (gap.saturating_sub(2).min(last - 1), (gap + 3).min(last));
        let (from, to) = (&self.packets[from], &self.packets[to]);
        (to.offered - from.offered) * 8e9 / (to.departed - from.departed).max(1.0)
    }

    /// What the delay of a point may be off by at this rate: a stamp's error, and where packets are
    /// held back, the time that the last of a batch may have waited for a timer, up to one gap.
    pub(crate) fn blur_ns(&self, rate: f64) -> f64 {
        let octets = self.packets.windows(2).map(|two| two[1].offered - two[0].offered);
        let gap = octets.fold(0.0, f64::max) * 8e9 / rate.max(1.0);
        if self.batched >= BATCHED { self.noise.max(gap) } else { self.noise }
    }

    /// Times that the steps took at the sender.
    pub(crate) fn times(&self) -> Vec<f64> {
        let steps = self.points.windows(2);
        steps.map(|two| (two[1].departed - two[0].departed).max(0.0)).collect()
    }

    /// The highest rate that was really sent: over the last tenth of the packets, three at least.
    pub(crate) fn top(&self) -> f64 {
        let packets = &self.packets;
        let last = packets.len() - 1;
        let from = last.saturating_sub((packets.len() / 10).max(3));
        let time = (packets[last].departed - packets[from].departed).max(1.0);
        (packets[last].offered - packets[from].offered) * 8e9 / time
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{chirp_report, train};
    use super::*;
    use narrows_probe::probes::Fate;
    use narrows_units::Stamp;

    const READER: Reader = Reader { short_ns: 2000.0, tick_ns: 0.0, noise_ns: 0.0, loss: 0.1, tool: false, group: 1 };

    #[test]
    fn departures_are_what_counts_and_losses_were_offered() {
        let asked = train(&[10e6; 20]);
        let mut report = chirp_report(&asked, |_| 0);
        // The sender was twice as slow as planned in its first half.
        for row in &mut report.arrivals[..=10] {
            row.departed = Stamp::from_nanos(row.departed.nanos() * 2);
        }
        for row in &mut report.arrivals[11..] {
            row.departed = row.departed + narrows_units::Delta::from_nanos(12_000_000);
        }
        report.arrivals[15].fate = Fate::Lost;
        let chirp = READER.read(&asked, &report).unwrap();
        let rates = chirp.rates();
        assert!(rates[..10].iter().all(|rate| (rate - 5e6).abs() < 1e3), "{rates:?}");
        assert!(rates[10..].iter().all(|rate| (rate - 10e6).abs() < 1e3), "{rates:?}");
    }

    #[test]
    fn the_last_of_each_batch_is_kept() {
        let asked = train(&[100e6; 60]);
        // Five packets share a stamp.
        let report = chirp_report(&asked, |k| (4 - k % 5) * 120_000);
        let chirp = READER.read(&asked, &report).unwrap();
        assert!((chirp.batched - 0.8).abs() < 0.03, "{}", chirp.batched);
        let delays = chirp.delays();
        assert!(delays[..11].windows(2).all(|two| two[1] - two[0] < 1.0), "{delays:?}");
        // The tool's rule cuts the chirp at the second of them.
        let tool = Reader { short_ns: 10_000.0, tool: true, ..READER };
        assert_eq!(tool.read(&asked, &report).map(|chirp| chirp.points.len()), Ok(2));
    }

    #[test]
    fn a_queue_that_overflows_ends_the_chirp() {
        let asked = train(&[100e6; 40]);
        let mut report = chirp_report(&asked, |_| 0);
        for row in &mut report.arrivals[30..] {
            row.fate = Fate::Lost;
        }
        let chirp = READER.read(&asked, &report).unwrap();
        assert_eq!(chirp.packets.len(), 30);
        let whole = Reader { tool: true, ..READER };
        assert_eq!(whole.read(&asked, &report).map(|_| ()), Err(Flaw::Lost));
    }

    #[test]
    fn flaws_have_names() {
        let asked = train(&[100e6; 40]);
        let read = |report| READER.read(&asked, &report).map(|_| ());
        let mut report = chirp_report(&asked, |_| 0);
        assert_eq!(read(report.clone()), Ok(()));
        report.reordered = 1;
        assert_eq!(read(report), Err(Flaw::Disordered));
        let stepped = chirp_report(&asked, |k| if k < 20 { 0 } else { -50_000_000 });
        assert_eq!(read(stepped), Err(Flaw::ClockStep));
        let mut lossy = chirp_report(&asked, |_| 0);
        for row in &mut lossy.arrivals[5..19] {
            row.fate = Fate::Lost;
        }
        assert_eq!(read(lossy), Err(Flaw::Lost));
        let slept = chirp_report(&asked, |k| if (10..25).contains(&k) { (25 - k) * 120_000 } else { 0 });
        assert_eq!(read(slept), Err(Flaw::Asleep));
        let mut paused = chirp_report(&asked, |_| 0);
        paused.pacing = PacingCheck::Broken { worst: std::time::Duration::from_millis(2) };
        for row in &mut paused.arrivals[20..] {
            row.departed = row.departed + narrows_units::Delta::from_nanos(2_000_000);
        }
        assert_eq!(read(paused), Err(Flaw::Pacing));
    }
}
