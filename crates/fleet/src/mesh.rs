//! The rotation mesh: which light runs an agent starts in which epoch.
//!
//! The seed shuffles the offsets `1..n`. Epoch `e` has the `e`-th `k` of them, and host `i`
//! measures host `(i + o) mod n` for each offset `o` of the epoch. So every host is source and
//! target equally often, and every pair comes once in `ceil((n - 1) / k)` epochs. An agent that
//! knows seed, `n` and its own place needs nobody to compute its runs.

use std::time::Duration;

use narrows_stat::SplitMix64;
use narrows_units::to_usize;

/// How long an epoch lasts. Ours: long enough that 10 000 hosts start one light run in three
/// minutes each, short enough that a fleet of ten sees every pair in an hour or two.
pub const EPOCH: Duration = Duration::from_secs(3600);

/// Light runs per host and epoch: `min(n - 1, max(4, ceil(2 ln n)))`. Ours: `(n ln n) / 2` random
/// edges connect a graph of `n` hosts (Erdős and Rényi, 1960), and four times as many leave room
/// for runs that fail.
pub fn fan_out(hosts: u32) -> u32 {
    let wanted = (2.0 * f64::from(hosts.max(1)).ln()).ceil();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 45")]
    let wanted = wanted as u32;
    wanted.max(4).min(hosts.saturating_sub(1))
}

/// The mesh of a fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mesh {
    hosts: u32,
    seed: u64,
    offsets: Vec<u32>,
}

/// One light run of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// The place of the host to measure.
    pub target: u32,
    /// When to start, from the begin of the epoch.
    pub start: Duration,
}

impl Mesh {
    /// The mesh of so many hosts; `seed` is the plan's.
    pub fn new(hosts: u32, seed: u64) -> Self {
        let mut offsets: Vec<u32> = (1..hosts).collect();
        shuffle(&mut offsets, &mut SplitMix64::new(seed));
        Self { hosts, seed, offsets }
    }

    /// Epochs until every pair had its turn.
    pub fn cycle(&self) -> u64 {
        self.offsets.chunks(self.per_epoch()).len() as u64
    }

    /// What the host at `place` measures in an epoch, in the order of time. The last epoch of a
    /// cycle has fewer visits, unless `k` divides `n - 1`.
    pub fn visits(&self, place: u32, epoch: u64) -> Vec<Visit> {
        let chunk = epoch % self.cycle().max(1);
        let Some(offsets) = self.offsets.chunks(self.per_epoch()).nth(to_usize(chunk)) else {
            return Vec::new();
        };
        // Each visit has a part of the epoch for itself, and starts anywhere within: hosts that
        // know the same epoch do not start together.
        let part = EPOCH / fan_out(self.hosts);
        let mut random = SplitMix64::new(self.seed ^ (epoch << 32) ^ u64::from(place));
        let visit = |(number, offset): (u32, &u32)| Visit {
            target: self.target(place, *offset),
            start: part * number + part.mul_f64(random.next_unit()),
        };
        (0..).zip(offsets).map(visit).collect()
    }

    fn target(&self, place: u32, offset: u32) -> u32 {
        let sum = (u64::from(place) + u64::from(offset)) % u64::from(self.hosts);
        u32::try_from(sum).expect("a rest of a u32")
    }

    fn per_epoch(&self) -> usize {
        to_usize(u64::from(fan_out(self.hosts).max(1)))
    }
}

/// Fisher and Yates, as Durstenfeld wrote it (Algorithm 235).
pub(crate) fn shuffle<T>(items: &mut [T], random: &mut SplitMix64) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(last + 1, random));
    }
}

/// A number from 0 to below `count`, which is not 0. Its bias is `count / 2^64`.
pub(crate) fn below(count: usize, random: &mut SplitMix64) -> usize {
    let high = (u128::from(random.next_u64()) * count as u128) >> 64;
    usize::try_from(high).expect("below a usize")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every pair of a cycle, by the visits that the agents compute alone.
    fn pairs_once(hosts: u32) {
        let mesh = Mesh::new(hosts, 7);
        let size = hosts as usize;
        let mut counts = vec![0_u8; size * size];
        for epoch in 0..mesh.cycle() {
            let mut as_target = vec![0_u32; size];
            let mut as_source = Vec::new();
            for place in 0..hosts {
                let visits = mesh.visits(place, epoch);
                as_source.push(visits.len());
                for visit in visits {
                    counts[place as usize * size + visit.target as usize] += 1;
                    as_target[visit.target as usize] += 1;
                }
            }
            let each = as_source[0];
            assert!(each > 0 && each <= fan_out(hosts) as usize);
            assert!(epoch + 1 == mesh.cycle() || each == fan_out(hosts) as usize, "{hosts} hosts, epoch {epoch}");
            assert!(as_source.iter().all(|count| *count == each));
            assert!(as_target.iter().all(|count| *count as usize == each));
        }
        for (at, count) in counts.iter().enumerate() {
            assert_eq!(*count, u8::from(at / size != at % size), "{hosts} hosts, pair {at}");
        }
    }

    #[test]
    fn each_pair_comes_once_in_a_cycle() {
        (2..=40).for_each(pairs_once);
        [97, 256].into_iter().for_each(pairs_once);
    }

    /// Hosts that all add the same offsets to their places are sources and targets equally often.
    #[test]
    fn every_fleet_has_each_offset_once_and_the_shortest_cycle() {
        for hosts in 2..=1000 {
            let mesh = Mesh::new(hosts, u64::from(hosts));
            assert_eq!(mesh.cycle(), u64::from((hosts - 1).div_ceil(fan_out(hosts))), "{hosts} hosts");
            let offsets = |place: u32| -> Vec<u32> {
                let visits = (0..mesh.cycle()).flat_map(|epoch| mesh.visits(place, epoch));
                visits.map(|visit| (visit.target + hosts - place) % hosts).collect()
            };
            let mut first = offsets(0);
            for place in [1, hosts / 2, hosts - 1] {
                assert_eq!(offsets(place), first, "{hosts} hosts");
            }
            first.sort_unstable();
            assert!(first.into_iter().eq(1..hosts), "{hosts} hosts");
        }
    }

    #[test]
    fn fan_out_and_cycle_of_three_sizes() {
        let of = |hosts| (fan_out(hosts), Mesh::new(hosts, 1).cycle());
        assert_eq!([of(50), of(1_000), of(10_000)], [(8, 7), (14, 72), (19, 527)]);
        assert_eq!([fan_out(0), fan_out(1), fan_out(2), fan_out(5), fan_out(6)], [0, 0, 1, 4, 4]);
        assert!(Mesh::new(1, 1).visits(0, 3).is_empty() && Mesh::new(0, 1).visits(0, 3).is_empty());
    }

    #[test]
    fn visits_spread_over_the_epoch_and_differ_by_seed() {
        let mesh = Mesh::new(100, 5);
        let visits = mesh.visits(3, 2);
        assert!(visits.is_sorted_by_key(|visit| visit.start) && visits.last().unwrap().start < EPOCH);
        let mean: f64 = (0..100).flat_map(|place| mesh.visits(place, 0)).map(|v| v.start.as_secs_f64()).sum::<f64>()
            / f64::from(100 * fan_out(100));
        assert!((1750.0..1850.0).contains(&mean), "{mean}");
        assert_ne!(visits, Mesh::new(100, 6).visits(3, 2));
        let targets = |epoch| mesh.visits(3, epoch).iter().map(|visit| visit.target).collect::<Vec<_>>();
        assert_eq!(targets(2), targets(2 + mesh.cycle()));
    }
}
