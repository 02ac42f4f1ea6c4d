//! News as they come: server-sent events. Whoever falls behind is told to ask again (`resync`).

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{Stream, unfold};
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use crate::app::App;
use crate::live::News;
use crate::problem::Problem;

struct Reader {
    news: Receiver<Arc<News>>,
    _place: OwnedSemaphorePermit,
}

/// News as server-sent events: `sample`, `pulse`, `event`, `run`, `alert`, and `resync` for whoever
/// missed some.
#[utoipa::path(get, path = "/api/v1/stream", tag = "read", responses(
    (status = 200, content_type = "text/event-stream", body = String),
    (status = 503, body = Problem, content_type = "application/problem+json")
))]
pub(crate) async fn stream(
    State(app): State<App>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let place = app.streams().try_acquire_owned();
    let place = place.map_err(|_| Problem::unavailable("256 readers follow already"))?;
    let reader = Reader { news: app.live().listen(), _place: place };
    // The first message says that whatever was asked for before may be old.
    let first = futures_util::stream::once(async { Ok(Event::default().event("resync").data("{}")) });
    let further = unfold(reader, |mut reader| async {
        let event = match reader.news.recv().await {
            Ok(news) => Event::default().event(news.kind).data(&news.data),
            Err(RecvError::Lagged(_)) => Event::default().event("resync").data("{}"),
            Err(RecvError::Closed) => return None,
        };
        Some((Ok(event), reader))
    });
    let stream = futures_util::StreamExt::chain(first, further);
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(Duration::from_secs(5))))
}
