//! Work on as many processors as allowed, its results handed on by one thread.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

/// Results that may wait for the thread that takes them: a bound on memory if it is slower than the
/// workers.
const WAITING: usize = 256;

/// Does `work` for every index below `count`, `jobs` at a time, and gives each result to `take` on
/// this thread, in the order in which they are done. Ends early when `stop` is set, or with the
/// first error of either.
pub fn parallel<T, E>(
    count: usize,
    jobs: usize,
    stop: &AtomicBool,
    work: impl Fn(usize) -> Result<T, E> + Sync,
    mut take: impl FnMut(usize, T) -> Result<(), E>,
) -> Result<(), E>
where
    T: Send,
    E: Send,
{
    let next = AtomicUsize::new(0);
    let over = AtomicBool::new(false);
    let (sender, receiver) = sync_channel(WAITING);
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, count.max(1)) {
            let sender = sender.clone();
            let (next, over, work) = (&next, &over, &work);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    // The receiver is gone once an error has ended the work.
                    if index >= count || sender.send((index, work(index))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        // Dropped on every way out, or workers would wait for room for ever.
        let receiver = receiver;
        for (index, result) in &receiver {
            let taken = result.and_then(|result| take(index, result));
            if taken.is_err() {
                over.store(true, Ordering::Relaxed);
                return taken;
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_once() {
        let mut seen = vec![0; 1000];
        let stop = AtomicBool::new(false);
        let done = parallel(1000, 4, &stop, Ok::<_, ()>, |index, value| {
            assert_eq!(index, value);
            seen[index] += 1;
            Ok(())
        });
        assert_eq!(done, Ok(()));
        assert!(seen.iter().all(|&count| count == 1));
    }

    #[test]
    fn errors_of_both_sides_end_it() {
        let stop = AtomicBool::new(false);
        let work = |index| if index == 500 { Err("work") } else { Ok(index) };
        assert_eq!(parallel(100_000, 3, &stop, work, |_, _| Ok(())), Err("work"));
        let mut taken = 0;
        let take = |_, _| {
            taken += 1;
            if taken == 10 { Err("take") } else { Ok(()) }
        };
        assert_eq!(parallel(100_000, 3, &stop, Ok, take), Err("take"));
        assert_eq!(taken, 10);
    }

    #[test]
    fn a_stop_ends_it_without_an_error() {
        let stop = AtomicBool::new(false);
        let mut taken = 0;
        let done = parallel(100_000, 2, &stop, Ok::<_, ()>, |_, _| {
            taken += 1;
            stop.store(taken >= 5, Ordering::Relaxed);
            Ok(())
        });
        assert_eq!(done, Ok(()));
        assert!((5..2000).contains(&taken), "{taken}");
    }
}
