//! Signing in on the page.

use std::net::SocketAddr;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

use crate::auth::{Answer, Shown};
use crate::guard::too_many_guesses;
use crate::problem::{Problem, unread};
use crate::sessions::{COOKIE, LIFE};
use crate::site::Site;

/// Who signs in: a user with a password, or whoever has a token.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignIn {
    /// The user's name; missing or empty where `secret` is a token.
    user: Option<String>,
    /// The password or a token.
    secret: String,
}

/// Opens a session, whose name the cookie holds.
pub async fn sign_in(
    State(site): State<Site>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    body: Result<Json<SignIn>, JsonRejection>,
) -> Result<Response, Problem> {
    let Json(said) = body.map_err(|error| unread(&error))?;
    let shown = match said.user.filter(|user| !user.is_empty()) {
        Some(name) => Shown::User { name, password: said.secret },
        None => Shown::Token(said.secret),
    };
    let name = match site.guard().auth.sign_in(shown, from.ip(), site.now()).await {
        Ok(name) => name,
        Err(Answer::TooManyGuesses) => return Err(too_many_guesses()),
        Err(Answer::Welcome(_) | Answer::Unknown) => {
            return Err(Problem::new(StatusCode::UNAUTHORIZED, "this is neither a user with its password nor a token"));
        }
    };
    let secure = if site.guard().tls { "; Secure" } else { "" };
    let cookie = format!("{COOKIE}={name}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{secure}", LIFE.as_secs());
    let mut response = StatusCode::NO_CONTENT.into_response();
    let value = HeaderValue::from_str(&cookie).map_err(|_| Problem::unavailable("no session could be opened"))?;
    response.headers_mut().insert(header::SET_COOKIE, value);
    Ok(response)
}
