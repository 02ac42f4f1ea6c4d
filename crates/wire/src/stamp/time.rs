//! The times of STAMP: two formats, and how good the clock is.

/// How a 64-bit stamp is written; each side says which one it uses (RFC 8762 §4.2.1, bit Z).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StampFormat {
    /// Seconds since 1900 and their 2^32nd parts (RFC 5905 §6).
    #[default]
    Ntp,
    /// Seconds since 1970 and nanoseconds, 32 bits each (RFC 8186).
    Ptp,
}

/// A stamp. Seconds are those of the clock that took it; whether that counts UTC or TAI cannot be
/// seen, so that stamps of two clocks compare only by their differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampTime {
    wire: u64,
    format: StampFormat,
}

/// From 1900 to 1970.
const NTP_EPOCH_SECONDS: i64 = 2_208_988_800;
const ERA_SECONDS: i64 = 1 << 32;
const NANOS: i64 = 1_000_000_000;

impl StampTime {
    /// As it stands in a packet.
    pub fn from_wire(wire: u64, format: StampFormat) -> Self {
        Self { wire, format }
    }

    /// Nanoseconds since 1970, rounded to what the format holds (NTP: a quarter of a nanosecond).
    pub fn from_unix_ns(unix_ns: i64, format: StampFormat) -> Self {
        let (seconds, nanos) = (unix_ns.div_euclid(NANOS), unix_ns.rem_euclid(NANOS));
        let (high, low) = match format {
            StampFormat::Ntp => (seconds + NTP_EPOCH_SECONDS, ((nanos << 32) + NANOS / 2) / NANOS),
            StampFormat::Ptp => (seconds, nanos),
        };
        let words = [high, low].map(|value| u64::try_from(value.rem_euclid(ERA_SECONDS)).unwrap_or(0));
        Self { wire: words[0] << 32 | words[1], format }
    }

    /// As it stands in a packet.
    pub fn wire(self) -> u64 {
        self.wire
    }

    /// Nanoseconds since 1970. NTP seconds of less than half an era are those after February 2036
    /// (RFC 4330 §3); nanoseconds beyond a second, which no honest PTP clock sends, count as what
    /// they say.
    pub fn unix_ns(self) -> i64 {
        let word = |value: u64| i64::try_from(value & 0xffff_ffff).unwrap_or(0);
        let (high, low) = (word(self.wire >> 32), word(self.wire));
        match self.format {
            StampFormat::Ntp => {
                let era = if high < ERA_SECONDS / 2 { ERA_SECONDS } else { 0 };
                let nanos = (low * NANOS + (1 << 31)) >> 32;
                (high + era - NTP_EPOCH_SECONDS) * NANOS + nanos
            }
            StampFormat::Ptp => high * NANOS + low,
        }
    }
}

/// What a side says of its clock (RFC 4656 §4.1.2, RFC 8762 §4.2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorEstimate {
    /// Synchronised to a source outside.
    pub synchronised: bool,
    /// Format of this side's stamps.
    pub format: StampFormat,
    scale: u8,
    multiplier: u8,
}

const SYNCHRONISED: u16 = 1 << 15;
const PTP: u16 = 1 << 14;

impl ErrorEstimate {
    /// A clock that is off by at most this; the next larger value that can be written, at least
    /// 2^-32 s.
    pub fn new(error_ns: u64, synchronised: bool, format: StampFormat) -> Self {
        let parts = (u128::from(error_ns) << 32).div_ceil(1_000_000_000);
        let (mut multiplier, mut scale) = (parts.max(1), 0u8);
        while multiplier > 255 {
            multiplier = multiplier.div_ceil(2);
            scale += 1;
        }
        Self { synchronised, format, scale, multiplier: u8::try_from(multiplier).unwrap_or(u8::MAX) }
    }

    /// From the packet; `None` if the multiplier is zero.
    pub fn parse(wire: u16) -> Option<Self> {
        let [high, multiplier] = wire.to_be_bytes();
        (multiplier > 0).then_some(Self {
            synchronised: wire & SYNCHRONISED > 0,
            format: if wire & PTP > 0 { StampFormat::Ptp } else { StampFormat::Ntp },
            scale: high & 0x3f,
            multiplier,
        })
    }

    /// As it stands in a packet.
    pub fn wire(self) -> u16 {
        let flags =
            if self.synchronised { SYNCHRONISED } else { 0 } | if self.format == StampFormat::Ptp { PTP } else { 0 };
        flags | u16::from(self.scale) << 8 | u16::from(self.multiplier)
    }

    /// By how much the clock may be off, in nanoseconds; saturates (the scale reaches to 2^31 s).
    pub fn error_ns(self) -> u64 {
        let parts = u128::from(self.multiplier) << self.scale;
        let nanos = (parts * 1_000_000_000) >> 32;
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}
