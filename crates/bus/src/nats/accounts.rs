//! Tells servers in operator mode what an account is from now on.

use tokio::sync::mpsc;

use super::jwt::UPDATE;
use super::options::{Options, connect_options};
use crate::error::{Error, Result};

/// Tells the servers, as a user of the system account, and waits until one has stored it: it tells
/// the others. Connections of users that the account keeps out end at once.
pub async fn tell_account(options: &Options, account: String) -> Result<()> {
    let (sender, mut events) = mpsc::channel(64);
    let listening = tokio::spawn(async move { while events.recv().await.is_some() {} });
    let asked = async {
        let client = connect_options(options, sender).connect(&options.server).await.map_err(Error::lost)?;
        let answer = client.request(UPDATE, account.into()).await.map_err(Error::lost)?;
        let said: serde_json::Value = serde_json::from_slice(&answer.payload).unwrap_or_default();
        // The library connects again and again, until nobody holds the client.
        drop(client);
        match said["data"]["code"].as_u64() {
            Some(200) => Ok(()),
            _ => Err(Error::Protocol(String::from_utf8_lossy(&answer.payload).into_owned())),
        }
    };
    let reported = tokio::time::timeout(2 * options.timeout, asked).await.unwrap_or(Err(Error::Unanswered));
    listening.abort();
    reported
}
