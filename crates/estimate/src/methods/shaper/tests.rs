//! Against known truth.
