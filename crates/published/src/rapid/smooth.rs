//! Gaps, averaged over whole buffering events, and where they begin to stay longer than they left.
//!
//! The authors' rule for the ends of events was not at hand; this is the portable version that
//! their abstracts and notes allow, with what is ours marked so. Do not call it BASS.

/// Gaps at one end and at the other, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gap {
    pub(super) sent: f64,
    pub(super) received: f64,
}

/// Gaps that are averaged together: one, or those of an event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Segment {
    /// The first gap.
    pub(super) first: usize,
    /// Sums of its gaps.
    pub(super) sent: f64,
    pub(super) received: f64,
}

/// A jump is this many times the median of the smaller half of all changes, and of the sending gaps
/// (portable rule).
const OF_CHANGES: f64 = 3.0;
const OF_GAPS: f64 = 2.0;
/// A gap below this share of its sending gap belongs to a queue that drains (portable rule).
const DRAINING: f64 = 0.5;

/// Cuts gaps into segments: an event begins where a gap is longer than the one before by a jump,
/// and lasts up to the next jump, or until the delay is back where it was in front of it (ours: by
/// the portable rule it lasts up to the next jump, which on a path without batches is the whole
/// stream). Gaps outside of events stay as they are.
pub(super) fn segments(gaps: &[Gap]) -> Vec<Segment> {
    let jump = jump(gaps);
    let mut segments: Vec<Segment> = Vec::with_capacity(gaps.len());
    // By how much the delay stands above where the event found it.
    let mut height = 0.0;
    for (index, gap) in gaps.iter().enumerate() {
        let before = index.checked_sub(1).map(|at| gaps[at].received);
        let jumps = before.is_some_and(|before| gap.received - before > jump);
        let within = height > 0.0 && !jumps;
        let grown = gap.received - gap.sent;
        height = if jumps {
            grown
        } else if within {
            height + grown
        } else {
            0.0
        };
        match segments.last_mut() {
            Some(last) if within => last.add(gap),
            _ => segments.push(Segment { first: index, sent: gap.sent, received: gap.received }),
        }
    }
    merged(segments)
}

impl Segment {
    fn add(&mut self, gap: &Gap) {
        self.sent += gap.sent;
        self.received += gap.received;
    }
}

/// A segment that drains as a whole is the tail of the one before it (portable rule).
fn merged(segments: Vec<Segment>) -> Vec<Segment> {
    let mut merged: Vec<Segment> = Vec::with_capacity(segments.len());
    for segment in segments {
        match merged.last_mut() {
            Some(last) if segment.received < DRAINING * segment.sent => {
                last.sent += segment.sent;
                last.received += segment.received;
            }
            _ => merged.push(segment),
        }
    }
    merged
}

fn jump(gaps: &[Gap]) -> f64 {
    let mut changes: Vec<f64> = gaps.windows(2).map(|two| (two[1].received - two[0].received).abs()).collect();
    changes.sort_by(f64::total_cmp);
    let smaller = narrows_stat::median(&changes[..changes.len() / 2]).unwrap_or(0.0);
    let sent: Vec<f64> = gaps.iter().map(|gap| gap.sent).collect();
    (OF_CHANGES * smaller).max(OF_GAPS * narrows_stat::median(&sent).unwrap_or(0.0))
}

/// Where the final run begins in which the queue keeps growing: the first gap from which on, up to
/// every later segment's end, gaps were received longer than sent by `least` of the time, and by
/// more than stamps are off. `None`: there is none of `shortest` gaps.
///
/// The base rule asks each gap of the run to have grown, which one packet of others ends; on the
/// mean from the begin is ours, as is the authors' notion of a least length.
pub(super) fn run_begins(segments: &[Segment], gaps: usize, least: f64, noise: f64, shortest: usize) -> Option<usize> {
    let mut begins = None;
    for (index, segment) in segments.iter().enumerate().rev() {
        let (mut sent, mut grown) = (0.0, 0.0);
        let mut lasts = true;
        for later in &segments[index..] {
            sent += later.sent;
            grown += later.received - later.sent;
            lasts &= grown > least * sent;
        }
        if lasts && grown > noise && gaps - segment.first >= shortest {
            begins = Some(segment.first);
        }
    }
    begins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(of: &[(f64, f64)]) -> Vec<Gap> {
        of.iter().map(|&(sent, received)| Gap { sent, received }).collect()
    }

    #[test]
    fn a_path_without_batches_keeps_its_gaps() {
        let fluid: Vec<(f64, f64)> = (0..20).map(|k| (20.0 - f64::from(k) / 2.0, 20.0 - f64::from(k) / 4.0)).collect();
        assert_eq!(segments(&gaps(&fluid)).len(), 20);
    }

    #[test]
    fn events_are_averaged_whole() {
        // Four packets per batch: one long gap, three near zero.
        let of: Vec<(f64, f64)> = (0..16).map(|k| (10.0, if k % 4 == 0 { 39.0 } else { 0.5 })).collect();
        let found = segments(&gaps(&of));
        assert_eq!(found.len(), 4);
        assert!(
            found.iter().all(|segment| (segment.received - 40.5).abs() < 1e-9 && (segment.sent - 40.0).abs() < 1e-9)
        );
        // A stream that begins in the middle of a batch: its first gaps are the tail of what was
        // not seen.
        let tail: Vec<(f64, f64)> = (0..16).map(|k| (10.0, if k % 4 == 2 { 39.0 } else { 0.5 })).collect();
        assert_eq!(segments(&gaps(&tail)).iter().map(|segment| segment.first).collect::<Vec<_>>(), [0, 2, 6, 10, 14]);
    }

    #[test]
    fn the_final_run_begins_where_the_queue_stays() {
        let mut of = vec![(10.0, 10.0); 8];
        of.extend([(10.0, 14.0), (10.0, 6.0), (10.0, 10.0)]);
        of.extend([(10.0, 11.0); 6]);
        let segments = segments(&gaps(&of));
        assert_eq!(run_begins(&segments, of.len(), 0.01, 0.0, 4), Some(11));
        // One gap that shrinks does not end it,
        of[13] = (10.0, 9.5);
        let dented = super::segments(&gaps(&of));
        assert_eq!(run_begins(&dented, of.len(), 0.01, 0.0, 4), Some(11));
        // but it must be long enough, and more than the stamps' error.
        assert_eq!(run_begins(&dented, of.len(), 0.01, 0.0, 7), None);
        assert_eq!(run_begins(&dented, of.len(), 0.01, 100.0, 4), None);
        assert_eq!(run_begins(&[], 0, 0.01, 0.0, 4), None);
    }
}
