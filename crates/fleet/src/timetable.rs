//! The timetable: when each loading run may start, so that no two need one key at a time.
//!
//! A [`Book`] holds what is reserved of each resource, and what its budget leaves. [`compile`] puts
//! runs into it; [`Book::order`] adds one that somebody asked for. Times are the hub's, and the
//! book counts whole milliseconds, spans rounded up.

mod book;
mod compile;
mod own;
mod request;
#[cfg(test)]
mod tests;

pub use book::{Asker, Book};
pub use compile::{Timetable, compile, most_per_hour, windows};
pub use own::{Basis, Own};
pub use request::{Budget, Limit, Placed, Refusal, Request, ResourceId};
