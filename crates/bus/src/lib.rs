//! How the agents and the hub of a fleet talk: one trait, carried by NATS or by the hub itself.
