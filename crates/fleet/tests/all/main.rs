//! Leases under faults, in one program.

mod lease;
