//! What every request shares.

use std::sync::Arc;

use axum::extract::FromRef;
use narrows_site::{Assets, Problem, Site};
use narrows_store::records::Target;
use narrows_watch::WallTime;
use tokio::sync::Semaphore;

use crate::live::Live;
use crate::source::{Source, SourceError};

/// What every request shares; cheap to clone.
#[derive(Clone)]
pub(crate) struct App {
    shared: Arc<Shared>,
}

struct Shared {
    source: Arc<dyn Source>,
    live: Live,
    site: Site,
    assets: Assets,
    queries: Semaphore,
}

impl App {
    pub(crate) fn new(source: Arc<dyn Source>, live: Live, site: Site, assets: Assets) -> Self {
        let queries = Semaphore::new(QUERIES);
        Self { shared: Arc::new(Shared { source, live, site, assets, queries }) }
    }

    pub(crate) fn live(&self) -> &Live {
        &self.shared.live
    }

    pub(crate) fn assets(&self) -> &Assets {
        &self.shared.assets
    }

    pub(crate) fn now(&self) -> WallTime {
        WallTime::default().after(self.shared.site.now())
    }

    /// Asks the source on a thread that may wait.
    pub(crate) async fn ask<T, F>(&self, question: F) -> Result<T, Problem>
    where
        T: Send + 'static,
        F: FnOnce(&dyn Source) -> Result<T, Problem> + Send + 'static,
    {
        let closed = || Problem::unavailable("the program is ending");
        let _place = self.shared.queries.acquire().await.map_err(|_| closed())?;
        let source = Arc::clone(&self.shared.source);
        tokio::task::spawn_blocking(move || question(source.as_ref())).await.map_err(|_| closed())?
    }
}

/// The target of this name, or of this number if none is called so.
pub(crate) fn find<'a>(targets: &'a [Target], wanted: &str) -> Result<&'a Target, Problem> {
    let named = targets.iter().find(|target| target.name == wanted);
    let numbered = || targets.iter().find(|target| target.id.number().to_string() == wanted);
    named.or_else(numbered).ok_or_else(|| Problem::not_found(&format!("no target is called \"{wanted}\"")))
}

impl FromRef<App> for Site {
    fn from_ref(app: &App) -> Self {
        app.shared.site.clone()
    }
}

impl From<SourceError> for Problem {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::NotFound => Self::not_found("there is no such thing"),
            SourceError::Unavailable(why) => Self::unavailable(&format!("the store cannot be read now: {why}")),
        }
    }
}

/// Queries at a time: the store has two readers.
const QUERIES: usize = 2;
