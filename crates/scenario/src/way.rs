//! Directions over a path.

/// Which way over the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathDirection {
    /// From sender to receiver.
    Forward,
    /// From receiver to sender.
    Reverse,
}

impl PathDirection {
    /// The other way.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Forward => Self::Reverse,
            Self::Reverse => Self::Forward,
        }
    }
}
