//! Groups paths by their delays (RFC 8382), where several links may be why they are slow and no
//! value says which: paths whose delays move together wait in one queue.
//!
//! The streams are light: they lease nothing, and stay away from loads of the fleet.

use std::collections::{BTreeMap, BTreeSet};

use narrows_fleet::keys::{Name, Resource};
use narrows_fleet::message::{Flag, Run};
use narrows_fleet::sharing::rfc8382::{DelaySummary, Summary, group};
use narrows_fleet::sharing::{DELAY_SUMMARY, NOISE_NS, STREAM, Stream, streams};
use serde::Deserialize as _;

use crate::compile::resource_of;
use crate::error::Result;
use crate::hub::bottlenecks::{Ordered, suspects};
use crate::hub::comparisons::{BEGIN_MS, NEVER_BEGAN};
use crate::hub::give::Terms;
use crate::hub::groupings::{Grouping, GroupingRow, GroupingState};
use crate::hub::planner::DAY_MS;
use crate::hub::tomography::Findings;
use crate::hub::{HUB, Hub};
use crate::network::Network;

impl Hub {
    /// Orders streams over the paths of one suspected link, if there is any whose turn it is.
    pub(super) async fn group_if_suspected(&self) -> Result<()> {
        let now = self.now();
        if self.groupings.is_any_since(now - EVERY_MS) {
            return Ok(());
        }
        let (found, had) = (self.tomography.found(), self.groupings.paths_since(now - DAY_MS));
        let is_wanted =
            |path: &Ordered| !had.contains(path) && self.is_there(&path.source) && self.is_there(&path.target);
        let sets = wanted(&suspected(&found), is_wanted);
        if sets.is_empty() {
            return Ok(());
        }
        let begin = now + LEAD_MS;
        let span = (now, begin + STREAM_MS);
        let reserved = self.record.reservations(span.0).await?;
        let reserved = reserved.iter().filter(|one| one.begin_ms < span.1).map(|one| resource_of(&one.key)).collect();
        let is_quiet = |streams: &Vec<_>| !self.is_loaded(&found.network, streams, &reserved, span);
        match sets.into_iter().find(is_quiet) {
            Some(streams) => self.begin_grouping(streams, begin).await,
            None => Ok(()),
        }
    }

    /// Whether a load has a part of these paths in this time, or has reserved one: the streams
    /// would see its queue.
    fn is_loaded(
        &self,
        network: &Network,
        streams: &[Stream<Name>],
        reserved: &BTreeSet<Resource>,
        span: (i64, i64),
    ) -> bool {
        let of = |stream: &Stream<Name>| self.resources_of(network, &stream.source, &stream.target);
        // A load over a path that nobody traced may be on any link.
        let resources: BTreeSet<Resource> = streams.iter().flat_map(of).chain([Resource::UNTRACED]).collect();
        !resources.is_disjoint(reserved) || self.loads.are_held(&resources, span)
    }

    async fn begin_grouping(&self, streams: Vec<Stream<Name>>, begin: i64) -> Result<()> {
        let row = GroupingRow::bare(GroupingState::Running, None, self.now());
        let mut grouping = Grouping { row, streams, orders: None };
        match self.record.begin_grouping(&grouping.kept()).await {
            // Another hub was faster.
            Err(narrows_record::Error::Grouping) => return self.recall_groupings().await,
            other => other?,
        }
        self.groupings.put(&grouping.id(), grouping.clone());
        let mut orders = Vec::new();
        for stream in &grouping.streams {
            let (from, to) = stream.ends();
            match self.order_at(from, to, STREAM, HUB, Terms { earliest: Some(begin), ..Terms::default() }).await {
                Ok(order) => orders.push(order.id),
                Err(error) => return self.end_grouping(grouping, Err(error.to_string())).await,
            }
        }
        grouping.orders = Some(orders);
        self.record.set_grouping(&grouping.kept()).await?;
        self.groupings.put(&grouping.id(), grouping);
        Ok(())
    }

    /// Reads groupings of hubs before this one and beside it.
    pub(crate) async fn recall_groupings(&self) -> Result<()> {
        self.groupings.learn(self.record.groupings().await?);
        Ok(())
    }

    /// Ends those of these groupings whose runs are all there, or lost.
    pub(super) async fn judge_groupings(&self, running: Vec<(String, Grouping)>) -> Result<()> {
        for (_, grouping) in running {
            let Some(orders) = &grouping.orders else {
                if self.now() > grouping.row.at_ms + BEGIN_MS {
                    self.end_grouping(grouping, Err(NEVER_BEGAN.to_owned())).await?;
                }
                continue;
            };
            let Some(runs) = self.runs_of(orders).await? else { continue };
            let read = orders.iter().map(|order| runs.get(order));
            let said = judged(grouping.streams.iter().zip(read));
            self.end_grouping(grouping, said).await?;
        }
        Ok(())
    }

    /// Ends a grouping, unless another hub did.
    async fn end_grouping(&self, mut grouping: Grouping, said: std::result::Result<GroupingRow, String>) -> Result<()> {
        let now = self.now();
        let row = said.unwrap_or_else(|why| GroupingRow::bare(GroupingState::Inconclusive, Some(why), now));
        grouping.row = GroupingRow { at_ms: now, ..row };
        if !self.record.set_grouping(&grouping.kept()).await? {
            return self.recall_groupings().await;
        }
        self.record.audit(HUB, "grouping.ended", &text(&grouping), now).await?;
        self.groupings.put(&grouping.id(), grouping);
        self.changed();
        Ok(())
    }
}

/// The paths that each suspected link explains, those of what is available first: a queue is where
/// little is free.
fn suspected(found: &Findings) -> Vec<Vec<Ordered>> {
    let all = [&found.available, &found.capacity].map(|located| suspects(&found.network, located));
    let path = |pair| Ordered::of(&found.network, pair);
    all.into_iter().flatten().map(|one| one.pairs.into_iter().map(path).collect()).collect()
}

/// Streams over the paths of each set that has two of them at least.
fn wanted(sets: &[Vec<Ordered>], is_wanted: impl Fn(&Ordered) -> bool) -> Vec<Vec<Stream<Name>>> {
    let streams_of = |set: &Vec<Ordered>| {
        let paths = set.iter().filter(|path| is_wanted(path)).cloned();
        streams(paths.map(|path| (path.source, path.target)), MOST_PATHS)
    };
    sets.iter().map(streams_of).filter(|streams| streams.len() > 1).collect()
}

/// What the streams say; or why nothing can be said.
fn judged<'a>(
    streams: impl Iterator<Item = (&'a Stream<Name>, Option<&'a Run>)>,
) -> std::result::Result<GroupingRow, String> {
    let (mut read, mut missing) = (Vec::new(), BTreeMap::new());
    for (stream, run) in streams {
        let path = Ordered::from(stream);
        match summary(stream, run) {
            Ok((end_ms, summary)) => read.push((path, end_ms, summary)),
            Err(why) => {
                missing.insert(path, why);
            }
        }
    }
    let span = most_at_a_time(&read.iter().map(|(_, end_ms, _)| *end_ms).collect::<Vec<_>>());
    for (path, ..) in read.extract_if(.., |(_, end_ms, _)| !span.contains(end_ms)) {
        missing.insert(path, "it ran at another time".to_owned());
    }
    let why: Vec<String> =
        missing.iter().map(|(path, why)| format!("{} to {}: {why}", path.source, path.target)).collect();
    if read.len() < 2 {
        return Err(why.join("; "));
    }
    let groups = group(&read.iter().map(|(.., summary)| *summary).collect::<Vec<_>>(), NOISE_NS);
    let paths = |places: &Vec<usize>| places.iter().map(|at| read[*at].0.clone()).collect::<Vec<_>>();
    Ok(GroupingRow {
        state: GroupingState::of(groups.verdict()),
        groups: groups.sharing.iter().map(paths).collect(),
        no_queue: paths(&groups.free),
        why: (!why.is_empty()).then(|| why.join("; ")),
        at_ms: 0,
    })
}

/// When a stream ended, and what its delays in the path's direction look like; or why that cannot
/// be said.
fn summary(stream: &Stream<Name>, run: Option<&Run>) -> std::result::Result<(i64, Summary), String> {
    let run = run.ok_or("its run was lost")?;
    for (flag, why) in DISTURBED {
        if run.flags.contains(&flag) {
            return Err(why.to_owned());
        }
    }
    let said = run.evidence.as_ref().and_then(|document| document.get("evidence")?.get(DELAY_SUMMARY));
    let said = said.and_then(|said| DelaySummary::deserialize(said).ok()).unwrap_or_default();
    let of_path = if stream.from_target { said.reverse } else { said.forward };
    let end_ms = run.began_ms.saturating_add(i64::try_from(run.length_ms).unwrap_or(i64::MAX));
    let why = || run.reason.clone().unwrap_or_else(|| "it has too few delays".to_owned());
    of_path.map(|summary| (end_ms, summary)).ok_or_else(why)
}

/// The span in which most streams ended. They are equally long, so they began in one, too: a trace
/// before one, or a wait for a peer, would be seen at its end.
fn most_at_a_time(ends: &[i64]) -> std::ops::RangeInclusive<i64> {
    let span = |end: i64| end..=end.saturating_add(APART_MS);
    let count = |first: i64| ends.iter().filter(|end| span(first).contains(end)).count();
    let first = ends.iter().copied().max_by_key(|end| (count(*end), std::cmp::Reverse(*end)));
    span(first.unwrap_or_default())
}

/// For the audit.
fn text(grouping: &Grouping) -> String {
    let row = &grouping.row;
    let paths: Vec<String> = grouping.paths().map(|path| format!("{} to {}", path.source, path.target)).collect();
    let why = row.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    format!("{}: {}{why}", paths.join(", "), row.state.as_str())
}

/// Flags of runs that say nothing of a queue of the path, and why.
const DISTURBED: [(Flag, &str); 3] = [
    (Flag::OwnLoad, "a load of the fleet crossed it"),
    (Flag::HostBusy, "a host was too busy"),
    (Flag::ClockUnsynchronised, "its agent did not know the time"),
];
/// Agents begin no light run within ten seconds before an order; what runs until then is over.
/// Ours.
const LEAD_MS: i64 = 45_000;
/// How long a stream takes, with the trace before it and what begins late.
const STREAM_MS: i64 = 30_000;
/// Ours: of 18 s, 15 are common to all.
const APART_MS: i64 = 3_000;
/// One grouping in this time: agents have more to do. A path has one a day. Ours.
const EVERY_MS: i64 = 1_800_000;
/// Paths of a grouping. Ours: each keeps an agent busy for half a minute, and a server has eight
/// light slots.
const MOST_PATHS: usize = 6;

#[cfg(test)]
mod tests;
