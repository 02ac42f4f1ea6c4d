//! How quiet the machine was while it was measured.

use serde::Serialize;

use super::{Costs, Inventory};

/// What disturbed the measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Noise {
    /// Nothing was seen that makes the numbers worse than this host's own.
    pub quiet: bool,
    /// Share of processor time that a hypervisor took meanwhile, 0..1.
    pub steal_ratio: Option<f64>,
    /// Share of the last ten seconds in which something waited for a processor, 0..1.
    pub pressure_ratio: Option<f64>,
    /// Runnable tasks per processor over the last minute.
    pub load_per_processor: Option<f64>,
    /// The longest time that was taken from a thread that only reads the clock.
    pub longest_gap_ns: Option<u64>,
    /// What of it is too much.
    pub remarks: Vec<NoiseRemark>,
}

/// One thing that is too much.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NoiseRemark {
    /// For programs.
    pub id: &'static str,
    /// For people.
    pub text: String,
}

/// Steal above this share is told (host-and-timing rules: 2 %).
const STEAL: f64 = 0.02;
/// Waiting for a processor above this share is told (5 %).
const PRESSURE: f64 = 0.05;
/// A gap this long breaks every train that it meets (ours: the worst error of pacing that the check
/// of trains lets pass is 5 µs; a tick of the kernel takes less than 100).
const GAP_NS: u64 = 100_000;

impl Noise {
    /// From what was read and measured, and the share of time stolen meanwhile.
    pub fn of(inventory: &Inventory, costs: &Costs, steal_ratio: Option<f64>) -> Self {
        let pressure_ratio = inventory.processor.pressure_ratio;
        let allowed = f64::from(inventory.processor.allowed.unwrap_or(1).max(1));
        let load = inventory.processor.load.map(|load| load / allowed);
        let longest = costs.clock_gaps.map(|gaps| gaps.max_ns);
        let mut remarks = Vec::new();
        let mut remark = |id, text| remarks.push(NoiseRemark { id, text });
        if let Some(steal) = steal_ratio.filter(|steal| *steal > STEAL) {
            remark("steal", format!("a hypervisor took {:.1} % of the processors' time", steal * 100.0));
        }
        if let Some(pressure) = pressure_ratio.filter(|pressure| *pressure > PRESSURE) {
            let text = format!("in {:.0} % of the last ten seconds something waited for a processor", pressure * 100.0);
            remark("pressure", text);
        }
        if let Some(load) = load.filter(|load| *load > 0.7) {
            remark("load", format!("{load:.1} tasks per processor wanted to run over the last minute"));
        }
        if let Some(gap) = longest.filter(|gap| *gap > GAP_NS) {
            let text = format!(
                "up to {:.1} ms at a time were taken from a program that only read the clock",
                gap as f64 / 1e6
            );
            remark("gaps", text);
        }
        Self {
            quiet: remarks.is_empty(),
            steal_ratio,
            pressure_ratio,
            load_per_processor: load,
            longest_gap_ns: longest,
            remarks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Spread;
    use super::*;

    #[test]
    fn quiet_and_not() {
        let mut inventory = Inventory::default();
        let mut costs = Costs { clock_gaps: Spread::of(&[20.0, 25.0, 40_000.0]), ..Costs::default() };
        assert!(Noise::of(&inventory, &costs, Some(0.001)).quiet);
        assert!(Noise::of(&inventory, &Costs::default(), None).quiet);
        inventory.processor.pressure_ratio = Some(0.2);
        inventory.processor.load = Some(3.0);
        inventory.processor.allowed = Some(2);
        costs.clock_gaps = Spread::of(&[20.0, 4_000_000.0]);
        let noise = Noise::of(&inventory, &costs, Some(0.05));
        let ids: Vec<&str> = noise.remarks.iter().map(|remark| remark.id).collect();
        assert_eq!(ids, ["steal", "pressure", "load", "gaps"]);
        assert!(!noise.quiet);
    }
}
