//! What the two hosts can do, what limited a transfer, what to do about it, and what captured traffic shows of a path.

pub mod advice;
pub mod host;
pub mod limits;
pub mod passive;
