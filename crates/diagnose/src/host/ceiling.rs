//! How much can pass between a program and the wire: equations 2 and 3 of `[Jin03a]` for the hosts
//! of today.
//!
//! In 2003 one shared bus carried everything, and equation 2 (`seed::io_octets_per_second`) was the
//! whole story. Today
//!
//! ```text
//! T_max = min( slot, card, B_m / (2k + d), n / c )
//! ```
//!
//! with `B_m` octets that memory moves per second (reads and writes counted), `k` copies by
//! software (each reads and writes), `d` passes of the card through memory (1; 0 where the card
//! reads and writes the cache, or where there is no card), `n` processors at work, and `c`
//! processor time per octet. Equation 2 is this with `k = 1` and `d` = memory clock / bus clock.
//! Equation 3 becomes: without the copies, the share `2k / (2k + d)` of memory's work is saved.

use narrows_units::BitRate;
use serde::Serialize;

use super::Costs;

/// What an octet goes through.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Path {
    /// For people and programs: `sending`, `sending_zero_copy`, `receiving`, `loopback`.
    pub name: &'static str,
    /// Copies by software.
    pub copies: u8,
    /// Passes of a card through memory.
    pub dma_passes: u8,
    /// It passes a card and its slot.
    pub card: bool,
}

impl Path {
    /// From a program to the wire.
    pub const SENDING: Self = Self { name: "sending", copies: 1, dma_passes: 1, card: true };
    /// The same without the copy (`MSG_ZEROCOPY`, `sendfile`).
    pub const SENDING_ZERO_COPY: Self = Self { name: "sending_zero_copy", copies: 0, ..Self::SENDING };
    /// From the wire to a program, past the cache: where the card writes into it, memory is spared.
    pub const RECEIVING: Self = Self { name: "receiving", ..Self::SENDING };
    /// From a program to a program on the same host.
    pub const LOOPBACK: Self = Self { name: "loopback", copies: 2, dma_passes: 0, card: false };

    /// Times that each octet passes memory.
    pub fn memory_passes(&self) -> u32 {
        2 * u32::from(self.copies) + u32::from(self.dma_passes)
    }

    /// Equation 3: the share of memory's work that goes without the copies.
    pub fn zero_copy_saves(&self) -> f64 {
        let all = self.memory_passes();
        if all == 0 {
            return 0.0;
        }
        f64::from(2 * u32::from(self.copies)) / f64::from(all)
    }
}

/// One term of the minimum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// `slot`, `card`, `memory` or `processor`.
    pub what: &'static str,
    /// What it lets through; `None` if that is not known.
    pub rate_bps: Option<u64>,
    /// From what it was worked out, or why it is not known.
    pub why: String,
}

/// What a host can carry on one path through it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ceiling {
    /// Which path.
    pub path: Path,
    /// All terms.
    pub bounds: Vec<Bound>,
    /// The least of the known ones.
    pub ceiling_bps: Option<u64>,
    /// Which that is.
    pub by: Option<&'static str>,
    /// What was measured on the same path.
    pub measured_bps: Option<u64>,
}

impl Ceiling {
    /// From measured costs; `card` is the link's negotiated rate, `slot` what its slot carries,
    /// `processors` how many one flow keeps busy.
    pub fn of(path: Path, costs: &Costs, card: Option<BitRate>, slot: Option<BitRate>, processors: u32) -> Self {
        let mut bounds = Vec::new();
        if path.card {
            bounds.push(reported("slot", slot, "payload of its PCI Express slot"));
            bounds.push(reported("card", card, "negotiated rate of the link"));
        }
        bounds.push(memory(path, costs));
        bounds.push(processor(path, costs, processors));
        let least = bounds.iter().filter_map(|bound| bound.rate_bps.map(|rate| (rate, bound.what))).min();
        Self {
            path,
            ceiling_bps: least.map(|(rate, _)| rate),
            by: least.map(|(_, what)| what),
            bounds,
            measured_bps: None,
        }
    }

    /// As a rate.
    pub fn rate(&self) -> Option<BitRate> {
        self.ceiling_bps.map(BitRate::from_bps)
    }
}

fn reported(what: &'static str, rate: Option<BitRate>, how: &str) -> Bound {
    Bound {
        what,
        rate_bps: rate.map(BitRate::bps),
        why: if rate.is_some() { how.to_owned() } else { format!("the system does not tell the {how}") },
    }
}

fn memory(path: Path, costs: &Costs) -> Bound {
    let passes = path.memory_passes();
    let moved = costs.memory_octets_per_second();
    let rate = moved.and_then(|moved| BitRate::from_bps_f64(moved * 8.0 / f64::from(passes.max(1))));
    let rate = rate.filter(|_| passes > 0);
    Bound {
        what: "memory",
        rate_bps: rate.map(BitRate::bps),
        why: match moved {
            Some(moved) => format!(
                "{:.1} GB/s through memory, {passes} time(s) per octet ({} cop{}, {} by the card)",
                moved / 1e9,
                path.copies,
                if path.copies == 1 { "y" } else { "ies" },
                path.dma_passes
            ),
            None => "memory was not measured".to_owned(),
        },
    }
}

fn processor(path: Path, costs: &Costs, processors: u32) -> Bound {
    let cost = if path == Path::RECEIVING { costs.receive_seconds_per_octet() } else { costs.send_seconds_per_octet() };
    let rate = cost.and_then(|cost| BitRate::from_bps_f64(f64::from(processors) * 8.0 / cost));
    Bound {
        what: "processor",
        rate_bps: rate.map(BitRate::bps),
        why: match cost {
            Some(cost) => format!("{:.3} ns per octet, {processors} processor(s) at work", cost * 1e9),
            None => "no way to do it was measured".to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Spread, seed};
    use super::*;

    /// 11.5 GB/s copied are 23 GB/s moved; a third of that for one copy and one pass of the card.
    #[test]
    fn memory_of_today() {
        let costs = Costs { memory_copy_octets_per_second: Some(11_500_000_000), ..Costs::default() };
        let of = |path| Ceiling::of(path, &costs, None, None, 1).ceiling_bps.unwrap() as f64 / 1e9;
        assert!((of(Path::SENDING) - 23.0 * 8.0 / 3.0).abs() < 1e-6);
        assert!((of(Path::SENDING_ZERO_COPY) - 23.0 * 8.0).abs() < 1e-6);
        assert!((of(Path::LOOPBACK) - 23.0 * 2.0).abs() < 1e-6);
    }

    /// With the bus's clock as the card's passes through memory, the generalisation is equation 2
    /// and 3 of the paper.
    #[test]
    fn it_is_the_papers_equation() {
        let costs = Costs { memory_copy_octets_per_second: Some(144_000_000), ..Costs::default() };
        let old = Path { dma_passes: 4, ..Path::SENDING };
        let ours = Ceiling::of(old, &costs, None, None, 1).ceiling_bps.unwrap() as f64;
        let papers = 8.0 * seed::io_octets_per_second(288e6, 4.0, 1.0);
        assert!((ours - papers).abs() < 1.0, "{ours} {papers}");
        assert!((old.zero_copy_saves() - seed::zero_copy_saves(4.0, 1.0)).abs() < 1e-12);
        assert!((Path::SENDING.zero_copy_saves() - 2.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn the_least_term_rules_and_unknown_ones_do_not() {
        let costs = Costs {
            memory_copy_octets_per_second: Some(10_000_000_000),
            send_segments: Spread::of(&[60.0]),
            ..Costs::default()
        };
        let card = Some(BitRate::from_gbps(10));
        let all = Ceiling::of(Path::SENDING, &costs, card, Some(BitRate::from_gbps(55)), 1);
        assert_eq!((all.ceiling_bps, all.by), (Some(10_000_000_000), Some("card")));
        let faster = Ceiling::of(Path::SENDING, &costs, Some(BitRate::from_gbps(100)), Some(BitRate::from_gbps(50)), 1);
        assert_eq!(faster.by, Some("slot"));
        let unknown = Ceiling::of(Path::SENDING, &costs, None, None, 1);
        assert_eq!(unknown.by, Some("memory"));
        assert_eq!(unknown.bounds.iter().filter(|bound| bound.rate_bps.is_none()).count(), 2);
        // 60 ns for 1500 octets: 200 Gbit/s.
        let processor = unknown.bounds.iter().find(|bound| bound.what == "processor").unwrap();
        assert_eq!(processor.rate_bps, Some(200_000_000_000));
        let nothing = Ceiling::of(Path::SENDING, &Costs::default(), None, None, 1);
        assert_eq!((nothing.ceiling_bps, nothing.by), (None, None));
    }
}
