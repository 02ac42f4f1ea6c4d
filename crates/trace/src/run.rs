//! One run of one method, as it is read back.

use narrows_probe::probes::{CaptureReport, LoadReport, Probe, TrainReport, TransferReport};
use narrows_probe::{Cost, Event, Observation, Observations, Outcome, Reason, Refusal};
use narrows_units::{Sender, Stamp};
use serde::{Deserialize, Serialize};

use crate::header::Header;

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// What it was.
    pub header: Header,
    /// What was asked and answered, in order.
    pub exchanges: Vec<Exchange>,
    /// How it ended; `None` if the recording ends before the run did.
    pub end: Option<End>,
}

impl Run {
    /// The clock's reading that the method saw with the answer to the exchange of this index.
    fn reported_at(&self, index: usize) -> Stamp<Sender> {
        let after = self.exchanges.get(index + 1).map(|next| next.read.1);
        after.or(self.end.as_ref().map(|end| end.read.0)).unwrap_or(self.exchanges[index].read.1)
    }

    /// The raw rows, for a method's pure [`analyse`](narrows_probe::Method::analyse).
    pub fn observations(&self) -> Observations {
        let header = &self.header;
        let mut facts = header.facts.clone();
        facts.rate_cap = [facts.rate_cap, header.budget.peak].into_iter().flatten().min();
        facts.octet_budget = Some(header.budget.octets);
        let rows = self.exchanges.iter().enumerate().filter_map(|(index, exchange)| {
            let (Request::Probe(asked), Ok(reported)) = (&exchange.asked, exchange.answer.event()) else {
                return None;
            };
            Some(Observation {
                requested_at: exchange.read.1,
                asked: asked.clone(),
                reported_at: self.reported_at(index),
                reported,
            })
        });
        let first = self.exchanges.first().map(|exchange| exchange.read.1);
        let last = self.exchanges.len().checked_sub(1).map(|last| self.reported_at(last));
        let end = self.end.as_ref();
        Observations {
            facts,
            began: first.or(end.map(|end| end.read.0)).unwrap_or(Stamp::from_nanos(0)),
            ended: end.map(|end| end.read.0).or(last).unwrap_or(Stamp::from_nanos(0)),
            stopped: end.map_or(Some(Reason::RowsSpent), |end| end.stopped.clone()),
            rows: rows.collect(),
        }
    }
}

/// One step of the method that the world carried out, and the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Exchange {
    /// First and last reading of the clock between the answer before and this step; the last one is
    /// the method's `now`.
    pub read: (Stamp<Sender>, Stamp<Sender>),
    /// What the method asked.
    pub asked: Request,
    /// What it was told.
    pub answer: Answer,
}

/// What a method can ask of a world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// A question to the path.
    Probe(Probe),
    /// Time to pass.
    Wait {
        /// Until when.
        until: Stamp<Sender>,
    },
}

/// What a world can answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// A train's rows.
    Train(TrainReport),
    /// A load segment's sums.
    Load(LoadReport),
    /// A transfer segment's samples.
    Transfer(TransferReport),
    /// A capture's headers.
    Capture(CaptureReport),
    /// The awaited time has come.
    TimerFired,
    /// It cannot do that.
    Refused(Refusal),
    /// It broke, and said this.
    Fault(String),
}

impl Answer {
    /// From what a world told; `None` for events that no world tells.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        Some(match event {
            Event::Train(report) => Self::Train(report.clone()),
            Event::Load(report) => Self::Load(report.clone()),
            Event::Transfer(report) => Self::Transfer(report.clone()),
            Event::Capture(report) => Self::Capture(report.clone()),
            Event::TimerFired => Self::TimerFired,
            Event::Refused(refusal) => Self::Refused(*refusal),
            Event::Started(_) | Event::Stop(_) => return None,
        })
    }

    /// As the method is told; a fault's text otherwise.
    pub fn event(&self) -> Result<Event, &str> {
        Ok(match self {
            Self::Train(report) => Event::Train(report.clone()),
            Self::Load(report) => Event::Load(report.clone()),
            Self::Transfer(report) => Event::Transfer(report.clone()),
            Self::Capture(report) => Event::Capture(report.clone()),
            Self::TimerFired => Event::TimerFired,
            Self::Refused(refusal) => Event::Refused(*refusal),
            Self::Fault(text) => return Err(text),
        })
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// First and last reading of the clock after the last answer.
    pub read: (Stamp<Sender>, Stamp<Sender>),
    /// What ended it, if not the method itself.
    #[serde(default)]
    pub stopped: Option<Reason>,
    /// What the method concluded.
    pub outcome: Outcome,
    /// What it took.
    pub cost: Cost,
    /// When, in the scenario's time, the run began and ended, in nanoseconds, where the world could
    /// tell.
    #[serde(default)]
    pub true_ns: Option<(u64, u64)>,
}
