//! Cross traffic over real sockets, by the simulator's models: generator, sink, and statistics per
//! flow.
//!
//! Shapes: a [`Flow`] is what is to be sent (a model, a capture's timing, TCP connections). A
//! [`Sink`] waits at the peer. A [`Sender`] announces flows to it, sends them, and ends with a
//! [`Report`] of what both sides saw. Both run in threads of their own and may be started in any
//! network namespace.
//!
//! ```
//! use narrows_scenario::{Arrivals, Cross, SizeMix};
//! use narrows_traffic::{Flow, Sender, SenderOptions, Sink, SinkOptions};
//! use narrows_units::BitRate;
//!
//! let sink = Sink::start(SinkOptions::private([127, 0, 0, 1].into()))?;
//! let cross = Cross::on_hop(0, Arrivals::Poisson, BitRate::from_mbps(1), SizeMix::imix());
//! let flows = vec![Flow::from_cross(&cross, 7, 0)];
//! let sender = Sender::start(sink.addresses()[0], flows, SenderOptions::default())?;
//! // … whatever is to be measured beside it …
//! let report = sender.stop();
//! assert_eq!(report.flows.len(), 1);
//! # Ok::<(), narrows_traffic::TrafficError>(())
//! ```
//!
//! # Model
//! Packets come from [`narrows_sim::ArrivalStream`], the very source that the simulator's paths
//! have, so that the same scenario, seed and index give the same packets in every world; a test
//! compares their moments in windows of 1, 10 and 100 ms.
//!
//! # Layers
//! Rates and sizes are those of IP packets, as everywhere (ADR 4): a packet of 1500 octets has 1472
//! octets of UDP payload over IPv4 and 1452 over IPv6. TCP flows are reported in payload octets.
//!
//! # Limits
//! A busy host sends late. Late packets are caught up and none is left out, so the mean rate is
//! kept but gaps are not.
//!
//! # Sources
//! One-way delay RFC 7679, loss RFC 7680, delay variation RFC 5481 §4.2 (PDV), interarrival jitter
//! RFC 3550 §6.4.1, reordering RFC 4737 §3. Index of dispersion: variance over mean of counts in a
//! window, 1 for a Poisson process. The choice of models follows `[DITG12]`.

mod account;
mod control;
mod document;
mod error;
mod flow;
mod histogram;
mod pacing;
mod packet;
mod received;
mod replay;
mod schedule;
mod sender;
mod series;
mod sink;
mod windows;

pub use control::Transport;
pub use document::{FlowReport, Report, SCHEMA_NAME, Sent, SentInterval, SizeCount, TcpSent, Total};
pub use error::{CallerError, CaptureError, TrafficError};
pub use flow::{Carries, ElasticFlow, Flow, FlowKind};
pub use histogram::{Distribution, Histogram};
pub use pacing::Pacing;
pub use received::{Jitter, Received, ReceivedInterval, Reordering};
pub use replay::{Contents, Filter, Replay, ReplayStream};
pub use sender::{MOST_FLOWS, Progress, Sender, SenderOptions};
pub use sink::{DEFAULT_PORT, Limits, SessionEnd, SessionReport, Sink, SinkOptions};
pub use windows::{WIDTHS_NS, WindowMoments, Windows};
