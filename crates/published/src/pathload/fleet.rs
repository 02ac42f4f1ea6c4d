//! The streams of one rate, and their common verdict.

use narrows_stat::Trend;

use super::search::FleetVerdict;
use super::stream::StreamReading;

/// Loss in one stream from which the fleet is aborted.
const HIGH_LOSS: f64 = 0.15;
/// Loss from which a stream counts as lossy.
const MEDIUM_LOSS: f64 = 0.03;
/// Share of lossy streams from which the fleet is aborted.
const LOSSY_STREAMS: f64 = 0.5;
/// Streams with too few bursts before something is done about it.
const FEW_BURSTS_RETRY_LIMIT: usize = 3;

/// How a fleet is judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rules {
    pub(super) streams: usize,
    pub(super) fraction: f64,
    /// Interrupts are coalesced.
    pub(super) coalescing: bool,
    /// Streams are already three times as long as usual.
    pub(super) lengthened: bool,
}

/// What a fleet comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// More streams are needed.
    Open,
    FleetVerdict(FleetVerdict),
    /// Aborted for loss, which counts as increasing.
    Lost,
    /// Too few streams could be used: once more.
    Unusable,
    /// Too few bursts per stream: once more with longer streams.
    TooShort,
    /// Not even that would help: rates from here on cannot be judged.
    Unjudgeable,
}

/// The account of a fleet.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Fleet {
    pub(super) sent: usize,
    pub(super) increasing: usize,
    pub(super) level: usize,
    pub(super) ambiguous: usize,
    pub(super) mean_gaps_ns: Vec<f64>,
    lossy: usize,
    any_loss: bool,
    /// Streams with fewer than two bursts, and with two to five.
    few_bursts: [usize; 2],
}

impl Fleet {
    /// Takes a stream and says where the fleet stands.
    pub(super) fn take(&mut self, reading: &StreamReading, rules: Rules) -> Judgement {
        self.sent += 1;
        self.mean_gaps_ns.extend(reading.mean_gap_ns);
        self.any_loss |= reading.loss > 0.0;
        self.lossy += usize::from(reading.loss >= MEDIUM_LOSS);
        if reading.loss >= HIGH_LOSS {
            return Judgement::Lost;
        }
        for grade in &reading.grades {
            match grade {
                Trend::Increasing => self.increasing += 1,
                Trend::NoTrend => self.level += 1,
                Trend::Ambiguous => self.ambiguous += 1,
            }
        }
        match reading.bursts {
            Some(0..2) => self.few_bursts[0] += 1,
            Some(2..6) => self.few_bursts[1] += 1,
            _ => {}
        }
        if self.few_bursts[0] >= FEW_BURSTS_RETRY_LIMIT {
            return Judgement::Unjudgeable;
        }
        if self.few_bursts[1] >= FEW_BURSTS_RETRY_LIMIT {
            return if rules.lengthened { Judgement::Unjudgeable } else { Judgement::TooShort };
        }
        let left = rules.streams.saturating_sub(self.sent);
        if left == 0 { self.last(rules) } else { self.early(rules, left) }
    }

    fn usable(&self) -> usize {
        self.increasing + self.level + self.ambiguous
    }

    /// The verdict of the streams that are there.
    pub(super) fn last(&self, rules: Rules) -> Judgement {
        if self.lossy as f64 >= LOSSY_STREAMS * self.sent as f64 {
            return Judgement::Lost;
        }
        let usable = self.usable();
        if (usable < rules.streams / 2 && rules.streams > 1 && !rules.coalescing) || usable == 0 {
            return Judgement::Unusable;
        }
        let need = rules.fraction * usable as f64;
        Judgement::FleetVerdict(if self.increasing as f64 >= need {
            FleetVerdict::Increasing
        } else if self.level as f64 >= need {
            FleetVerdict::NoTrend
        } else {
            FleetVerdict::Grey
        })
    }

    /// The verdict that `left` more streams of one piece each cannot change. Loss only ever turns a
    /// fleet to increasing, so the other verdicts wait for the last stream once there was any.
    fn early(&self, rules: Rules, left: usize) -> Judgement {
        let usable = self.usable();
        // Enough streams are usable whatever comes.
        if usable < rules.streams / 2 {
            return Judgement::Open;
        }
        let need = rules.fraction * (usable + left) as f64;
        let certain = |count: usize| count as f64 >= need;
        let out_of_reach = |count: usize| ((count + left) as f64) < rules.fraction * (usable + left) as f64;
        if certain(self.increasing) {
            Judgement::FleetVerdict(FleetVerdict::Increasing)
        } else if self.any_loss {
            Judgement::Open
        } else if certain(self.level) {
            Judgement::FleetVerdict(FleetVerdict::NoTrend)
        } else if out_of_reach(self.increasing) && out_of_reach(self.level) {
            Judgement::FleetVerdict(FleetVerdict::Grey)
        } else {
            Judgement::Open
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULES: Rules = Rules { streams: 12, fraction: 0.6, coalescing: false, lengthened: false };

    fn stream(grade: Trend) -> StreamReading {
        StreamReading {
            loss: 0.0,
            grades: vec![grade],
            bursts: None,
            sender_switches: 0,
            receiver_switches: 0,
            mean_gap_ns: Some(80_000.0),
        }
    }

    fn grade(code: u8) -> Trend {
        [Trend::Increasing, Trend::NoTrend, Trend::Ambiguous][usize::from(code % 3)]
    }

    #[test]
    fn eight_of_twelve_decide() {
        let mut fleet = Fleet::default();
        for _ in 0..7 {
            assert_eq!(fleet.take(&stream(Trend::NoTrend), RULES), Judgement::Open);
        }
        // 8 of 12 are 67 %; 7 of 12, 58 %, would not do.
        assert_eq!(fleet.take(&stream(Trend::NoTrend), RULES), Judgement::FleetVerdict(FleetVerdict::NoTrend));
    }

    #[test]
    fn loss_aborts() {
        let lossy = |loss| StreamReading { loss, ..stream(Trend::NoTrend) };
        assert_eq!(Fleet::default().take(&lossy(0.15), RULES), Judgement::Lost);
        let mut fleet = Fleet::default();
        let judgements: Vec<_> = (0..12).map(|k| fleet.take(&lossy(if k < 6 { 0.05 } else { 0.0 }), RULES)).collect();
        assert!(judgements[..11].iter().all(|judgement| *judgement == Judgement::Open));
        assert_eq!(judgements[11], Judgement::Lost);
    }

    #[test]
    fn few_bursts_lengthen_or_give_up() {
        let rules = Rules { coalescing: true, ..RULES };
        let third = |bursts: usize, rules| {
            let reading = bursts_reading(bursts);
            let mut fleet = Fleet::default();
            fleet.take(&reading, rules);
            fleet.take(&reading, rules);
            fleet.take(&reading, rules)
        };
        assert_eq!(third(1, rules), Judgement::Unjudgeable);
        assert_eq!(third(4, rules), Judgement::TooShort);
        assert_eq!(third(4, Rules { lengthened: true, ..rules }), Judgement::Unjudgeable);
    }

    fn bursts_reading(bursts: usize) -> StreamReading {
        StreamReading { bursts: Some(bursts), grades: Vec::new(), ..stream(Trend::NoTrend) }
    }

    proptest! {
        /// An early verdict is the one that all twelve streams would have given, whatever they are.
        #[test]
        fn early_is_what_the_whole_fleet_says(codes in prop::collection::vec(0u8..3, 12)) {
            let mut early = None;
            let mut fleet = Fleet::default();
            for code in &codes {
                let judgement = fleet.take(&stream(grade(*code)), RULES);
                if early.is_none() && judgement != Judgement::Open {
                    early = Some(judgement);
                }
            }
            prop_assert_eq!(early, Some(fleet.last(RULES)));
        }
    }
}
