//! Proofs by load over paths that share a link, and over such that do not.

use narrows_fleet::sharing::{Available, Proof, ProofVerdict, prove};
use narrows_units::BitRate;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

/// Verdicts over many proofs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Proofs {
    pub(crate) right: u64,
    pub(crate) wrong: u64,
    pub(crate) inconclusive: u64,
}

/// Half of the paths share the tight link. What is available varies from window to window by
/// `variation`, and jumps for good once in twenty windows; a value errs by 5 %.
pub(crate) fn trials(count: u64, seed: u64, variation: f64) -> Proofs {
    let mut proofs = Proofs::default();
    for trial in 0..count {
        let mut rng = Pcg64::seed_from_u64(seed + trial);
        let shared = trial % 2 == 0;
        let verdict =
            ProofVerdict::of(draw(&mut rng, shared, variation).and_then(|proof| prove(&proof)).unwrap_or(1.0));
        match verdict {
            ProofVerdict::Inconclusive => proofs.inconclusive += 1,
            ProofVerdict::Shared if shared => proofs.right += 1,
            ProofVerdict::NotShared if !shared => proofs.right += 1,
            ProofVerdict::Shared | ProofVerdict::NotShared => proofs.wrong += 1,
        }
    }
    proofs
}

fn draw(rng: &mut Pcg64, shared: bool, variation: f64) -> Option<Proof> {
    let mut level = super::network::log_uniform(rng, 50e6, 5e9);
    // As the hub orders it.
    let load = level * 0.7;
    // Cross traffic on the shared link that yields gives a part of the load its room.
    let taken = if shared { load * rng.random_range(0.6..1.0) } else { 0.0 };
    let mut available = Vec::new();
    for window in 0..4 {
        if rng.random_bool(0.05) {
            level *= rng.random_range(0.5..1.5);
        }
        let normal: [f64; 2] = [StandardNormal.sample(rng), StandardNormal.sample(rng)];
        let free = level * (variation * normal[0]).exp() - if window % 2 == 1 { taken } else { 0.0 };
        let value = free.max(level * 0.01) * (0.05 * normal[1]).exp();
        let rate = |factor: f64| BitRate::from_bps_f64(value * factor);
        available.push(Available::Estimate { value: rate(1.0)?, low: rate(0.921)?, high: rate(1.086)? });
    }
    // The pair's history is not endless: its variation is known to a fifth.
    let known: f64 = StandardNormal.sample(rng);
    Some(Proof {
        available: available.try_into().ok()?,
        load: BitRate::from_bps_f64(load)?,
        variation: variation * (0.2 * known).exp(),
    })
}
