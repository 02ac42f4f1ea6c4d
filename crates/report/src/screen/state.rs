//! What the events so far come to.

use std::collections::BTreeMap;

use narrows_probe::progress::{
    HopSoFar, Interval, Plan, Progress, RatePoint, Repeated, Sample, StageBegan, StageEnded, WatchPoint,
};
use narrows_probe::{Caveat, Timed};
use narrows_units::{Direction, Metric};

use super::figures;
use super::{name, printable};

/// Most moments, intervals or lines that are kept; older ones go.
const KEPT: usize = 4096;

/// Everything that a screen can show.
#[derive(Debug, Clone, Default)]
pub(super) struct State {
    pub(super) plan: Plan,
    pub(super) now_ns: u64,
    pub(super) stages: Vec<Stage>,
    /// The stage under way, else the last one.
    pub(super) current: Option<usize>,
    pub(super) spent: Spent,
    pub(super) intervals: Vec<Interval>,
    pub(super) points: Vec<RatePoint>,
    pub(super) streams: BTreeMap<u32, StreamSum>,
    pub(super) hops: BTreeMap<u16, HopSoFar>,
    pub(super) watch: Vec<WatchPoint>,
    pub(super) log: Vec<(u64, String)>,
    pub(super) doubts: Vec<(String, String)>,
    pub(super) repeated: u32,
    pub(super) ended: bool,
}

/// What was sent so far, in stages that are over and in the one under way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent {
    pub(super) octets: u64,
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) peak_bps: u64,
}

/// One stage.
#[derive(Debug, Clone)]
pub(super) struct Stage {
    pub(super) metric: Metric,
    pub(super) direction: Direction,
    pub(super) most: (u64, u64),
    pub(super) began_ns: Option<u64>,
    pub(super) octets: u64,
    pub(super) packets: u64,
    pub(super) samples: Vec<Sample>,
    pub(super) ended: Option<StageEnded>,
}

/// A stream of a transfer from its begin on.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StreamSum {
    pub(super) octets: u64,
    pub(super) again: Option<u64>,
}

impl State {
    pub(super) fn apply(&mut self, event: &Timed) {
        self.now_ns = self.now_ns.max(event.at_ns);
        match &event.progress {
            Progress::Plan(plan) => self.planned(plan),
            Progress::StageBegan(began) => self.began(began),
            Progress::Sample(sample) => self.sample(sample),
            Progress::Interval(interval) => self.interval(interval),
            Progress::Hop(hop) => {
                self.hops.insert(hop.ttl, hop.clone());
            }
            Progress::Watch(point) => self.watched(point),
            Progress::StageEnded(ended) => self.stage_ended(ended),
            Progress::Repeated(Repeated { metric, .. }) => {
                self.repeated += 1;
                self.note(format!("{} runs again: its timing was not valid", name(*metric)));
            }
            Progress::Note(text) => self.note(printable(text)),
            Progress::Ended => self.ended = true,
        }
    }

    fn note(&mut self, text: String) {
        self.log.push((self.now_ns, text));
        forget(&mut self.log);
    }

    fn planned(&mut self, plan: &Plan) {
        if self.plan.address.is_none() && plan.address.is_some() {
            self.note(format!("connected to {}", printable(&plan.target)));
        }
        // What was planned before may be under way: stages to come are added, none is lost.
        for stage in &plan.stages {
            let same = |known: &&Stage| known.metric == stage.metric && known.direction == stage.direction;
            if self.stages.iter().find(same).is_none() {
                self.stages
                    .push(Stage { most: (stage.octets, stage.time_ns), ..Stage::new(stage.metric, stage.direction) });
            }
        }
        self.plan = plan.clone();
    }

    fn began(&mut self, began: &StageBegan) {
        let place = self.place(began.metric, began.direction);
        let now = self.now_ns;
        let stage = &mut self.stages[place];
        *stage = Stage { began_ns: Some(now), most: stage.most, ..Stage::new(stage.metric, stage.direction) };
        self.current = Some(place);
        self.note(format!("{} begins", name(began.metric)));
    }

    /// The stage of a metric; one that nobody planned comes last.
    fn place(&mut self, metric: Metric, direction: Direction) -> usize {
        let same = |stage: &Stage| stage.metric == metric && stage.direction == direction;
        self.stages.iter().position(same).unwrap_or_else(|| {
            self.stages.push(Stage::new(metric, direction));
            self.stages.len() - 1
        })
    }

    fn sample(&mut self, sample: &Sample) {
        let (octets, packets, lost) = match sample {
            Sample::Train(train) => (train.octets, train.packets, train.lost),
            Sample::Load(load) => (load.octets, load.packets, load.lost),
            Sample::Transfer(_) => (0, 0, 0),
        };
        self.spent.lost = self.spent.lost.saturating_add(lost);
        if let Some(stage) =
            self.current.and_then(|place| self.stages.get_mut(place)).filter(|stage| stage.is_under_way())
        {
            stage.octets = stage.octets.saturating_add(octets);
            stage.packets = stage.packets.saturating_add(packets);
            stage.samples.push(sample.clone());
            forget(&mut stage.samples);
        } else {
            self.spent.octets = self.spent.octets.saturating_add(octets);
            self.spent.packets = self.spent.packets.saturating_add(packets);
        }
    }

    fn interval(&mut self, interval: &Interval) {
        for stream in &interval.streams {
            let sum = self.streams.entry(stream.id).or_default();
            sum.octets = sum.octets.saturating_add(stream.octets);
            sum.again = match (sum.again, stream.again) {
                (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
                (known, more) => known.or(more),
            };
        }
        self.points.extend(&interval.points);
        forget(&mut self.points);
        self.intervals.push(interval.clone());
        forget(&mut self.intervals);
    }

    fn watched(&mut self, point: &WatchPoint) {
        self.spent.octets = self.spent.octets.saturating_add(point.octets);
        self.spent.packets = self.spent.packets.saturating_add(point.packets);
        for doubt in &point.doubts {
            self.doubt(name(Metric::AvailableIpCapacity), doubt);
        }
        self.watch.push(point.clone());
        forget(&mut self.watch);
    }

    fn stage_ended(&mut self, ended: &StageEnded) {
        let place = self.place(ended.metric, ended.direction);
        self.current = Some(place);
        self.spent.octets = self.spent.octets.saturating_add(ended.octets);
        self.spent.packets = self.spent.packets.saturating_add(ended.packets);
        self.spent.peak_bps = self.spent.peak_bps.max(ended.peak_bps);
        for doubt in &ended.doubts {
            self.doubt(name(ended.metric), doubt);
        }
        let said = match (ended.value, &ended.reason) {
            (Some(value), _) => figures::claimed(ended.metric, ended.verdict, value),
            (None, Some(reason)) => format!("unclear: {reason}"),
            (None, None) => "unclear".to_owned(),
        };
        self.note(format!("{} {said}", name(ended.metric)));
        let stage = &mut self.stages[place];
        (stage.octets, stage.packets) = (ended.octets, ended.packets);
        stage.ended = Some(ended.clone());
    }

    fn doubt(&mut self, of: &str, text: &str) {
        // That no train was long enough for the deepest bucket is on every result: no doubt.
        if text == (Caveat::BucketNotExcluded { deeper_than_octets: 0 }).brief() {
            return;
        }
        let doubt = (of.to_owned(), printable(text));
        if !self.doubts.contains(&doubt) {
            self.doubts.push(doubt);
        }
    }

    /// Everything sent by now.
    pub(super) fn total(&self) -> Spent {
        let under_way = self.current().filter(|stage| stage.is_under_way());
        let (octets, packets) = under_way.map_or((0, 0), |stage| (stage.octets, stage.packets));
        Spent { octets: self.spent.octets + octets, packets: self.spent.packets + packets, ..self.spent }
    }

    pub(super) fn current(&self) -> Option<&Stage> {
        self.stages.get(self.current?)
    }

    /// The answer of a stage that is over.
    pub(super) fn found(&self, metric: Metric) -> Option<&StageEnded> {
        let direction = self.current().map(|stage| stage.direction);
        let ended = self.stages.iter().filter(|stage| Some(stage.direction) == direction);
        ended.filter(|stage| stage.metric == metric).find_map(|stage| stage.ended.as_ref())
    }
}

impl Stage {
    fn new(metric: Metric, direction: Direction) -> Self {
        Self {
            metric,
            direction,
            most: (0, 0),
            began_ns: None,
            octets: 0,
            packets: 0,
            samples: Vec::new(),
            ended: None,
        }
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.began_ns.is_some() && self.ended.is_none()
    }
}

fn forget<T>(kept: &mut Vec<T>) {
    if kept.len() > KEPT {
        kept.drain(..KEPT / 4);
    }
}
