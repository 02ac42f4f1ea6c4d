//! The pages, the API and the metrics of `narrows watch`.
//!
//! * [`Source`] is what they are made from; the store implements it.
//! * [`Live`] is what only the running process knows: readiness, metrics, news, and the way for
//!   orders that people post.
//! * [`Server`] binds, refuses unsafe settings, and serves until it is told to stop.
//!
//! A request passes `admission` (host, rate, who asks), then `api` or `pages`. Every route of
//! the API is described where it is written; `/api/openapi.json` is made from these descriptions.
//!
//! Invariant: no request resolves a name, measures, or waits for a query on an async thread.

mod admission;
mod api;
mod app;
mod assets;
mod auth;
mod connection;
mod guard;
mod links;
mod live;
mod metrics;
mod model;
mod pages;
mod problem;
mod serve;
mod sessions;
mod settings;
mod source;
mod store;
mod time_text;
mod web_config;

pub use links::Links;
pub use live::{Accepted, Live, Order, Post, Refusal};
pub use metrics::{Metrics, TargetLabels};
pub use serve::{Server, serve};
pub use settings::{ServeError, Settings, wall_clock};
pub use source::{Heatmap, Source, SourceError, Span};
pub use web_config::WebConfigError;
