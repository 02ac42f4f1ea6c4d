//! How a link serves what waits in front of it, where that is not one packet after the other.

use std::time::Duration;

use narrows_units::{BitRate, Framing, Octets};

/// How a hop's link serves its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Service {
    /// One packet after the other, each as soon as the one before has left.
    #[default]
    Single,
    /// Several channels side by side, each of the hop's rate and with a queue of its own.
    Channels(Channels),
    /// Frames gather while the medium is not free, and leave in bursts (IEEE 802.11 A-MPDU).
    Aggregation(Aggregation),
    /// The link sends in slots of a fixed length, at the hop's rate over all of them (LTE
    /// transmission time intervals, DOCSIS maps, GPON cycles).
    Slots(Slots),
}

/// Channels side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channels {
    /// How many; at least one.
    pub count: u16,
    /// Which packet takes which.
    pub by: Dealing,
}

/// How packets are dealt over channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dealing {
    /// In turn.
    Packet,
    /// To the channel that is idle first.
    Load,
    /// By a hash of what distinguishes flows (link aggregation groups, equal-cost paths): a flow
    /// has one channel. All probes of one socket are a flow, so is each source of cross traffic and
    /// each TCP connection; the hash depends on the seed.
    Flow,
}

/// Bursts of frames after contention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aggregation {
    /// Most frames of a burst (64 by the block acknowledgement's window).
    pub frames: u16,
    /// Most octets of a burst, framing included (65 535 in 802.11n, 2^20 − 1 in 802.11ac).
    pub octets: Octets,
    /// What each burst takes besides its frames, always: interframe spaces, preamble, block
    /// acknowledgement.
    pub contention: Duration,
    /// What it waits beyond that, uniform from zero (the back-off).
    pub jitter: Duration,
    /// When the frames of a burst are there.
    pub inside: Inside,
}

/// When the packets of a burst arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// Each when its last bit was sent.
    Spaced,
    /// All with the last one.
    AtOnce,
}

/// Slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// Their length; they begin at multiples of it. What was sent in a slot arrives at its end.
    pub period: Duration,
    /// From the arrival of a packet at an idle link to the grant: it begins with the first slot
    /// from then on. While packets wait, every slot is granted.
    pub grant: Duration,
}

impl Aggregation {
    /// Packets of this size in a burst of a saturated link.
    pub fn full_burst(&self, framing: Framing, ip_octets: u16) -> u64 {
        let frame = u64::from(framing.wire_octets(u32::from(ip_octets))).max(1);
        (self.octets.count() / frame).clamp(1, u64::from(self.frames.max(1)))
    }

    /// IP-layer rate of a saturated link whose frames are sent at `rate`: full bursts, each with
    /// its mean contention.
    pub fn ip_rate(&self, rate: BitRate, framing: Framing, ip_octets: u16) -> BitRate {
        let packets = self.full_burst(framing, ip_octets);
        let wire = u64::from(framing.wire_octets(u32::from(ip_octets)));
        let airtime = (packets * wire) as f64 * 8.0 / rate.as_f64();
        let time = airtime + self.contention.as_secs_f64() + self.jitter.as_secs_f64() / 2.0;
        BitRate::from_bps_f64((packets * u64::from(ip_octets)) as f64 * 8.0 / time).unwrap_or(BitRate::ZERO)
    }
}

impl Service {
    /// Why no link can serve so.
    pub(crate) fn trouble(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Single => None,
            Self::Channels(channels) => {
                let fine = (1..=MOST_CHANNELS).contains(&channels.count);
                (!fine).then_some(("channels", "count must be 1 to 256"))
            }
            Self::Aggregation(aggregation) => {
                let long = Duration::from_secs(1);
                let fine = aggregation.frames > 0 && aggregation.contention <= long && aggregation.jitter <= long;
                (!fine).then_some(("aggregation", "needs at least 1 frame, and contention and jitter of at most 1 s"))
            }
            Self::Slots(slots) => {
                let fine = !slots.period.is_zero()
                    && slots.period <= Duration::from_secs(1)
                    && slots.grant <= Duration::from_secs(10);
                (!fine).then_some(("slots", "needs a period above zero and up to 1 s, and a grant of at most 10 s"))
            }
        }
    }
}

/// Ours: far above any bundle.
const MOST_CHANNELS: u16 = 256;
