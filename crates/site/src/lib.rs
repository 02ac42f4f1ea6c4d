//! What the web servers of narrows share.
//!
//! * [`Server`] binds and serves until it is told to stop. It refuses an address that other
//!   machines reach, unless there are TLS and users or a token. It reads the files of TLS and users
//!   again when they change.
//! * [`Site`] checks each request before a route gets it: the name of the host, the rate of
//!   requests, and who asks.
//! * [`Assets`] are the files of the pages; [`KIT`] those that all pages use.
//! * [`Feed`] carries news to browsers as server-sent events.
//! * [`Problem`] is what went wrong, as RFC 9457 says it.
//!
//! The caller brings the routes; their state contains a [`Site`] (axum's `FromRef`). `narrows_web`
//! and `narrows_hub` do so.

mod accept;
mod admission;
mod assets;
mod auth;
mod connection;
mod error;
mod feed;
mod guard;
mod open_api;
mod private;
mod problem;
mod server;
mod session;
mod sessions;
mod settings;
mod site;
mod tls;
mod web_config;

pub use assets::{Assets, File, KIT, SCRIPT, STYLE};
pub use error::WebConfigError;
pub use feed::Feed;
pub use open_api::{describe_admission, describe_responses};
pub use problem::{Problem, unread};
pub use server::Server;
pub use session::{SignIn, sign_in};
pub use settings::{ServeError, Settings, wall_clock};
pub use site::Site;
pub use tls::OwnTls;
