//! Leases: one agent takes six keys and gives them back, as a loading run does.

use std::sync::Arc;
use std::time::Duration;

use narrows_bus::{Bus, Error};
use narrows_fleet::clock::Boot;
use narrows_fleet::lease::{Action, Event, Holder, Lessee, Want};
use narrows_units::Stamp;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::{now, quantiles};

const BUCKET: &str = "lease_1";

/// Takes keys until the time is over. Nothing is taken within 15 s of the first connection.
pub(crate) async fn takes(bus: Arc<dyn Bus>, time: Duration) -> String {
    let began = now();
    let clock = || Stamp::<Boot>::from_nanos(i64::try_from(began.elapsed().as_nanos()).unwrap());
    let mut lessee = Lessee::new("bench".parse().unwrap(), 7);
    let connected = Event::Connected { server: "one".to_owned() };
    drop(lessee.handle(connected, clock()));
    let mut times = Vec::new();
    let mut open: JoinSet<Option<Event>> = JoinSet::new();
    let keys: Vec<_> = (0..6).map(|number| format!("host.bench-{number}").parse().unwrap()).collect();
    tokio::time::sleep(WAIT).await;
    while began.elapsed() < time.max(WAIT + Duration::from_secs(5)) {
        let (run, start_by, asked) = (Uuid::now_v7(), clock() + Duration::from_secs(60), now());
        let mut actions = lessee.take(Want { run, keys: keys.clone(), start_by }, clock()).unwrap_or_default();
        let mut started = false;
        // Until the keys are given back too.
        loop {
            for action in actions.drain(..) {
                match action {
                    Action::Read { request, key } => {
                        let bus = Arc::clone(&bus);
                        open.spawn(async move {
                            let entry = bus.read(BUCKET, &key.to_string()).await.ok()?;
                            let revision = entry.as_ref().map_or(0, |entry| entry.revision);
                            let holder: Option<Holder> =
                                entry.and_then(|entry| serde_json::from_slice(&entry.value).ok()).flatten();
                            Some(Event::Read { request, revision, holder })
                        });
                    }
                    Action::Write { request, key, expected, holder } => {
                        let bus = Arc::clone(&bus);
                        open.spawn(async move {
                            let value = serde_json::to_vec(&holder).ok()?;
                            match bus.write(BUCKET, &key.to_string(), value.into(), expected).await {
                                Ok(revision) => Some(Event::Accepted { request, revision }),
                                Err(Error::Conflict(_)) => Some(Event::Refused { request }),
                                Err(_) => None,
                            }
                        });
                    }
                    Action::Start => {
                        times.push(asked.elapsed());
                        started = true;
                    }
                    Action::Stop(_) | Action::BackedOff { .. } | Action::Skipped { .. } => {}
                }
            }
            if started && open.is_empty() {
                actions.extend(lessee.handle(Event::Finished, clock()));
                if actions.is_empty() {
                    break;
                }
                continue;
            }
            let event = tokio::select! {
                Some(Ok(event)) = open.join_next() => event.unwrap_or(Event::Tick),
                () = tokio::time::sleep(Duration::from_millis(100)) => Event::Tick,
            };
            actions.extend(lessee.handle(event, clock()));
        }
    }
    quantiles(times)
}

/// What a lessee waits before it takes something from a bus that it does not know.
const WAIT: Duration = Duration::from_secs(16);
