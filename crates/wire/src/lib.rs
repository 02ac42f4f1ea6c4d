//! Probe header, control messages and the session state machine of narrows.
