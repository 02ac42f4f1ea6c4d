//! Both ways at once: two sessions that share the server's load slot, each on a thread of its own,
//! told of as one test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use narrows_net::iperf3::{Finished, Outline, Part, StreamPart, TestOptions};
use narrows_probe::World;
use narrows_wire::iperf3::{Results, Transport};

use super::super::ThroughputArgs;
use super::course::Course;
use super::{Beside, Ending, connect};
use crate::exit::{Exit, Failure};

pub(super) fn run(
    args: &ThroughputArgs,
    options: &TestOptions,
    began: &mut dyn FnMut(&Outline),
    interval: &mut dyn FnMut(&Part),
) -> Result<(Finished, Beside), Failure> {
    let give_up = Arc::new(AtomicBool::new(false));
    let mut forward = connect(args, options, false, &give_up)?;
    let mut reverse = connect(args, options, true, &give_up)?;
    let idle = forward.facts().rtt.min(reverse.facts().rtt);
    let shared = forward.share_load_slot(&mut reverse).map_err(|error| crate::connect::failure(&error))?;
    if shared.is_err() {
        return Err(Failure {
            exit: Exit::Refused,
            who: "peer",
            text: format!(
                "the server does not let one client test both directions at once: {}",
                reverse.refused_because().unwrap_or("it does not say why")
            ),
        });
    }
    let mut forward = Course::new(forward, options, false, 0);
    if options.parameters.transport == Transport::Tcp {
        forward.poll_from_outside();
    }
    let ours = u32::try_from(forward.outline.streams.len()).unwrap_or(u32::MAX);
    let reverse = Course::new(reverse, options, true, ours);
    let mut outline = forward.outline.clone();
    outline.streams.extend(reverse.outline.streams.iter().cloned());
    began(&outline);
    let mut parts = narrows_net::iperf3::Intervals::default();
    let (forward, reverse) = std::thread::scope(|scope| {
        let ((reported_there, hear_there), (reported_back, hear_back)) = (channel(), channel());
        let (ends_there, ends_back) = (Arc::clone(&give_up), Arc::clone(&give_up));
        let forward = scope.spawn(move || course(forward, &reported_there, &ends_there));
        let reverse = scope.spawn(move || course(reverse, &reported_back, &ends_back));
        let mut pairs = Pairs::new(hear_there, hear_back);
        while let Some(part) = pairs.next() {
            interval(&part);
            parts.push(part);
        }
        (forward.join(), reverse.join())
    });
    let broke = |_| Failure::host("a thread of the test panicked");
    let (forward, reverse) = (forward.map_err(broke)??, reverse.map_err(broke)??);
    let idle = (!idle.is_zero()).then_some(idle);
    let ((forward, beside), (reverse, beside_back)) = (forward.finished(idle), reverse.finished(idle));
    let ending = later(beside.ending, beside_back.ending);
    let mut finished = one(forward, reverse);
    finished.parts = parts.into_parts();
    Ok((finished, Beside { ending, ..beside }))
}

/// Runs one way; where it fails, the other need not go on.
fn course<'a>(mut course: Course<'a>, reported: &Sender<Part>, give_up: &AtomicBool) -> Result<Course<'a>, Failure> {
    let ran = course.run(&mut |part| {
        // Whoever listened has failed, and this way ends too.
        let _ = reported.send(part.clone());
    });
    if ran.is_err() {
        give_up.store(true, Ordering::Relaxed);
    }
    ran.map(|()| course)
}

/// What ended the longer of two ways; an interrupt ends both, and is heard by one of them, it may
/// be.
fn later(one: Option<Ending>, other: Option<Ending>) -> Option<Ending> {
    [Ending::Interrupt, Ending::Limit].into_iter().find(|&ending| one == Some(ending) || other == Some(ending)).or(one)
}

/// Intervals of both ways, each two as one. A way that has ended stands still.
struct Pairs {
    ears: [Receiver<Part>; 2],
    /// Each way's streams as they last stood.
    stood: [Vec<StreamPart>; 2],
}

impl Pairs {
    fn new(forward: Receiver<Part>, reverse: Receiver<Part>) -> Self {
        Self { ears: [forward, reverse], stood: [Vec::new(), Vec::new()] }
    }

    fn next(&mut self) -> Option<Part> {
        let incoming = self.ears.each_ref().map(|ear| ear.recv().ok());
        let times = || incoming.iter().flatten();
        let (from, to) = (times().map(|part| part.from).min()?, times().map(|part| part.to).max()?);
        let omitted = times().any(|part| part.omitted);
        let mut streams = Vec::new();
        for (incoming, stood) in incoming.into_iter().zip(&mut self.stood) {
            if let Some(part) = incoming {
                let still = |stream: &StreamPart| StreamPart {
                    from: stream.to.clone(),
                    to: stream.to.clone(),
                    samples: Vec::new(),
                };
                *stood = part.streams.iter().map(still).collect();
                streams.extend(part.streams);
            } else {
                streams.extend(stood.iter().cloned());
            }
        }
        Some(Part { from, to, omitted, streams })
    }
}

/// Two tests as one.
fn one(mut forward: Finished, reverse: Finished) -> Finished {
    let join = |one: &mut Results, other: Results| {
        one.streams.extend(other.streams);
        one.congestion = one.congestion.take().or(other.congestion);
    };
    forward.outline.streams.extend(reverse.outline.streams);
    join(&mut forward.ours, reverse.ours);
    join(&mut forward.theirs, reverse.theirs);
    forward.spacing.extend(reverse.spacing);
    forward.span.1 = forward.span.1.max(reverse.span.1);
    forward.interrupted |= reverse.interrupted;
    forward
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use narrows_net::iperf3::Snapshot;

    use super::*;

    fn part(second: u64, ids: &[u32]) -> Part {
        let at = |id: u32, octets: u64| Snapshot { octets, ..Snapshot::nothing(id, id < 3) };
        Part {
            from: Duration::from_secs(second),
            to: Duration::from_millis(1_000 * second + 1_000 + u64::from(ids[0])),
            omitted: false,
            streams: ids
                .iter()
                .map(|&id| StreamPart { from: at(id, second), to: at(id, second + 1), samples: Vec::new() })
                .collect(),
        }
    }

    #[test]
    fn a_way_that_has_ended_stands_still() {
        let ((forward, hear_there), (reverse, hear_back)) = (channel(), channel());
        for second in 0..3 {
            if second < 2 {
                forward.send(part(second, &[1, 2])).unwrap();
            }
            reverse.send(part(second, &[3])).unwrap();
        }
        drop((forward, reverse));
        let mut pairs = Pairs::new(hear_there, hear_back);
        let incoming: Vec<Part> = std::iter::from_fn(|| pairs.next()).collect();
        assert_eq!(incoming.len(), 3);
        for (part, second) in incoming.iter().zip(0..) {
            let ids: Vec<u32> = part.streams.iter().map(|stream| stream.to.id).collect();
            assert_eq!(ids, [1, 2, 3]);
            assert_eq!(part.from, Duration::from_secs(second));
            assert_eq!(part.to, Duration::from_millis(1_000 * second + 1_003));
            assert_eq!(part.streams[2].to.octets - part.streams[2].from.octets, 1);
        }
        let still = &incoming[2].streams[0];
        assert_eq!((still.from.octets, still.to.octets), (2, 2));
    }

    #[test]
    fn an_interrupt_is_reported_whoever_heard_it() {
        let (time, interrupt) = (Some(Ending::Time), Some(Ending::Interrupt));
        assert_eq!(later(time, interrupt), interrupt);
        assert_eq!(later(interrupt, time), interrupt);
        assert_eq!(later(Some(Ending::Amount), Some(Ending::Amount)), Some(Ending::Amount));
        assert_eq!(later(None, None), None);
    }
}
