//! Serves a generated year of three targets, to look at the pages:
//! `cargo run -p narrows-web --example pages -- 127.0.0.1:8621 [SECONDS]`; with SECONDS, what is
//! there so long after the beginning; with 0, before there is a target.

#[path = "../tests/all/begun.rs"]
mod begun;
#[path = "../tests/all/year.rs"]
mod year;

use std::sync::Arc;
use std::time::Duration;

use narrows_watch::WallTime;
use narrows_web::{Accepted, Live, Server, Settings, Source, TargetLabels};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8621".to_owned()).parse()?;
    let begun: Option<i64> = std::env::args().nth(2).map(|seconds| seconds.parse()).transpose()?;
    let source: Arc<dyn Source> = match begun {
        None => Arc::new(year::Year),
        Some(seconds) => Arc::new(begun::Begun((seconds > 0).then_some(seconds))),
    };
    let (live, mut posts) = Live::new();
    live.ready();
    let labels = |target: &str| TargetLabels {
        source: "here".to_owned(),
        target: target.to_owned(),
        ip_version: 4,
        cadence: Duration::from_secs(60),
    };
    live.metrics().pulse(&labels("office"), Some(Duration::from_micros(17_900)));
    tokio::spawn(async move {
        while let Some(post) = posts.recv().await {
            // Whoever asked may be gone.
            let _ = post.answer.send(Ok(Accepted { text: format!("accepted: {:?}", post.order) }));
        }
    });
    let server = Server::bind(Settings { now: || year::now().since(WallTime::default()), ..Settings::local(listen) })?;
    std::io::Write::write_all(&mut std::io::stdout(), format!("http://{}\n", server.address()).as_bytes())?;
    server.run(source, live, std::future::pending()).await?;
    Ok(())
}
