//! How an agent starts a measurement: the program with child processes, tests without.

use std::time::Duration;

use async_trait::async_trait;
use narrows_fleet::clock::Boot;
use narrows_fleet::message::Hop;
use narrows_units::Stamp;
use serde_json::Value;
use tokio::sync::watch;
use uuid::Uuid;

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The command, checked: its first word is the kind, the others are flags that measure.
    pub words: Vec<String>,
    /// Where the target's server answers, `host:port`.
    pub address: String,
    /// What proves to it who measures.
    pub credential: Option<Credential>,
    /// A loading run's lease of the target.
    pub fence: Option<Fence>,
}

/// A key to a peer's server.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// `<agent>@<week>`.
    pub name: String,
    /// 32 octets in hexadecimal.
    pub secret: String,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credential({})", self.name)
    }
}

/// Run and revision of a lease: a peer admits no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence {
    /// The run.
    pub run: Uuid,
    /// The revision of `host.<peer>`.
    pub revision: u64,
}

/// How a measurement ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The program's exit code; `None`: a signal ended it, or it never began.
    pub code: Option<i32>,
    /// Its result document.
    pub document: Option<Value>,
    /// What it said to people, cut.
    pub said: String,
}

/// How an agent measures.
#[async_trait]
pub trait Measure: Send + Sync {
    /// Runs a command to its end. Dropping the future ends the measurement at once.
    ///
    /// A loading run has `until`: it sends no later than that, even if this process is gone or
    /// stopped; the time moves on as long as the lease is renewed.
    async fn run(&self, task: &Task, until: Option<watch::Receiver<Stamp<Boot>>>) -> Outcome;

    /// The routers towards a host of this address, without the host itself; empty if that cannot
    /// be said.
    async fn trace(&self, address: &str) -> Vec<Hop>;
}

/// Longest light run: half a minute to wait for the server's slot, and half to measure.
pub(crate) const LIGHT: Duration = Duration::from_secs(60);
