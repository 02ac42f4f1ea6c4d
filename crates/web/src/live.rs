//! What only the running process knows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use narrows_site::Feed;
use narrows_store::records::{AlertState, Basis, Event, Run, Sample};
use narrows_watch::detect::Learning;
use narrows_watch::schedule::{JobKind, TargetId};
use narrows_watch::{Signal, WallTime};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};

use crate::metrics::{LONGEST_CADENCE, Metrics, kept};
use crate::model;

/// What the process shares with its pages. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Live {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    metrics: Metrics,
    feed: Feed,
    posts: mpsc::Sender<Post>,
    faults: Mutex<BTreeMap<&'static str, String>>,
    cadences: Mutex<BTreeMap<TargetId, Duration>>,
    learning: Mutex<BTreeMap<TargetId, Learning>>,
}

/// Something that a person asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Measure now, within the send budget.
    Run {
        /// Towards whom.
        target: TargetId,
        /// What.
        kind: JobKind,
    },
    /// Tell nobody for a while.
    Silence {
        /// The rule; `None` is every rule.
        rule: Option<String>,
        /// The target; `None` is every target.
        target: Option<TargetId>,
        /// From when on.
        began: WallTime,
        /// Until when.
        ends: WallTime,
        /// Why.
        note: Option<String>,
    },
    /// A note beside the events.
    Note {
        /// About whom; `None` is this host.
        target: Option<TargetId>,
        /// When it happened.
        at: WallTime,
        /// What happened.
        text: String,
    },
}

/// An order on its way to the scheduler.
#[derive(Debug)]
pub struct Post {
    /// What is asked for.
    pub order: Order,
    /// Where the answer goes; the page waits two seconds for it.
    pub answer: oneshot::Sender<Result<Accepted, Refusal>>,
}

/// An order was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// What came of it, in one sentence.
    pub text: String,
}

/// Why an order was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The send budget does not allow it now.
    Budget(String),
    /// It makes no sense here.
    Unfit(String),
    /// It could not be carried out now.
    Unavailable(String),
}

impl Live {
    /// Without news, not ready; the receiver gets what people post.
    pub fn new() -> (Self, mpsc::Receiver<Post>) {
        let (posts, receiver) = mpsc::channel(POSTS);
        let faults = BTreeMap::from([(START, "the schedule has not begun".to_owned())]);
        let shared = Shared {
            metrics: Metrics::default(),
            feed: Feed::default(),
            posts,
            faults: Mutex::new(faults),
            cadences: Mutex::default(),
            learning: Mutex::default(),
        };
        (Self { shared: Arc::new(shared) }, receiver)
    }

    /// The counters and gauges of `/metrics`.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// The schedule has begun.
    pub fn ready(&self) {
        self.fault(START, None);
    }

    /// What does not work now, or works again (`None`). `/-/ready` and the pages say it.
    pub fn fault(&self, what: &'static str, text: Option<String>) {
        let mut faults = self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner);
        match text {
            Some(text) => faults.insert(what, text),
            None => faults.remove(what),
        };
    }

    /// How often a target is measured, which says when a value is too old.
    pub fn cadence(&self, target: TargetId, cadence: Duration) {
        self.shared.cadences.lock().unwrap_or_else(PoisonError::into_inner).insert(target, cadence);
    }

    /// How far a target is from knowing which available rate is usual; `None` once it does.
    pub fn learning(&self, target: TargetId, learning: Option<Learning>) {
        let mut all = self.shared.learning.lock().unwrap_or_else(PoisonError::into_inner);
        match learning {
            Some(learning) => all.insert(target, learning),
            None => all.remove(&target),
        };
    }

    pub(crate) fn is_learning(&self, target: TargetId) -> Option<Learning> {
        self.shared.learning.lock().unwrap_or_else(PoisonError::into_inner).get(&target).copied()
    }

    /// A new value.
    pub fn sample(&self, target: &str, signal: Signal, basis: Basis, sample: &Sample) {
        let said = json!({
            "target": target,
            "signal": signal.name(),
            "unit": signal.unit(),
            "value": model::Measured::of_sample(basis, sample),
        });
        self.shared.feed.say("sample", &said);
    }

    /// A pulse; `round_trip` is `None` if it was lost.
    pub fn pulse(&self, target: &str, at: WallTime, round_trip: Option<Duration>) {
        let nanos = round_trip.map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.shared.feed.say("pulse", &json!({ "target": target, "at_ms": at.millis(), "round_trip_ns": nanos }));
    }

    /// Something happened; `None` is this host.
    pub fn event(&self, target: Option<&str>, event: &Event) {
        self.shared.feed.say("event", &json!(model::Event::new(target.map(str::to_owned), event)));
    }

    /// A run began or ended.
    pub fn run(&self, target: &str, run: &Run) {
        self.shared.feed.say("run", &json!(model::Run::new(Some(target.to_owned()), run)));
    }

    /// A rule changed its state.
    pub fn alert(&self, target: &str, state: &AlertState) {
        self.shared.feed.say("alert", &json!(model::Alert::new(target.to_owned(), state)));
    }

    pub(crate) fn faults(&self) -> BTreeMap<&'static str, String> {
        self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How old a value of this target may be.
    pub(crate) fn keep(&self, target: TargetId, signal: Signal) -> Duration {
        let cadences = self.shared.cadences.lock().unwrap_or_else(PoisonError::into_inner);
        kept(signal, cadences.get(&target).copied().unwrap_or(LONGEST_CADENCE))
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.shared.feed
    }

    /// Hands an order to the scheduler and waits for its answer.
    pub(crate) async fn post(&self, order: Order) -> Result<Accepted, Refusal> {
        let (answer, answered) = oneshot::channel();
        let busy = || Refusal::Unavailable("the schedule does not answer now".to_owned());
        self.shared.posts.try_send(Post { order, answer }).map_err(|_| busy())?;
        match tokio::time::timeout(PATIENCE, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(busy()),
        }
    }
}

const START: &str = "start";
/// Orders that may wait.
const POSTS: usize = 16;
/// How long a request waits for the scheduler.
const PATIENCE: Duration = Duration::from_secs(2);
