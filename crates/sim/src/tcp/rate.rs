//! Delivery-rate samples as Linux takes them (`tcp_rate.c`; Cheng and others,
//! draft-cheng-iccrg-delivery-rate-estimation-02).

/// What is noted with every segment sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Note {
    delivered: u64,
    delivered_at: u64,
    first_sent: u64,
    app_limited: bool,
}

/// Counts deliveries and makes rates of them.
#[derive(Debug, Clone)]
pub(super) struct DeliveryRate {
    delivered: u64,
    delivered_at: u64,
    /// When the segment was sent that was the most recently sent one of the last acknowledgement.
    first_sent: u64,
    /// Samples of segments sent up to this count of deliveries are limited by the application.
    app_limited_until: u64,
    /// The most recently sent segment that this acknowledgement delivered: its note, and when it
    /// was sent.
    newest: Option<(Note, u64)>,
    latest: Option<RateSample>,
}

/// Segments over a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RateSample {
    pub(super) segments: u64,
    pub(super) interval: u64,
    pub(super) app_limited: bool,
}

impl RateSample {
    fn reaches(&self, other: &Self) -> bool {
        u128::from(self.segments) * u128::from(other.interval) >= u128::from(other.segments) * u128::from(self.interval)
    }
}

impl DeliveryRate {
    pub(super) fn new(now: u64) -> Self {
        Self { delivered: 0, delivered_at: now, first_sent: now, app_limited_until: 0, newest: None, latest: None }
    }

    /// The note for a segment that leaves now, with so many others in flight.
    pub(super) fn on_sent(&mut self, now: u64, in_flight: u32) -> Note {
        if in_flight == 0 {
            (self.first_sent, self.delivered_at) = (now, now);
        }
        Note {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited_until > self.delivered,
        }
    }

    /// The application has nothing to send although the window is open.
    pub(super) fn starve(&mut self, in_flight: u32) {
        self.app_limited_until = self.delivered + u64::from(in_flight).max(1);
    }

    /// A segment has arrived.
    pub(super) fn on_delivered(&mut self, now: u64, note: &Note, sent: u64) {
        self.delivered += 1;
        self.delivered_at = now;
        let newer =
            self.newest.is_none_or(|(newest, newest_sent)| (note.delivered, sent) >= (newest.delivered, newest_sent));
        if newer {
            self.newest = Some((*note, sent));
        }
    }

    /// Segments delivered since the beginning.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// The acknowledgement is worked off. Gives how many had been delivered when the newest of its
    /// segments left, and the rate since; intervals below the smallest round trip are discarded.
    pub(super) fn finish(&mut self, now: u64, smallest_rtt: u64) -> Option<(u64, Option<RateSample>)> {
        let (note, sent) = self.newest.take()?;
        self.first_sent = sent;
        let interval = (sent - note.first_sent.min(sent)).max(now - note.delivered_at);
        if interval < smallest_rtt || interval == 0 {
            return Some((note.delivered, None));
        }
        let sample = RateSample { segments: self.delivered - note.delivered, interval, app_limited: note.app_limited };
        if !sample.app_limited || self.latest.is_none_or(|latest| sample.reaches(&latest)) {
            self.latest = Some(sample);
        }
        Some((note.delivered, Some(sample)))
    }

    pub(super) fn latest(&self) -> Option<RateSample> {
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(segments: u64, interval: u64, app_limited: bool) -> RateSample {
        RateSample { segments, interval, app_limited }
    }

    /// Four segments leave at 0 and arrive 10 apart from 100 on; a fifth leaves at 100 and arrives
    /// at 200.
    #[test]
    fn worked_by_hand() {
        let mut rate = DeliveryRate::new(0);
        let notes: Vec<Note> = (0..4).map(|sent| rate.on_sent(0, sent)).collect();
        rate.on_delivered(100, &notes[0], 0);
        rate.finish(100, 100);
        assert_eq!(rate.latest(), Some(sample(1, 100, false)));
        let fifth = rate.on_sent(100, 3);
        for (at, note) in [(110, notes[1]), (120, notes[2]), (130, notes[3])] {
            rate.on_delivered(at, &note, 0);
            rate.finish(at, 100);
        }
        assert_eq!(rate.latest(), Some(sample(4, 130, false)));
        rate.on_delivered(200, &fifth, 100);
        rate.finish(200, 100);
        assert_eq!(rate.latest(), Some(sample(4, 100, false)), "segments 1 to 4 in the time from 100 to 200");
        // One more, while the application has no more: slower, so it does not replace what is
        // known.
        rate.starve(0);
        let sixth = rate.on_sent(300, 0);
        rate.on_delivered(400, &sixth, 300);
        rate.finish(400, 100);
        assert_eq!(rate.latest(), Some(sample(4, 100, false)));
    }

    #[test]
    fn limited_samples_count_if_they_are_high_and_short_ones_never() {
        let mut rate = DeliveryRate::new(0);
        rate.starve(0);
        let note = rate.on_sent(0, 0);
        rate.on_delivered(50, &note, 0);
        rate.finish(50, 51);
        assert_eq!(rate.latest(), None);
        let note = rate.on_sent(60, 0);
        rate.on_delivered(160, &note, 60);
        rate.finish(160, 51);
        assert_eq!(rate.latest(), Some(sample(1, 100, false)), "the first delivery was the last limited one");
        rate.starve(3);
        let notes: Vec<Note> = (0..2).map(|sent| rate.on_sent(200, sent)).collect();
        for note in &notes {
            rate.on_delivered(300, note, 200);
        }
        rate.finish(300, 51);
        assert_eq!(rate.latest(), Some(sample(2, 100, true)));
    }
}
