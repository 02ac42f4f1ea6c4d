//! Fills a book with runs, those first that waited longest.

use std::time::Duration;

use narrows_stat::SplitMix64;
use narrows_units::Stamp;

use super::book::{Asker, Book};
use super::request::{Limit, Placed, Refusal, Request};
use crate::clock::Hub;
use crate::mesh::below;

/// What a plan does when.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timetable {
    /// Runs in the order of time.
    pub placed: Vec<Placed>,
    /// [`Request::run`] of those without a span, and why.
    pub unplaced: Vec<(u64, Refusal)>,
}

/// Gives each run the first span from a random start on that is free on all its keys: skipped
/// runs first, then by the time since success. Equal requests and seeds give equal timetables.
///
/// The start is random so that what recurs daily (a backup, a cron job) does not meet one pair
/// every day.
pub fn compile(book: &mut Book, requests: &[Request], seed: u64) -> Timetable {
    let mut random = SplitMix64::new(seed);
    // Runs that waited equally long come in random order: else the first pairs of the list win.
    let mut order: Vec<_> =
        requests.iter().map(|request| ((!request.skipped, request.succeeded, random.next_u64()), request)).collect();
    order.sort_unstable_by_key(|(rank, _)| *rank);
    let mut timetable = Timetable::default();
    for (_, request) in order {
        match place(book, request, &mut random) {
            Ok(placed) => timetable.placed.push(placed),
            Err(refusal) => timetable.unplaced.push((request.run, refusal)),
        }
    }
    timetable.placed.sort_by_key(|placed| (placed.begin, placed.run));
    timetable
}

fn place(book: &mut Book, request: &Request, random: &mut SplitMix64) -> Result<Placed, Refusal> {
    let (first, last) = book.starts(request)?;
    let wide = usize::try_from(last - first).unwrap_or(usize::MAX);
    let drawn = first + u32::try_from(below(wide.saturating_add(1), random)).unwrap_or(0);
    let gap = match book.gap(request, drawn, last, Asker::Plan) {
        Err(Refusal { limit: Limit::Gap, .. }) if drawn > first => book.gap(request, first, drawn - 1, Asker::Plan)?,
        other => other?,
    };
    Ok(book.take(request, gap, Asker::Plan))
}

/// The windows of starts of a run that is due every so often: the first begins when it is due, or
/// at `begin` if that has passed; each is as long as the interval.
pub fn windows(
    every: Duration,
    succeeded: Option<Stamp<Hub>>,
    begin: Stamp<Hub>,
    length: Duration,
) -> Vec<(Stamp<Hub>, Stamp<Hub>)> {
    let end = begin + length;
    let first = succeeded.map_or(begin, |then| (then + every).max(begin));
    let every = every.max(Duration::from_secs(1));
    let starts = std::iter::successors(Some(first), |start| Some(*start + every));
    starts.take_while(|start| *start < end).map(|start| (start, (start + every).min(end))).collect()
}

/// `3600 d m / (2 L)`: loading runs per hour if each of `members` (hosts, or access links of which
/// a run takes both directions) is loaded for the share `d` of the time by spans of `L`, and each
/// run loads two members.
pub fn most_per_hour(share: f64, members: u32, span: Duration) -> f64 {
    3600.0 * share * f64::from(members) / (2.0 * span.as_secs_f64())
}
