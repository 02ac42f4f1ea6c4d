use narrows_scenario::{Arrivals, Cross, SizeMix};
use narrows_units::BitRate;

use super::*;
use crate::windows::Windows;

const ANY: Sizes = Sizes { least: 20, most: u16::MAX };
const SECOND: u64 = 1_000_000_000;

fn stream(arrivals: Arrivals, mbps: u64, sizes: SizeMix, index: usize) -> ArrivalStream {
    let cross = Cross::on_hop(0, arrivals, BitRate::from_mbps(mbps), sizes);
    ArrivalStream::new(&cross, 9, index).unwrap()
}

fn all(schedule: &mut Schedule) -> Vec<Due> {
    std::iter::from_fn(|| schedule.pop()).collect()
}

/// Mean, variance and index of dispersion in windows of 1, 10, and 100 ms are those of the
/// simulator's source, to the last digit: they are the same packets, whatever other flows there
/// are.
#[test]
fn statistics_are_the_simulator_s() {
    let models = [
        (Arrivals::Cbr, SizeMix::imix()),
        (Arrivals::Poisson, SizeMix::constant(1500)),
        (
            Arrivals::ParetoOnOff {
                shape: 1.5,
                mean_on: std::time::Duration::from_millis(3),
                peak: BitRate::from_mbps(50),
            },
            SizeMix::uniform(64, 1500).unwrap(),
        ),
    ];
    let mut schedule = Schedule::default();
    for (index, (arrivals, sizes)) in models.iter().enumerate() {
        let packets = Packets::Model(Box::new(stream(*arrivals, 10, sizes.clone(), index)));
        schedule.add(packets, ANY, 5 * SECOND);
    }
    let mut windows = vec![Windows::default(); models.len()];
    let sent = all(&mut schedule);
    assert!(sent.is_sorted_by_key(|due| due.at_ns));
    for due in &sent {
        windows[due.flow].add(due.at_ns, due.ip_octets);
    }
    for (index, (arrivals, sizes)) in models.into_iter().enumerate() {
        let mut simulated = Windows::default();
        for packet in stream(arrivals, 10, sizes, index).take_while(|packet| packet.at_ns < 5 * SECOND) {
            simulated.add(packet.at_ns, packet.ip_octets);
        }
        let (ours, theirs) = (windows[index].moments(5 * SECOND), simulated.moments(5 * SECOND));
        assert_eq!((ours.len(), &ours), (3, &theirs));
        assert!(ours.iter().all(|moments| moments.mean_ip_octets > 0.0));
    }
    assert_eq!(schedule.unfinished(), 0);
}

/// At any number of flows, the packets of even flows come to the rate asked, exact to one packet
/// each.
#[test]
fn even_flows_have_their_rates() {
    for flows in [1, 7, 100] {
        let mut schedule = Schedule::default();
        for index in 0..flows {
            let packets = Packets::Model(Box::new(stream(Arrivals::Cbr, 3, SizeMix::constant(1000), index)));
            schedule.add(packets, ANY, 2 * SECOND);
        }
        let mut octets = vec![0u64; flows];
        for due in all(&mut schedule) {
            octets[due.flow] += u64::from(due.ip_octets);
        }
        assert!(octets.iter().all(|octets| octets.abs_diff(750_000) <= 1000), "{octets:?}");
    }
}

#[test]
fn what_does_not_fit_is_raised_or_cut() {
    let mut schedule = Schedule::default();
    let sizes = SizeMix::weighted([(30, 1.0), (4000, 1.0)]).unwrap();
    let packets = Packets::Model(Box::new(stream(Arrivals::Poisson, 10, sizes, 0)));
    schedule.add(packets, Sizes { least: 40, most: 1500 }, SECOND / 10);
    let sent = all(&mut schedule);
    let (raised, cut) = schedule.fitted(0);
    assert!(raised > 0 && cut > 0 && cut % 2 == 0, "{raised} {cut}");
    let count = |size: u16| sent.iter().filter(|due| due.ip_octets == size).count() as u64;
    assert_eq!((count(40), count(1500), count(1000)), (raised, cut, cut / 2));
    let first = sent.iter().position(|due| due.ip_octets == 1500).unwrap();
    assert_eq!(sent[first].at_ns, sent[first + 2].at_ns, "parts leave together");
}
