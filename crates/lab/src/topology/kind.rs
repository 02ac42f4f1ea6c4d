//! Kinds of nodes.

/// What a node does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeKind {
    Sender,
    Router,
    Receiver,
    Switch,
    Source,
    Sink,
}

impl NodeKind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Router => "router",
            Self::Receiver => "receiver",
            Self::Switch => "switch",
            Self::Source => "source",
            Self::Sink => "sink",
        }
    }
}
