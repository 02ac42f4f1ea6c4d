//! Parallel streams.

use narrows_units::BitRate;
use serde::{Deserialize, Serialize};

use crate::outcome::Diagnostics;
use crate::outcome::diagnostics::number;

/// Parallel streams: where they fill the path, disturb others, and do harm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamsFinding {
    /// How the number that fills was found.
    pub basis: FillBasis,
    /// What was tried, fewest streams first.
    pub levels: Vec<StreamsLevel>,
    /// Parallel streams are worth it.
    pub recommended: bool,
    /// What is available, TCP payload.
    pub available_payload_bps: Option<BitRate>,
    /// Fewest streams that disturb others.
    pub intrusive: Option<u16>,
    /// What tells that: names of signs.
    pub intrusive_by: Vec<String>,
    /// Fewest streams that get less than fewer do.
    pub harmful: Option<u16>,
    /// Connections of others of the same kind that the curve tells of.
    pub competing_flows: Option<f64>,
    /// What became of buffers that were asked for.
    pub buffers: Option<BuffersFinding>,
}

/// How the number of streams that fill a path was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FillBasis {
    /// That many reach what is available.
    Reached,
    /// More bring no more, though what is available was not reached (or is not known).
    Flat,
    /// More seem to bring more, but not beyond chance.
    Unsure,
    /// The sum still rose in proportion; reckoned from one stream's rate.
    Extrapolated,
    /// The sum still rose, and nothing says how far.
    Rising,
}

/// One number of streams.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StreamsLevel {
    /// Streams.
    pub streams: u16,
    /// What they get together, TCP payload, bit/s.
    #[serde(deserialize_with = "number")]
    pub sum_bps: f64,
    /// Round-trip time under that load, ns.
    #[serde(deserialize_with = "number")]
    pub rtt_ns: f64,
    /// Share of octets sent again, 0..1.
    #[serde(deserialize_with = "number")]
    pub retransmitted_share: f64,
    /// Share of what others could have that they take, 0..1.
    pub intrusion: Option<f64>,
}

/// Buffers asked for against buffers got.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BuffersFinding {
    /// Window that was asked for at both ends and both ways of this host, octets.
    pub requested_octets: u32,
    /// Send buffer that the kernel granted, in octets of its own accounting.
    pub granted_octets: Option<u32>,
    /// The kernel gave less than was asked for.
    pub clamped: bool,
    /// Rate with these buffers over the rate without.
    #[serde(deserialize_with = "number")]
    pub gain: f64,
    /// The kernel ties its send buffer to its receive buffer.
    pub kernel_at_fault: bool,
}

impl FillBasis {
    /// For people.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Reached => "fills what is available",
            Self::Flat => "more streams bring no more",
            Self::Unsure => "more streams bring no more beyond chance",
            Self::Extrapolated => "extrapolated from one stream",
            Self::Rising => "still rising at the last number tried",
        }
    }
}

impl StreamsFinding {
    /// The same for people.
    pub fn tell(&self, diagnostics: &mut Diagnostics) {
        let series = |of: fn(&StreamsLevel) -> f64| self.levels.iter().map(of).collect::<Vec<_>>();
        diagnostics.insert("streams_tried", series(|level| f64::from(level.streams)));
        diagnostics.insert("sum_bps", series(|level| level.sum_bps));
        diagnostics.insert("rtt_loaded_ns", series(|level| level.rtt_ns));
        diagnostics.insert("retransmitted_share", series(|level| level.retransmitted_share));
        let intrusion: Vec<f64> = self.levels.iter().filter_map(|level| level.intrusion).collect();
        if !intrusion.is_empty() {
            diagnostics.insert("intrusion", intrusion);
        }
        diagnostics.insert("basis", self.basis.text());
        diagnostics.insert("recommended", self.recommended);
        if let Some(available) = self.available_payload_bps {
            diagnostics.insert("available_payload_bps", available);
            diagnostics.insert("fills_available", self.basis == FillBasis::Reached);
        }
        if let Some(streams) = self.intrusive {
            diagnostics.insert("intrusive_streams", u32::from(streams));
            diagnostics.insert("intrusive_by", self.intrusive_by.join(", ").as_str());
        }
        if let Some(streams) = self.harmful {
            diagnostics.insert("harmful_streams", u32::from(streams));
        }
        if let Some(flows) = self.competing_flows {
            diagnostics.insert("competing_flows", flows);
        }
        if let Some(buffers) = self.buffers {
            diagnostics.insert("buffer_requested_octets", buffers.requested_octets);
            diagnostics.insert("buffer_gain", buffers.gain);
            diagnostics.insert("buffer_clamped", buffers.clamped);
            diagnostics.insert("kernel_at_fault", buffers.kernel_at_fault);
            if let Some(granted) = buffers.granted_octets {
                diagnostics.insert("buffer_granted_octets", granted);
            }
        }
    }
}
