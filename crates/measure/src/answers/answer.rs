//! From the gaps to the outcome.

use narrows_units::{BitRate, Metric};

use super::gaps::{Gap, gaps};
use super::modes::{Mode, modes};
use super::run::MethodRun;
use narrows_probe::outcome::{Caveat, Confidence, Details, Diagnostics, Estimate, Limit, Outcome, Reason};
use narrows_probe::probes::TrainReport;
use narrows_train::carried::Carried;
use narrows_train::mindelay::{ip_rate, wire_rate};
use narrows_train::train_method::returned_ns;
use narrows_units::Framing;

/// What the trains say.
struct SpacingVerdict {
    chosen: Mode,
    /// Half of the interval's width, as a share.
    half: f64,
    /// No other place has gaps worth the name.
    alone: bool,
}

impl SpacingVerdict {
    /// Of gaps whose stamps are off by `noise`, ns.
    fn of(closed: &[f64], noise: f64) -> Result<Self, Reason> {
        if closed.len() < FEWEST {
            return Err(Reason::TooFewSamples { samples: closed.len() as u64 });
        }
        let found = modes(closed, 4.0 * noise, LEAST_SHARE);
        let chosen = *found.first().ok_or(Reason::NoAgreement)?;
        let typical = narrows_stat::median(closed).unwrap_or(chosen.mean_ns);
        if 4.0 * noise > WIDEST * typical {
            return Err(Reason::StampsTooCoarse);
        }
        // Packets of others make single gaps wider by what they take. On a link behind the narrow
        // one they also make gaps narrower. Nothing in the gaps tells which place is the link's.
        let contested = found.iter().skip(1).any(|mode| {
            let narrower = mode.mean_ns < chosen.mean_ns && mode.share >= SECOND * chosen.share;
            narrower || mode.share >= 0.8 * chosen.share
        });
        let below = closed.iter().filter(|&&gap| gap < (1.0 - CLEAR) * chosen.mean_ns).count();
        if contested || below as f64 > MOST_BELOW * closed.len() as f64 {
            return Err(Reason::NoAgreement);
        }
        let error = 1.645 * chosen.sd_ns.max(noise) / (chosen.count as f64).sqrt();
        Ok(Self { chosen, half: FLOOR + error / chosen.mean_ns, alone: found.len() == 1 })
    }
}

/// A shaper in a kernel sends by its timer: gaps are shorter and longer in turn, and the place that
/// holds most of them is one of the two. Several together are even, and more of them agree.
/// Traffic of others moves more of those than of single gaps. Steady traffic makes them agree too
/// wide where single ones do not: that is a bound, if a `bound` is all that is asked.
fn evened(
    single: Result<SpacingVerdict, Reason>,
    several: impl FnOnce() -> Result<SpacingVerdict, Reason>,
    bound: bool,
) -> Result<SpacingVerdict, Reason> {
    let even = |least: f64| several().ok().filter(|even| even.chosen.share >= MOST_OF_THEM.max(least));
    match single {
        Ok(single) => {
            let near = |even: &SpacingVerdict| (even.chosen.mean_ns / single.chosen.mean_ns - 1.0).abs() < RIPPLE;
            Ok(even(single.chosen.share).filter(near).unwrap_or(single))
        }
        Err(Reason::NoAgreement) if bound => even(0.0).ok_or(Reason::NoAgreement),
        Err(reason) => Err(reason),
    }
}

impl MethodRun {
    /// Enough gaps agree.
    pub(super) fn is_settled(&self) -> bool {
        let settled = |verdict: &SpacingVerdict| {
            verdict.chosen.count >= ENOUGH && verdict.chosen.share >= MOST_OF_THEM && verdict.half <= SURE
        };
        self.trains.len() >= LEAST_TRAINS && self.verdict().is_ok_and(|verdict| settled(&verdict))
    }

    /// Gaps of all trains, so many of a train taken together.
    fn gaps_of(&self, together: usize) -> Vec<Gap> {
        let of_train = |train| {
            let single: Vec<Gap> = gaps(train, self.wake_ns());
            let spans = single.windows(together).map(|row| Gap {
                ns: row.iter().map(|gap| gap.ns).sum::<f64>() / together as f64,
                sent_ns: row.iter().map(|gap| gap.sent_ns).sum::<f64>() / together as f64,
            });
            spans.collect::<Vec<Gap>>()
        };
        self.trains.iter().flat_map(of_train).collect()
    }

    /// The same, several together where stamps are coarse.
    fn gaps(&self) -> Vec<Gap> {
        self.gaps_of(self.together())
    }

    fn verdict(&self) -> Result<SpacingVerdict, Reason> {
        let of = |together: usize| {
            let closed: Vec<f64> =
                self.gaps_of(together).iter().filter(|gap| !gap.is_open()).map(|gap| gap.ns).collect();
            SpacingVerdict::of(&closed, self.noise_ns() / together as f64)
        };
        let together = self.together();
        evened(of(together), || of(EVEN * together), !self.has_small_answers())
    }

    pub(super) fn outcome(&self, stopped: Option<&Reason>) -> Outcome {
        let found = match self.sender_bound() {
            Some(bound) => Ok(bound),
            None => self.verdict().map_err(|reason| self.why_none(reason)).and_then(|verdict| self.estimate(&verdict)),
        };
        let found = found
            .and_then(|estimate| if self.was_carried(&estimate) { Ok(estimate) } else { Err(Reason::ReceiveBatching) });
        match (found, stopped) {
            (Ok(mut estimate), stopped) => {
                if stopped.is_some() {
                    estimate = estimate.caveat(Caveat::StoppedEarly);
                    estimate.confidence = Confidence::Low;
                }
                let mut estimate = self.caveats().into_iter().fold(estimate, Estimate::caveat);
                estimate.diagnostics = self.diagnostics();
                estimate.into()
            }
            (Err(reason), stopped) => Outcome::Inconclusive {
                reason: stopped.cloned().unwrap_or(reason),
                caveats: self.caveats(),
                details: Details::default(),
                diagnostics: self.diagnostics(),
            },
        }
    }

    /// Loss and silence explain more than gaps that are missing for it.
    fn why_none(&self, reason: Reason) -> Reason {
        let (sent, lost) = (self.tally.sent, self.tally.lost);
        if sent == lost {
            Reason::NoAnswer
        } else if 2 * lost > sent {
            Reason::TooMuchLoss { lost, sent }
        } else if self.batched() {
            Reason::ReceiveBatching
        } else {
            reason
        }
    }

    /// Whether a train was answered in about the time that this rate takes. Answers that waited for
    /// a host are stamped in one moment, and their gaps alone would pass for a fast link.
    fn was_carried(&self, estimate: &Estimate) -> bool {
        let (Some(rate), Some(facts)) = (estimate.rate(), self.facts.as_ref()) else { return true };
        let all: Vec<Carried> = self.trains.iter().filter_map(|train| Carried::of(train, returned_ns)).collect();
        let Some(base) = Carried::base(all.iter().copied()) else { return true };
        let claimed_ns = f64::from(facts.path_mtu) * 8.0 / rate.low.as_f64() * 1e9;
        let slack = self.wake_ns() + 4.0 * self.noise_ns();
        let fits = |train: &TrainReport| {
            let whole = train.arrivals.iter().filter(|row| returned_ns(row).is_some()).count();
            let claimed = claimed_ns * whole.saturating_sub(1) as f64;
            Carried::of(train, returned_ns).is_some_and(|carried| carried.longest_ns(base) <= LONGER * claimed + slack)
        };
        self.trains.iter().any(fits)
    }

    /// Many answers come in one moment: this host sees them in batches.
    fn batched(&self) -> bool {
        let all: Vec<f64> =
            self.trains.iter().flat_map(|train| gaps(train, self.wake_ns())).map(|gap| gap.ns).collect();
        let mean = narrows_stat::mean(&all).unwrap_or(0.0);
        let close = all.iter().filter(|&&gap| gap < CLOSE * mean).count();
        all.len() >= FEWEST && close as f64 > BATCHED * all.len() as f64
    }

    /// The requests left no closer than the answers came.
    fn sender_bound(&self) -> Option<Estimate> {
        let all = self.gaps();
        let open: Vec<f64> = all.iter().filter(|gap| gap.is_open()).map(|gap| gap.ns).collect();
        if all.len() < FEWEST || 2 * open.len() < all.len() {
            return None;
        }
        // The slower half of what this host managed: no single gap that came too narrow.
        let slow = narrows_stat::quantile(&open, 0.75)?;
        let rate = self.rate(slow)?.scaled(1.0 - 2.0 * FLOOR)?;
        let estimate = Estimate::ip_rate(Metric::IpCapacity, rate, rate, rate);
        Some(estimate.at_least(Limit::Sender).caveat(Caveat::SenderLimited))
    }

    fn estimate(&self, verdict: &SpacingVerdict) -> Result<Estimate, Reason> {
        let none = || Reason::NoAgreement;
        let value = self.rate(verdict.chosen.mean_ns).ok_or_else(none)?;
        let low = value.scaled(1.0 - verdict.half).ok_or_else(none)?;
        let high = value.scaled(1.0 + verdict.half).ok_or_else(none)?;
        let mut estimate = Estimate::ip_rate(Metric::IpCapacity, value, low, high);
        if !(verdict.alone && verdict.chosen.share >= MOST_OF_THEM && verdict.chosen.count >= ENOUGH) {
            estimate.confidence = Confidence::Low;
        }
        let bound = |limit| Estimate::ip_rate(Metric::IpCapacity, low, low, low).at_least(limit);
        if self.answers_slowly(verdict.chosen.mean_ns) {
            return Ok(bound(Limit::Receiver).caveat(Caveat::ReceiverLimited));
        }
        match self.reply_octets {
            Some(reply_ip_octets) if self.has_small_answers() => {
                Ok(estimate.caveat(Caveat::ReverseInfluence { reply_ip_octets }))
            }
            // Answers as long as the requests tell the lesser of both directions' capacities.
            _ => Ok(bound(Limit::Path).caveat(Caveat::AsymmetricLimit)),
        }
    }

    /// Answers are so much shorter than the requests that only these tell of the path.
    fn has_small_answers(&self) -> bool {
        let wire = |octets: u16| f64::from(Framing::ETHERNET.wire_octets(u32::from(octets)));
        self.reply_octets.is_some_and(|reply| wire(reply) <= SMALL_REPLY * wire(self.octets()))
    }

    /// Small packets are answered hardly faster: the remote host sets the pace, or something that
    /// counts packets.
    fn answers_slowly(&self, each_ns: f64) -> bool {
        let small = self.small.iter().flat_map(|train| gaps(train, self.wake_ns())).filter(|gap| !gap.is_open());
        let small: Vec<f64> = small.map(|gap| gap.ns).collect();
        small.len() >= FEWEST && narrows_stat::median(&small).is_some_and(|gap| gap > SLOW * each_ns)
    }

    /// The IP-layer rate, in packets of the path's MTU, at which one packet takes so long.
    fn rate(&self, each_ns: f64) -> Option<BitRate> {
        let mtu = self.facts.as_ref()?.path_mtu;
        let wire = wire_rate(self.params.framing, self.octets(), each_ns);
        BitRate::from_bps_f64(ip_rate(self.params.framing, mtu, wire))
    }

    fn caveats(&self) -> Vec<Caveat> {
        let share = |count: u64, of: u64| count as f64 / of.max(1) as f64;
        let lost = share(self.tally.lost, self.tally.sent);
        let disordered = share(self.tally.disordered, self.trains.len() as u64);
        let limit = self.facts.as_ref().and_then(|facts| facts.answer_limit);
        let seen = [
            (lost > 0.001).then_some(Caveat::Loss { ratio: lost }),
            (disordered > 0.0).then_some(Caveat::Reordering { ratio: disordered }),
            limit.map(|limit| Caveat::AnswersLimited { burst: limit.burst(), every: limit.every() }),
        ];
        seen.into_iter().flatten().collect()
    }

    fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        let all = self.gaps();
        diagnostics.insert("kept_trains", self.trains.len());
        diagnostics.insert("gaps_together", self.together());
        diagnostics.insert("gap_ns", all.iter().map(|gap| gap.ns).collect::<Vec<f64>>());
        diagnostics
    }
}

// Ours, all of them.
/// Half of the interval beyond what the gaps scatter: framing, and what is alike in `modes`.
const FLOOR: f64 = 0.01;
const SURE: f64 = 0.03;
const LEAST_TRAINS: usize = 4;
const ENOUGH: usize = 24;
const MOST_OF_THEM: f64 = 0.5;
const FEWEST: usize = 4;
/// Gaps together that are even behind a shaper whose timer alternates (two and four packets were
/// seen to repeat), and how far off the place of single ones may be.
const EVEN: usize = 4;
const RIPPLE: f64 = 0.06;
const LEAST_SHARE: f64 = 0.15;
/// Stamps that blur gaps by more than this tell nothing.
const WIDEST: f64 = 0.25;
/// A place of narrower gaps that holds so much of the chosen one's may be the link's own.
const SECOND: f64 = 0.4;
/// So much narrower is another rate, and so many of them are no accident.
const CLEAR: f64 = 0.1;
const MOST_BELOW: f64 = 0.25;
/// Answers this close are in one batch, and so many of them are no accident.
const CLOSE: f64 = 0.2;
const BATCHED: f64 = 0.4;
/// No train that took less than so many times what the rate allows: the rate is the hosts' making.
const LONGER: f64 = 1.5;
/// Small packets that take more of a full one's time than this.
const SLOW: f64 = 0.8;
/// As `nettimer`: answers beyond this share of the request, both on a wire, are no small ones.
const SMALL_REPLY: f64 = 0.25;

#[cfg(test)]
mod tests {
    use super::*;

    /// Gaps of `tc tbf rate 50mbit` in parts of a packet's time, twelve a train, and by `together`.
    fn shaped(together: usize) -> Vec<f64> {
        let train = [0.97, 1.02, 0.98, 1.02, 0.98, 0.99, 0.97, 1.02, 0.97, 1.03, 0.98, 1.02];
        let even = |row: &[f64]| 240e3 * row.iter().sum::<f64>() / together as f64;
        (0..5).flat_map(|_| train.windows(together).map(even).collect::<Vec<_>>()).collect()
    }

    #[test]
    fn gaps_that_alternate_are_evened() {
        let packet = narrows_stat::mean(&shaped(1)).unwrap();
        let rate = |found: &SpacingVerdict| packet / found.chosen.mean_ns;
        let single = SpacingVerdict::of(&shaped(1), 500.0);
        assert!(single.as_ref().is_ok_and(|found| rate(found) * (1.0 - found.half) > 1.0), "a false bound");
        let found = evened(single, || SpacingVerdict::of(&shaped(EVEN), 125.0), true).unwrap();
        let ratio = rate(&found);
        assert!((0.995..1.005).contains(&ratio) && ratio * (1.0 - found.half) < 1.0, "{ratio}");
    }

    #[test]
    fn traffic_that_makes_several_agree_too_wide_moves_no_value() {
        let of = |gap: f64| SpacingVerdict::of(&[gap; 24], 0.0);
        let (sharp, wide) = (of(240e3), || of(300e3));
        let place = |found: Result<SpacingVerdict, Reason>| found.map(|found| found.chosen.mean_ns);
        assert_eq!(place(evened(sharp, wide, true)), Ok(240e3));
        assert_eq!(place(evened(Err(Reason::NoAgreement), wide, true)), Ok(300e3), "a true bound");
        assert_eq!(place(evened(Err(Reason::NoAgreement), wide, false)), Err(Reason::NoAgreement));
    }
}
