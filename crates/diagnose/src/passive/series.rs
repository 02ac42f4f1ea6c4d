//! A flow's samples of dispersion, and which of them a queue stood behind.
//!
//! # Why samples are judged
//! A gap between two packets is the narrow link's only if the second waited behind the first. A
//! sender that its window or its application holds back makes gaps too, and they may be as regular
//! as a link's. No shape of a distribution tells one from the other; waiting does:
//!
//! - **Data** (what comes from behind the capture): the sender's timestamps say when a packet left,
//!   to a tick, so they say how long it was under way beyond the quickest. What exceeds a tick, and
//!   what a sending host's own scheduler may hold back ([`HOST_PACKETS`]), is a queue on the path.
//! - **Acknowledgements** (what lies ahead): the round trip from the capture to the receiver and
//!   back exceeds the least one, or the data left much closer together than their acknowledgements
//!   return.
//! - **Two captures**: the pair came apart by more than it left with.

use super::log::{AckGap, DataGap, FlowLog, NO_TICKS, NO_TIME};
use super::{Sight, Vantage};

/// Where a series is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Data packets.
    Data,
    /// Data packets with their stamps at a second capture.
    Both,
    /// Acknowledgements.
    Acks,
}

/// One pair.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    /// Nanoseconds between the two.
    pub(super) gap: f64,
    /// IP octets that crossed in that time.
    pub(super) octets: f64,
    /// Nanoseconds between the two when they left, where that is known.
    pub(super) sent: Option<f64>,
    /// Nanoseconds that the second is known to have waited, at least; zero where that is not known.
    pub(super) queue: f64,
    /// The second is known to have waited.
    pub(super) waited: bool,
    /// The same, and little can have come between the two: what counts.
    pub(super) queued: bool,
    /// Its first packet is the second of the sample before.
    pub(super) follows: bool,
}

impl Sample {
    /// The second left while data waited somewhere: not a pause of the sender.
    pub(super) fn backlogged(&self) -> bool {
        self.queue > 0.0
    }

    /// IP octets over time, in bit/s.
    pub(super) fn rate(&self) -> f64 {
        self.octets * 8e9 / self.gap
    }
}

/// The samples of one source, in order of time.
#[derive(Debug, Clone)]
pub(super) struct Series {
    pub(super) source: Source,
    pub(super) samples: Vec<Sample>,
    /// The trace tells which samples waited.
    pub(super) judged: bool,
    /// Those that waited also left close together, so that little can have come between them.
    /// Always so of data: there it is not known.
    pub(super) closed: bool,
    /// Share of samples that left because captured packets stood for several.
    pub(super) merged: f64,
    /// Finest step of the capture's stamps.
    pub(super) resolution: f64,
}

/// Waiting below is what hosts do anyway (ours: wake-ups and soft interrupts).
const HOST_NS: f64 = 100_000.0;
/// Packets that a sending host's own scheduler may hold back at its pacing rate: two buffers are
/// with it (Linux "TCP small queues"), a third has left.
const HOST_PACKETS: f64 = 3.0;
/// Of cross traffic as much comes between two packets as arrives between them: from data that left
/// so much closer together than it came apart, little (ours).
const CLOSED: f64 = 0.35;
/// With fewer of those, those that waited must do (ours).
const LEAST_CLOSED: usize = 12;
/// A round trip that exceeds the least by so much waited (ours: soft interrupts on both hosts).
const AHEAD_NS: f64 = 50_000.0;
/// Longer gaps are pauses: MultiQ's cut-off is 35 ms, which is 0.34 Mbit/s; ours lets slower links
/// through.
const PAUSE_NS: f64 = 1e9;

impl Series {
    /// Those that waited; all of them where the trace does not tell.
    pub(super) fn queued(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(|sample| sample.queued || !self.judged)
    }

    pub(super) fn queued_count(&self) -> usize {
        self.samples.iter().filter(|sample| sample.queued).count()
    }
}

/// What came from behind the capture.
pub(super) fn data(log: &FlowLog, sight: &Sight) -> Series {
    let full = log.sizes.full().map_or(0, |(ip_octets, _)| ip_octets);
    let tick = log.sender_clock.tick();
    let mut merged = 0_u32;
    let mut seen = 0_u32;
    let mut samples = Vec::new();
    for block in log.data.blocks() {
        let mut chained = false;
        for gap in block {
            seen += 1;
            merged += u32::from(gap.ip_octets() > full + full / 2);
            let wanted = gap.ip_octets() == full && gap.equal() && f64::from(gap.gap) < PAUSE_NS;
            if wanted {
                samples.push(data_sample(log, gap, tick, chained && gap.follows()));
            }
            chained = wanted;
        }
    }
    Series {
        source: Source::Data,
        samples,
        judged: tick.is_some(),
        closed: true,
        merged: share(merged, seen),
        resolution: sight.resolution_ns.max(1) as f64,
    }
}

fn data_sample(log: &FlowLog, gap: &DataGap, tick: Option<f64>, follows: bool) -> Sample {
    let time = f64::from(gap.gap).max(1.0);
    let waited = log.sender_clock.waited(gap.at, gap.ticks).filter(|_| gap.ticks != NO_TICKS);
    let queue = waited.zip(tick).map_or(0.0, |(waited, tick)| waited - tick - HOST_NS);
    let queued = queue > HOST_PACKETS * time;
    Sample {
        gap: time,
        octets: f64::from(gap.ip_octets()),
        sent: None,
        queue: queue.max(0.0),
        waited: queued,
        queued,
        follows,
    }
}

/// The same with the stamps of a second capture; `None` if there was none.
pub(super) fn both(log: &FlowLog, sight: &Sight) -> Option<Series> {
    let full = log.sizes.full()?.0;
    let tick = log.sender_clock.tick();
    let mut samples = Vec::new();
    for block in log.data.blocks() {
        let mut chained = false;
        for gap in block {
            let wanted = gap.sent != NO_TIME && gap.ip_octets() == full && gap.equal() && f64::from(gap.gap) < PAUSE_NS;
            if wanted {
                let one = data_sample(log, gap, tick, chained && gap.follows());
                let sent = f64::from(gap.sent);
                samples.push(Sample {
                    sent: Some(sent),
                    // Without timestamps there is still a witness of some wait.
                    queue: one.queue.max(1.0),
                    waited: sent < one.gap,
                    queued: sent < CLOSED * one.gap,
                    ..one
                });
            }
            chained = wanted;
        }
    }
    (!samples.is_empty()).then_some(Series {
        source: Source::Both,
        samples,
        judged: true,
        closed: true,
        merged: 0.0,
        resolution: sight.resolution_ns.max(1) as f64,
    })
}

/// What lies ahead of the capture.
pub(super) fn acks(log: &FlowLog, sight: &Sight) -> Series {
    let mut series = Series {
        source: Source::Acks,
        samples: Vec::new(),
        judged: true,
        closed: false,
        merged: 0.0,
        resolution: sight.resolution_ns.max(1) as f64,
    };
    let (Some((ip_octets, payload)), Some(least)) = (log.sizes.full(), log.least_ahead) else {
        return series;
    };
    let covers = |octets: u32| f64::from(octets) / f64::from(payload.max(1));
    // Where every second segment is acknowledged, an acknowledgement of one was sent by a timer.
    let all = log.acks.blocks().flatten();
    let (single, several) =
        all.fold(
            (0_u32, 0_u32),
            |(single, several), gap| {
                if covers(gap.covered) < 1.5 { (single + 1, several) } else { (single, several + 1) }
            },
        );
    let fewest = if several > single { 1.5 } else { 0.99 };
    let tick = log.receiver_clock.tick().unwrap_or(0.0);
    let mut before = None;
    for gap in log.acks.blocks().flatten() {
        let whole = covers(gap.covered) >= fewest && covers(gap.covered_before) >= fewest;
        if !whole || f64::from(gap.gap) >= PAUSE_NS || gap.gap == 0 {
            continue;
        }
        let follows = before == gap.at.checked_sub(i64::from(gap.gap));
        before = Some(gap.at);
        let segments = (f64::from(gap.covered) / f64::from(payload)).ceil();
        let octets = f64::from(gap.covered) + segments * f64::from(ip_octets - payload);
        series.samples.push(Sample { follows, ..ack_sample(log, gap, octets, least, tick) });
    }
    let closed = |sample: &Sample| sample.queued && sample.sent.is_some_and(|sent| sent < CLOSED * sample.gap);
    series.closed = series.samples.iter().filter(|sample| closed(sample)).count() >= LEAST_CLOSED;
    if series.closed {
        for sample in &mut series.samples {
            sample.queued = closed(sample);
        }
    }
    series
}

fn ack_sample(log: &FlowLog, gap: &AckGap, octets: f64, least: i64, tick: f64) -> Sample {
    let (time, sent) = (f64::from(gap.gap), f64::from(gap.sent));
    let waited = f64::from(gap.ahead) - least as f64;
    // Of that, on the reverse direction.
    let back = log.receiver_clock.waited(gap.at, gap.ticks).map_or(0.0, |back| back - tick);
    let waited_ahead = waited > time + AHEAD_NS && back < 0.5 * waited;
    let closed = sent < CLOSED * time && back < time.max(0.5 * waited);
    Sample {
        gap: time,
        octets,
        sent: Some(sent),
        queue: if waited_ahead || closed { (waited - back.max(0.0)).max(1.0) } else { 0.0 },
        waited: waited_ahead || closed,
        queued: waited_ahead || closed,
        follows: false,
    }
}

/// Which series speaks of the whole path: the one whose narrow link is narrower. Gaps of data that
/// leave a host speak of that host, and acknowledgements that a receiver sends speak of the path
/// only by their data.
pub(super) fn best(log: &FlowLog, sight: &Sight) -> Series {
    let (data, acks) = (data(log, sight), acks(log, sight));
    match sight.vantage {
        Vantage::Sender => return acks,
        Vantage::Receiver => return data,
        Vantage::Middle | Vantage::Unknown => {}
    }
    // Without timestamps nothing tells a host's gaps from a link's, save at the receiver.
    let known = |series: &Series| (series.judged && series.queued_count() >= LEAST_QUEUED).then(|| typical(series));
    // A narrower link ahead has a queue most of the time; a few acknowledgements that waited are
    // the hosts' doing.
    let often = 10 * acks.queued_count() >= data.queued_count();
    match (known(&data).flatten(), known(&acks).flatten()) {
        (Some(behind), Some(ahead)) if often && ahead < 0.9 * behind => acks,
        (Some(_), _) => data,
        (None, None) if data.merged > 0.0 || data.samples.len() >= acks.samples.len() => data,
        (None, _) => acks,
    }
}

/// Fewest samples known to have waited that may carry a result (ours: fewer than a handful agree by
/// chance).
pub(super) const LEAST_QUEUED: usize = 8;

/// The most common rate of those that waited.
fn typical(series: &Series) -> Option<f64> {
    let rates: Vec<f64> = series.queued().map(Sample::rate).collect();
    super::density::LogDensity::new(&rates, super::density::WIDTH).map(|density| density.peak().at)
}

fn share(part: u32, whole: u32) -> f64 {
    if whole == 0 { 0.0 } else { f64::from(part) / f64::from(whole) }
}

/// Rates of trains of at least so many gaps whatever their sizes, of data that waited: what is left
/// where single gaps say nothing. Batches come as long after the one before as they have packets,
/// so a train begins and ends with the last packet of one: before a gap longer than the mean.
pub(super) fn bulk_trains(log: &FlowLog, gaps: usize) -> Vec<f64> {
    let Some((ip_octets, payload)) = log.sizes.full() else {
        return Vec::new();
    };
    let Some(tick) = log.sender_clock.tick() else {
        return Vec::new();
    };
    let header = f64::from(ip_octets - payload);
    let waits = |gap: &DataGap| {
        let span = f64::from(gap.gap);
        let waited = log.sender_clock.waited(gap.at, gap.ticks).unwrap_or(0.0);
        waited > tick + HOST_NS + HOST_PACKETS * span.min(tick) && span < PAUSE_NS
    };
    let waiting = || log.data.blocks().flatten().filter(|gap| waits(gap));
    let mean = waiting().map(|gap| f64::from(gap.gap)).sum::<f64>() / waiting().count().max(1) as f64;
    let mut rates = Vec::new();
    for block in log.data.blocks() {
        let mut train: Option<(f64, f64, usize)> = None;
        for gap in block {
            if !gap.follows() || !waits(gap) {
                train = None;
                continue;
            }
            let span = f64::from(gap.gap);
            if span > mean {
                match train {
                    Some((octets, time, count)) if count >= gaps => {
                        rates.push(octets * 8e9 / time);
                        train = Some((0.0, 0.0, 0));
                    }
                    Some(_) => {}
                    None => train = Some((0.0, 0.0, 0)),
                }
            }
            let Some((octets, time, count)) = &mut train else {
                continue;
            };
            // A merged packet stands for several, each with its own headers.
            let whole = f64::from(gap.ip_octets()) - header;
            let segments = (whole / f64::from(payload)).ceil().max(1.0);
            *octets += whole + segments * header;
            *time += span;
            *count += 1;
        }
    }
    rates.sort_by(f64::total_cmp);
    rates
}
