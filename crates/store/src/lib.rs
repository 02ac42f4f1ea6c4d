//! What `narrows watch` keeps, in one SQLite file.
//!
//! [`records`] has what goes in and comes out.

pub mod records;
