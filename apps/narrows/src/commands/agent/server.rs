//! The server of this host, towards which the other agents measure: `narrows serve` as a child.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use narrows_agent::Agent;

use super::child::program;
use crate::leased::Until;

/// How it is started.
pub(super) struct Serve {
    pub(super) program: PathBuf,
    pub(super) port: u16,
}

impl Serve {
    /// Starts it again whenever it ends.
    pub(super) async fn keep(&self, agent: &Agent) {
        let (mut wait, keys) = (FIRST_WAIT, agent.server_keys().await);
        loop {
            let mut ended = std::pin::pin!(self.once(&keys));
            // One that lives this long listens.
            let why = tokio::select! {
                why = &mut ended => why,
                () = tokio::time::sleep(SETTLED) => {
                    agent.fault(WHAT, None);
                    wait = FIRST_WAIT;
                    ended.await
                }
            };
            agent.fault(WHAT, Some(format!("narrows serve on port {} ended: {why}", self.port)));
            tokio::time::sleep(wait).await;
            wait = (2 * wait).min(LONGEST_WAIT);
        }
    }

    /// Until it ends: why.
    async fn once(&self, keys: &Path) -> String {
        let mut command = program(&self.program, Until::Closed);
        command.arg("serve").arg("--port").arg(self.port.to_string()).arg("--fleet-keys").arg(keys);
        let mut child = match command.stdout(Stdio::null()).spawn() {
            Ok(child) => child,
            Err(error) => return error.to_string(),
        };
        // The pipe stays open as long as the child is ours.
        let stdin = child.stdin.take();
        let ended = child.wait().await;
        drop(stdin);
        ended.map_or_else(|error| error.to_string(), |status: ExitStatus| status.to_string())
    }
}

const WHAT: &str = "server";
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
const SETTLED: Duration = Duration::from_secs(5);
