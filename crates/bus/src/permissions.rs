//! What a client may do, in subjects: the same list serves both buses.
//!
//! Reading a key, writing it and taking from a stream are publishes to the subjects which NATS has
//! for that, so that a user of a NATS server gets these lists as they are.

use crate::settings::STREAM;
use crate::subject::covers;

/// Nobody listens here: a request to it comes back as soon as the bus has worked off what was sent
/// before.
pub(crate) const ROUND_TRIP: &str = "echo";

/// Which subjects a client may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Permissions {
    /// Patterns of the subjects that it may publish to.
    pub publish: Vec<String>,
    /// Patterns of the subjects that it may subscribe to.
    pub subscribe: Vec<String>,
}

impl Permissions {
    /// Everything: for the hub.
    pub fn all() -> Self {
        Self { publish: vec![">".to_owned()], subscribe: vec![">".to_owned()] }
    }

    /// What the agent `id` needs, and nothing of other agents but the leases, which are shared:
    /// `leases` is the bucket that holds them.
    pub fn agent(id: &str, leases: &str) -> Self {
        let publish = vec![
            format!("result.{id}.>"),
            format!("status.{id}"),
            write_subject(leases, ">"),
            read_subject(leases, ">"),
            read_subject("plan", id),
            ROUND_TRIP.to_owned(),
        ];
        let subscribe = vec![
            format!("{}.>", inbox(id)),
            format!("order.{id}"),
            format!("plan.{id}"),
            format!("stored.{id}"),
            "lease.>".to_owned(),
        ];
        Self { publish, subscribe }
    }

    /// What an agent may do on a bus that it has to leave: read its plan, which names the new one.
    pub fn leaving(id: &str) -> Self {
        let publish = vec![read_subject("plan", id), ROUND_TRIP.to_owned()];
        Self { publish, ..Self::agent(id, "none") }
    }

    /// Whether a message may be published to a subject.
    pub(crate) fn may_publish(&self, subject: &str) -> bool {
        self.publish.iter().any(|outer| covers(outer, subject))
    }

    /// Whether all of a pattern may be subscribed to.
    pub(crate) fn may_subscribe(&self, pattern: &str) -> bool {
        self.subscribe.iter().any(|outer| covers(outer, pattern))
    }
}

/// Where answers for a client arrive on NATS.
pub(crate) fn inbox(id: &str) -> String {
    format!("_INBOX_{id}")
}

/// What a client publishes to when it reads a key; the last message of a subject, read from
/// whichever server has it.
pub(crate) fn read_subject(bucket: &str, key: &str) -> String {
    format!("$JS.API.DIRECT.GET.KV_{bucket}.$KV.{bucket}.{key}")
}

/// What a client publishes to when it writes a key.
pub(crate) fn write_subject(bucket: &str, key: &str) -> String {
    format!("$KV.{bucket}.{key}")
}

/// What a client publishes to when it takes messages for a sink.
pub(crate) fn fetch_subject(sink: &str) -> String {
    format!("$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{sink}")
}

/// What a client publishes to when it makes streams.
pub(crate) const PROVIDE: &str = "$JS.API.STREAM.CREATE.results";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_to_leave_may_read_its_plan_alone() {
        let may = Permissions::leaving("a");
        assert!(may.may_publish(&read_subject("plan", "a")) && may.may_subscribe("plan.a"));
        for subject in ["result.a.rtt", "status.a", &write_subject("none", "host.b"), &read_subject("plan", "b")] {
            assert!(!may.may_publish(subject), "{subject}");
        }
    }

    #[test]
    fn an_agent_has_its_own_and_the_leases() {
        let may = Permissions::agent("a", "lease_1");
        for subject in ["result.a.rtt", "status.a"] {
            assert!(may.may_publish(subject), "{subject}");
        }
        assert!(may.may_publish(&write_subject("lease_1", "host.b")));
        assert!(may.may_publish(&read_subject("lease_1", "host.b")));
        assert!(may.may_publish(&read_subject("plan", "a")));
        for subject in ["result.b.rtt", "status.b", "order.a", "plan.a", "lease.host.a", PROVIDE] {
            assert!(!may.may_publish(subject), "{subject}");
        }
        assert!(!may.may_publish(&write_subject("plan", "a")));
        assert!(!may.may_publish(&read_subject("plan", "b")));
        assert!(!may.may_publish(&write_subject("lease_2", "host.b")));
        assert!(!may.may_publish(&fetch_subject("ingest")));
        assert!(may.may_subscribe("order.a") && may.may_subscribe("lease.host.b") && may.may_subscribe("lease.>"));
        for pattern in ["order.b", "order.*", ">", "result.a.>", "plan.>"] {
            assert!(!may.may_subscribe(pattern), "{pattern}");
        }
    }
}
