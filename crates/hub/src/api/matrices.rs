//! Matrices as they were last asked for. That of a large fleet takes a while to make, and many look
//! at the same one.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::StatusCode;
use narrows_site::Problem;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::matrix::Matrix;
use crate::hub::Hub;

/// The newest answer to each question.
#[derive(Debug, Default)]
pub(crate) struct Matrices {
    all: std::sync::Mutex<BTreeMap<Question, Arc<Mutex<Option<Made>>>>>,
}

/// Metric and kind of the places, as they were asked for.
type Question = [String; 2];

#[derive(Debug)]
struct Made {
    text: Bytes,
    /// What [`Hub::changes`] said before.
    changes: u64,
    at: Instant,
    took: Duration,
}

impl Made {
    /// Until results come. One that took long is shown for ten times as long, even if they do: or a
    /// hub of a large fleet would do nothing else.
    fn is_fresh(&self, changes: u64, now: Instant) -> bool {
        let age = now.duration_since(self.at);
        let is_slow = self.took > SLOW && age < 10 * self.took;
        age < OLDEST && (is_slow || self.changes == changes)
    }
}

impl Matrices {
    /// The answer to a question, made if there is no fresh one. Who asks the same meanwhile gets
    /// the same.
    pub(crate) async fn answer<F>(
        &self,
        hub: &Hub,
        question: Question,
        make: impl FnOnce() -> F,
    ) -> Result<Bytes, Problem>
    where
        F: Future<Output = Result<Matrix, Problem>>,
    {
        let slot = {
            let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
            if all.len() >= MOST && !all.contains_key(&question) {
                all.pop_first();
            }
            Arc::clone(all.entry(question).or_default())
        };
        let mut slot = slot.lock().await;
        let (changes, at) = (hub.changes(), Instant::now());
        if let Some(made) = slot.as_ref().filter(|made| made.is_fresh(changes, at)) {
            return Ok(made.text.clone());
        }
        let text = serde_json::to_vec(&make().await?)
            .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()))?;
        let text = Bytes::from(text);
        let took = at.elapsed();
        *slot = Some(Made { text: text.clone(), changes, at, took });
        Ok(text)
    }
}

/// Answers that are remembered: some metrics, by host and by site.
const MOST: usize = 16;
/// An answer that takes less is made whenever results came.
const SLOW: Duration = Duration::from_millis(100);
/// Values leave the matrix when they are too old, and none may have come since.
const OLDEST: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_answer_is_shown_for_longer() {
        let at = Instant::now();
        let made = |took| Made { text: Bytes::new(), changes: 7, at, took: Duration::from_millis(took) };
        let after = |seconds| at + Duration::from_secs(seconds);
        assert!(made(5).is_fresh(7, after(59)) && !made(5).is_fresh(8, at));
        assert!(made(2_000).is_fresh(8, after(19)) && !made(2_000).is_fresh(8, after(21)));
        assert!(!made(2_000).is_fresh(7, after(60)) && !made(9_000).is_fresh(8, after(60)));
    }
}
