//! One row per family.

use std::time::Duration;

use narrows_units::{BitRate, format_duration};

use super::{End, Ends, FamilyRow, HostFamily, HostVerdict};
use narrows_probe::facts::StampSource;

/// Accepted relative timing error of a spacing (`[Jin03a]` §4.2 asks for a tenth).
const TIMING_ERROR: f64 = 0.1;
/// pathchirp's spread factor.
const SPREAD: f64 = 1.2;
/// How far above the noise of the minimum a size difference must be for an error of a tenth.
const SIZE_MARGIN: f64 = 10.0;
/// Probes per size, whose minimum counts.
const SIZE_PROBES: f64 = 64.0;
/// Sender above what is free, so that a trend shows.
const STREAM_EXCESS: f64 = 1.1;
/// Packets of a stream (pathload).
const STREAM_PACKETS: f64 = 100.0;

/// What a rate ends at, and why.
type Limit = (BitRate, String);

pub(super) fn all(ends: &Ends, rate: Option<BitRate>) -> Vec<FamilyRow> {
    let host = ends.host_rate().map(|(rate, why)| (rate, format!("the hosts: {why}")));
    let receive = spacing(ends, &receive_noise(&ends.receiver));
    let depart = spacing(ends, &departure_noise(&ends.sender));
    let least = |limits: &[&Option<Limit>]| {
        limits.iter().filter_map(|limit| limit.as_ref()).min_by_key(|limit| limit.0).cloned()
    };
    let no_wire = no_wire(ends);
    let row =
        |family, needs, limit: Option<Limit>, wire: bool| judge(family, needs, limit, rate, no_wire.filter(|_| wire));
    let mut trains = row(HostFamily::Trains, "host rate; sub-trains longer than any timing error", host.clone(), false);
    (trains.sub_train_packets, trains.reason) = sub_train(ends, rate, trains.reason);
    vec![
        row(HostFamily::Pairs, "receive stamps", least(&[&receive, &host]), true),
        row(HostFamily::Gaps, "receive stamps, paced departures", least(&[&receive, &depart, &host]), true),
        row(HostFamily::VariableSizes, "quiet minima of round trips", sizes(ends), false),
        row(HostFamily::Streams, "one send per gap", least(&[&stream(ends), &trend(ends)]), false),
        row(
            HostFamily::Chirps,
            "receive stamps, paced departures, fine clock",
            least(&[&receive, &depart, &steps(ends), &host]),
            true,
        ),
        trains,
        row(HostFamily::Loads, "host rate", host, false),
        round_trips(ends),
    ]
}

/// The largest timing error of a receive stamp.
fn receive_noise(end: &End) -> (Duration, &'static str) {
    let facts = &end.facts;
    let calls = match facts.stamp_source {
        StampSource::User => facts.receive_cost.saturating_mul(2),
        StampSource::Simulated | StampSource::Hardware | StampSource::Kernel => Duration::ZERO,
    };
    [
        (facts.clock_resolution, "the receiver's clock resolves"),
        (facts.stamp_error, "the receiver's stamps are off by"),
        (calls, "reading and stamping a packet costs"),
        (end.held_back(), "the receiver's interrupts are held back for"),
    ]
    .into_iter()
    .max_by_key(|(time, _)| *time)
    .unwrap_or((Duration::ZERO, ""))
}

/// The largest timing error of a departure.
fn departure_noise(end: &End) -> (Duration, &'static str) {
    match end.departure_noise {
        Some(noise) if noise > end.facts.clock_resolution => (noise, "the sender's departures are off by"),
        _ => (end.facts.clock_resolution, "the sender's clock resolves"),
    }
}

/// `8L·e/error`.
fn spacing(ends: &Ends, (error, what): &(Duration, &'static str)) -> Option<Limit> {
    let rate = BitRate::over(u64::from(ends.ip_octets), *error)?.scaled(TIMING_ERROR)?;
    Some((rate, format!("{what} {}, a tenth of a spacing", format_duration(*error))))
}

/// `8ΔS/(k·s)`: a probe is stamped twice by this host, and every answer waits for an interrupt.
fn sizes(ends: &Ends) -> Option<Limit> {
    /// A probe without payload: IPv4 and UDP headers.
    const LEAST_OCTETS: u16 = 28;
    let stamp = ends.sender.facts.stamp_error.max(ends.sender.facts.clock_resolution);
    let held = ends.sender.held_back().as_secs_f64() / SIZE_PROBES.sqrt();
    let residual = (2.0 * stamp.as_secs_f64()).hypot(held);
    let difference = f64::from(ends.ip_octets.checked_sub(LEAST_OCTETS)?) * 8.0;
    let rate = BitRate::from_bps_f64(difference / (SIZE_MARGIN * residual))?;
    let shown = format_duration(Duration::try_from_secs_f64(residual).ok()?);
    Some((rate, format!("minima of round trips are off by {shown} at this host; routers add their own")))
}

fn stream(ends: &Ends) -> Option<Limit> {
    let paced = BitRate::over(ends.costed_octets(), ends.sender.facts.min_gap)
        .map(|rate| (rate, format!("the sender keeps gaps of {}", format_duration(ends.sender.facts.min_gap))));
    let host = ends
        .host_rate()
        .and_then(|(rate, why)| Some((rate.scaled(1.0 / STREAM_EXCESS)?, format!("the hosts: {why}, less a tenth"))));
    [paced, host].into_iter().flatten().min_by_key(|limit| limit.0)
}

/// Growth of the delay over a stream a tenth too fast, `(K-1)·8L·(1 - 1/1.1)/A`, against three
/// times the noise of group medians.
fn trend(ends: &Ends) -> Option<Limit> {
    let facts = &ends.receiver.facts;
    let noise = facts.stamp_error.max(facts.clock_resolution).as_secs_f64() / STREAM_PACKETS.powf(0.25);
    let bits = f64::from(ends.ip_octets) * 8.0 * (STREAM_PACKETS - 1.0) * (1.0 - 1.0 / STREAM_EXCESS);
    let rate = BitRate::from_bps_f64(bits / (3.0 * noise))?;
    Some((rate, "the receiver's stamps hide the trend of a stream".to_owned()))
}

/// `8L(1 - 1/γ)·e/δ`: gaps of neighbours in a chirp differ by more than the sender's clock can be
/// off.
fn steps(ends: &Ends) -> Option<Limit> {
    let resolution = ends.sender.facts.clock_resolution;
    let rate = BitRate::over(u64::from(ends.ip_octets), resolution)?.scaled(TIMING_ERROR * (1.0 - 1.0 / SPREAD))?;
    Some((rate, format!("neighbouring gaps differ too little for a clock of {}", format_duration(resolution))))
}

/// A car that is ten times as long as the largest timing error.
fn sub_train(ends: &Ends, rate: Option<BitRate>, reason: String) -> (Option<u64>, String) {
    let receiver = &ends.receiver;
    let calls = receiver.facts.receive_cost.saturating_add(receiver.facts.clock_resolution);
    let error = receive_noise(receiver).0.max(calls);
    let Some(gap) = rate.and_then(|rate| Some(rate.time_for(u64::from(ends.ip_octets))?.as_secs_f64())) else {
        return (None, reason);
    };
    let packets = (error.as_secs_f64() / TIMING_ERROR / gap - 1e-9).ceil().max(1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least one; the cast saturates")]
    let packets = packets as u64;
    (Some(packets), format!("{reason}; sub-trains of {packets} packets or more"))
}

fn round_trips(ends: &Ends) -> FamilyRow {
    /// Of an idle round trip of 100 µs, so much may be the host's.
    const FINE: Duration = Duration::from_micros(10);
    let own = |end: &End| end.facts.stamp_error.max(end.held_back());
    let noise = own(&ends.sender).max(own(&ends.receiver));
    let verdict = if noise < FINE {
        HostVerdict::Ok
    } else if noise < FINE * 10 {
        HostVerdict::Degraded
    } else {
        HostVerdict::Unusable
    };
    FamilyRow {
        family: HostFamily::RoundTrips,
        verdict,
        max_rate_bps: None,
        needs: "receive stamps",
        reason: format!("delays are known to {}; no rate bounds them", format_duration(noise)),
        margin: None,
        sub_train_packets: None,
    }
}

/// Why single spacings say little here, whatever the stamps.
fn no_wire(ends: &Ends) -> Option<&'static str> {
    let lacks = |end: &End| end.facts.virtual_interface && !end.stamped_by_card();
    match (lacks(&ends.sender), lacks(&ends.receiver)) {
        (_, true) => Some("the receiver's interface is virtual: software makes the gaps, not a wire"),
        (true, false) => Some("the sender's card has no wire, its spacing is software's"),
        (false, false) => None,
    }
}

fn judge(
    family: HostFamily,
    needs: &'static str,
    limit: Option<Limit>,
    rate: Option<BitRate>,
    no_wire: Option<&'static str>,
) -> FamilyRow {
    let max = limit.as_ref().map(|(max, _)| *max);
    let mut verdict = match (rate, max) {
        (None, _) | (_, None) => HostVerdict::Unknown,
        (Some(rate), Some(max)) if rate.as_f64() * 1.2 <= max.as_f64() => HostVerdict::Ok,
        (Some(rate), Some(max)) if rate.as_f64() <= max.as_f64() * 1.2 => HostVerdict::Degraded,
        (Some(_), Some(_)) => HostVerdict::Unusable,
    };
    let mut reason = limit.map_or_else(|| "nothing that bounds it is known".to_owned(), |(_, why)| why);
    if let Some(why) = no_wire {
        if verdict == HostVerdict::Ok {
            verdict = HostVerdict::Degraded;
        }
        reason = format!("{reason}; {why}");
    }
    let margin = rate.zip(max).filter(|(rate, _)| rate.bps() > 0).map(|(rate, max)| max.as_f64() / rate.as_f64());
    FamilyRow { family, verdict, max_rate_bps: max.map(BitRate::bps), needs, reason, margin, sub_train_packets: None }
}
