//! `/bus`: the WebSocket by which agents reach the bus in this process (RFC 6455).

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper_util::rt::TokioIo;
use narrows_site::Problem;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::api::App;

/// Hands the connection to the bus, which asks who is there.
pub(crate) async fn bus(State(app): State<App>, request: Request) -> Response {
    let Some(bus) = app.bus().cloned() else {
        return Problem::not_found("the bus of this fleet is elsewhere").into_response();
    };
    let has = |name: header::HeaderName, wanted: &str| {
        let value = request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        value.split(',').any(|word| word.trim().eq_ignore_ascii_case(wanted))
    };
    let key = request.headers().get(header::SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
    let is_socket = has(header::CONNECTION, "upgrade") && has(header::UPGRADE, "websocket");
    let accept = key.filter(|_| is_socket).and_then(|key| HeaderValue::from_str(&key).ok());
    let Some(accept) = accept.filter(|_| has(header::SEC_WEBSOCKET_VERSION, "13")) else {
        return Problem::new(StatusCode::UPGRADE_REQUIRED, "this is for agents, by WebSocket").into_response();
    };
    tokio::spawn(async move {
        match hyper::upgrade::on(request).await {
            Ok(stream) => bus.upgraded(TokioIo::new(stream)).await,
            Err(error) => tracing::debug!(%error, "an agent's connection ended before it began"),
        }
    });
    let headers = [
        (header::CONNECTION, HeaderValue::from_static("Upgrade")),
        (header::UPGRADE, HeaderValue::from_static("websocket")),
        (header::SEC_WEBSOCKET_ACCEPT, accept),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}
