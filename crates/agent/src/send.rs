//! From the spool to the bus: results go out in order, and wait here until the record has them.

use std::sync::Arc;
use std::time::Duration;

use narrows_bus::{Condition, Error};

use crate::feed::SPOOL;
use crate::shared::Shared;
use crate::spool::Parcel;

/// Sends as long as it is not dropped.
pub(crate) async fn send(shared: Arc<Shared>) {
    let mut condition = shared.bus.condition();
    let (mut sent, mut server) = (0, None);
    loop {
        let connected = |now: &Condition| now.server.is_some();
        let Ok(now) = condition.wait_for(connected).await.map(|now| now.server.clone()) else { return };
        // Another server may lack what the one before had acknowledged.
        if std::mem::replace(&mut server, now.clone()) != now {
            sent = 0;
        }
        let parcels = shared.works(SPOOL, shared.spool().after(sent)).unwrap_or_default();
        if parcels.is_empty() {
            tokio::select! {
                () = shared.unsent.notified() => {}
                _ = condition.changed() => {}
                // What was acknowledged and never stored is sent again: the stream knows it by its
                // id for ten minutes, the record for ever.
                () = tokio::time::sleep(ONCE_MORE) => sent = 0,
            }
        }
        for parcel in parcels {
            match publish(&shared, &parcel).await {
                Ok(()) => sent = parcel.seq,
                Err(wait) => {
                    tokio::time::sleep(wait).await;
                    break;
                }
            }
        }
    }
}

/// How long to wait if it is to be sent again.
async fn publish(shared: &Shared, parcel: &Parcel) -> Result<(), Duration> {
    let subject = format!("result.{}.{}", shared.name(), parcel.kind);
    let kept = shared.bus.publish(&subject, &parcel.id, parcel.text.clone().into()).await;
    match kept {
        Ok(_) => {
            shared.fault(SENDING, None);
            Ok(())
        }
        // The connection itself is told of elsewhere.
        Err(Error::Disconnected(_) | Error::Unanswered) => Err(SOON),
        Err(error @ (Error::TooLarge { .. } | Error::Subject(_))) => {
            // No later try is better.
            shared.fault(SENDING, Some(format!("result {}: {error}", parcel.seq)));
            Ok(())
        }
        Err(error) => {
            shared.fault(SENDING, Some(error.to_string()));
            Err(LATER)
        }
    }
}

const SENDING: &str = "results";
const SOON: Duration = Duration::from_secs(1);
/// A full stream, a full disk.
const LATER: Duration = Duration::from_secs(30);
const ONCE_MORE: Duration = Duration::from_secs(900);
