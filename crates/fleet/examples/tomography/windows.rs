//! Available capacity in four windows of ten minutes: what one window locates, and what three of
//! the four agree on.

use std::collections::BTreeMap;

use narrows_fleet::tomography::agreed;
use narrows_fleet::topology::{LinkIndex, Pair};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_pcg::Pcg64;

use super::network::{Kind, Network};
use super::survey::{Errors, Survey};

/// Of pairs that are measured in each window. A name is *steady* if the link limits the pair in at
/// least three of the four windows, or is faster by less than a tenth there.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Windows {
    pub(crate) pairs: u64,
    /// Located in the last window.
    pub(crate) located: u64,
    pub(crate) steady: u64,
    /// Located in the last window, and the link limits the pair in that window.
    pub(crate) right: u64,
    /// Three of four windows agree.
    pub(crate) agreed: u64,
    pub(crate) agreed_steady: u64,
}

/// Links are used to 0 to 80 %; from window to window that changes by a tenth of their rates
/// (standard deviation). Values err by 5 %, which includes what changes within a window.
pub(crate) fn trials(networks: u64, seed: u64) -> Windows {
    let mut windows = Windows::default();
    for at in 0..networks {
        let network = Network::draw(seed + at, Kind::Plain, 40);
        let mut rng = Pcg64::seed_from_u64(seed + at + 2_000_000);
        let used: Vec<f64> = (0..network.link_count()).map(|_| rng.random_range(0.0..0.8)).collect();
        let mut survey = Survey::new(network.clone(), seed + at, AVAILABLE);
        let pairs = survey.rotation();
        let mut located: BTreeMap<Pair, Vec<Option<LinkIndex>>> = BTreeMap::new();
        let mut limits: BTreeMap<(Pair, LinkIndex), Vec<bool>> = BTreeMap::new();
        let rates: Vec<Network> = (0..4)
            .map(|_| {
                network.with_rates(|link| {
                    let normal: f64 = StandardNormal.sample(&mut rng);
                    1.0 - (used[link] + 0.1 * normal).clamp(0.0, 0.95)
                })
            })
            .collect();
        for (now, noise) in rates.iter().zip(seed + at + 3_000_000..) {
            let found = survey.window(now.clone(), noise, &pairs);
            for pair in &pairs {
                located.entry(*pair).or_default().push(found.get(pair).copied());
            }
        }
        for (pair, named) in &located {
            limits.extend(named.iter().flatten().map(|link| ((*pair, *link), Vec::new())));
        }
        for now in &rates {
            survey.set_rates(now.clone());
            for ((pair, link), limits) in &mut limits {
                limits.push(survey.is_limited_by(*pair, *link, 1.1));
            }
        }
        let steady = |pair, link| limits[&(pair, link)].iter().filter(|one| **one).count() >= 3;
        for (pair, named) in &located {
            windows.pairs += 1;
            if let Some(link) = named[3] {
                windows.located += 1;
                windows.right += u64::from(limits[&(*pair, link)][3]);
                windows.steady += u64::from(steady(*pair, link));
            }
            if let Some(link) = agreed(named) {
                windows.agreed += 1;
                windows.agreed_steady += u64::from(steady(*pair, link));
            }
        }
    }
    windows
}

/// Medians of docs/results/available-grid.md are 1.0 to 3.5 % off without bursts.
const AVAILABLE: Errors = Errors { spread: 0.05, claimed: 1.0, bounds: 0.0, none: 0.0, wrong: 0.0 };
