//! The same phases, as short as the samples allow (ours).
//!
//! A first train tells the rough rate. *Looks* of a few short trains, long trains and small packets
//! follow, until they agree or three have not; then *rounds* of pairs and trains, until the winning
//! mode has settled. A receiver that batches ends either in favour of the batch branch.

mod filter;
mod long;

use std::collections::VecDeque;
use std::time::Duration;

use narrows_units::BitRate;

use super::sample::{Flaw, Phase, Sample};
use super::session::{Acceptance, MethodRun};
use super::{Last, Request, batches, buckets, full_queue, modes, quick, settled};

/// Where the run stands.
#[derive(Debug, Clone)]
pub(super) struct Adaptive {
    stage: Stage,
    queue: VecDeque<Request>,
    /// Times that the train now asked for has failed.
    failures: u32,
    /// No longer trains than this.
    longest: usize,
    /// Pairs asked for so far, which picks their sizes.
    pairs: u32,
    /// Checks have not failed for good.
    can_check: bool,
    /// The round after which small pairs were sent for the first time, while they are.
    resume: Option<u32>,
    /// What was asked for at the end.
    closing: Closing,
    /// Others send on the narrow link, so that long trains go no faster than it takes them.
    loaded: bool,
    /// No rounds came, for what a few short trains showed of a shaper's small bucket.
    hurried: bool,
}

/// What a run asks for at its end, one after the other, where it tells anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closing {
    Open,
    /// Long trains behind what looks like a shaper's small bucket.
    Settle,
    /// The last look for a bucket, where trains show a shaper.
    Look,
    /// Trains that empty a bucket first.
    Behind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    First,
    BucketEvidence(u32),
    Round(u32),
    /// Small pairs for the filter of least delay.
    Filter(u32),
    /// With the length last asked for.
    Batches(usize),
    /// Before trains of three rates, should paced ones be slowed and nothing else name the link.
    ThreeRates,
    /// Long trains that look for a token bucket: so many were asked for.
    Bucket(usize),
    Over,
}

impl Adaptive {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::First,
            queue: VecDeque::new(),
            failures: 0,
            longest: usize::MAX,
            pairs: 0,
            can_check: true,
            resume: None,
            closing: Closing::Open,
            loaded: false,
            hurried: false,
        }
    }

    /// Time from the begin of this train to the begin of the next: the narrow link stays free for
    /// others, and has drained.
    pub(super) fn spacing(session: &MethodRun, request: Request) -> Duration {
        let gap = gap_ns(session, request.ip_octets).unwrap_or(0.0);
        let busy = Duration::try_from_secs_f64(gap * (request.packets + 1) as f64 * 1e-9).unwrap_or(MOST_SPACING);
        let rounds =
            matches!(request.phase, Phase::Pairs | Phase::Trains | Phase::Filter | Phase::Pushed | Phase::Settle)
                || (request.phase.is_paced() && !request.phase.is_bucket());
        let share = if rounds {
            session.params.utilisation
        } else {
            // The look is over in a moment; it may take more of the path than what goes on for
            // seconds.
            (2.0 * session.params.utilisation).min(1.0)
        };
        let window = if session.facts.rate_cap.is_some() { PEAK_WINDOW } else { Duration::ZERO };
        busy.min(MOST_SPACING).div_f64(share).min(MOST_SPACING).max(session.params.spacing).max(window)
    }

    pub(super) fn next(&mut self, session: &MethodRun, last: Option<Last>) -> Option<Request> {
        match last {
            // A bucket's train tells by its losses, too.
            Some(Last { request, taken: Acceptance::Flawed(Flaw::Lost) }) if request.phase.is_bucket() => {
                self.overflowed(session, request);
            }
            Some(Last { request, taken: Acceptance::Flawed(flaw) }) => self.again(request, flaw),
            Some(_) => self.failures = 0,
            None => {}
        }
        if hopeless(session) || full_queue::narrow(session).is_some() {
            return None;
        }
        // Every pass but the last fills the queue or moves on to a later stage. Should one lead
        // back after all, the run ends with what it has.
        for _ in 0..MOST_PASSES {
            match (self.queue.is_empty(), self.stage) {
                (false, _) => break,
                (true, Stage::Over) if self.closing == Closing::Behind => break,
                (true, Stage::Over) => self.close(session),
                (true, _) => self.advance(session),
            }
        }
        self.queue.pop_front()
    }

    /// The next of the steps at the end of a run.
    fn close(&mut self, session: &MethodRun) {
        match self.closing {
            Closing::Open => {
                self.closing = Closing::Settle;
                self.settle(session);
            }
            Closing::Settle => {
                self.closing = Closing::Look;
                self.look_last(session);
            }
            // The rounds that the small bucket seemed to make needless.
            Closing::Look if long::needs_rounds(session, std::mem::take(&mut self.hurried)) => {
                self.closing = Closing::Open;
                self.round(session, 0);
            }
            Closing::Look | Closing::Behind => {
                self.closing = Closing::Behind;
                // Of a bucket of a few packets long trains have told already what these would.
                if session.of(Phase::Settle).next().is_none() || buckets::found_deep(session) {
                    self.behind(session);
                }
            }
        }
    }

    /// Takes out of the queue what follows of the same phase, at most so many.
    pub(super) fn alike(&mut self, request: Request, most: usize) -> Vec<Request> {
        let alike = |next: &&Request| next.phase == request.phase && next.rate.is_none();
        let count = self.queue.iter().take_while(alike).count().min(most);
        self.queue.drain(..count).collect()
    }

    /// Twice the same, then, if packets were lost, shorter and shorter: a path may not let a long
    /// burst through.
    fn again(&mut self, request: Request, flaw: Flaw) {
        self.failures += 1;
        let most = if flaw == Flaw::Lost { 8 } else { 2 };
        if self.failures > most {
            self.failures = 0;
            // A sender that cannot pace this will not learn it.
            self.can_check &= !request.phase.is_paced();
            return;
        }
        let mut packets = request.packets;
        if self.failures > 2 {
            packets = (packets / 2).max(2);
            self.longest = packets;
        }
        self.queue.push_front(Request { packets, ..request });
        for waiting in &mut self.queue {
            waiting.packets = waiting.packets.min(self.longest);
        }
    }

    fn advance(&mut self, session: &MethodRun) {
        match self.stage {
            Stage::First => self.after_first(session),
            Stage::BucketEvidence(done) => self.after_check(session, done),
            Stage::Round(done) => self.after_round(session, done),
            Stage::Filter(done) => self.filter(session, done),
            Stage::Batches(asked) => self.after_batches(session, asked),
            Stage::ThreeRates => self.three_rates(session),
            Stage::Bucket(asked) => self.bucket(session, asked),
            Stage::Over => {}
        }
    }

    fn after_first(&mut self, session: &MethodRun) {
        // Each is longer than the one before.
        let sent = session.of(Phase::Lengths).chain(&session.too_fast).max_by_key(|sample| sample.packets());
        match sent {
            None if session.tally.trains > 0 => self.stage = Stage::Over,
            None => self.ask(session, Phase::Lengths, 3, session.full_size()),
            // Shorter than what two stamps may be wrong by, or all in one batch: nothing can be
            // planned from it.
            Some(sample) if session.timing_error(sample.span_ns()) > 0.5 && self.can_double(session, sample) => {
                self.ask(session, Phase::Lengths, sample.packets() * 4, session.full_size());
            }
            Some(_) => self.search(session, 0),
        }
    }

    fn can_double(&self, session: &MethodRun, sample: &Sample) -> bool {
        sample.packets() * 2 <= self.cap(session)
    }

    fn search(&mut self, session: &MethodRun, done: u32) {
        self.stage = Stage::BucketEvidence(done + 1);
        let full = session.full_size();
        let small = small_size(session);
        let (short, long) = (self.short(session, full), self.long(session));
        let mut sizes = [small, small.saturating_sub(CELL_STEP)].into_iter().cycle();
        for kind in [Kind::Short, Kind::Long, Kind::Small, Kind::Short, Kind::Small, Kind::Long, Kind::Short] {
            match kind {
                Kind::Short => self.ask(session, Phase::Preliminary, short, full),
                Kind::Long => self.ask(session, Phase::Preliminary, long, full),
                Kind::Small if small == full => {}
                Kind::Small => {
                    let size = sizes.next().unwrap_or(small);
                    self.ask(session, Phase::Preliminary, self.short(session, size), size);
                }
            }
        }
    }

    fn after_check(&mut self, session: &MethodRun, done: u32) {
        let samples = session.of(Phase::Preliminary).count();
        let open = opened(session);
        if batches::seen(session) {
            self.stage = Stage::Batches(0);
        } else if session.too_fast.len() > samples || samples == 0 {
            self.stage = Stage::Over;
        } else if let Some(agreement) = quick::agreement(session) {
            // Agreement alone may be that of a dispersion rate; a train paced just below it tells.
            let unchecked = session.of(Phase::Check).next().is_none();
            let packets = self.long(session).max(CHECK_PACKETS);
            if !(unchecked && self.check(session, agreement.rate, packets)) {
                self.after_agreement(session);
            }
        } else if session.of(Phase::Check).next().is_some() {
            self.round(session, 0);
        } else if shows_shaper(session) {
            // Pairs that pass a bucket at once say nothing; one long train tells the rate.
            (self.stage, self.hurried) = (Stage::Over, true);
        } else if done < CHECKS {
            self.search(session, done);
        } else if open * 2 > samples {
            // The sender is the narrowest of all; more of the same will not tell what lies behind
            // it, but for a bucket.
            self.bucket(session, 0);
        } else {
            self.round(session, 0);
        }
    }

    /// Where trains scatter by more than stamps may, a heavy load behind the narrow link can make a
    /// few of them agree on anything; the rounds and the filter tell.
    fn after_agreement(&mut self, session: &MethodRun) {
        let (samples, open) = (session.of(Phase::Preliminary).count(), opened(session));
        // What the sender leaves room for may still be more than a bucket lets through for long.
        if open * 2 > samples || session.stamps_explain_scatter() {
            self.bucket(session, 0);
        } else {
            self.round(session, ROUNDS - DOUBT_ROUNDS);
        }
    }

    fn round(&mut self, session: &MethodRun, done: u32) {
        self.stage = Stage::Round(done + 1);
        let train = (2 * self.long(session)).min(self.cap(session));
        for index in 0..modes::PAIRS_PER_ROUND {
            let size = self.pair_size(session);
            // If what was seen of the stamps is other traffic, pairs are better; if not, longer
            // trains. Every other one of full size is such a train.
            let packets = if self.pairs.is_multiple_of(4) {
                self.short(session, size)
            } else {
                self.shortest(session, size, session.stamp_error_measured_ns())
            };
            self.ask(session, Phase::Pairs, packets, size);
            if index % (modes::PAIRS_PER_ROUND / TRAINS_PER_ROUND) == 3 {
                self.ask(session, Phase::Trains, train, session.full_size());
            }
        }
        let trains = session.rates(Phase::Trains);
        let found = if trains.is_empty() { session.rates(Phase::Preliminary) } else { trains };
        if let Some(rate) = narrows_stat::median(&found) {
            self.check(session, rate, 2 * train);
        }
    }

    /// Asks for a check of this wire rate, if the sender can pace it.
    fn check(&mut self, session: &MethodRun, wire_bps: f64, packets: usize) -> bool {
        let packets = packets.min(self.cap(session));
        self.paced(session, Phase::Check, wire_bps, packets)
    }

    fn paced(&mut self, session: &MethodRun, phase: Phase, wire_bps: f64, packets: usize) -> bool {
        let full = session.full_size();
        let rate = BitRate::from_bps_f64(session.ip_rate(wire_bps));
        let most = session.facts.max_paced_rate(full);
        let reachable = |rate: &BitRate| self.can_check && most.is_none_or(|most| *rate <= most);
        let Some(rate) = rate.filter(reachable) else {
            return false;
        };
        self.queue.push_back(Request { phase, packets, ip_octets: full, rate: Some(rate) });
        true
    }

    /// Every other pair is of full size, where the answer is stated; the rest spread evenly over
    /// the sizes of Phase I (the golden section visits them in an order that is even at every point
    /// of time).
    fn pair_size(&mut self, session: &MethodRun) -> u16 {
        self.pairs += 1;
        let (full, small) = (session.full_size(), small_size(session));
        if self.pairs.is_multiple_of(2) {
            return full;
        }
        let place = f64::from(self.pairs / 2) * 0.618_033_988_75;
        let offset = f64::from(full - small) * place.fract();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between zero and a u16")]
        let offset = offset as u16;
        small + offset
    }

    fn after_round(&mut self, session: &MethodRun, done: u32) {
        let spent = session.tally.octets >= most_octets(session)
            || done >= ROUNDS
            || session.elapsed_ns() > most_ns(session)
            || session.tally.failed >= FAILED_TRAINS;
        if batches::seen(session) {
            self.stage = Stage::Batches(0);
        } else if spent || modes::settled(session, modes::PAIRS_PER_ROUND) {
            self.filter(session, 0);
        } else if done == EARLY_ROUND && may_be_a_buckets(session) {
            // It ends the run before pairs that disagree have spent what it may.
            self.loaded = true;
            self.resume = Some(done);
            self.bucket(session, 0);
        } else if done == EARLY_ROUND {
            // Where few pairs come through undisturbed small ones tell sooner than more rounds do.
            self.resume = Some(done);
            self.filter(session, 0);
        } else {
            self.round(session, done);
        }
    }

    fn ask(&mut self, session: &MethodRun, phase: Phase, packets: usize, ip_octets: u16) {
        self.push(phase, packets.min(self.cap(session)).max(2), ip_octets);
    }

    fn push(&mut self, phase: Phase, packets: usize, ip_octets: u16) {
        self.queue.push_back(Request { phase, packets, ip_octets, rate: None });
    }

    /// Most packets that a train may have.
    fn cap(&self, session: &MethodRun) -> usize {
        self.cap_of(session, TRAIN_OCTETS)
    }

    fn cap_of(&self, session: &MethodRun, octets: u64) -> usize {
        long::paced_cap_of(session, octets).min(self.longest).max(2)
    }

    /// Packets of the shortest train whose two stamps blur its rate by no more than [`BLUR`]: a
    /// pair where stamps are good, a bulk as in `[PBProbe08]` where they are not.
    fn short(&self, session: &MethodRun, ip_octets: u16) -> usize {
        let measured = self.shortest(session, ip_octets, session.stamp_error_measured_ns());
        let seen = self.shortest(session, ip_octets, session.stamp_error_ns());
        // What the host measured must be met; what was seen may be other traffic after all.
        measured.max(seen.min(LONGEST_SEEN))
    }

    /// The same, for stamps of this error.
    fn shortest(&self, session: &MethodRun, ip_octets: u16, error_ns: f64) -> usize {
        let gap = gap_ns(session, ip_octets).unwrap_or(f64::INFINITY);
        let gaps = (std::f64::consts::SQRT_2 * error_ns / gap / BLUR).ceil().clamp(1.0, 1e6);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped on the line above")]
        let gaps = gaps as usize;
        (1 + gaps).min(self.cap(session))
    }

    fn long(&self, session: &MethodRun) -> usize {
        let short = self.short(session, session.full_size());
        (3 * (short - 1) + 1).max(8).min(self.cap(session))
    }
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Short,
    Long,
    Small,
}

/// Small packets of the look and of Phase I.
fn small_size(session: &MethodRun) -> u16 {
    SMALLEST_IP_OCTETS.min(session.full_size())
}

/// Time of one packet at the rate seen so far, ns.
pub(super) fn gap_ns(session: &MethodRun, ip_octets: u16) -> Option<f64> {
    let seen = session.bursts().chain(&session.too_fast);
    let rates: Vec<f64> = seen.filter_map(|sample| sample.wire_rate(session.framing())).collect();
    let octets = session.framing().wire_octets(u32::from(ip_octets));
    narrows_stat::median(&rates).map(|rate| 8e9 * f64::from(octets) / rate)
}

/// Preliminary trains that arrived no wider than they left.
fn opened(session: &MethodRun) -> usize {
    session.of(Phase::Preliminary).filter(|sample| sample.open()).count()
}

/// Whether a bucket may have made the trains that came beside other traffic, and none was looked
/// for.
fn may_be_a_buckets(session: &MethodRun) -> bool {
    let looked = session.of(Phase::PacedBucket).next().is_some();
    looks_early(session)
        && !looked
        && session.narrow_is_loaded(1) != Some(false)
        && modes::may_be_a_buckets(session, None)
}

/// Whether short trains began as behind a shaper's small bucket, and none was looked for.
fn shows_shaper(session: &MethodRun) -> bool {
    let looked = session.of(Phase::PacedBucket).next().is_some() || session.of(Phase::Bucket).next().is_some();
    looks_early(session) && !looked && settled::shows_shaper(session)
}

/// Whether a look for a bucket may come before the last rounds.
fn looks_early(session: &MethodRun) -> bool {
    gap_ns(session, session.full_size()).unwrap_or(0.0) > EARLY_LOOK_NS
}

/// Octets after which no new round begins: one of them, a train's at most, pays for a look.
fn most_octets(session: &MethodRun) -> u64 {
    let looks = session.of(Phase::PacedBucket).next().is_some() || !looks_early(session);
    session.params.max_octets_of(session.full_size()).saturating_sub(if looks { TRAIN_OCTETS } else { 0 })
}

/// Time after which no new round begins, ns.
fn most_ns(session: &MethodRun) -> f64 {
    MOST_NS.max(MOST_PACKETS * gap_ns(session, session.full_size()).unwrap_or(0.0))
}

/// The path answers nothing, or loses three quarters of what it gets.
fn hopeless(session: &MethodRun) -> bool {
    let tally = &session.tally;
    let silent = tally.answered_trains == 0 && tally.trains >= SILENT_TRAINS;
    silent || (tally.sent >= JUDGED_PACKETS && (tally.lost + tally.dropped) * 4 > tally.sent * 3)
}

// Ours, all of them; the module documentation of the method has the table.
/// Several times the stages there are, with their repetitions.
const MOST_PASSES: usize = 64;
const CHECKS: u32 = 3;
const ROUNDS: u32 = 7;
/// Of these, after an agreement in doubt: enough to settle.
const DOUBT_ROUNDS: u32 = 4;
const TRAINS_PER_ROUND: usize = 2;
/// After this round small pairs come for the first time.
const EARLY_ROUND: u32 = 2;
/// Time of a packet, 500 Mbit/s: on faster links two rounds have cost as much as a run may.
const EARLY_LOOK_NS: f64 = 24e3;
/// Half an ATM cell's payload: packets of this size and of the small one take equally many cells,
/// or one more, whatever encloses them.
const CELL_STEP: u16 = 24;
/// No new round after this time, or after so many packet times where they are long.
const MOST_NS: f64 = 6.5e9;
const MOST_PACKETS: f64 = 2.5e3;
const CHECK_PACKETS: usize = 12;
const BLUR: f64 = 0.04;
const LONGEST_SEEN: usize = 6;
/// The smallest size of `pathrate`'s Phase I.
const SMALLEST_IP_OCTETS: u16 = 600;
const TRAIN_OCTETS: u64 = 300_000;
const SILENT_TRAINS: u32 = 5;
/// Each lost packet costs the timeout of the peer: a lossy path is not worth more of them.
const FAILED_TRAINS: u32 = 30;
const JUDGED_PACKETS: u64 = 60;
/// However slow the path: a run shall end.
const MOST_SPACING: Duration = Duration::from_secs(10);
/// The window of the budget's peak rate.
const PEAK_WINDOW: Duration = Duration::from_millis(100);
