//! A host that plays a measured profile.

use std::sync::Arc;

use narrows_host_profile::{HostProfile, Quantiles, StallWalk};
use narrows_scenario::PathDirection;

use crate::rng::{Purpose, Stream};

/// What a host draws from its profile, packet by packet.
#[derive(Debug)]
pub(crate) struct PlayedProfile {
    profile: Arc<HostProfile>,
    departures: Stream,
    arrivals: Stream,
    /// The program's last stamp of a departure, and the time of the last packet's departure.
    last_departure: Option<(u64, u64)>,
    last_arrival: Option<u64>,
    /// A kernel answers by itself: no program wakes.
    has_program: bool,
}

impl PlayedProfile {
    pub(super) fn new(profile: &Arc<HostProfile>, way: PathDirection, seed: u64, has_program: bool) -> Self {
        Self {
            profile: Arc::clone(profile),
            departures: Stream::new(seed, Purpose::Departures(way)),
            arrivals: Stream::new(seed, Purpose::Arrivals(way)),
            last_departure: None,
            last_arrival: None,
            has_program,
        }
    }

    /// How late a departure is, without stalls.
    pub(super) fn lateness(&mut self) -> u64 {
        draw(&self.profile.send.pacing_ns, &mut self.departures)
    }

    /// Time of a send call.
    pub(super) fn send_call(&mut self) -> u64 {
        draw(&self.profile.send.call_ns, &mut self.departures)
    }

    /// When a packet with this stamp really leaves. No packet overtakes another.
    pub(super) fn leaves(&mut self, stamped: u64) -> u64 {
        let rested = self.last_departure.is_none_or(|(last, _)| self.is_rest(last, stamped));
        let send = &self.profile.send;
        let error = if rested { &send.stamp_rested_ns } else { &send.stamp_ns };
        let at = stamped.saturating_add(draw(error, &mut self.departures));
        let leaves = self.last_departure.map_or(at, |(_, last)| at.max(last.saturating_add(1)));
        self.last_departure = Some((stamped, leaves));
        leaves
    }

    /// How long after its arrival a packet is stamped that finds none waiting.
    pub(super) fn stamp_delay(&mut self, arrived: u64, rested: bool) -> u64 {
        self.last_arrival = Some(arrived);
        let receive = &self.profile.receive;
        draw(if rested { &receive.stamp_rested_ns } else { &receive.stamp_ns }, &mut self.arrivals)
    }

    /// Whether a packet that arrives now comes after a rest.
    pub(super) fn arrives_rested(&self, arrived: u64) -> bool {
        self.last_arrival.is_none_or(|last| self.is_rest(last, arrived))
    }

    /// How long after the stamp before it a packet is stamped that came while that one waited.
    pub(super) fn stamp_inside(&mut self, arrived: u64) -> u64 {
        self.last_arrival = Some(arrived);
        draw(&self.profile.receive.inside_ns, &mut self.arrivals)
    }

    /// From a packet's stamp to a program that slept.
    pub(super) fn wake(&mut self, rested: bool) -> u64 {
        let receive = &self.profile.receive;
        let quantiles = if rested { &receive.wake_rested_ns } else { &receive.wake_ns };
        if self.has_program { draw(quantiles, &mut self.arrivals) } else { 0 }
    }

    /// Time of a receive call.
    pub(super) fn receive_call(&mut self) -> u64 {
        if self.has_program { draw(&self.profile.receive.call_ns, &mut self.arrivals) } else { 0 }
    }

    /// Stalls delay stamps, not only programs.
    pub(super) fn stamps_wait(&self) -> bool {
        self.profile.receive.stamps_wait
    }

    /// A packet that no method asked for has woken the host.
    pub(super) fn wake_up(&mut self, departed: Option<u64>, arrived: Option<u64>) {
        if let Some(at) = departed {
            let left = self.last_departure.map_or(at, |(_, left)| left.max(at));
            self.last_departure = Some((at, left));
        }
        self.last_arrival = arrived.or(self.last_arrival);
    }

    fn is_rest(&self, before: u64, now: u64) -> bool {
        i64::try_from(now.saturating_sub(before)).unwrap_or(i64::MAX) >= self.profile.receive.rest_ns
    }
}

fn draw(quantiles: &Quantiles, stream: &mut Stream) -> u64 {
    u64::try_from(quantiles.value(stream.unit())).unwrap_or(0)
}

/// Stalls of a profile, one after the other, as one end feels them.
#[derive(Debug)]
pub(super) struct PlayedStalls {
    profile: Arc<HostProfile>,
    walk: StallWalk,
    way: PathDirection,
}

impl PlayedStalls {
    /// `None` if the profile has none.
    pub(super) fn begin(profile: &Arc<HostProfile>, way: PathDirection, rng: &mut Stream) -> Option<Self> {
        let walk = StallWalk::begin(&profile.stalls, &mut || rng.unit())?;
        Some(Self { profile: Arc::clone(profile), walk, way })
    }

    /// Goes on to the end of the next time in which this end runs: puts the stalls before it into
    /// `list`, and returns that end.
    pub(super) fn extend(&mut self, list: &mut Vec<(u64, u64)>, rng: &mut Stream) -> u64 {
        loop {
            let (state, span) = self.walk.next(&self.profile.stalls, &mut || rng.unit());
            let [from, to] = [span.from, span.to].map(|at| u64::try_from(at).unwrap_or(0));
            let stops = match self.way {
                PathDirection::Forward => state.stops_sender(),
                PathDirection::Reverse => state.stops_receiver(),
            };
            match list.last_mut() {
                _ if !stops => return to,
                Some((_, end)) if *end == from => *end = to,
                _ if to > 0 => list.push((from, to)),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use narrows_scenario::Host;

    use super::super::{Departure, HostState, Intake};
    use super::*;

    /// Every delay is always the same, and nothing ever stalls.
    fn constant() -> HostProfile {
        let mut profile = HostProfile::from_toml(include_str!("../../../../hosts/coalescing.toml")).unwrap();
        let (send, receive) = (&mut profile.send, &mut profile.receive);
        for (quantiles, value) in [
            (&mut send.pacing_ns, 5),
            (&mut send.stamp_ns, 3),
            (&mut send.stamp_rested_ns, 40),
            (&mut send.call_ns, 20),
            (&mut receive.stamp_ns, 100),
            (&mut receive.stamp_rested_ns, 200),
            (&mut receive.inside_ns, 10),
            (&mut receive.wake_ns, 1000),
            (&mut receive.wake_rested_ns, 3000),
            (&mut receive.call_ns, 50),
        ] {
            *quantiles = Quantiles::constant(value);
        }
        profile.stalls.states = BTreeMap::new();
        profile
    }

    fn state(profile: HostProfile) -> HostState {
        HostState::new(&Host::default().playing(Arc::new(profile)), PathDirection::Forward, 1)
    }

    /// By hand: the first leaves after a rest; the second is free 20 after the first's stamp, but
    /// cannot overtake it.
    #[test]
    fn departures_by_hand() {
        let mut host = state(constant());
        assert_eq!(host.paced_departure(1000, 20), Departure { stamped: 1005, leaves: 1045, returned: 1025 });
        assert_eq!(host.departure(1000, 20), Departure { stamped: 1045, leaves: 1048, returned: 1065 });
        assert_eq!(host.paced_departure(2000, 20), Departure { stamped: 2005, leaves: 2008, returned: 2025 });
        host.wake_up(Some(9_000_000), None);
        assert_eq!(
            host.paced_departure(9_500_000, 10),
            Departure { stamped: 9_500_005, leaves: 9_500_008, returned: 9_500_015 }
        );
    }

    /// By hand: the second came while the first waited for its stamp, the third found a program
    /// that was awake, the fourth one that slept.
    #[test]
    fn arrivals_by_hand() {
        let mut host = state(constant());
        let mut intake = Intake::new(None);
        for at in [10, 60, 1000, 9000] {
            intake.arrive(at, 0, at, &mut host);
        }
        let rows: Vec<(u64, u64)> = std::iter::from_fn(|| intake.pop_until(1 << 40, &mut host))
            .map(|reading| (reading.stamped, reading.at))
            .collect();
        assert_eq!(rows, [(210, 3210), (220, 3260), (1100, 3310), (9100, 10_100)]);
    }

    /// A stall of 1000 ns every 5000 ns: what comes in it is stamped behind it, if stamps wait.
    #[test]
    fn stamps_wait_for_a_stall() {
        use narrows_host_profile::{Sojourn, StallState};
        for waits in [true, false] {
            let mut profile = constant();
            profile.receive.stamps_wait = waits;
            let state_of =
                |lasting, next| Sojourn { lasting_ns: Quantiles::constant(lasting), next: BTreeMap::from([(next, 1)]) };
            profile.stalls.states = BTreeMap::from([
                (StallState::Between, state_of(4000, StallState::Stalled)),
                (StallState::Stalled, state_of(1000, StallState::Between)),
            ]);
            let mut host = state(profile);
            // The end of the first stall that begins after a millisecond.
            let begin = (1_000_000..2_000_000).find(|&at| host.running(at) == at + 1000).unwrap();
            assert_eq!((host.running(begin - 1), host.running(begin + 1000)), (begin - 1, begin + 1000));
            let mut intake = Intake::new(None);
            intake.arrive(begin + 300, 0, (), &mut host);
            let stamped = intake.pop_until(1 << 40, &mut host).unwrap().stamped;
            assert_eq!(stamped, if waits { begin + 1000 } else { begin + 500 });
        }
    }
}
