//! What any answer carries besides its number: caveats of the whole run, and the intermediate
//! results.

use narrows_stat::Merit;

use super::sample::Phase;
use super::session::MethodRun;
use super::{batches, capprobe, hosts, modes, shape};
use narrows_probe::outcome::{Caveat, Confidence, Diagnostics, Estimate, Limit, SampleCounts};

/// Caveats and evidence that any answer carries.
pub(super) fn finish(session: &MethodRun, mut estimate: Estimate) -> Estimate {
    let mut caveats = common_caveats(session);
    if estimate.limited_by != Limit::Shaper && shape::sustained(session).is_some() {
        caveats.push(Caveat::Shaped);
        estimate.confidence = Confidence::Low;
    }
    if session.samples.len() < FEW {
        caveats.push(Caveat::FewSamples { samples: u32::try_from(session.samples.len()).unwrap_or(u32::MAX) });
        estimate.confidence = Confidence::Low;
    }
    if session.tally.loss_ratio() > HIGH_LOSS || session.tally.reordered > 0 {
        estimate.confidence = estimate.confidence.min(Confidence::Medium);
    }
    for caveat in caveats {
        estimate = estimate.caveat(caveat);
    }
    let own = std::mem::take(&mut estimate.diagnostics);
    estimate.diagnostics = diagnostics(session);
    let kept = ["branch", "peak_bps", "burst_octets", "bucket_excluded_octets"];
    estimate.diagnostics.adopt(own, &kept);
    estimate
}

pub(super) fn common_caveats(session: &MethodRun) -> Vec<Caveat> {
    let tally = &session.tally;
    let mut caveats = Vec::new();
    if tally.lost > 0 {
        caveats.push(Caveat::Loss { ratio: tally.loss_ratio() });
    }
    if tally.dropped > 0 {
        caveats.push(Caveat::LocalDrops { packets: tally.dropped });
    }
    if tally.reordered > 0 {
        caveats.push(Caveat::Reordering { ratio: tally.reordered_ratio() });
    }
    if tally.paused > 0 {
        caveats.push(Caveat::PacingBroken { trains: tally.paused });
    }
    caveats
}

pub(super) fn samples(session: &MethodRun) -> SampleCounts {
    let tally = &session.tally;
    SampleCounts::default()
        .kept("trains", session.samples.len())
        .rejected("too_fast_trains", session.too_fast.len())
        .rejected("paused_trains", tally.paused)
        .rejected("incomplete_or_reordered_trains", tally.failed.saturating_sub(tally.paused))
}

/// Everything a reader needs to see how the answer came about; rates at the IP layer for full-size
/// packets.
pub(super) fn diagnostics(session: &MethodRun) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    let ip = |wire: f64| session.ip_rate(wire).round();
    diagnostics.insert("trains", session.tally.trains);
    diagnostics.insert("samples", session.samples.len());
    diagnostics.insert("packet_octets", u32::from(session.full_size()));
    if let Some(preliminary) = modes::preliminary(session) {
        diagnostics.insert("preliminary_mean_bps", ip(preliminary.mean));
        diagnostics.insert("preliminary_cv", preliminary.cv);
        diagnostics.insert("bin_width_bps", ip(preliminary.width));
    }
    framing_evidence(session, &mut diagnostics);
    if let Some(loaded) = session.narrow_is_loaded(1) {
        diagnostics.insert("narrow_link_loaded", loaded);
    }
    if let Some(share) = hosts::sent_share(session) {
        diagnostics.insert("sent_over_received_time", share);
    }
    if let Some(rate) = shape::sustained(session) {
        diagnostics.insert("sustained_bps", ip(rate));
    }
    if let Some(filtered) = capprobe::filter(session) {
        diagnostics.insert("capprobe_bps", ip(filtered.rate));
        diagnostics.insert("capprobe_clean_pairs", filtered.clean);
        diagnostics.insert("capprobe_converged", filtered.converged);
    }
    if let Some(rates) = batches::rates(session) {
        diagnostics.insert("batch_train_bps", rates.trains.values().iter().map(|r| ip(*r)).collect::<Vec<_>>());
        diagnostics.insert("batch_p90_bps", ip(rates.batches.quantile(0.9).unwrap_or(0.0)));
    }
    if session.of(Phase::Pairs).next().is_some()
        && let Some(decision) = modes::decide(session, usize::MAX)
    {
        let series = |of: &dyn Fn(&narrows_stat::LocalMode) -> f64| decision.modes.iter().map(of).collect::<Vec<f64>>();
        diagnostics.insert("modes_bps", series(&|mode| ip(mode.centre())));
        diagnostics.insert("mode_counts", series(&|mode| mode.count as f64));
        diagnostics.insert("mode_merits_density", series(&|mode| mode.merit(Merit::Density)));
        diagnostics.insert("mode_merits_kurtosis", series(&|mode| mode.merit(Merit::Kurtosis)));
        diagnostics.insert("pairs", session.of(Phase::Pairs).count());
        if let Some(adr) = decision.adr {
            diagnostics.insert("dispersion_rate_bps", ip(adr.rate));
            diagnostics.insert("dispersion_trains", adr.trains);
        }
    }
    diagnostics
}

/// What the narrow link adds to each packet, where sizes tell: the name of the framing, octets and
/// their half width, and the rate of one octet more, which is the link's own where packets are not
/// cut into cells.
fn framing_evidence(session: &MethodRun, diagnostics: &mut Diagnostics) {
    let clean = || capprobe::filter(session).and_then(|found| found.inverted);
    let Some(inverted) = session.inverted.clone().or_else(clean) else {
        return;
    };
    if let Some((name, _)) = inverted.named() {
        diagnostics.insert("layer2_framing", name);
    }
    let (octets, error) = inverted.overhead;
    if error < TELLING_OCTETS {
        diagnostics.insert("layer2_octets", octets);
        diagnostics.insert("layer2_octets_error", error);
        diagnostics.insert("marginal_bps", inverted.marginal_bps.round());
    }
}

/// Ours: beyond that the octets are no finding.
const TELLING_OCTETS: f64 = 20.0;
/// Ours.
const FEW: usize = 5;
/// Ours: above this, loss is a finding about the path that a reader must weigh.
const HIGH_LOSS: f64 = 0.01;
