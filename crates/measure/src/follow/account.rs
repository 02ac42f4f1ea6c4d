//! What became of the trains: for caveats, and to know when nobody answers.

use std::collections::VecDeque;
use std::time::Duration;

use narrows_units::{Sender, Stamp};

use narrows_probe::Caveat;
use narrows_probe::probes::TrainReport;
use narrows_train::reading::{Reading, Unusable};

/// Trains that caveats speak of: the last ones.
const RECENT: usize = 32;
/// Growth of delay from which a train has overloaded the path beyond doubt.
const OVERLOAD: f64 = 0.05;
/// Overloaded trains whose first tenth outruns their last half by this share have emptied a token
/// bucket, as in `fac2`.
const SHAPED: f64 = 0.15;

/// One train's fate.
#[derive(Debug, Clone, Default)]
struct Fate {
    sent: u64,
    lost: u64,
    reordered: u64,
    local_drops: u64,
    flaw: Option<Unusable>,
    stalled: bool,
    batch: Option<Duration>,
    head_excess: Option<f64>,
}

/// The account.
#[derive(Debug, Default)]
pub(crate) struct Account {
    recent: VecDeque<Fate>,
    pub(super) trains: u64,
    pub(super) used: u64,
    pub(super) changes: u64,
    pub(super) overflows: u64,
    /// Trains in a row of which nothing arrived.
    pub(super) silent_trains: u32,
    heard: Option<Stamp<Sender>>,
}

impl Account {
    pub(super) fn count(&mut self, now: Stamp<Sender>, report: &TrainReport, verdict: &Result<Reading, Unusable>) {
        self.trains += 1;
        let reading = verdict.as_ref().ok();
        self.used += u64::from(reading.is_some_and(|reading| !reading.stalled));
        if report.received().next().is_some() {
            self.silent_trains = 0;
            self.heard = Some(now);
        } else {
            self.silent_trains = self.silent_trains.saturating_add(1);
            self.heard.get_or_insert(now);
        }
        while self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Fate {
            sent: report.arrivals.len() as u64,
            lost: report.lost_on_path() as u64,
            reordered: report.reordered.into(),
            local_drops: report.local_drops.into(),
            flaw: verdict.as_ref().err().copied(),
            stalled: reading.is_some_and(|reading| reading.stalled),
            batch: reading.and_then(|reading| reading.batch),
            head_excess: reading.filter(|reading| reading.growth > OVERLOAD).map(|reading| reading.head_excess),
        });
    }

    /// How long nothing has arrived.
    pub(super) fn silence(&self, now: Stamp<Sender>) -> Duration {
        self.heard.map_or(Duration::ZERO, |heard| now.since(heard))
    }

    /// Share of packets that the last trains lost together.
    pub(super) fn mean_loss(&self) -> f64 {
        let sum = |of: fn(&Fate) -> u64| self.recent.iter().map(of).sum::<u64>();
        (sum(|fate| fate.lost) as f64 / sum(|fate| fate.sent).max(1) as f64).min(1.0)
    }

    /// Share of packets that is lost in most trains.
    pub(super) fn usual_loss(&self) -> f64 {
        let shares: Vec<f64> = self.recent.iter().map(|fate| fate.lost as f64 / fate.sent.max(1) as f64).collect();
        narrows_stat::median(&shares).unwrap_or(0.0).min(0.3)
    }

    /// Trains of the last ones that told nothing.
    pub(super) fn useless(&self) -> usize {
        self.recent.iter().filter(|fate| fate.flaw.is_some() || fate.stalled).count()
    }

    /// What the last trains met with.
    pub(super) fn caveats(&self) -> Vec<Caveat> {
        let sum = |of: fn(&Fate) -> u64| self.recent.iter().map(of).sum::<u64>();
        let sent = sum(|fate| fate.sent).max(1) as f64;
        let lost = sum(|fate| fate.lost) as f64 / sent;
        let reordered = sum(|fate| fate.reordered) as f64 / sent;
        let packets = sum(|fate| fate.local_drops);
        let flawed = |flaw: Unusable| self.recent.iter().filter(|fate| fate.flaw == Some(flaw)).count();
        let broken = u32::try_from(flawed(Unusable::Pacing)).unwrap_or(u32::MAX);
        let excess: Vec<f64> = self.recent.iter().filter_map(|fate| fate.head_excess).collect();
        let shaped = excess.len() >= 4 && narrows_stat::median(&excess).is_some_and(|median| median > SHAPED);
        let batch = self.recent.iter().filter_map(|fate| fate.batch).max();
        let seen = [
            batch.map(|period| Caveat::ReceiveBatching { period }),
            (broken > 0).then_some(Caveat::PacingBroken { trains: broken }),
            (lost > 0.001).then_some(Caveat::Loss { ratio: lost.min(1.0) }),
            (packets > 0).then_some(Caveat::LocalDrops { packets }),
            (reordered > 0.001).then_some(Caveat::Reordering { ratio: reordered.min(1.0) }),
            (flawed(Unusable::ClockStep) > 0).then_some(Caveat::ClockStep),
            self.recent.iter().any(|fate| fate.stalled).then_some(Caveat::HostStall),
            (self.overflows > 0).then_some(Caveat::TrainExceedsBurstLimit),
            shaped.then_some(Caveat::Shaped),
        ];
        seen.into_iter().flatten().collect()
    }
}
