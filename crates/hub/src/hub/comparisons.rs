//! What proofs and groupings have in common: the hub orders runs over several paths, waits for all
//! of them, and compares what they say. The record has them; here they are too, so that no page
//! and no result costs a question.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use narrows_fleet::message::Run;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::error::Result;
use crate::hub::Hub;
use crate::hub::orders::OrderRow;

/// Orders are given within this time.
pub(super) const BEGIN_MS: i64 = 120_000;
/// Why a comparison ends whose orders were not.
pub(super) const NEVER_BEGAN: &str = "the hub ended before it had given all orders";

/// The newest comparison of each number.
#[derive(Debug)]
pub(crate) struct Comparisons<T> {
    all: Mutex<BTreeMap<String, T>>,
}

/// A comparison that the record keeps.
pub(crate) trait Comparison: Clone + DeserializeOwned {
    /// As the record has it.
    type Kept;
    /// What it is called.
    const WHAT: &str;

    /// The number and the document of one that the record has.
    fn parts(kept: Self::Kept) -> (String, String);

    fn is_running(&self) -> bool;
}

impl<T> Default for Comparisons<T> {
    fn default() -> Self {
        Self { all: Mutex::default() }
    }
}

impl<T: Comparison> Comparisons<T> {
    /// Takes what the record has: of before this hub began, and of others.
    pub(crate) fn learn(&self, kept: Vec<T::Kept>) {
        let read = |kept| {
            let (id, doc) = T::parts(kept);
            match serde_json::from_str(&doc) {
                Ok(one) => Some((id, one)),
                Err(error) => {
                    tracing::debug!(%error, id, "a {} of the record cannot be read", T::WHAT);
                    None
                }
            }
        };
        *self.lock() = kept.into_iter().filter_map(read).collect();
    }

    pub(super) fn put(&self, id: &str, one: T) {
        self.lock().insert(id.to_owned(), one);
    }

    pub(super) fn running(&self) -> Vec<(String, T)> {
        let all = self.lock();
        all.iter().filter(|(_, one)| one.is_running()).map(|(id, one)| (id.clone(), one.clone())).collect()
    }
}

impl<T> Comparisons<T> {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<String, T>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    /// Ends the proofs and groupings whose runs are all there, or lost.
    pub(crate) async fn judge_comparisons(&self) -> Result<()> {
        let (proofs, groupings) = (self.proofs.running(), self.groupings.running());
        if proofs.is_empty() && groupings.is_empty() {
            return Ok(());
        }
        // Another hub may have taken their results.
        self.recall_orders().await?;
        self.orders.expire(self.now());
        let proved = self.judge_proofs(proofs).await;
        self.judge_groupings(groupings).await.and(proved)
    }

    /// The runs of orders by their orders, once all of them ended; a lost one has none.
    pub(super) async fn runs_of(&self, orders: &[Uuid]) -> Result<Option<BTreeMap<Uuid, Run>>> {
        let row = |order: &Uuid| self.orders.row(*order);
        let ended = |row: Option<OrderRow>| row.is_none_or(|row| row.run.is_some() || row.state == "lost");
        if !orders.iter().all(|order| ended(row(order))) {
            return Ok(None);
        }
        let mut runs = BTreeMap::new();
        for order in orders {
            if let Some(run) = row(order).and_then(|row| row.run) {
                runs.insert(*order, self.record.run(run).await?);
            }
        }
        Ok(Some(runs))
    }
}
