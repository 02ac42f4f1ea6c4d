//! What fails, and who learns of it.

use std::sync::Arc;

use narrows_hub::Error;
use serde_json::json;

use crate::api::Served;
use crate::world::{World, soon};

/// A service manager starts a hub again that ended, and not one that does half of its work.
#[tokio::test]
async fn a_part_that_panics_ends_the_hub() {
    let world = World::new().await;
    world.join("a", &[]).await;
    // Whoever tells the news that there is a plan now finds this lock broken.
    let news = Arc::clone(&world.news);
    let broken = std::thread::spawn(move || {
        let _held = news.lock().unwrap();
        panic!("as a part of the hub would");
    });
    assert!(broken.join().is_err());
    let error = soon(world.hub.run()).await;
    assert!(matches!(error, Error::Task(_)) && error.to_string().contains("panicked"), "{error}");
}

#[tokio::test]
async fn a_hub_without_its_record_is_not_ready() {
    let served = Served::new().await;
    let ready = async || served.ask("GET", "/-/ready", json!({})).await;
    assert_eq!(ready().await, (200, json!({ "status": "ready", "faults": [] })));
    let database = rusqlite::Connection::open(served.folder.path().join("hub.db")).unwrap();
    database.execute_batch("alter table setting rename to lost").unwrap();
    assert_eq!(ready().await, (503, json!({ "status": "not ready", "faults": ["record"] })));
    database.execute_batch("alter table lost rename to setting").unwrap();
    assert_eq!(ready().await.0, 200);
}
