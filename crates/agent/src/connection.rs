//! Whether there is a connection to the bus, for those who ask the agent how it is.

use std::time::Duration;

use narrows_bus::Condition;
use tokio::sync::watch::Receiver;

/// Says why there is no connection once it has been missing for [`GRACE`], and `None` when there is
/// one. Ends with the bus.
pub(crate) async fn watch(mut condition: Receiver<Condition>, say: impl Fn(Option<String>)) {
    loop {
        let connected = condition.wait_for(|now| now.server.is_some());
        match tokio::time::timeout(GRACE, connected).await.map(|found| found.is_ok()) {
            Ok(true) => say(None),
            Ok(false) => return,
            Err(_) => {
                let why = condition.borrow().trouble.clone();
                say(Some(why.unwrap_or_else(|| "the bus does not answer".to_owned())));
                // Now there is nothing to say until there is one.
                if condition.wait_for(|now| now.server.is_some()).await.is_err() {
                    return;
                }
                continue;
            }
        }
        if condition.wait_for(|now| now.server.is_none()).await.is_err() {
            return;
        }
    }
}

/// A hub that starts again is back by then, and its agents have no fault.
const GRACE: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::sync::watch::Sender;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_connection_that_stays_away_is_a_fault() {
        let condition = Sender::new(Condition::default());
        let said = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&said);
        let say = move |why| reported.lock().unwrap().push(why);
        let watching = tokio::spawn(watch(condition.subscribe(), say));
        let pass = |seconds| tokio::time::sleep(Duration::from_secs(seconds));
        let taken = || std::mem::take(&mut *said.lock().unwrap());
        let connect = |server: Option<&str>, trouble: Option<&str>| {
            condition.send_modify(|now| {
                (now.server, now.trouble) = (server.map(str::to_owned), trouble.map(str::to_owned));
            });
        };

        pass(19).await;
        connect(Some("x"), None);
        pass(100).await;
        assert_eq!(taken(), [None]);
        connect(None, Some("refused"));
        pass(19).await;
        connect(Some("y"), None);
        pass(100).await;
        assert_eq!(taken(), [None], "a restart is none");
        connect(None, Some("refused"));
        pass(21).await;
        assert_eq!(taken(), [Some("refused".to_owned())]);
        pass(100).await;
        assert!(taken().is_empty(), "once is enough");
        connect(Some("z"), None);
        pass(1).await;
        assert_eq!(taken(), [None]);
        drop(condition);
        watching.await.unwrap();
    }
}
