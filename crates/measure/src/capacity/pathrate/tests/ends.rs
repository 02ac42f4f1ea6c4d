//! Every run ends, whatever the path answers and whatever it may cost.

use narrows_stat::SplitMix64;

use super::*;

/// A world that answers every train at random.
struct MisbehavingWorld {
    random: SplitMix64,
    now: i64,
    trains: u32,
}

impl MisbehavingWorld {
    fn random(&mut self, below: u64) -> i64 {
        i64::try_from(self.random.next_u64() % below).unwrap()
    }

    fn answer(&mut self, train: &Train) -> TrainReport {
        let mood = self.random(6);
        let mut at = 0;
        let mut arrivals = Vec::new();
        for (seq, packet) in (0..).zip(&train.packets) {
            at += self.random(if mood == 0 { 2 } else { 200_000 });
            let fate = match self.random(10) {
                0 if mood > 2 => Fate::Lost,
                1 if mood > 4 => Fate::Received(Stamp::from_nanos(at - 300_000)),
                _ => Fate::Received(Stamp::from_nanos(at)),
            };
            let departed = Stamp::from_nanos(i64::from(seq) * self.random(20_000));
            let ip_octets = packet.ip_octets;
            arrivals.push(Arrival { seq, departed, ip_octets, fate });
        }
        TrainReport {
            id: train.id,
            arrivals,
            reordered: 0,
            duplicates: 0,
            local_drops: 0,
            departed_by: StampSource::User,
            arrived_by: if mood == 1 { StampSource::User } else { StampSource::Kernel },
            pacing: if mood == 3 { PacingCheck::Broken { worst: us(500) } } else { PacingCheck::Kept },
        }
    }
}

impl narrows_probe::World for MisbehavingWorld {
    type Fault = std::convert::Infallible;

    fn now(&self) -> Stamp<Sender> {
        Stamp::from_nanos(self.now)
    }

    fn facts(&self) -> PathFacts {
        let mut facts = PathFacts::ideal(1500, us(100));
        facts.receiver = real_host(us(1), us(1), us(3));
        facts
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Self::Fault> {
        let Probe::Train(train) = probe else { panic!() };
        self.trains += 1;
        self.now += 1_000_000;
        Ok(Event::Train(self.answer(&train)))
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Self::Fault> {
        self.now = until.nanos();
        Ok(())
    }
}

#[test]
fn it_ends_whatever_the_path_answers() {
    for seed in 1..=20 {
        for (params, most) in [(Params::default(), 2000), (Params::faithful(), 8000)] {
            let mut world = MisbehavingWorld { random: SplitMix64::new(seed), now: 0, trains: 0 };
            let budget = Budget { octets: u64::MAX, time: Duration::from_secs(100_000), ..Budget::default() };
            let Ok(measured) = narrows_probe::drive(&mut world, &mut Run::new(params), budget);
            assert!(world.trains < most, "seed {seed}: {} trains", world.trains);
            let sure = |e: &Estimate| e.confidence > Confidence::Medium;
            assert!(!measured.outcome.estimate().is_some_and(sure), "{measured:?}");
        }
    }
}

/// A path that loses every long train that the sender paces.
struct LosesLong(ClosedFormWorld);

impl narrows_probe::World for LosesLong {
    type Fault = std::convert::Infallible;

    fn now(&self) -> Stamp<Sender> {
        self.0.now()
    }

    fn facts(&self) -> PathFacts {
        self.0.facts()
    }

    fn send(&mut self, probe: Probe) -> Result<Event, Self::Fault> {
        let mut event = self.0.send(probe)?;
        if let Event::Train(report) = &mut event
            && Phase::of(report.id) == Some(Phase::PacedBucket)
        {
            report.arrivals.iter_mut().for_each(|row| row.fate = Fate::Lost);
        }
        Ok(event)
    }

    fn wait(&mut self, until: Stamp<Sender>) -> Result<(), Self::Fault> {
        self.0.wait(until)
    }
}

/// No train that looks for a bucket counts, so that the look stays open.
#[test]
fn it_ends_where_no_long_train_arrives() {
    let mut asked = 0;
    for seed in 1..=20 {
        for (rate, load) in [(10, 7), (50, 20), (100, 50), (100, 80), (200, 80)] {
            let narrow = Hop::loaded(mbps(rate), Cross::mixed(mbps(load)));
            let mut world = LosesLong(between(mbps(1000), narrow, seed));
            let budget = Pathrate.info().imposes.budget();
            let Ok(measured) = narrows_probe::drive(&mut world, &mut Run::new(Params::default()), budget);
            assert!(measured.cost.octets < 10_000_000, "{measured:?}");
            let long = |report: &&TrainReport| Phase::of(report.id) == Some(Phase::PacedBucket);
            asked += world.0.reports.iter().filter(long).count();
        }
    }
    assert!(asked > 0, "none was looked for");
}

#[test]
fn a_cap_on_the_peak_rate_is_kept() {
    let mut host_pair = between(mbps(100), Hop::ethernet(mbps(10)), 1);
    let budget = Budget { peak: Some(mbps(1)), ..Pathrate.info().imposes.budget() };
    let measured = host_pair.measure(&mut Run::new(Params::default()), budget);
    let estimate = measured.outcome.estimate().unwrap_or_else(|| panic!("{measured:?}"));
    assert!(error(estimate, host_pair.ip_capacity(1500)).abs() < 0.01, "{estimate:?}");
    assert!(measured.cost.peak_bps <= 1_000_000);
}

#[test]
fn any_budget_ends_in_an_answer_that_says_so() {
    for octets in [0, 3000, 20_000, 200_000] {
        let mut host_pair = between(mbps(12), Hop::loaded(mbps(10), Cross::poisson(mbps(7))), 1);
        let budget = Budget { octets, ..Budget::default() };
        let measured = host_pair.measure(&mut Run::new(Params::default()), budget);
        match measured.outcome {
            Outcome::Estimated(estimate) => {
                assert!(estimate.caveats.contains(&Caveat::StoppedEarly) && estimate.confidence == Confidence::Low);
            }
            Outcome::Inconclusive { reason, .. } => assert_eq!(reason, Reason::OctetsSpent),
        }
        assert!(measured.cost.octets <= octets);
    }
}
