//! The bus on a NATS server with `JetStream`, from version 2.9.10 on.
//!
//! Settings are in `settings`, answers of the server in `answers`. What 2.9.10 ignores without
//! a word (several filters of a consumer, compression, metadata) is not used; what is used is read
//! back. `create_key_value` of `async-nats` wants what 2.9.10 does not say, so buckets are made as
//! the streams which they are.

mod accounts;
mod answers;
mod client;
mod condition;
mod follow;
mod jwt;
mod options;
mod settings;

pub use accounts::tell_account;
pub use client::Client;
pub use jwt::{Account, Operator, Validity};
pub use options::Options;
