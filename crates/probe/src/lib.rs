//! The contract between methods, which decide what to send, and worlds, which send it.
//!
//! Shapes: a method asks the path a question with a [`Probe`]. A [`World`] (real sockets, the
//! simulator, a recording) carries it out and answers with one [`Event`]. The method's state
//! machine ([`Estimator`]) turns each event into exactly one [`Step`]. [`run`] joins the two under
//! a [`Budget`]. Nothing in this crate reads a clock, opens a socket or draws a random number: the
//! same events give the same steps, so a recorded list of events is a full test.
//!
//! | module | holds |
//! |---|---|
//! | [`contract`] | events, steps, the traits of methods at work and of worlds, and [`run`] |
//! | [`probes`] | what can be sent, and the reports of it: stamps in ns, sizes in IP octets |
//! | [`facts`] | what a world knows of hosts and path before the first probe |
//! | [`outcome`] | value, interval, layer, confidence, caveats; or the reason why there is none |
//! | [`budget`] | bounds on octets, time and rate; a run that meets one is stopped and answers |
//! | [`progress`] | what a run tells on its way, and the world that tells it |
//! | [`registry`] | what a method declares: name, parameters, manual, what it needs and imposes |
//! | [`observations`] | the events of a run, to be analysed again |
//! | `testing` | small worlds for tests (feature `testing`) |
//!
//! A world that fails ends the run with [`Broken`]. A probe that a world cannot carry out comes
//! back as a [`Refusal`], and the method may ask for another.
//!
//! Where to start reading: [`run`], then [`probes`], then `crates/measure/src/rtt.rs`.

pub mod budget;
pub mod contract;
mod error;
pub mod facts;
pub mod observations;
pub mod outcome;
pub mod probes;
pub mod progress;
pub mod registry;
#[cfg(any(test, feature = "testing"))]
#[allow(
    missing_docs,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "test worlds: their fields are the parts of a small path"
)]
pub mod testing;
pub mod timetable;
pub mod world;

pub use budget::{Budget, Cost, Samples};
pub use contract::{Estimator, Event, Latest, Refusal, Step};
pub use facts::{AnswerLimit, Answering, HostFacts, PathFacts, StampSource};
pub use observations::{AnalyseError, Observation, Observations, Rows};
pub use outcome::{
    AvailableFinding, BoundKind, BuffersFinding, BurstFinding, BurstPoint, BurstSample, Caveat, Confidence, Details,
    Diagnostic, Diagnostics, DirectionDelays, Directions, Estimate, FillBasis, Finding, Limit, LimitingFactor,
    LossPattern, Outcome, PathMtuFinding, Quantity, QueueFinding, Ranged, Reason, RemoteClock, RoundTripFinding,
    SampleCounts, ShapeCause, SignatureFinding, StreamsFinding, StreamsLevel, TcpFinding, TwoStreams, UdpFinding,
    WindowFinding,
};
pub use probes::Probe;
pub use progress::{Feed, Observed, OnPath, Progress, Timed};
pub use registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Parameter,
    Privilege, Protocol, Range, RawParams, Scope,
};
pub use world::{Broken, Entry, Measured, Order, World, drive, run, watch};
