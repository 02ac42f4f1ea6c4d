//! The channel from the thread that measures to the one that shows: bounded, and never waited for.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, PoisonError};

use narrows_probe::progress::{Progress, Timed};

/// Events that wait for whoever shows them.
const ROOM: usize = 256;

/// The sending end.
pub(crate) struct Feeder {
    sender: SyncSender<Timed>,
    /// What found no room, and must not be lost.
    late: Mutex<VecDeque<Timed>>,
}

impl Feeder {
    pub(crate) fn new() -> (Self, Receiver<Timed>) {
        Self::with_room(ROOM)
    }

    fn with_room(room: usize) -> (Self, Receiver<Timed>) {
        let (sender, receiver) = sync_channel(room);
        (Self { sender, late: Mutex::new(VecDeque::new()) }, receiver)
    }

    /// Passes an event on if there is room. Where there is none, samples are dropped, and the
    /// others kept for later, in their order.
    pub(crate) fn offer(&self, event: Timed) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        late.push_back(event);
        while let Some(event) = late.pop_front() {
            match self.sender.try_send(event) {
                Ok(()) => {}
                Err(TrySendError::Full(event)) => {
                    late.push_front(event);
                    late.retain(|event| !matches!(event.progress, Progress::Sample(_)));
                    return;
                }
                // Nobody shows anything any more.
                Err(TrySendError::Disconnected(_)) => late.clear(),
            }
        }
    }

    /// The last event. Nothing is measured any more: now there is time to wait.
    pub(crate) fn close(&self, event: Timed) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        late.push_back(event);
        for event in late.drain(..) {
            if self.sender.send(event).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use narrows_probe::progress::{LoadSample, Sample};

    use super::*;

    fn note(at_ns: u64) -> Timed {
        Timed { at_ns, progress: Progress::Note(String::new()) }
    }

    fn sample(at_ns: u64) -> Timed {
        let load = LoadSample {
            span_ns: 0,
            packets: 0,
            octets: 0,
            arrived_octets: 0,
            arrived_span_ns: 0,
            lost: 0,
            delay_ns: None,
        };
        Timed { at_ns, progress: Progress::Sample(Sample::Load(load)) }
    }

    #[test]
    fn samples_are_dropped_and_the_others_come_later() {
        let (feeder, events) = Feeder::with_room(3);
        for at_ns in 0..10 {
            feeder.offer(if at_ns % 2 == 0 { sample(at_ns) } else { note(at_ns) });
        }
        let heard: Vec<u64> = events.try_iter().map(|event| event.at_ns).collect();
        assert_eq!(heard, [0, 1, 2]);
        // There is room again: what was late comes first.
        feeder.offer(sample(10));
        let heard: Vec<u64> = events.try_iter().map(|event| event.at_ns).collect();
        assert_eq!(heard, [3, 5, 7]);
        std::thread::scope(|scope| {
            scope.spawn(|| feeder.close(note(11)));
            let heard: Vec<u64> = events.iter().take(2).map(|event| event.at_ns).collect();
            assert_eq!(heard, [9, 11]);
        });
    }

    #[test]
    fn nobody_who_shows_is_no_trouble() {
        let (feeder, events) = Feeder::with_room(1);
        drop(events);
        (0..5).for_each(|at_ns| feeder.offer(note(at_ns)));
        feeder.close(note(5));
    }
}
