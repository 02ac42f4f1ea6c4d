//! In which order, with which parameters, and when to ask twice.

use narrows_units::{BitRate, Delta, Direction, Metric, Octets, nanos};

use super::Job;
use super::combine::{cap_by, combine, raise_by, taken_over};
use narrows_probe::Entry;
use narrows_probe::outcome::{BoundKind, Estimate, Limit, Outcome, Ranged, Reason};
use narrows_probe::progress::{Feed, PlannedStage};
use narrows_probe::world::World;

/// How much to spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Capacity, available bandwidth and round trip; no load on the path beyond short trains.
    Quick,
    /// Everything, each in its quick form.
    Standard,
    /// Everything, each in its full form, and a second method for what matters most.
    Thorough,
}

type Params = Vec<(&'static str, String)>;

/// What a job of this profile will measure, in its order, with what each stage usually takes.
pub(super) fn stages(profile: Profile, direction: Direction) -> Vec<PlannedStage> {
    let quick = [
        (Metric::RoundTripTime, "rtt"),
        (Metric::PathMtu, "pmtu"),
        (Metric::IpCapacity, "capacity"),
        (Metric::AvailableIpCapacity, "available"),
    ];
    let loads = [
        (Metric::MaximumBurstOctets, "burst"),
        (Metric::UdpAchievable, "udp"),
        (Metric::TcpAchievableSingle, "tcp"),
        (Metric::TcpStreamsToFill, "streams"),
        (Metric::TcpWindowOctets, "window"),
    ];
    let loads = loads.into_iter().filter(|_| profile != Profile::Quick);
    let stage = |(metric, name)| {
        let usual = &crate::find(name)?.info().imposes;
        Some(PlannedStage { metric, direction, octets: usual.typical_octets, time_ns: nanos(usual.typical_time) })
    };
    quick.into_iter().chain(loads).filter_map(stage).collect()
}

pub(super) fn carry_out<W: World>(job: &mut Job<'_>, world: &mut W, feed: &dyn Feed) -> Result<(), W::Fault> {
    for metric in [Metric::RoundTripTime, Metric::PathMtu] {
        let method = if metric == Metric::PathMtu { "pmtu" } else { "rtt" };
        let entry = job.measure(world, feed, metric, method, &[])?;
        job.keep(entry);
    }
    capacity(job, world, feed)?;
    available(job, world, feed)?;
    cross_traffic(job);
    if job.options.profile == Profile::Quick {
        return Ok(());
    }
    let available = job.value(Metric::AvailableIpCapacity);
    burst(job, world, feed, available)?;
    udp(job, world, feed, available)?;
    tcp(job, world, feed, available)?;
    Ok(())
}

fn capacity<W: World>(job: &mut Job<'_>, world: &mut W, feed: &dyn Feed) -> Result<(), W::Fault> {
    let entry = job.measure(world, feed, Metric::IpCapacity, "capacity", &[])?;
    job.keep(entry);
    Ok(())
}

/// The default's own choice of methods; a second, independent one beside it where the user wants to
/// be sure.
fn available<W: World>(job: &mut Job<'_>, world: &mut W, feed: &dyn Feed) -> Result<(), W::Fault> {
    let metric = Metric::AvailableIpCapacity;
    let quick = job.options.profile == Profile::Quick;
    // What pairs said of the narrow link need not be fitted again.
    let params = job.known(Metric::IpCapacity).map(taken_over).unwrap_or_default();
    let mut best = job.measure(world, feed, metric, if quick { "slope" } else { "available" }, &params)?;
    if job.options.profile == Profile::Thorough {
        let most = || best.outcome.estimate().and_then(Estimate::rate).map(|rate| rate.high);
        let scale = job.value(Metric::IpCapacity).or_else(most);
        let second = job.measure(world, feed, metric, "pathload", &[])?;
        best = combine(best, &second, scale.unwrap_or(BitRate::ZERO));
    }
    if let Some(known) = job.known(Metric::IpCapacity) {
        cap_by(known, &mut best.outcome);
    }
    let capacity = job.entries.iter_mut().find(|entry| entry.metric == Metric::IpCapacity);
    if let Some((capacity, available)) = capacity.zip(best.outcome.estimate()) {
        raise_by(available, &mut capacity.outcome);
    }
    job.keep(best);
    Ok(())
}

/// Cross traffic on the tight link, where a method gave it. Else a bound: the tight link is at
/// least as fast as the narrow one, so it carries at least what capacity and available bandwidth
/// leave.
fn cross_traffic(job: &mut Job<'_>) {
    if job.known(Metric::CrossTraffic).is_some() {
        return;
    }
    let metric = Metric::CrossTraffic;
    let rate = |metric| job.known(metric).and_then(Estimate::rate);
    let outcome = match (rate(Metric::IpCapacity), rate(Metric::AvailableIpCapacity)) {
        (Some(capacity), Some(available)) if available.verdict == BoundKind::Estimated => {
            let least = capacity.low.saturating_sub(available.high);
            let estimate = Estimate::ip_rate(metric, least, least, least).at_least(Limit::Path);
            Outcome::from(estimate.with("basis", "the least capacity minus the most that is available"))
        }
        _ => Outcome::inconclusive(Reason::MissingInput { what: "capacity and available bandwidth".to_owned() }),
    };
    job.entries.push(Entry {
        metric,
        direction: job.options.direction,
        method: "difference",
        outcome,
        cost: narrows_probe::Cost::default(),
    });
}

fn burst<W: World>(
    job: &mut Job<'_>,
    world: &mut W,
    feed: &dyn Feed,
    available: Option<BitRate>,
) -> Result<(), W::Fault> {
    let entry = job.measure(world, feed, Metric::MaximumBurstOctets, "burst", &given("available_bps", available))?;
    job.keep(entry);
    Ok(())
}

fn udp<W: World>(
    job: &mut Job<'_>,
    world: &mut W,
    feed: &dyn Feed,
    available: Option<BitRate>,
) -> Result<(), W::Fault> {
    let entry = job.measure(world, feed, Metric::UdpAchievable, "udp", &given("start_bps", available))?;
    job.keep(entry);
    Ok(())
}

fn tcp<W: World>(
    job: &mut Job<'_>,
    world: &mut W,
    feed: &dyn Feed,
    available: Option<BitRate>,
) -> Result<(), W::Fault> {
    let thorough = job.options.profile == Profile::Thorough;
    let mode = if thorough { "full" } else { "quick" };
    let single = job.measure(world, feed, Metric::TcpAchievableSingle, "tcp", &[("mode", mode.to_owned())])?;
    job.keep(single);

    let mut params = given("available_bps", available);
    params.extend(given("single_bps", job.value(Metric::TcpAchievableSingle)));
    params.push(("thorough", thorough.to_string()));
    let streams = job.measure(world, feed, Metric::TcpStreamsToFill, "streams", &params)?;
    job.keep(streams);
    one_fills(job);

    window(job, world, feed, available)
}

/// Where one stream fills the path, "as many as it takes" is that one: its interval holds for both.
fn one_fills(job: &mut Job<'_>) {
    let Some(single) = job.known(Metric::TcpAchievableSingle).and_then(Estimate::rate) else {
        return;
    };
    if job.value(Metric::TcpStreamsToFill) != Some(1u32) {
        return;
    }
    let parallel = job.entries.iter_mut().find(|entry| entry.metric == Metric::TcpAchievableParallel);
    if let Some(Outcome::Estimated(estimate)) = parallel.map(|entry| &mut entry.outcome) {
        estimate.adjust(|rate: &mut Ranged<BitRate>| {
            if rate.low == rate.high {
                (rate.low, rate.high) = (single.low.min(rate.value), single.high.max(rate.value));
            }
        });
    }
}

/// The window rests on what is available, or at least on the capacity: without either there is
/// nothing to compute it from.
fn window<W: World>(
    job: &mut Job<'_>,
    world: &mut W,
    feed: &dyn Feed,
    available: Option<BitRate>,
) -> Result<(), W::Fault> {
    let metric = Metric::TcpWindowOctets;
    let rate = available.or(job.value(Metric::IpCapacity));
    if rate.is_none() {
        job.entries.push(Entry {
            metric,
            direction: job.options.direction,
            method: "window",
            outcome: Outcome::inconclusive(Reason::MissingInput { what: "available bandwidth or capacity".to_owned() }),
            cost: narrows_probe::Cost::default(),
        });
        return Ok(());
    }
    let mut params = given("available_bps", rate);
    if let Some(octets) = job.value::<Octets>(Metric::MaximumBurstOctets) {
        params.push(("burst_octets", octets.count().to_string()));
    }
    if let Some(time) = job.value::<Delta>(Metric::RoundTripTime) {
        params.push(("rtt", format!("{} ns", time.nanos())));
    }
    let entry = job.measure(world, feed, metric, "window", &params)?;
    job.keep(entry);
    Ok(())
}

fn given(name: &'static str, rate: Option<BitRate>) -> Params {
    rate.into_iter().map(|rate| (name, rate.bps().to_string())).collect()
}
