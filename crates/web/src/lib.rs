//! The pages, the API and the metrics of `narrows watch`.
//!
//! * [`Source`] is what they are made from; the store implements it.
//! * [`Live`] is what only the running process knows: readiness, metrics, news, and the way for
//!   orders that people post.
//! * [`Server`] serves them on a `narrows_site`.
//!
//! A request passes the site (host, rate, who asks), then `api` or `pages`. Every route of
//! the API is described where it is written; `/api/openapi.json` is made from these descriptions.
//!
//! [`Metrics`] are counted in `metrics/` and printed for Prometheus.
//!
//! Invariant: no request resolves a name or measures, and no async thread waits for a query.

mod api;
mod app;
mod links;
mod live;
mod metrics;
mod model;
mod pages;
mod serve;
mod source;
mod store;
mod time_text;

pub use links::Links;
pub use live::{Accepted, Live, Order, Post, Refusal};
pub use metrics::{Metrics, TargetLabels};
pub use narrows_site::{ServeError, Settings, WebConfigError, wall_clock};
pub use serve::Server;
pub use source::{Heatmap, Source, SourceError, Span};
