//! The whole method against a path worked out by hand.
