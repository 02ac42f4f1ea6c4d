//! Proofs that paths share a bottleneck, and how far they are.

use narrows_fleet::keys::{Key, Name};
use narrows_fleet::sharing::ProofVerdict;
use narrows_record::KeptProof;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::hub::comparisons::{Comparison, Comparisons};

/// The newest proof of each bottleneck.
pub(crate) type Proofs = Comparisons<Trial>;

/// Two loading runs over one path, and looks at the other one without, with, without and with them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Trial {
    pub(super) row: ProofRow,
    /// What both paths cross: no other proof runs over any of it.
    pub(super) keys: Vec<Key>,
    /// The path that is looked at.
    pub(super) b: (Name, Name),
    /// Nothing while they are given.
    pub(super) orders: Option<TrialOrders>,
}

/// The orders of a proof.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct TrialOrders {
    pub(super) loads: [Uuid; 2],
    /// Two for each time: a look may find nothing.
    pub(super) looks: [[Uuid; 2]; 4],
}

/// How far a proof is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub(crate) struct ProofRow {
    /// `running`, `shared`, `not_shared` or `inconclusive`.
    #[cfg_attr(test, schema(value_type = String))]
    pub(super) state: ProofState,
    /// How much likelier the values are if the load of one takes from the other.
    pub(super) ratio: Option<f64>,
    /// What it lacked, if it could not compare anything.
    pub(super) why: Option<String>,
    pub(super) at_ms: i64,
}

/// Whether a proof has ended, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ProofState {
    Running,
    Shared,
    NotShared,
    Inconclusive,
}

impl TrialOrders {
    pub(super) fn all(&self) -> impl Iterator<Item = Uuid> {
        self.loads.into_iter().chain(self.looks.into_iter().flatten())
    }
}

impl Comparison for Trial {
    type Kept = KeptProof;
    const WHAT: &str = "proof";

    fn parts(kept: KeptProof) -> (String, String) {
        (kept.bottleneck, kept.doc)
    }

    fn is_running(&self) -> bool {
        self.row.state == ProofState::Running
    }
}

impl Trial {
    /// As the record is to have it.
    pub(super) fn kept(&self, bottleneck: &str) -> KeptProof {
        KeptProof {
            bottleneck: bottleneck.to_owned(),
            running: self.is_running(),
            keys: self.keys.clone(),
            at_ms: self.row.at_ms,
            doc: serde_json::to_string(self).expect("it has text keys"),
        }
    }
}

impl ProofState {
    /// By the likelihood ratio; nothing could be compared without one.
    pub(super) fn of(ratio: Option<f64>) -> Self {
        match ratio.map(ProofVerdict::of) {
            Some(ProofVerdict::Shared) => Self::Shared,
            Some(ProofVerdict::NotShared) => Self::NotShared,
            Some(ProofVerdict::Inconclusive) | None => Self::Inconclusive,
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Shared => "shared",
            Self::NotShared => "not_shared",
            Self::Inconclusive => "inconclusive",
        }
    }
}

impl Comparisons<Trial> {
    pub(crate) fn row(&self, bottleneck: &str) -> Option<ProofRow> {
        self.lock().get(bottleneck).map(|trial| trial.row.clone())
    }

    /// Whether an order is the load of a proof: it sends as much as it is told, whatever the path
    /// carries.
    pub(crate) fn is_load(&self, order: Uuid) -> bool {
        self.lock().values().any(|trial| trial.orders.is_some_and(|orders| orders.loads.contains(&order)))
    }
}
