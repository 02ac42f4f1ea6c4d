//! Order statistics, robust slopes, trend tests, modes and intervals.
