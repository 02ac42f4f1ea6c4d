//! News as they come: server-sent events. Whoever falls behind is told to ask again (`resync`).

use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use axum::response::IntoResponse as _;
use axum::response::Response;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::Problem;

/// News for whoever reads the stream now. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed {
    news: broadcast::Sender<Arc<News>>,
    readers: Arc<Semaphore>,
}

#[derive(Debug)]
struct News {
    kind: &'static str,
    data: String,
}

struct Reader {
    news: Receiver<Arc<News>>,
    _place: OwnedSemaphorePermit,
}

impl Default for Feed {
    fn default() -> Self {
        Self { news: broadcast::channel(NEWS).0, readers: Arc::new(Semaphore::new(READERS)) }
    }
}

impl Feed {
    /// Tells all readers; `data` is JSON.
    pub fn say(&self, kind: &'static str, data: &impl Display) {
        // Nobody may be listening.
        let _ = self.news.send(Arc::new(News { kind, data: data.to_string() }));
    }

    /// What follows, for one more reader, as an endless answer.
    pub fn follow(&self) -> Result<Response, Problem> {
        let place = Arc::clone(&self.readers).try_acquire_owned();
        let place = place.map_err(|_| Problem::unavailable(&format!("{READERS} readers follow already")))?;
        let reader = Reader { news: self.news.subscribe(), _place: place };
        // The first message says that whatever was asked for before may be old.
        let first = futures_util::stream::once(async { Ok::<_, Infallible>(resync()) });
        let further = unfold(reader, |mut reader| async {
            let event = match reader.news.recv().await {
                Ok(news) => Event::default().event(news.kind).data(&news.data),
                Err(RecvError::Lagged(_)) => resync(),
                Err(RecvError::Closed) => return None,
            };
            Some((Ok(event), reader))
        });
        let alive = KeepAlive::new().interval(Duration::from_secs(5));
        Ok(Sse::new(first.chain(further)).keep_alive(alive).into_response())
    }
}

fn resync() -> Event {
    Event::default().event("resync").data("{}")
}

/// Messages that a reader may be behind.
const NEWS: usize = 256;
/// Readers at a time.
const READERS: usize = 256;
