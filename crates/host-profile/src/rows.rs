//! From what was seen to a profile.

use crate::ends::Ends;
use crate::error::ProfileError;
use crate::profile::{ClockProfile, HostProfile, ReceiveProfile, Recorded, SCHEMA, SendProfile};
use crate::quantiles::{PERCENTS, Quantiles};
use crate::stalls::{Span, StallProfile};

/// What a recording saw, by one clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    /// Packets that arrived, in the order in which they left.
    pub packets: Vec<PacketRow>,
    /// Times in which stalls were watched for, ascending.
    pub windows: Vec<Span>,
    /// Stalls of the sending end, ascending.
    pub sender_stalls: Vec<Span>,
    /// Stalls of the receiving end, if both ends are on this machine: packets that arrive in one
    /// are stamped after it.
    pub receiver_stalls: Option<Vec<Span>>,
    /// Steps of the wall clock, by which kernels stamp. Packets near one are left out.
    pub clock_steps: usize,
    /// Times of one reading of the clock.
    pub clock_reads_ns: Vec<i64>,
    /// Times of receive calls of a program that was awake.
    pub receive_calls_ns: Vec<i64>,
}

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketRow {
    /// When it was to leave; `None`: as soon as the call before it was over.
    pub planned_ns: Option<i64>,
    /// The program's stamp, just before the send call.
    pub stamped_ns: i64,
    /// When it left the sending host.
    pub left_ns: i64,
    /// When the send call was over.
    pub returned_ns: i64,
    /// When it reached the receiving host.
    pub arrived_ns: i64,
    /// The receiving host's stamp.
    pub seen_ns: i64,
    /// When its program had read it.
    pub read_ns: i64,
}

/// What a profile says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    /// Short, for rows of tables.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// How it came about.
    pub recorded: Recorded,
    /// Its interface is one of software.
    pub virtual_interface: bool,
}

/// Two readings of a spinning program farther apart than this are a stall (ours). Shorter holes are
/// interrupts and calls, whose delays are in the other quantiles.
pub(crate) const THRESHOLD_NS: i64 = 50_000;
/// Stalls closer than this are of one burst: some scheduling periods (ours).
const BURST_GAP_NS: i64 = 10_000_000;
/// A packet that comes so much later than the one before comes after a rest (ours): longer than the
/// gaps of trains, shorter than the pauses between them.
const REST_NS: i64 = 2_000_000;
/// What two hosts' clocks may be apart, where nobody measured it: usual quartz crystals.
const USUAL_CRYSTAL_PPM: [f64; 2] = [-20.0, 20.0];

impl Rows {
    /// See [`StallProfile::threshold_ns`].
    pub const THRESHOLD_NS: i64 = THRESHOLD_NS;
    /// A recording sends and watches for stalls for so long at a time: as long as a train takes.
    /// Ours, with the pause: a program that spins for longer has no processor time in hand when
    /// others want the processor, and is stalled more than one that measures.
    pub const WINDOW_NS: i64 = 20_000_000;
    /// And sleeps for so long between, as a program does that waits for answers.
    pub const PAUSE_NS: i64 = 20_000_000;
    /// Trains begin so far apart, with a rest before each.
    pub const TRAIN_EVERY_NS: i64 = 10_000_000;

    /// Packets of a window's train, and the gap between them; zero: back to back. Three of four are
    /// paced like full packets at 240 Mbit/s.
    pub const fn train(index: usize) -> (usize, i64) {
        if index % 4 == 3 { (64, 0) } else { (100, 50_000) }
    }
}

impl HostProfile {
    /// The profile of what was seen.
    pub fn of_rows(rows: &Rows, about: About) -> Result<Self, ProfileError> {
        let ends = if rows.receiver_stalls.is_some() { Ends::Both } else { Ends::One };
        let clock = ClockProfile {
            read_ns: of("readings of the clock", rows.clock_reads_ns.iter().copied())?,
            frequency_error_ppm: if ends == Ends::Both { [0.0; 2] } else { USUAL_CRYSTAL_PPM },
        };
        let thresholds = (THRESHOLD_NS, BURST_GAP_NS);
        Self {
            schema: SCHEMA.to_owned(),
            name: about.name,
            about: about.about,
            ends,
            virtual_interface: about.virtual_interface,
            percents: PERCENTS.to_vec(),
            recorded: about.recorded,
            clock,
            send: sending(rows)?,
            receive: receiving(rows)?,
            stalls: StallProfile::of(&rows.windows, &rows.sender_stalls, rows.receiver_stalls.as_deref(), thresholds),
        }
        .check()
    }

    /// The same host, with the stamps and batches that it gave packets of another recording.
    pub fn with_stamps_of(mut self, rows: &Rows) -> Result<Self, ProfileError> {
        let stamps = Stamps::of(rows)?;
        self.receive.stamp_ns = stamps.warm;
        self.receive.stamp_rested_ns = stamps.rested;
        self.receive.inside_ns = stamps.inside.unwrap_or_else(|| self.receive.call_ns.clone());
        self.receive.batch_packets = stamps.batches;
        self.check()
    }
}

fn of(what: &'static str, values: impl IntoIterator<Item = i64>) -> Result<Quantiles, ProfileError> {
    Quantiles::of(values.into_iter().map(|value| value.max(0))).ok_or(ProfileError::TooLittle { what })
}

fn sending(rows: &Rows) -> Result<SendProfile, ProfileError> {
    let stalled = |from: i64, to: i64| is_hit(&rows.sender_stalls, from, to);
    let before = || std::iter::once(None).chain(rows.packets.iter().map(Some));
    let pacing = rows.packets.iter().filter_map(|row| {
        let planned = row.planned_ns?;
        (!stalled(planned, row.stamped_ns)).then(|| row.stamped_ns.saturating_sub(planned))
    });
    let stamps = |after_rest: bool| {
        rows.packets.iter().zip(before()).filter_map(move |(row, before)| {
            let rested = before.is_none_or(|before| row.stamped_ns.saturating_sub(before.stamped_ns) >= REST_NS);
            let counts = rested == after_rest && !stalled(row.stamped_ns, row.left_ns);
            counts.then(|| row.left_ns.saturating_sub(row.stamped_ns))
        })
    };
    let calls = rows.packets.iter().filter(|row| row.planned_ns.is_none() && !stalled(row.stamped_ns, row.returned_ns));
    let stamp_ns = of("stamps of departures", stamps(false))?;
    Ok(SendProfile {
        pacing_ns: of("packets with a time to leave", pacing)?,
        stamp_rested_ns: of("stamps of departures", stamps(true)).unwrap_or_else(|_| stamp_ns.clone()),
        stamp_ns,
        call_ns: of("send calls", calls.map(|row| row.returned_ns.saturating_sub(row.stamped_ns)))?,
    })
}

fn receiving(rows: &Rows) -> Result<ReceiveProfile, ProfileError> {
    let stamps = Stamps::of(rows)?;
    let wakes = |after_rest: bool| {
        let mut last_read: Option<i64> = None;
        let mut last_arrived: Option<i64> = None;
        rows.packets.iter().filter_map(move |row| {
            let slept = last_read.is_none_or(|read| row.seen_ns > read);
            let rested = last_arrived.is_none_or(|last| row.arrived_ns.saturating_sub(last) >= REST_NS);
            (last_read, last_arrived) = (Some(row.read_ns), Some(row.arrived_ns));
            (slept && rested == after_rest).then(|| row.read_ns.saturating_sub(row.seen_ns))
        })
    };
    let wake_ns = of("programs that wake", wakes(false)).or_else(|_| of("programs that wake", wakes(true)))?;
    let call_ns = of("receive calls", rows.receive_calls_ns.iter().copied())?;
    Ok(ReceiveProfile {
        stamp_ns: stamps.warm,
        stamp_rested_ns: stamps.rested,
        inside_ns: stamps.inside.unwrap_or_else(|| call_ns.clone()),
        batch_packets: stamps.batches,
        wake_rested_ns: of("programs that wake", wakes(true)).unwrap_or_else(|_| wake_ns.clone()),
        wake_ns,
        call_ns,
        stamps_wait: rows.receiver_stalls.is_some(),
        rest_ns: REST_NS,
    })
}

/// How packets were stamped on arrival.
struct Stamps {
    warm: Quantiles,
    rested: Quantiles,
    /// `None` where nothing ever waited: then what comes after a stall is stamped call by call.
    inside: Option<Quantiles>,
    batches: Quantiles,
}

impl Stamps {
    /// A packet that came before the one in front of it was stamped is of that one's batch.
    fn of(rows: &Rows) -> Result<Self, ProfileError> {
        let none = Vec::new();
        let stalls = rows.receiver_stalls.as_ref().unwrap_or(&none);
        let (mut warm, mut rested, mut inside, mut batches) = (Vec::new(), Vec::new(), Vec::new(), Vec::<i64>::new());
        let mut before: Option<&PacketRow> = None;
        for row in &rows.packets {
            match before {
                Some(before) if row.arrived_ns <= before.seen_ns => {
                    if !is_hit(stalls, before.seen_ns, row.seen_ns) {
                        inside.push(row.seen_ns.saturating_sub(before.seen_ns));
                    }
                    if let Some(batch) = batches.last_mut() {
                        *batch += 1;
                    }
                }
                _ => {
                    let is_rested = before.is_none_or(|before| row.arrived_ns - before.arrived_ns >= REST_NS);
                    batches.push(1);
                    if !is_hit(stalls, row.arrived_ns, row.seen_ns) {
                        let delays = if is_rested { &mut rested } else { &mut warm };
                        delays.push(row.seen_ns.saturating_sub(row.arrived_ns));
                    }
                }
            }
            before = Some(row);
        }
        if warm.is_empty() {
            warm.clone_from(&rested);
        }
        let warm = of("stamps of arrivals", warm)?;
        Ok(Self {
            rested: of("stamps of arrivals", rested).unwrap_or_else(|_| warm.clone()),
            inside: of("batches", inside).ok(),
            batches: of("batches", batches)?,
            warm,
        })
    }
}

/// A stall lies in this time, or reaches into it.
fn is_hit(stalls: &[Span], from: i64, to: i64) -> bool {
    let first = stalls.partition_point(|stall| stall.to <= from);
    stalls.get(first).is_some_and(|stall| stall.from <= to)
}

#[cfg(test)]
mod tests;
