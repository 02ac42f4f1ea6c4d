//! Token buckets: what is free behind one is the bucket's rate, which a train that the bucket holds
//! does not see.

use narrows_units::BitRate;

use super::{Faults, params, subjects};
use narrows_probe::outcome::{BoundKind, Caveat, Confidence, Outcome};
use narrows_probe::testing::closed_form_world::{Bucket, ClosedFormWorld, Hop};
use narrows_probe::world::drive;

/// It says that there is a bucket, or how deep one would have gone unseen, or is not sure, or is
/// right.
fn warned(outcome: &Outcome, sustained: f64, depth_octets: u32) -> Result<(), String> {
    let Some(estimate) = outcome.estimate() else {
        return Ok(());
    };
    let flagged = estimate.caveats.iter().any(|caveat| match caveat {
        Caveat::Shaped | Caveat::Policed => true,
        Caveat::BucketNotExcluded { deeper_than_octets } => *deeper_than_octets <= u64::from(depth_octets),
        _ => false,
    });
    let right = estimate.in_unit().low as f64 <= 1.05 * sustained && 0.95 * sustained <= estimate.in_unit().high as f64;
    let bound = estimate.verdict() == BoundKind::LowerBound && estimate.in_unit().value as f64 <= 1.05 * sustained;
    if flagged || right || bound || estimate.confidence == Confidence::Low {
        return Ok(());
    }
    let (low, high) = (estimate.in_unit().low, estimate.in_unit().high);
    Err(format!("{low}..{high} of {sustained}, {:?}", estimate.caveats))
}

#[test]
fn a_bucket_deeper_than_the_trains_is_flagged() {
    let mut faults = Faults::default();
    for (method, law) in subjects() {
        if law.blind.contains(&"bucket") {
            continue;
        }
        for depth_octets in [30_000, 150_000, 1_000_000, 10_000_000] {
            let rate = BitRate::from_mbps(50);
            let mut hop = Hop::ethernet(BitRate::from_mbps(100));
            hop.bucket = Some(Bucket { rate, depth_octets });
            let mut host_pair = ClosedFormWorld::new(vec![Hop::ethernet(BitRate::from_mbps(1000)), hop], 1);
            let raw = params(law, host_pair.ip_capacity(1500));
            let mut estimator = method.begin(&raw).unwrap();
            let Ok(measured) = drive(&mut host_pair, estimator.as_mut(), method.imposes(&raw).budget());
            let sustained = rate.as_f64() * 1500.0 / 1538.0;
            let case = format!("a bucket of {depth_octets} octets");
            faults.note(law.method, &case, warned(&measured.outcome, sustained, depth_octets));
        }
    }
    faults.none();
}
