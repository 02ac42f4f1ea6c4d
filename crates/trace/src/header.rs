//! What a run was: enough to repeat it, and to judge it.

use std::collections::BTreeMap;

use narrows_probe::{Budget, Order, PathFacts, RawParams};
use narrows_units::{Direction, Metric};
use serde::{Deserialize, Serialize};

/// What carried the probes out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorldKind {
    /// The discrete-event simulator.
    Simulator,
    /// Real sockets over a path that this machine plays.
    Lab,
    /// Real sockets over a path that nobody here controls.
    Sockets,
}

impl WorldKind {
    /// The machine name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Simulator => "simulator",
            Self::Lab => "lab",
            Self::Sockets => "sockets",
        }
    }
}

/// The path that was played, where one was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Played {
    /// The scenario's name.
    pub scenario: String,
    /// The whole scenario file; what is read from it is the truth.
    pub text: String,
    /// Seed of everything random in it.
    pub seed: u64,
}

/// What all runs of one recorder have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Program and version.
    pub program: String,
    /// What carries the probes out.
    pub world: WorldKind,
    /// The direction that the world measures.
    pub direction: Direction,
    /// The path, if it is played.
    pub played: Option<Played>,
}

impl Setting {
    /// Of this program, forward, over a path that is not played.
    pub fn new(world: WorldKind) -> Self {
        Self {
            program: concat!("narrows ", env!("CARGO_PKG_VERSION")).to_owned(),
            world,
            direction: Direction::Forward,
            played: None,
        }
    }

    /// The same in this direction.
    #[must_use]
    pub fn towards(mut self, direction: Direction) -> Self {
        self.direction = direction;
        self
    }

    /// The same over a path that is played.
    #[must_use]
    pub fn playing(mut self, played: Played) -> Self {
        self.played = Some(played);
        self
    }
}

/// One run's head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Program and version that recorded it.
    pub program: String,
    /// The method's name.
    pub method: String,
    /// Its parameters as typed; the others had their defaults.
    pub params: BTreeMap<String, String>,
    /// What was asked for.
    pub metric: Metric,
    /// Which way.
    pub direction: Direction,
    /// What carried the probes out.
    pub world: WorldKind,
    /// The path, if it was played.
    pub played: Option<Played>,
    /// What the world knew of path and hosts before the first probe; the user's peak rate is in
    /// `budget`.
    pub facts: PathFacts,
    /// The bounds.
    pub budget: Budget,
}

impl Header {
    pub(crate) fn new(setting: &Setting, order: &Order<'_>, facts: PathFacts) -> Self {
        Self {
            program: setting.program.clone(),
            method: order.method.to_owned(),
            params: order.params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            metric: order.metric,
            direction: setting.direction,
            world: setting.world,
            played: setting.played.clone(),
            facts,
            budget: order.budget,
        }
    }

    /// The parameters, ready for [`Method::begin`](narrows_probe::Method::begin).
    pub fn raw_params(&self) -> RawParams {
        self.params.iter().collect()
    }
}
