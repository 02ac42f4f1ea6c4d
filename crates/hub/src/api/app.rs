//! What every request shares.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::FromRef;
use axum::http::StatusCode;
use narrows_bus::embedded;
use narrows_site::{Feed, Problem, Site};

use super::matrices::Matrices;
use crate::error::Error;
use crate::hub::Hub;

/// What every request shares; cheap to clone.
#[derive(Clone)]
pub(crate) struct App {
    shared: Arc<Shared>,
}

struct Shared {
    hub: Arc<Hub>,
    site: Site,
    feed: Feed,
    bus: Option<embedded::Server>,
    matrices: Matrices,
}

impl App {
    pub(crate) fn new(hub: Arc<Hub>, site: Site, feed: Feed, bus: Option<embedded::Server>) -> Self {
        Self { shared: Arc::new(Shared { hub, site, feed, bus, matrices: Matrices::default() }) }
    }

    pub(crate) fn hub(&self) -> &Arc<Hub> {
        &self.shared.hub
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.shared.feed
    }

    /// The bus in this process, if there is one.
    pub(crate) fn bus(&self) -> Option<&embedded::Server> {
        self.shared.bus.as_ref()
    }

    pub(crate) fn matrices(&self) -> &Matrices {
        &self.shared.matrices
    }
}

/// Who changes something, for the audit.
pub(crate) fn who(from: SocketAddr) -> String {
    format!("web {}", from.ip().to_canonical())
}

impl FromRef<App> for Site {
    fn from_ref(app: &App) -> Self {
        app.shared.site.clone()
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Request(_) | Error::Config(_) => StatusCode::BAD_REQUEST,
            Error::Missing(_) | Error::Record(narrows_record::Error::NotFound) => StatusCode::NOT_FOUND,
            Error::Record(narrows_record::Error::Token) => StatusCode::FORBIDDEN,
            Error::Conflict(_)
            | Error::Record(narrows_record::Error::Reserved(_) | narrows_record::Error::Proving(_)) => {
                StatusCode::CONFLICT
            }
            Error::Record(narrows_record::Error::Cursor(_)) => StatusCode::GONE,
            Error::State { .. } | Error::Record(_) | Error::Bus(_) | Error::Serve(_) | Error::Task(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        };
        Self::new(status, &error.to_string())
    }
}
