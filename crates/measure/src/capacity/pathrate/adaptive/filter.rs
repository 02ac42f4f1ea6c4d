//! Small pairs for the filter of least delay.

use narrows_units::nanos_f64;

use super::long::loaded_reach_octets;
use super::{
    Adaptive, FAILED_TRAINS, LONGEST_SEEN, SMALLEST_IP_OCTETS, Stage, gap_ns, looks_early, most_ns, most_octets,
};
use crate::capacity::pathrate::paced::slows_at_once;
use crate::capacity::pathrate::sample::Phase;
use crate::capacity::pathrate::session::MethodRun;
use crate::capacity::pathrate::{PAIRS_PER_TRAIN, buckets, capprobe, modes, shape};

impl Adaptive {
    /// Small pairs, which meet an empty queue more often than large ones, until the filter of least
    /// delay has converged. Where trains alone are an answer nothing is left to ask.
    pub(super) fn filter(&mut self, session: &MethodRun, done: u32) {
        let filtered = capprobe::filter(session);
        let decision = modes::decide(session, usize::MAX);
        let sure = decision.as_ref().is_some_and(modes::trains_suffice);
        let idle = decision.as_ref().is_some_and(|decision| decision.loaded == Some(false));
        // Pairs that nearly all agree meet nobody, though a host that was held up may have spoiled
        // what else would say so.
        let shared = session.narrow_is_loaded(1) == Some(true);
        let agree = decision.as_ref().is_some_and(|decision| decision.share > UNDISTURBED);
        let alone = idle || (agree && !shared);
        let strong = decision.as_ref().is_some_and(modes::Decision::is_strong);
        let winner = decision.and_then(|decision| Some((decision.winner?.centre(), decision.width)));
        let converged = filtered.as_ref().is_some_and(|filtered| {
            let agrees = winner.is_some_and(|(rate, width)| filtered.agrees(rate, width, strong));
            filtered.outweighs() || (filtered.converged && agrees && (filtered.is_plain() || idle))
        });
        let sharp = filtered.as_ref().filter(|filtered| filtered.converged);
        let said = winner.map(|(rate, _)| rate).or(sharp.map(|filtered| filtered.rate));
        let clean = filtered.map_or(0, |filtered| filtered.clean);
        let (size, packets) = self.filter_pair(session, done);
        let octets = PAIRS_PER_FILTER as u64 * packets as u64 * u64::from(size);
        // Bulks that show nothing clean at first are scattered by the host; they cost too much to
        // go on.
        let futile = packets > 2 && done > 1 && clean == 0;
        let spent = futile
            || done >= FILTERS
            || u64::from(done + 1) * octets > FILTER_OCTETS
            || session.tally.octets + octets > most_octets(session) + SLACK_OCTETS
            || session.elapsed_ns() > FILTER_SHARE * most_ns(session)
            || session.tally.loss_ratio() > FILTER_LOSS
            || session.tally.failed >= FAILED_TRAINS;
        let paused = self.resume.filter(|_| spent || done >= EARLY_FILTERS);
        match paused {
            _ if sure || converged => self.finish_filter(session, said, alone),
            Some(round) => {
                self.resume = None;
                self.round(session, round);
            }
            None if spent => self.finish_filter(session, said, alone),
            None => {
                self.stage = Stage::Filter(done + 1);
                for _ in 0..PAIRS_PER_FILTER / PAIRS_PER_TRAIN as usize {
                    self.ask(session, Phase::Filter, packets, size);
                }
            }
        }
    }

    /// Long trains follow where nobody else is on the narrow link, where trains come slower than
    /// other traffic makes them, or begin fast and end slow, all alike. Where others are on the
    /// link, and yet trains look like a bucket's, long ones go no faster than those came.
    fn finish_filter(&mut self, session: &MethodRun, said: Option<f64>, alone: bool) {
        // What follows is the last look; it leads back to no round.
        self.resume = None;
        let slow = said.is_some_and(|rate| modes::trains_too_slow(session, session.ip_rate(rate)));
        let bent = shape::sustained(session).is_some() || buckets::found(session).is_some();
        // Receivers that batch leave pairs that disagree, and paced trains as they were.
        let quiet = session.narrow_is_loaded(CHECKS) == Some(false);
        let looked = session.of(Phase::PacedBucket).next().is_some();
        let octets = session.tally.octets + loaded_reach_octets(session);
        let octets_spent = octets > session.params.max_octets_of(session.full_size()) + SLACK_OCTETS;
        let spent = octets_spent || session.elapsed_ns() > FILTER_SHARE * most_ns(session);
        let found = said.map(|rate| session.ip_rate(rate));
        let unclear = !looked && !spent && modes::may_be_a_buckets(session, found);
        // Nor did anybody slow long trains. Where paced ones, which are longer, were slowed all the
        // same, though of the others not even short ones were, that is no FIFO link's doing. On
        // slower links the rounds leave octets for a look.
        let unslowed = |ip: f64| match session.narrow_is_loaded(1) {
            Some(true) => {
                let would = slows_at_once(session, session.wire_rate_of(ip)) > WOULD_SLOW;
                would && modes::kept_up(session, ip) && modes::all_came_at(session, ip)
            }
            _ => modes::kept_up(session, ip),
        };
        let free = !looks_early(session) && found.is_some_and(unslowed);
        self.loaded = !(alone || quiet || free || slow || bent);
        // One look is enough where it excluded a bucket.
        let excluded = looked && buckets::search(session).excluded_octets > EXCLUDED_OCTETS;
        if (!self.loaded && (bent || !excluded)) || unclear {
            self.bucket(session, 0);
        } else {
            self.stage = Stage::ThreeRates;
        }
    }

    /// Size and number of the packets of the filter's next pairs: the smallest whose dispersion the
    /// stamps resolve, which meet an empty queue most often, and every third time the next larger,
    /// so that two sizes tell the framing; where no pair will do, the shortest bulk that does.
    fn filter_pair(&self, session: &MethodRun, done: u32) -> (u16, usize) {
        let full = session.full_size();
        let receiver = &session.facts.receiver;
        let resolution = nanos_f64(receiver.clock_resolution);
        let least = RESOLVED * resolution.max(2.0 * session.stamp_error_measured_ns());
        let gap = |size: u16| gap_ns(session, size).unwrap_or(0.0);
        let mut good = FILTER_SIZES.into_iter().chain([full]).filter(|size| *size <= full && gap(*size) >= least);
        match (good.next(), good.next()) {
            (Some(_), Some(larger)) if done % 3 == 2 => (larger, 2),
            (Some(size), _) => (size, 2),
            (None, _) => {
                let own = self.shortest(session, full, session.stamp_error_measured_ns());
                let ticks = (1..own.max(LONGEST_SEEN)).find(|gaps| gap(full) * *gaps as f64 >= TICKS * resolution);
                (full, own.max(1 + ticks.unwrap_or(1)))
            }
        }
    }
}

// Ours, all of them.
/// Share of the pairs in one mode: others' packets seldom leave so many undisturbed.
const UNDISTURBED: f64 = 0.8;
/// Share by which others would slow trains that left at once, from which on trains that came as
/// fast as others say something: as near as these must come.
const WOULD_SLOW: f64 = 0.03;
/// Checks of two rounds.
const CHECKS: usize = 2;
const PAIRS_PER_FILTER: usize = 32;
/// Sizes of pairs for the filter, before the full one: small ones meet empty queues more often, and
/// yet are no smaller than what other traffic is mostly made of.
const FILTER_SIZES: [u16; 2] = [250, SMALLEST_IP_OCTETS];
/// Steps of the clock, or twice what a stamp is off by, that a pair must last.
const RESOLVED: f64 = 28.0;
/// Steps of the clock that a bulk must last at least.
const TICKS: f64 = 24.0;
/// So many times before the rounds go on.
const EARLY_FILTERS: u32 = 24;
/// However small they are.
const FILTERS: u32 = 30;
const FILTER_OCTETS: u64 = 600_000;
/// Beyond what rounds may take.
const SLACK_OCTETS: u64 = 150_000;
/// The same of time.
const FILTER_SHARE: f64 = 1.2;
/// A tenth of what the look has: a bucket of more would have bent it.
const EXCLUDED_OCTETS: u64 = 48_000;
/// Every third pair and more is spoilt then, and waited for in vain.
const FILTER_LOSS: f64 = 0.1;
