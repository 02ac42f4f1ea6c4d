//! `narrows`: what can this path carry, and what is holding me back?

fn main() {}
