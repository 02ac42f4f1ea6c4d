//! What agents say of themselves.

use narrows_fleet::keys::Name;
use narrows_fleet::message::{Answer, HubTime, Status, Stored};
use narrows_record::{Agent, AgentState};

use crate::error::{Error, Result};
use crate::hub::Hub;

impl Hub {
    /// Hears agents until the future is dropped.
    pub(crate) async fn hear_always(&self) {
        loop {
            match self.bus.subscribe("status.*").await {
                Ok(mut statuses) => {
                    while let Ok(message) = statuses.next().await {
                        if let Err(error) = self.hear(&message.subject, &message.payload).await {
                            tracing::warn!(%error, subject = message.subject, "a status was not taken");
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "statuses cannot be heard"),
            }
            tokio::time::sleep(crate::AGAIN).await;
        }
    }

    /// Takes a status. The bus lets an agent use its own subject alone, so that the subject says
    /// who speaks.
    pub async fn hear(&self, subject: &str, payload: &[u8]) -> Result<()> {
        let status: Status = serde_json::from_slice(payload).map_err(|error| Error::Request(error.to_string()))?;
        let speaker = subject.strip_prefix("status.").unwrap_or_default();
        if speaker != status.agent.as_str() || status.schema != Status::SCHEMA {
            return Err(Error::Request(format!("{speaker} speaks as {}", status.agent)));
        }
        let now = self.now();
        let known = self.directory.get(&status.agent).filter(|agent| agent.state == AgentState::Member);
        let known = known.ok_or_else(|| Error::Missing(format!("member \"{}\"", status.agent)))?;
        self.record.heard(&status, now).await?;
        let before = known.status.as_ref().map(|last| last.faults.clone()).unwrap_or_default();
        for fault in status.faults.iter().filter(|fault| !before.contains(fault)) {
            // Plans and orders that this hub signed are good: somebody else sent it one.
            let Some((what, why)) = fault.split_once(": ") else { continue };
            if ["plan", "order"].contains(&what) && self.refusals.is_new(&format!("{speaker} {what}"), now) {
                self.record.audit(speaker, &format!("{what}.refused"), why, now).await?;
            }
        }
        let agent = self.directory.change(&status.agent, |agent| {
            agent.heard_ms = Some(now);
            agent.status = Some(status.clone());
        });
        if let Some(agent) = agent {
            self.tell_agent(&agent);
        }
        // What the agent did not hear of may have been lost on the way: say it again.
        let stored = known.stored;
        let stored = if status.spool_runs > 0 { stored } else { Stored::default() };
        self.answer(&status, stored, now).await;
        if status.leaving {
            return self.leave(&status.agent).await;
        }
        self.seen_serial(status.plan_serial.max(status.order_serial), speaker).await?;
        for (id, state) in self.orders.heard(&status, now) {
            self.record.set_order(id, &status.agent, &state).await?;
        }
        self.resend_orders(&status.agent).await;
        self.acknowledged(&status).await
    }

    /// Tells an agent what the record has of it.
    pub(crate) async fn send_stored(&self, agent: &Name) {
        let Some(known) = self.directory.get(agent) else { return };
        let payload = serde_json::to_vec(&known.stored).expect("numbers");
        if let Err(error) = self.bus.send(&format!("stored.{agent}"), payload.into()).await {
            // The plan and the next status say it too.
            tracing::debug!(%error, %agent, "not told what is stored");
        }
    }

    /// Answers a status with what the record has, and with this hub's time.
    async fn answer(&self, status: &Status, stored: Stored, now: i64) {
        let time = HubTime {
            schema: HubTime::SCHEMA.to_owned(),
            tenant: self.tenant.clone(),
            agent: status.agent.clone(),
            asked_ms: status.at_ms,
            hub_ms: now,
        };
        let answer = Answer { stored, time: Some(self.keys.signed(&time)) };
        let payload = serde_json::to_vec(&answer).expect("numbers and texts");
        if let Err(error) = self.bus.send(&format!("stored.{}", status.agent), payload.into()).await {
            // The next status is answered too.
            tracing::debug!(%error, agent = %status.agent, "a status was not answered");
        }
    }

    pub(crate) fn tell_agent(&self, agent: &Agent) {
        self.tell("agent", &self.agent_row(agent));
    }
}
