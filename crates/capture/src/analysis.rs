//! From packets to findings.

use narrows_diagnose::passive::PassiveMethod;
use narrows_probe::{ParamError, RawParams};

use crate::decode::{Decoded, Endpoint, TcpPacket, Unreadable, decode};
use crate::findings::{Counts, Findings, Largest};
use crate::flows::{Context, FlowLimits, Flows, Watchers};
use crate::packet::RawPacket;
use crate::pairs;

/// Steps between stamps that must have been seen before their common measure counts as the clock's.
const STEPS: u32 = 64;

/// What an analysis is to do.
#[derive(Clone)]
pub struct Options {
    /// Methods and their parameters.
    pub methods: Vec<(&'static dyn PassiveMethod, RawParams)>,
    /// What bounds the table of connections.
    pub limits: FlowLimits,
    /// Flows in the result, at most; the largest are kept.
    pub most_flows: usize,
    /// Only connections with all of these ends; a port of 0 stands for any.
    pub only: Vec<Endpoint>,
}

impl Default for Options {
    fn default() -> Self {
        Self { methods: Vec::new(), limits: FlowLimits::default(), most_flows: 2_000, only: Vec::new() }
    }
}

/// An analysis in the middle of a capture.
pub struct Analysis {
    flows: Flows,
    largest: Largest,
    only: Vec<Endpoint>,
    counts: Counts,
    stamps: Stamps,
    dropped: u64,
}

impl Analysis {
    /// With these methods; refuses parameters that any of them cannot read.
    pub fn new(options: Options) -> Result<Self, ParamError> {
        Ok(Self {
            flows: Flows::new(Watchers::new(options.methods)?, options.limits),
            largest: Largest::new(options.most_flows),
            only: options.only,
            counts: Counts::default(),
            stamps: Stamps::default(),
            dropped: 0,
        })
    }

    /// The unit of the stamps, in nanoseconds; the coarsest that is set counts.
    pub fn set_resolution(&mut self, nanos: i64) {
        self.stamps.unit_ns = self.stamps.unit_ns.max(nanos);
    }

    /// Packets that the capture is known to have dropped so far.
    pub fn set_dropped(&mut self, packets: u64) {
        self.dropped = packets;
    }

    /// Counts so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// One more packet.
    #[inline]
    pub fn see(&mut self, raw: &RawPacket<'_>) {
        if let Some(packet) = self.decoded(raw) {
            self.follow(&packet);
        }
    }

    /// Counts a packet and reads its headers; the packet, if it is one to follow.
    #[inline]
    pub fn decoded(&mut self, raw: &RawPacket<'_>) -> Option<TcpPacket> {
        let counts = &mut self.counts;
        counts.packets += 1;
        counts.octets += u64::from(raw.whole_octets);
        if let Some(at_ns) = raw.at_ns {
            counts.stepped_back += u64::from(self.stamps.step(at_ns));
        }
        let packet = match decode(raw) {
            Decoded::Tcp(packet) => packet,
            other => {
                self.count(other);
                return None;
            }
        };
        counts.tcp += 1;
        let wanted = |end: &Endpoint| {
            let is = |own: Endpoint| own.address == end.address && (end.port == 0 || own.port == end.port);
            is(packet.source) || is(packet.destination)
        };
        self.only.iter().all(wanted).then_some(packet)
    }

    /// Sorts a packet into its connection.
    #[inline]
    pub fn follow(&mut self, packet: &TcpPacket) {
        let context = self.context();
        let largest = &mut self.largest;
        self.flows.see(packet, context, &mut |flow| largest.add(flow));
    }

    /// Ends every connection; what was found.
    pub fn finish(mut self) -> Findings {
        let context = self.context();
        let largest = &mut self.largest;
        self.flows.finish(context, &mut |flow| largest.add(flow));
        let (flows, left_out) = self.largest.in_order();
        self.counts.left_out = left_out;
        self.counts.flows = self.flows.counts();
        Findings {
            pairs: pairs::combine(&flows),
            flows,
            counts: self.counts,
            resolution_ns: context.resolution_ns,
            dropped: self.dropped,
        }
    }

    #[cold]
    fn count(&mut self, decoded: Decoded) {
        let counts = &mut self.counts;
        let counter = match decoded {
            Decoded::Tcp(_) => &mut counts.tcp,
            Decoded::Udp => &mut counts.udp,
            Decoded::OtherIp => &mut counts.other_ip,
            Decoded::Fragment => &mut counts.fragments,
            Decoded::OtherLink => &mut counts.other_link,
            Decoded::Unstamped => &mut counts.unstamped,
            Decoded::Unreadable(Unreadable::CutShort) => &mut counts.cut_short,
            Decoded::Unreadable(Unreadable::Malformed) => &mut counts.malformed,
            Decoded::Unreadable(Unreadable::LinkType(number)) => {
                counts.unknown_link_type.get_or_insert(number);
                &mut counts.unknown_link
            }
        };
        *counter += 1;
    }

    fn context(&self) -> Context {
        Context { resolution_ns: self.stamps.resolution_ns(), missed: self.dropped }
    }
}

/// The finest step of a capture's stamps: the greatest common measure of all steps, for a clock may
/// be coarser than its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamps {
    unit_ns: i64,
    last_ns: Option<i64>,
    measure_ns: i64,
    steps: u32,
}

impl Default for Stamps {
    fn default() -> Self {
        Self { unit_ns: 1, last_ns: None, measure_ns: 0, steps: 0 }
    }
}

impl Stamps {
    /// One more stamp; whether it lies before the last one.
    #[inline]
    fn step(&mut self, at_ns: i64) -> bool {
        let Some(last) = self.last_ns.replace(at_ns) else {
            return false;
        };
        let step = at_ns.wrapping_sub(last);
        if step != 0 && self.measure_ns != self.unit_ns {
            self.measure_ns = common_measure(self.measure_ns, step.saturating_abs()).max(self.unit_ns);
            self.steps = self.steps.saturating_add(1);
        }
        step < 0
    }

    fn resolution_ns(&self) -> i64 {
        // A few steps may have a measure by chance.
        if self.steps < STEPS { self.unit_ns } else { self.measure_ns.max(self.unit_ns) }
    }
}

/// Euclid.
fn common_measure(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolution(unit_ns: i64, stamps: impl Iterator<Item = i64>) -> i64 {
        let mut found = Stamps { unit_ns, ..Stamps::default() };
        stamps.for_each(|at_ns| {
            found.step(at_ns);
        });
        found.resolution_ns()
    }

    #[test]
    fn a_clock_may_be_coarser_than_its_unit() {
        let irregular = |tick: i64| (0..200i64).map(move |index| index * index % 97 * tick);
        assert_eq!(resolution(1_000, irregular(1_000)), 1_000);
        assert_eq!(resolution(1_000, irregular(10_000_000)), 10_000_000);
        assert_eq!(resolution(1, irregular(1)), 1);
        // Too few to say.
        assert_eq!(resolution(1, [0, 4_000, 8_000].into_iter()), 1);
        // Extremes do no harm.
        resolution(1, [i64::MIN, i64::MAX, 0, -1, i64::MIN].into_iter());
    }
}
