//! Hops of a testbed, and the traffic of others on them.

use std::time::Duration;

use narrows_units::{BitRate, Framing};

/// Traffic of others on one hop: it enters before the hop and leaves behind it.
#[derive(Debug, Clone)]
pub struct Cross {
    /// IP-layer rate.
    pub rate: BitRate,
    pub ip_octets: u32,
    /// Packets that arrive at once.
    pub burst: u32,
    /// Packets of 40, 576 and 1500 octets in the ratio 2:1:1 instead of `ip_octets` (which should
    /// then be their mean, 539).
    pub mixed: bool,
    pub arrivals: Arrivals,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    Poisson,
    Constant,
}

impl Cross {
    pub fn poisson(rate: BitRate) -> Self {
        Self { rate, ip_octets: 1500, burst: 1, mixed: false, arrivals: Arrivals::Poisson }
    }

    pub fn mixed(rate: BitRate) -> Self {
        Self { ip_octets: 539, mixed: true, ..Self::poisson(rate) }
    }

    pub fn constant(rate: BitRate) -> Self {
        Self { arrivals: Arrivals::Constant, ..Self::poisson(rate) }
    }
}

/// A token bucket that delays what exceeds it.
#[derive(Debug, Clone)]
pub struct Bucket {
    /// Sustained wire rate.
    pub rate: BitRate,
    pub depth_octets: u32,
}

/// A store-and-forward link with a FIFO queue in front.
#[derive(Debug, Clone)]
pub struct Hop {
    /// Wire rate of one channel.
    pub rate: BitRate,
    pub framing: Framing,
    pub delay: Duration,
    /// Wire octets that wait at most; what exceeds them is dropped.
    pub queue_octets: u64,
    pub cross: Option<Cross>,
    pub bucket: Option<Bucket>,
    /// Packets go over the channels in turn.
    pub channels: usize,
    /// Chance that a probe is lost here.
    pub loss: f64,
    pub mtu: u16,
    /// Says so when a packet exceeds the MTU.
    pub reports_too_big: bool,
}

impl Hop {
    /// Ethernet of this wire rate, 1 ms long, with a deep queue and no other traffic.
    pub fn ethernet(rate: BitRate) -> Self {
        Self {
            rate,
            framing: Framing::ETHERNET,
            delay: Duration::from_millis(1),
            queue_octets: 10_000_000,
            cross: None,
            bucket: None,
            channels: 1,
            loss: 0.0,
            mtu: 9000,
            reports_too_big: true,
        }
    }

    pub fn loaded(rate: BitRate, cross: Cross) -> Self {
        Self { cross: Some(cross), ..Self::ethernet(rate) }
    }
}
