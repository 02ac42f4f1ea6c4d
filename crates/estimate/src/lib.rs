//! *estimate* decides, a *world* acts, *report* speaks.
//!
//! Shapes: a method asks the path a question with a [`Probe`]; a [`World`] (real sockets, the simulator, a recording) carries
//! it out and answers with one [`Event`]; the method's state machine ([`Estimator`]) turns each event into exactly one
//! [`Step`]; [`run`] joins the two under a [`Budget`]. Nothing in this crate reads a clock, opens a socket or draws a random
//! number: the same events give the same steps, so a recorded list of events is a full test.
//!
//! Where to start reading: [`run`], then [`probe`], then any one file under `methods/`.

pub mod advice;
pub mod bucket;
mod budget;
mod contract;
mod facts;
#[cfg(test)]
mod fluid_path;
pub mod host;
pub mod job;
pub mod limits;
pub mod methods;
mod observations;
#[cfg(test)]
mod oracle;
mod outcome;
pub mod pairs;
pub mod passive;
pub mod probe;
mod registry;
#[cfg(test)]
#[allow(dead_code, reason = "a shared test fixture: no one method needs all of it")]
mod testbed;
pub mod windows;

pub use budget::{Budget, Cost, Samples};
pub use contract::{Broken, Estimator, Event, Latest, Measured, Order, Refusal, Step, World, drive, run, watch};
pub use facts::{AnswerLimit, Answering, HostFacts, PathFacts, StampSource};
pub use observations::{AnalyseError, Observation, Observations, Rows};
pub use outcome::{
    AvailableFinding, Blame, BuffersFinding, BurstFinding, BurstPoint, BurstSample, Caveat, Confidence, Details,
    Diagnostic, Diagnostics, Estimate, FarClock, FillBasis, Finding, Limit, LossPattern, Outcome, PathMtuFinding,
    QueueFinding, Reason, RoundTripFinding, ShapeCause, SignatureFinding, StreamsFinding, StreamsLevel, TcpFinding,
    TwoStreams, UdpFinding, Verdict, WayDelays, Ways, WindowFinding,
};
pub use probe::Probe;
pub use registry::{
    Activity, Classification, Deployment, Imposes, Method, MethodInfo, Methodology, Needs, ParamError, Parameter,
    Privilege, Protocol, Range, RawParams, Scope,
};
