//! The pages of `narrows watch` on a site.

use std::net::SocketAddr;
use std::sync::Arc;

use narrows_site::{Assets, File, SCRIPT, ServeError, Settings};

use crate::app::App;
use crate::links::Links;
use crate::live::Live;
use crate::source::Source;

/// A bound address, not served yet.
#[derive(Debug)]
pub struct Server {
    site: narrows_site::Server,
}

impl Server {
    /// Reads the files and binds the address, unless others could use it without being asked.
    pub fn bind(settings: Settings) -> Result<Self, ServeError> {
        Ok(Self { site: narrows_site::Server::bind(settings)? })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.site.address()
    }

    /// The addresses of its pages.
    pub fn links(&self) -> Links {
        Links::new(self.site.base())
    }

    /// Serves until `stop` is ready.
    pub async fn run(
        self,
        source: Arc<dyn Source>,
        live: Live,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let assets = Assets::new(include_str!("../assets/index.html"), &FILES);
        let (shell, faults) = (assets.shell().to_owned(), live.clone());
        let routes = |site| crate::pages::add(crate::api::router()).with_state(App::new(source, live, site, assets));
        self.site.run(shell, routes, move |fault| faults.fault("web_config", fault), stop).await
    }
}

const FILES: [File; 7] = [
    File { name: "app.js", kind: SCRIPT, content: include_bytes!("../assets/app.js") },
    File { name: "heat.js", kind: SCRIPT, content: include_bytes!("../assets/heat.js") },
    File { name: "pipe.js", kind: SCRIPT, content: include_bytes!("../assets/pipe.js") },
    File { name: "overview.js", kind: SCRIPT, content: include_bytes!("../assets/overview.js") },
    File { name: "target.js", kind: SCRIPT, content: include_bytes!("../assets/target.js") },
    File { name: "run.js", kind: SCRIPT, content: include_bytes!("../assets/run.js") },
    File { name: "compare.js", kind: SCRIPT, content: include_bytes!("../assets/compare.js") },
];
