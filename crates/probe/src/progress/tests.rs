use std::cell::{Cell, RefCell};
use std::convert::Infallible;

use super::*;
use crate::contract::Event;
use crate::facts::PathFacts;
use crate::probes::{Arrival, Fate, PacingCheck, Probe, Train, TrainId, TrainReport};
use crate::{StampSource, World};

/// Answers every train: a packet a millisecond, each 10 µs later than the one before, one lost.
struct Small(Stamp<Sender>);

impl World for Small {
    type Fault = Infallible;

    fn now(&self) -> Stamp<Sender> {
        self.0
    }

    fn facts(&self) -> PathFacts {
        PathFacts::ideal(1500, Duration::from_millis(10))
    }

    fn send(&mut self, _: Probe) -> Result<Event, Infallible> {
        let row = |seq: u32| {
            let departed = i64::from(seq) * 1_000_000;
            let arrived = Stamp::from_nanos(5_000_000 + departed + i64::from(seq) * 10_000);
            let fate = if seq == 1 { Fate::Lost } else { Fate::Received(arrived) };
            Arrival { seq, departed: Stamp::from_nanos(departed), ip_octets: 1000, fate }
        };
        self.0 = self.0 + Duration::from_millis(200);
        Ok(Event::Train(TrainReport {
            id: TrainId(0),
            arrivals: (0..200).map(row).collect(),
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::Simulated,
            arrived_by: StampSource::Simulated,
            pacing: PacingCheck::Kept,
        }))
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Infallible> {
        self.0 = until;
        Ok(())
    }
}

#[derive(Default)]
struct Told {
    what: RefCell<Vec<Progress>>,
    on_path: RefCell<Vec<OnPath>>,
    pauses: Cell<u32>,
}

impl Feed for Told {
    fn tell(&self, _: Stamp<Sender>, progress: Progress) {
        assert_eq!(self.on_path.borrow().last(), Some(&OnPath::Nothing), "told while a probe was under way");
        self.what.borrow_mut().push(progress);
    }

    fn on_path(&self, what: OnPath) {
        self.on_path.borrow_mut().push(what);
    }

    fn paused(&self) -> bool {
        self.pauses.set(self.pauses.get().saturating_sub(1));
        self.pauses.get() > 0
    }
}

#[test]
fn a_train_is_told_when_it_is_over() {
    let reported = Told::default();
    let mut world = Small(Stamp::from_nanos(0));
    let train = Train::uniform(TrainId(0), 200, 1000, Duration::from_millis(1));
    let Ok(_) = Observed::new(&mut world, &reported).send(Probe::Train(train));
    assert_eq!(*reported.on_path.borrow(), [OnPath::Train, OnPath::Nothing]);
    let what = reported.what.borrow();
    let [Progress::Sample(Sample::Train(sample))] = what.as_slice() else { panic!("{what:?}") };
    assert_eq!((sample.packets, sample.octets, sample.lost), (200, 200_000, 1));
    // By hand: 8000 bit a millisecond left; each gap is 10 µs longer on arrival, one was lost.
    assert_eq!(sample.sent_bps, Some(8_000_000));
    assert_eq!(sample.arrived_bps, Some(8_000 * 198 * 1_000_000 / (199 * 1_010)));
    // Four packets a part; of the first one three came: 0, 20 and 30 µs, then 40.
    assert_eq!((sample.delays_ns.len(), sample.delays_ns[0]), (50, 22_500));
}

#[test]
fn a_pause_comes_before_a_stage_and_has_an_end() {
    let began = Stamp::from_nanos(0);
    for (pauses, least, most) in [(1, 0, 0), (4, 400, 800), (u32::MAX, 600_000, 600_400)] {
        let reported = Told { pauses: Cell::new(pauses), ..Told::default() };
        let mut world = Small(began);
        Observed::new(&mut world, &reported).pause();
        let took = world.now().since(began).as_millis();
        assert!((least..=most).contains(&took), "{pauses}: {took} ms");
    }
}

#[test]
fn events_survive_their_json() {
    let ended = StageEnded {
        metric: Metric::IpCapacity,
        direction: Direction::Forward,
        method: "capacity".to_owned(),
        value: Some(97_500_000),
        low: Some(97_300_000),
        high: Some(97_700_000),
        verdict: BoundKind::Estimated,
        layer: Some(Layer::Ip),
        limited_by: Some(Limit::Path),
        reason: None,
        doubts: vec!["few samples".to_owned()],
        octets: 1,
        packets: 2,
        time_ns: 3,
        peak_bps: 4,
    };
    for progress in [Progress::StageEnded(ended), Progress::Note("x".to_owned()), Progress::Ended] {
        let event = Timed { at_ns: 5, progress };
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Timed>(&text).unwrap(), event, "{text}");
    }
}
