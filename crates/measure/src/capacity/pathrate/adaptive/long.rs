//! Trains that are long on purpose: those that look for a token bucket, and those that hold many
//! receive batches.

use std::time::Duration;

use narrows_train::bucket::{Bend, BucketEvidence, Course, Pace};
use narrows_units::{BitRate, rounded};

use super::{
    Adaptive, Closing, EARLY_ROUND, MOST_SPACING, PEAK_WINDOW, Stage, TRAIN_OCTETS, gap_ns, looks_early, most_ns,
};
use crate::capacity::pathrate::sample::Phase;
use crate::capacity::pathrate::session::MethodRun;
use crate::capacity::pathrate::{
    Request, answer, batches, behind, buckets, by_trains, hosts, long_trains, settled, three_rates,
};

impl Adaptive {
    /// A train as long as may be: one that stays straight excludes buckets up to its length, one
    /// that bends is followed by more, each after a pause that fills the bucket again.
    pub(super) fn bucket(&mut self, session: &MethodRun, asked: usize) {
        let search = buckets::search(session);
        // So many trains alike are an answer; behind rounds, which met others' traffic or a bucket,
        // more are needed.
        let enough = if buckets::is_quiet(session) { ALIKE } else { ALIKE_BESIDE_CROSS_TRAFFIC };
        let reported = search.turning_point.is_some_and(|turning_point| {
            let known = turning_point.pace != Pace::Uneven || !turning_point.uneven || !self.loaded;
            turning_point.trains >= enough && known && !buckets::slowed_further(session, &turning_point)
        });
        let doubt = asked < DOUBTED && (doubts(session, &search) || buckets::lacks_trains(session, &search));
        let reach = match self.loaded {
            true if doubt => most_loaded_octets(session),
            true => loaded_reach_octets(session),
            false => reach_octets(session),
        };
        let octets = reach.min(session.params.bucket_octets);
        // Of one that a host spoiled little is known: where nobody else sends, a straight train
        // excludes buckets of a fifth of its octets.
        let says_little = buckets::is_quiet(session) && search.bent == 0 && search.excluded_octets < octets / LITTLE;
        let none = session.of(Phase::Bucket).next().is_none();
        // Stamps that blur each train would spoil the next as well.
        let sharp = wire_rate(session).is_some_and(|wire| !by_trains::blurred(session, wire));
        let spoiled = asked < SPOILED && sharp && !self.loaded && (none || says_little);
        // Beside others the bucket may be as empty again, unless trains just before did it.
        let refills = !self.loaded || session.of(Phase::Settle).next().is_some();
        let dry = refills && asked < SPOILED && ran_dry(session).is_some();
        let slower = if self.loaded {
            looks_early(session) && often_slower(session)
        } else {
            search.bent > 0 || ended_slower(session)
        };
        let bends = slower || dry;
        let more = asked == 0 || spoiled || (bends && !reported && asked < BUCKET_TRAINS) || doubt;
        let packets = usize::try_from(octets / u64::from(session.full_size().max(1))).unwrap_or(usize::MAX);
        let lasts_ns = gap_ns(session, session.full_size()).unwrap_or(0.0) * packets as f64;
        let late = session.of(Phase::Batches).next().is_some() && session.elapsed_ns() > most_ns(session) / 2.0;
        if !more || late || packets <= LEAST_REACH || lasts_ns > LONGEST_REACH_NS {
            self.after_bucket(session);
            return;
        }
        self.stage = Stage::Bucket(asked + 1);
        let most = paced_cap_of(session, BUCKET_OCTETS);
        // A bucket's peak lets all through that a little more than its rate brings.
        let pace = if settled::shows_shaper(session) { ABOVE_PEAK } else { 1.0 };
        let wire = wire_rate(session).filter(|_| self.loaded).map(|wire| pace * wire);
        let paced = wire.is_some_and(|wire| self.paced(session, Phase::PacedBucket, wire, packets.min(most) - 1));
        // A sender that cannot pace it may still send it: without any long train nobody knows what
        // the path carries for long.
        if !paced {
            let packets = packets.min(self.cap_of(session, BUCKET_OCTETS)) - 1;
            self.push(Phase::Bucket, packets, session.full_size());
        }
    }

    /// One look at the end where no train was long enough for one, on fast links and where trains
    /// show a shaper's small bucket; or where what came so far leaves a doubt.
    pub(super) fn look_last(&mut self, session: &MethodRun) {
        let fast = trains_rate(session).is_some_and(|wire| wire > FAST_BPS);
        let shaper = settled::shows_shaper(session);
        let least = most_loaded_octets(session) as f64 * if shaper { NEARLY } else { 0.5 };
        let looked = session.courses.iter().any(|course| course.octets >= least);
        let none = (!looked || often_slower(session)) && (fast || shaper);
        let search = buckets::search(session);
        if none || doubts(session, &search) || buckets::lacks_trains(session, &search) {
            self.loaded = true;
            self.bucket(session, 0);
        }
    }

    /// Beside others a run goes on where it was, unless a bucket was found.
    fn after_bucket(&mut self, session: &MethodRun) {
        let loaded = std::mem::take(&mut self.loaded);
        match self.resume.take().filter(|_| loaded) {
            _ if self.closing == Closing::Look || buckets::found(session).is_some() => self.stage = Stage::Over,
            Some(EARLY_ROUND) => {
                self.resume = Some(EARLY_ROUND);
                self.filter(session, 0);
            }
            Some(round) => self.round(session, round),
            None if loaded => self.stage = Stage::ThreeRates,
            None => self.stage = Stage::Over,
        }
    }

    /// A train that overflowed a queue goes once more, no faster than such a queue takes, where
    /// stamps are so coarse that the answer is the long train's. Hosts that are held up pace worse
    /// than they send at once, so that this is not the first choice.
    pub(super) fn overflowed(&mut self, session: &MethodRun, request: Request) {
        if let (None, Some(pace)) = (request.rate, bucket_pace(session)) {
            self.queue.push_front(Request { rate: Some(pace), ..request });
        }
    }

    /// Time that a bucket which trains have shown takes to fill again, with some to spare. The
    /// first train that bends need not have met a full one: what was sent before it may have come
    /// out of the bucket, too.
    pub(in super::super) fn pause(session: &MethodRun, request: Request) -> Duration {
        // Behind a train that no bucket bent the next one goes on emptying what may be there.
        if session.courses.last().is_some_and(|last| long_trains::is_long(last) && ended_fast(session, last)) {
            return Duration::ZERO;
        }
        let bent: Vec<_> = session.courses.iter().filter_map(|course| Some((course, course.bend?))).collect();
        let drained = match bent.as_slice() {
            [(course, _)] => (session.tally.octets as f64 - course.octets).max(0.0),
            _ => 0.0,
        };
        // Others take of what comes meanwhile.
        let spare = if request.phase == Phase::PacedBucket { SPARE_BESIDE_OTHERS } else { SPARE };
        let fills = bent.iter().map(|(_, bend)| spare * 8.0 * (bend.depth_octets + drained) / bend.sustained_bps);
        let dry = ran_dry(session).map_or(0.0, |course| course.span_s);
        match request.phase {
            Phase::Bucket | Phase::PacedBucket => {
                Duration::try_from_secs_f64(fills.fold(dry, f64::max)).unwrap_or(MOST_SPACING).min(MOST_REFILL)
            }
            _ => Duration::ZERO,
        }
    }

    /// Trains that hold some ten batches, doubled until they do; then as many paced ones, which
    /// tell whether others slowed them.
    pub(super) fn after_batches(&mut self, session: &MethodRun, asked: usize) {
        let cap = self.cap_of(session, batch_train_octets(session));
        let full = session.full_size();
        let next = match session.of(Phase::Batches).last() {
            None if asked > 0 => {
                self.stage = Stage::Over;
                return;
            }
            None => BATCH_TRAIN.min(cap),
            Some(sample) if batches::count(sample) >= BATCHES_PER_TRAIN || asked >= cap => {
                self.finish_batches(session, asked);
                return;
            }
            Some(_) => (2 * asked).min(cap),
        };
        self.stage = Stage::Batches(next);
        self.push(Phase::Batches, next, full);
    }

    fn finish_batches(&mut self, session: &MethodRun, packets: usize) {
        let rates = batches::rates(session);
        if rates.as_ref().is_some_and(|rates| rates.sent_share > SENDER_SHARE) {
            // What so few packets came at may still be a bucket's.
            self.bucket(session, 0);
            return;
        }
        let found = rates.map(|rates| rates.trains.median());
        if session.of(Phase::Batches).count() < BATCH_TRAINS {
            for _ in 1..BATCH_TRAINS {
                self.push(Phase::Batches, packets, session.full_size());
            }
            return;
        }
        self.stage = Stage::ThreeRates;
        for rate in std::iter::repeat_n(found, BATCH_CHECKS).flatten() {
            self.paced(session, Phase::Check, rate, packets);
        }
    }

    /// Long trains where what came so far looks like a bucket of a few packets, and was too short
    /// for more than its first ones.
    pub(super) fn settle(&mut self, session: &MethodRun) {
        let Some(packets) = settled::wanted(session) else { return };
        for _ in 0..settled::TRAINS {
            self.push(Phase::Settle, packets.min(self.cap(session)), session.full_size());
        }
    }

    /// Trains of two rates behind an emptied bucket, where those that bend do not tell what others
    /// take of it.
    pub(super) fn behind(&mut self, session: &MethodRun) {
        let Some(shape) = buckets::found(session).and_then(|found| behind::wanted(session, &found)) else { return };
        let packets = shape.head + shape.tail - 1;
        let (full, [slow, fast]) = (session.full_size(), shape.rates.map(BitRate::from_bps_f64));
        let able = session.facts.max_paced_rate(full).is_none_or(|most| fast.is_some_and(|fast| fast <= most));
        if !able || packets > self.cap_of(session, BUCKET_OCTETS) {
            return;
        }
        for _ in 0..behind::TRAINS {
            for (phase, rate) in [(Phase::FastBehind, fast), (Phase::SlowBehind, slow)] {
                self.queue.push_back(Request { phase, packets, ip_octets: full, rate });
            }
        }
    }

    /// Trains of three rates, where others slowed the paced ones and nothing names the link: they
    /// tell whether one link did.
    pub(super) fn three_rates(&mut self, session: &MethodRun) {
        self.stage = Stage::Over;
        let Some(found) = three_rates::wanted(session).filter(|_| answer::is_bare(session)) else {
            // A receiver that batches hides no bucket from a long train; others' traffic would.
            let steady = batches::rates(session).is_some_and(|rates| hosts::is_steady(&rates));
            if steady && batches::loaded(session) == Some(false) {
                self.bucket(session, 0);
            }
            return;
        };
        let packets = three_rates::PACKETS.min(self.cap(session));
        for train in 0..three_rates::PUSHED {
            self.push(Phase::Pushed, packets, session.full_size());
            if train < three_rates::PACED {
                self.paced(session, Phase::Check, found, packets);
                self.paced(session, Phase::Between, three_rates::BETWEEN * found, packets);
            }
        }
    }
}

/// Whether a shaper's small bucket, that short trains showed so that no rounds came, leaves the
/// rate open: long trains do not bear it out, or, of a run that hurried for it, nothing names one.
pub(super) fn needs_rounds(session: &MethodRun, hurried: bool) -> bool {
    let open = buckets::is_quickly_shaped(session) && !settled::is_borne_out(session);
    open || (hurried && !buckets::found_deep(session) && answer::is_bare(session))
}

/// Most packets of a train that is paced: queues that a train sent at once overflows take it.
pub(super) fn paced_cap_of(session: &MethodRun, octets: u64) -> usize {
    let window = session.facts.rate_cap.map_or(u64::MAX, |cap| cap.octets_in(PEAK_WINDOW));
    let packets = octets.min(window) / u64::from(session.full_size().max(1));
    usize::try_from(packets.saturating_sub(1)).unwrap_or(usize::MAX).max(2)
}

/// A rate a little above the link's, at which a train fills its queue by a share of its length
/// only; `None` where the sender is hardly faster, or cannot pace it.
fn bucket_pace(session: &MethodRun) -> Option<BitRate> {
    let full = session.full_size();
    let wire = wire_rate(session)?;
    let pace = BitRate::from_bps_f64(BUCKET_PACE * session.ip_rate(wire))?;
    let coarse = by_trains::blurred(session, wire);
    let far = hosts::sent_share(session).is_some_and(|share| share * BUCKET_PACE < FAR_FASTER);
    let able = session.facts.max_paced_rate(full).is_none_or(|most| pace <= most);
    (coarse && far && able).then_some(pace)
}

/// The rate at which full packets follow one another so far, wire bit/s.
fn wire_rate(session: &MethodRun) -> Option<f64> {
    let full = session.full_size();
    Some(f64::from(session.framing().wire_octets(u32::from(full))) * 8e9 / gap_ns(session, full)?)
}

/// Octets of the next train that looks for a bucket. What is left of a tenth of a megabyte; from 15
/// Mbit/s on, where that is a moment's traffic, what tells a bucket of 64 kB that fills at four
/// fifths of the link's rate, and no less than the link carries in 10 ms; the same once something
/// has bent.
fn reach_octets(session: &MethodRun) -> u64 {
    let packet_ns = gap_ns(session, session.full_size()).unwrap_or(f64::INFINITY);
    let octets_per_ns = f64::from(session.full_size()) / packet_ns;
    let fast = octets_per_ns * 8e9 > FAST_BPS;
    // Short trains tell of small buckets; a deeper one may be there as well.
    let known = !fast || long_trains::all(session).next().is_some();
    let bent = known && buckets::search(session).bent > 0;
    if !bent && !fast {
        let left = SMALL_RUN_OCTETS.saturating_sub(session.tally.octets);
        // Behind rounds only what looks like a bucket is asked for one; and a sender that is the
        // slowest of all knows nothing else.
        let least = !buckets::is_quiet(session) || hosts::sender_rate(session).is_some();
        return if least { left.max(SMALL_RUN_OCTETS / 2) } else { left };
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what a u64 holds")]
    let octets = (octets_per_ns * REACH_NS).clamp(0.0, BUCKET_OCTETS as f64) as u64;
    let least = if bent { shown_octets(session).clamp(SMALL_RUN_OCTETS / 2, BUCKET_OCTETS) } else { FAST_REACH_OCTETS };
    octets.max(least)
}

/// The same beside other traffic; less on links that are so fast that rounds come first.
fn most_loaded_octets(session: &MethodRun) -> u64 {
    let wire = trains_rate(session).unwrap_or(0.0);
    let shaper = settled::shows_shaper(session);
    match (wire > FAST_BPS, looks_early(session)) {
        (false, _) => SMALL_RUN_OCTETS / 2,
        (true, true) if shaper => rounded(wire / 8e9 * DEEP_REACH_NS).clamp(FAST_REACH_OCTETS, DEEP_REACH_OCTETS),
        (true, true) => FAST_REACH_OCTETS.max(rounded(wire / 8e9 * LOADED_REACH_NS)),
        (true, false) => LAST_REACH_OCTETS,
    }
}

/// As many as may be, until bends show that fewer do: a first train may have bent for others, or
/// they may have emptied the bucket before it.
pub(super) fn loaded_reach_octets(session: &MethodRun) -> u64 {
    let most = most_loaded_octets(session);
    let looked = || long_trains::all(session).filter(|course| course.octets >= most as f64 / 2.0);
    let shown = looked().filter_map(|course| course.bend).map(|bend| bend_octets(&bend)).reduce(f64::max);
    let shown = shown.filter(|_| looked().count() > 1);
    shown.map_or(most, |shown| rounded(shown).max(SMALL_RUN_OCTETS / 2).min(most))
}

/// Whether a long train ended slower than what all say so far, or the only one bent to less: there
/// may be a deeper bucket.
fn doubts(session: &MethodRun, search: &BucketEvidence) -> bool {
    let found = search.turning_point.map(|found| found.sustained.as_f64());
    let rate = found.or_else(|| ip_rate(session)).unwrap_or(0.0);
    let alone = looks_early(session) && session.of(Phase::PacedBucket).count() == 1;
    let slower = buckets::may_go_on_slower(session, rate) || (alone && buckets::may_bend_further(session, rate));
    let named = || found.or_else(|| answer::named(session));
    let halved = || !looks_early(session) && named().is_some_and(|rate| buckets::halved(session, rate));
    (slower || halved()) && !buckets::go_on_alike(session)
}

/// The rate at which full packets follow one another so far, IP layer, bit/s.
fn ip_rate(session: &MethodRun) -> Option<f64> {
    wire_rate(session).map(|wire| session.ip_rate(wire))
}

/// The rate at which trains of some packets came so far, wire bit/s: a link behind the narrow one
/// pushes pairs together, but not whole trains.
fn trains_rate(session: &MethodRun) -> Option<f64> {
    let all = wire_rate(session)?;
    let trains = narrows_stat::median(&session.rates(Phase::Trains));
    Some([trains, settled::behind_small_bucket(session)].into_iter().flatten().fold(all, f64::min))
}

/// Whether a train that looked for a bucket ended at less than trains went on at before, though it
/// shows no bend.
fn ended_slower(session: &MethodRun) -> bool {
    let before = ip_rate(session).unwrap_or(0.0);
    let mut ends = session.of(Phase::Bucket).filter_map(|sample| sample.carried);
    buckets::is_quiet(session) && !batches::seen(session) && ends.any(|train| train.ended_bps() < SLOWER * before)
}

/// The last train that looked for a bucket, if it came slower than shorter ones did that left at
/// the same rate, and yet straight: others, or the train before, may have emptied the bucket.
fn ran_dry(session: &MethodRun) -> Option<&Course> {
    let last = session.courses.last().filter(|course| course.bend.is_none())?;
    let looked = |phase: Phase| session.of(phase).next().is_some();
    let shorter = match (looked(Phase::Settle), looked(Phase::PacedBucket)) {
        (true, _) => Phase::Settle,
        (false, true) => Phase::Check,
        (false, false) => Phase::Trains,
    };
    let rate = session.ip_rate(narrows_stat::median(&session.rates(shorter))?);
    // What packets with nobody between say of the end is not the others' doing.
    let known = last.later.is_some_and(|later| later.keeps_pace());
    let below = if looked(Phase::Settle) && !known { SLOWER } else { FAR_SLOWER };
    (long_trains::is_long(last) && last.rate_bps < below * rate).then_some(last)
}

/// Whether a train ended as fast as others show the link to be.
fn ended_fast(session: &MethodRun, course: &Course) -> bool {
    let rate = ip_rate(session).unwrap_or(f64::INFINITY);
    course.bend.is_none() && course.later.is_some_and(|later| later.rate_bps >= SLOWER * rate)
}

/// Whether long trains ended slower than they began, or than they came to the bucket, as often as
/// not. Others' traffic slows one now and then.
fn often_slower(session: &MethodRun) -> bool {
    let rate = ip_rate(session).unwrap_or(f64::INFINITY);
    if buckets::go_on_alike(session) {
        return false;
    }
    // Behind a shaper's small bucket there is hardly ever another link that others load.
    let shaper = settled::shows_shaper(session);
    let below = if shaper { SLOWER } else { FAR_SLOWER };
    let (slower, all) = long_trains::longest(session).into_iter().fold((0, 0), |(slower, all), course| {
        let bent = course.bend.is_some_and(|bend| bend.sustained_bps < below * bend.peak_bps);
        let came = course.departure_bps.min(rate);
        let ended = course.later.is_some_and(|later| buckets::ended_as_emptied(&later, came, shaper));
        (slower + usize::from(bent || ended), all + 1)
    });
    all > 0 && slower * 2 >= all
}

/// Octets of a train that bends in its middle where earlier ones did.
fn shown_octets(session: &MethodRun) -> u64 {
    let bends = session.courses.iter().filter_map(|course| course.bend);
    rounded(bends.map(|bend| bend_octets(&bend)).fold(0.0, f64::max)).min(BUCKET_OCTETS)
}

/// The same of one bend.
fn bend_octets(bend: &Bend) -> f64 {
    2.0 * bend.depth_octets / (1.0 - bend.sustained_bps / bend.peak_bps).max(LEAST_STEP)
}

/// Most octets of a train of batches: on a slow link no more than other trains have, for it would
/// last.
fn batch_train_octets(session: &MethodRun) -> u64 {
    let packet_ns = gap_ns(session, session.full_size()).unwrap_or(f64::INFINITY);
    if packet_ns * BATCH_TRAIN_OCTETS as f64 / f64::from(session.full_size().max(1)) > BATCH_TRAIN_NS {
        TRAIN_OCTETS
    } else {
        BATCH_TRAIN_OCTETS
    }
}

// Ours, all of them.
/// What an idle path may cost where it is slow: a tenth of a megabyte, less what rounding and one
/// packet take.
const SMALL_RUN_OCTETS: u64 = 97_000;
const FAST_BPS: f64 = 15e6;
/// A bucket of half a megabyte at half of a gigabit bends no sooner.
const REACH_NS: f64 = 10e6;
/// On links where rounds come first and have cost as much as a run may.
const LAST_REACH_OCTETS: u64 = 320_000;
/// One of 300 kB at three eighths of 400 Mbit/s.
const LOADED_REACH_NS: f64 = 20e6;
/// A fifth of it, less the packets behind the bend, is more than 90 kB.
const FAST_REACH_OCTETS: u64 = 480_000;
/// Behind a shaper's small bucket: one of 150 kB at four fifths of 185 Mbit/s bends after 800 kB,
/// and one of 100 kB at four fifths of 100 Mbit/s after 40 ms.
const DEEP_REACH_OCTETS: u64 = 960_000;
const DEEP_REACH_NS: f64 = 50e6;
const ABOVE_PEAK: f64 = 1.05;
/// Less by what a full queue drops.
const NEARLY: f64 = 0.9;
/// Share of the peak that a bend loses at least, for the length of what follows.
const LEAST_STEP: f64 = 0.1;
const LONGEST_REACH_NS: f64 = 1e9;
/// 800 packets: what empties a bucket of 300 at half the link's rate, and some more behind the
/// bend.
const BUCKET_OCTETS: u64 = 1_200_000;
const BUCKET_TRAINS: usize = 6;
/// So many, where a train ended slower than what was found.
const DOUBTED: usize = 3;
/// As much as a bend loses at least.
const SLOWER: f64 = 1.0 - LEAST_STEP;
/// What makes a bucket beside others credible.
const FAR_SLOWER: f64 = 1.0 / 1.5;
/// Buckets of a share of its octets that a train excludes at least unless a host spoiled it.
const LITTLE: u64 = 20;
/// So many of them may be spoilt.
const SPOILED: usize = 3;
/// Times the link's rate: a fourth of the train waits.
const BUCKET_PACE: f64 = 1.33;
/// A sender that leaves less than this much faster fills a queue hardly more.
const FAR_FASTER: f64 = 0.5;
/// What `buckets::credible` asks for, or makes a medium confidence.
const ALIKE: usize = 3;
const ALIKE_BESIDE_CROSS_TRAFFIC: usize = 4;
const LEAST_REACH: usize = 12;
/// Times what a bucket takes to fill: half of it may be others'.
const SPARE: f64 = 1.2;
const SPARE_BESIDE_OTHERS: f64 = 2.0;
const MOST_REFILL: Duration = Duration::from_secs(2);
/// `pathrate` practice: a host within 5 % of the answer may be the answer.
const SENDER_SHARE: f64 = 0.95;
const BATCH_TRAIN_NS: f64 = 20e6;
/// A thousand packets: half a dozen batches of 50 µs at 40 Gbit/s.
const BATCH_TRAIN_OCTETS: u64 = 1_500_000;
const BATCH_TRAIN: usize = 64;
const BATCH_TRAINS: usize = 4;
/// So many checks make a median that one burst of others does not turn.
const BATCH_CHECKS: usize = 3;
const BATCHES_PER_TRAIN: usize = 10;
