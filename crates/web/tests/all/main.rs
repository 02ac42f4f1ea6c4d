//! The pages, the API and the metrics, asked over real sockets.

mod api;
mod begun;
mod browser;
mod cdp;
mod grafana;
mod monitoring;
mod open_api;
mod open_page;
mod posts;
mod promtool;
mod security;
mod site;
mod stream;
mod tls;
mod year;
