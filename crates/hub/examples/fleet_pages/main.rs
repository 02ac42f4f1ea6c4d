//! Serves made-up fleets, to look at the pages:
//! `cargo run -p narrows-hub --example fleet_pages -- 127.0.0.1:8622 FLEET`; fleets are `small`,
//! `large`, `young`, `alone` and `empty`.

mod answers;
mod api;
#[path = "../../src/assets.rs"]
mod assets;
mod made_up;
mod reports;

use std::sync::Arc;

use narrows_site::{Feed, Server};

use made_up::Fleet;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listen = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8622".to_owned()).parse()?;
    let fleet = match std::env::args().nth(2).as_deref() {
        Some("empty") => Fleet::empty(),
        Some("alone") => Fleet::alone(),
        Some("young") => Fleet::young(),
        Some("large") => Fleet::large(),
        _ => Fleet::small(),
    };
    let server = Server::bind(api::settings(listen))?;
    std::io::Write::write_all(&mut std::io::stdout(), format!("http://{}\n", server.address()).as_bytes())?;
    api::serve(server, Arc::new(fleet), Feed::default(), std::future::pending()).await?;
    Ok(())
}
