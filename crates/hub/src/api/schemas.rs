//! What the record's and the fleet's own types look like in answers. Those crates know nothing of
//! descriptions of APIs; a test holds real answers to these.
#![expect(dead_code, reason = "they describe what other types write")]

use utoipa::ToSchema;

/// A value of a run.
#[derive(ToSchema)]
pub(super) struct RunValue {
    /// `available_ip_capacity`, `ip_capacity`, `round_trip_time`, ...
    metric: String,
    direction: Direction,
    /// `bit/s`, `ns`, `octet` or `count`.
    unit: String,
    claim: Claim,
    value: f64,
    /// Lower end of the interval of 90 %.
    low: f64,
    /// Upper end.
    high: f64,
}

/// Which way data went: from the agent to the target is forward.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
enum Direction {
    Forward,
    Reverse,
}

/// What a value claims. An inconclusive one is 0.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
enum Claim {
    Estimate,
    AtLeast,
    AtMost,
    Inconclusive,
}

/// How a run ended.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
enum Exit {
    Done,
    Inconclusive,
    Skipped,
    Stopped,
    PeerFailed,
    HostFailed,
    Void,
}

/// What readers have to know of a run.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
enum Flag {
    OwnLoad,
    HostBusy,
    ClockUnsynchronised,
}

/// Why a run ran; an order has its number.
#[derive(ToSchema)]
#[serde(rename_all = "snake_case")]
enum Origin {
    Mesh,
    Directed,
    Planned,
    Repeated,
    Order(String),
}

/// A router; a silent one has no address.
#[derive(ToSchema)]
pub(super) struct Hop {
    address: Option<String>,
}

/// A run without its values.
#[derive(ToSchema)]
pub(super) struct RunRow {
    id: String,
    /// Who measured.
    agent: String,
    /// Its number among the agent's.
    seq: u64,
    target: String,
    /// The first word of its command.
    kind: String,
    origin: Origin,
    began_ms: i64,
    length_ms: u64,
    exit: Exit,
    /// Why there is no value.
    reason: Option<String>,
    /// IP octets that it sent.
    octets: u64,
    flags: Vec<Flag>,
}

/// A run whole. What is empty is left out.
#[derive(ToSchema)]
pub(super) struct Run {
    /// `narrows.run/1`.
    schema: String,
    id: String,
    agent: String,
    seq: u64,
    target: String,
    kind: String,
    origin: Origin,
    began_ms: i64,
    length_ms: u64,
    exit: Exit,
    #[schema(required = false)]
    reason: Option<String>,
    octets: u64,
    #[schema(required = false)]
    route_before: Vec<Hop>,
    #[schema(required = false)]
    route_after: Vec<Hop>,
    #[schema(required = false)]
    flags: Vec<Flag>,
    #[schema(required = false)]
    values: Vec<RunValue>,
    /// The result document of the command; kept for 30 days.
    #[schema(required = false, value_type = Object)]
    evidence: Option<()>,
}

/// The newest value of a metric over a pair. Source and target are those of the data.
#[derive(ToSchema)]
pub(super) struct Latest {
    source: String,
    target: String,
    metric: String,
    claim: Claim,
    value: f64,
    low: f64,
    high: f64,
    at_ms: i64,
    run: String,
    flags: Vec<Flag>,
}

/// One value, or the summary of an hour or a day: median, lowest and highest.
#[derive(ToSchema)]
pub(super) struct Point {
    at_ms: i64,
    /// How many values it sums up.
    count: u64,
    value: f64,
    low: f64,
    high: f64,
    claim: Claim,
}

/// Who changed what.
#[derive(ToSchema)]
pub(super) struct AuditEntry {
    /// From 1 on without gaps.
    number: u64,
    at_ms: i64,
    who: String,
    what: String,
    text: String,
    /// SHA-256 over the hash of the entry before and this one.
    hash: String,
}

/// A host that joins, with the token that it was given.
#[derive(ToSchema)]
pub(super) struct Join {
    token: String,
    /// The name that it wants.
    name: String,
    /// Its key on the bus.
    public_key: String,
    #[schema(required = false, value_type = Object)]
    labels: (),
    /// Where peers reach its server; where it joins from, if missing.
    #[schema(required = false)]
    address: Option<String>,
    port: u16,
    version: String,
    /// Of a host that was a member before: its signature, in hexadecimal, over
    /// `narrows.join-again/1 KEY TOKEN`. A member stays what it is, and the token is not used.
    #[schema(required = false)]
    again: Option<String>,
}

/// What an agent needs to know of its hub.
#[derive(ToSchema)]
pub(super) struct Joined {
    /// Its name in the fleet.
    agent: String,
    tenant: String,
    /// The public key by which plans and orders are signed.
    hub_key: String,
    /// Where the bus is: `{"kind":"embedded","url":..}` or `{"kind":"nats","servers":[..]}`.
    #[schema(value_type = Object)]
    bus: (),
    /// The bucket of leases is `lease_<generation>`.
    lease_generation: u32,
}
