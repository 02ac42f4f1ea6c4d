//! The JSON schemas that ship with the program.

/// Name and version of [`REPORT`].
pub const REPORT_NAME: &str = "narrows.report/1";

/// JSON schema (draft 2020-12) of [`Document`](crate::Document).
pub const REPORT: &str = include_str!("../schema/report-1.json");

/// Name and version of [`SIMULATION`].
pub const SIMULATION_NAME: &str = "narrows.simulation/1";

/// JSON schema (draft 2020-12) of [`SimulationDocument`](crate::SimulationDocument).
pub const SIMULATION: &str = include_str!("../schema/simulation-1.json");

/// Name and version of [`EVALUATION`].
pub const EVALUATION_NAME: &str = "narrows.evaluation/1";

/// JSON schema (draft 2020-12) of [`EvaluationDocument`](crate::EvaluationDocument).
pub const EVALUATION: &str = include_str!("../schema/evaluation-1.json");

/// Name and version of [`REPLAY`].
pub const REPLAY_NAME: &str = "narrows.replay/1";

/// JSON schema (draft 2020-12) of [`ReplayDocument`](crate::ReplayDocument).
pub const REPLAY: &str = include_str!("../schema/replay-1.json");

/// Name and version of [`HOST_PROFILE`].
pub const HOST_PROFILE_NAME: &str = "narrows.host-profile/1";

/// JSON schema (draft 2020-12) of what `narrows host --record` prints.
pub const HOST_PROFILE: &str = include_str!("../schema/host-profile-1.json");

/// Name and version of [`BURST`].
pub const BURST_NAME: &str = "narrows.burst/1";

/// JSON schema (draft 2020-12) of [`BurstDocument`](crate::burst::BurstDocument).
pub const BURST: &str = include_str!("../schema/burst-1.json");

/// Name and version of [`STREAMS`].
pub const STREAMS_NAME: &str = "narrows.streams/1";

/// JSON schema (draft 2020-12) of [`StreamsDocument`](crate::streams::StreamsDocument).
pub const STREAMS: &str = include_str!("../schema/streams-1.json");

/// Name and version of [`TRAFFIC`].
pub const TRAFFIC_NAME: &str = "narrows.traffic/1";

/// JSON schema (draft 2020-12) of what `narrows traffic` prints.
pub const TRAFFIC: &str = include_str!("../schema/traffic-1.json");

/// Name and version of [`PASSIVE`].
pub const PASSIVE_NAME: &str = "narrows.passive/1";

/// JSON schema (draft 2020-12) of [`PassiveDocument`](crate::PassiveDocument).
pub const PASSIVE: &str = include_str!("../schema/passive-1.json");

/// Name and version of [`WATCH`].
pub const WATCH_NAME: &str = "narrows.available-watch/1";

/// JSON schema (draft 2020-12) of each line of `narrows available --watch --json`.
pub const WATCH: &str = include_str!("../schema/available-watch-1.json");

/// Name and version of [`FOLLOW`].
pub const FOLLOW_NAME: &str = "narrows.watch/1";

/// JSON schema (draft 2020-12) of each line of `narrows watch --json`.
pub const FOLLOW: &str = include_str!("../schema/watch-1.json");

/// Name and version of [`HOPS`].
pub const HOPS_NAME: &str = "narrows.hops/1";

/// JSON schema (draft 2020-12) of [`HopsDocument`](crate::hops::HopsDocument).
pub const HOPS: &str = include_str!("../schema/hops-1.json");

/// Name and version of [`HOST`].
pub const HOST_NAME: &str = "narrows.host/1";

/// JSON schema (draft 2020-12) of [`HostDocument`](crate::host::HostDocument).
pub const HOST: &str = include_str!("../schema/host-1.json");

/// Name and version of [`DIFF`].
pub const DIFF_NAME: &str = "narrows.diff/1";

/// JSON schema (draft 2020-12) of [`DiffDocument`](crate::diff::DiffDocument).
pub const DIFF: &str = include_str!("../schema/diff-1.json");

/// Name and version of [`ALERTS`].
pub const ALERTS_NAME: &str = "narrows.alerts/1";

/// JSON schema (draft 2020-12) of what `narrows alerts test` prints.
pub const ALERTS: &str = include_str!("../schema/alerts-1.json");

/// JSON schema (draft 2020-12) of the notices that webhooks and programs get: `narrows.notice/1`.
pub const NOTICE: &str = include_str!("../schema/notice-1.json");
/// Name and version of [`HISTORY`].
pub const HISTORY_NAME: &str = "narrows.history/1";

/// JSON schema (draft 2020-12) of `narrows history --format json`.
pub const HISTORY: &str = include_str!("../schema/history-1.json");

/// Name and version of [`EVENT`].
pub const EVENT_NAME: &str = "narrows.event/1";

/// JSON schema (draft 2020-12) of each line of `--json-stream`.
pub const EVENT: &str = include_str!("../schema/event-1.json");
