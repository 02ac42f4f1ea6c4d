//! What went wrong, as RFC 9457 says it.

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// What went wrong.
#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    /// Always `about:blank`: the status says what kind it is.
    r#type: &'static str,
    /// The status in words.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// What to mend, for people.
    detail: String,
}

impl Problem {
    /// A status, and what to mend.
    pub fn new(status: StatusCode, detail: &str) -> Self {
        let title = status.canonical_reason().unwrap_or("problem");
        Self { r#type: "about:blank", title, status: status.as_u16(), detail: detail.to_owned() }
    }

    /// The request is wrong.
    pub fn bad_request(detail: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// What is asked for is not there.
    pub fn not_found(detail: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// It cannot be answered now.
    pub fn unavailable(detail: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status(), Json(self)).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}

/// A body that is no JSON, or not that of the request.
pub fn unread(error: &JsonRejection) -> Problem {
    Problem::new(error.status(), &error.body_text())
}
