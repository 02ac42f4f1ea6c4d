//! Namespaces and the real-time path: a scenario played against the real clock with real packets.
