//! Every method, fed with arbitrary reports: it ends, and never panics.
#![no_main]

use narrows_methods::METHODS;
use narrows_probe::probes::{Arrival, Fate, PacingCheck, Probe, TrainReport};
use narrows_probe::{Event, PathFacts, RawParams, Reason, Refusal, StampSource, Step};
use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use narrows_units::Stamp;

fuzz_target!(|input: (u8, Vec<u16>)| {
    let (which, mut noise) = input;
    let method = METHODS[usize::from(which) % METHODS.len()];
    let Ok(mut estimator) = method.begin(&RawParams::new()) else { return };
    noise.truncate(4096);
    let mut noise = noise.into_iter();
    let mut now = Stamp::from_nanos(0);
    let mut event = Event::Started(PathFacts::ideal(1500, Duration::from_millis(10)));
    for _ in 0..2000 {
        match estimator.step(now, event) {
            Step::Done(_) => return,
            Step::Wait { until } => {
                now = until;
                event = Event::TimerFired;
            }
            Step::Send(Probe::Train(train)) => {
                now = now + train.duration() + Duration::from_millis(10);
                let Some(first) = noise.next() else { break };
                if first % 97 == 0 {
                    event = Event::Refused(Refusal::NotOffered);
                    continue;
                }
                let mut arrival = i64::from(first);
                let arrivals = (0u32..)
                    .zip(&train.packets)
                    .map(|(seq, packet)| {
                        let gap = noise.next().unwrap_or(7);
                        arrival += i64::from(gap) * 100 - 1000;
                        let fate = match gap % 11 {
                            0 => Fate::Lost,
                            1 => Fate::Echoed { returned: Stamp::from_nanos(arrival), turned: None },
                            _ => Fate::Received(Stamp::from_nanos(arrival)),
                        };
                        let departed = Stamp::from_nanos(i64::from(seq) * 1000);
                        Arrival { seq, departed, ip_octets: packet.ip_octets, fate }
                    })
                    .collect();
                event = Event::Train(TrainReport {
                    id: train.id,
                    arrivals,
                    reordered: u32::from(first % 3),
                    duplicates: 0,
                    local_drops: u32::from(first % 5),
                    departed_by: StampSource::User,
                    arrived_by: StampSource::Kernel,
                    pacing: if first % 7 == 0 { PacingCheck::Unknown } else { PacingCheck::Kept },
                });
            }
            Step::Send(_) => {
                now = now + Duration::from_millis(10);
                event = Event::Refused(Refusal::ForbiddenByPeer);
            }
        }
    }
    let last = estimator.step(now, Event::Stop(Reason::Interrupted));
    assert!(matches!(last, Step::Done(_)), "{} does not end when told to", method.info().name);
});
