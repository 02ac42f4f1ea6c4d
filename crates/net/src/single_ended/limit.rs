//! How many answers a remote host still owes: its token bucket, kept here too.

use narrows_probe::AnswerLimit;

use crate::clock::nanos;

/// A bucket of answers. It may be overdrawn by a train that is longer than it is deep; the next one
/// then waits longer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tokens {
    limit: AnswerLimit,
    left: f64,
    at_ns: i64,
}

impl Tokens {
    /// With so many answers left at `now_ns`.
    pub(super) fn new(limit: AnswerLimit, left: u32, now_ns: i64) -> Self {
        Self { limit, left: f64::from(left), at_ns: now_ns }
    }

    pub(super) fn limit(&self) -> AnswerLimit {
        self.limit
    }

    /// When there will be an answer for each of so many packets, or as many as there can be.
    pub(super) fn ready_at(&self, packets: usize) -> i64 {
        let burst = f64::from(self.limit.burst());
        let missing = (packets as f64).min(burst) - self.left;
        if missing <= 0.0 {
            return self.at_ns;
        }
        #[expect(clippy::cast_possible_truncation, reason = "saturates, and is bounded by bucket and refill")]
        let wait = (missing * nanos(self.limit.every()) as f64).ceil() as i64;
        self.at_ns.saturating_add(wait)
    }

    /// So many packets left over a time that ended at `now_ns`; how many answers there were for
    /// them, at most.
    pub(super) fn spend(&mut self, packets: usize, now_ns: i64) -> usize {
        let every = nanos(self.limit.every()).max(1) as f64;
        let gained = now_ns.saturating_sub(self.at_ns).max(0) as f64 / every;
        let burst = f64::from(self.limit.burst());
        self.at_ns = self.at_ns.max(now_ns);
        // What came in while the train was under way was there for it too; what did not fit the
        // bucket before it was not.
        let held = (self.left + gained).min(burst + gained);
        self.left = (held - packets as f64).clamp(-burst, burst);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates at zero, and is bounded by bucket and refill"
        )]
        let whole = held.max(0.0) as usize;
        whole.min(packets)
    }

    /// The last answers were refused: the bucket is empty.
    pub(super) fn empty(&mut self) {
        self.left = self.left.min(0.0);
    }
}

/// What the answers to a back-to-back train say of a limit: how many came if the remote host
/// answered the first ones and none of (nearly) all that followed, which losses of the path do not
/// do. `None`: no sign of a limit.
pub(super) fn cut_off(answered: &[bool]) -> Option<u16> {
    /// Losses at the end that chance does not explain: at 10 % loss, one in ten thousand.
    const TAIL: usize = 4;
    let first_lost = answered.iter().position(|came| !came)?;
    let late = answered[first_lost..].iter().filter(|came| **came).count();
    let lost = answered.len() - first_lost - late;
    // A slow train refills the bucket on its way, so that single answers come late.
    (lost >= TAIL && late * 4 <= lost).then(|| u16::try_from(first_lost + late).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn linux(left: u32) -> Tokens {
        Tokens::new(AnswerLimit::new(6, Duration::from_secs(1)), left, 0)
    }

    #[test]
    fn linux_answers_six_and_then_one_a_second() {
        let mut tokens = linux(6);
        assert_eq!(tokens.ready_at(6), 0);
        assert_eq!(tokens.spend(6, 0), 6);
        assert_eq!(tokens.ready_at(1), SECOND);
        assert_eq!(tokens.ready_at(100), 6 * SECOND, "never more than the bucket holds");
        assert_eq!(tokens.spend(3, 2 * SECOND), 2);
        // One was not answered, and is not owed for either: the overdraft is the pacer's own.
        assert_eq!(tokens.ready_at(1), 4 * SECOND);
        tokens.empty();
        let mut rested = linux(0);
        assert_eq!(rested.spend(1, 100 * SECOND), 1);
    }

    #[test]
    fn a_long_train_overdraws_by_one_bucket_at_most() {
        let mut tokens = linux(6);
        assert_eq!(tokens.spend(500, 0), 6);
        assert_eq!(tokens.ready_at(6), 12 * SECOND);
    }

    #[test]
    fn limits_are_reported_from_losses() {
        let train = |text: &str| text.chars().map(|c| c == '!').collect::<Vec<bool>>();
        assert_eq!(cut_off(&train("!!!!!!......")), Some(6));
        assert_eq!(cut_off(&train("!!!........!")), Some(4));
        assert_eq!(cut_off(&train("............")), Some(0));
        assert_eq!(cut_off(&train("!!!!!!!!!!!!")), None);
        assert_eq!(cut_off(&train("!!!!.!!!!.!!")), None);
        assert_eq!(cut_off(&train("!!!!!!!!!...")), None);
        assert_eq!(cut_off(&train("!!..!!..!!..")), None);
    }
}
