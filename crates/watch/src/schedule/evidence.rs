//! What is measured when something seems to have changed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::job::JobKind;
use crate::time::BootTime;

/// The work of one incident: a slice every 10 s, 12 in all; a route every second for 30 s; then
/// capacity and hops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incident {
    began: BootTime,
    slices: u32,
    next_slice: BootTime,
    next_route: BootTime,
    capacity: bool,
    hops: bool,
}

impl Incident {
    /// Begins now.
    pub const fn new(now: BootTime) -> Self {
        Self { began: now, slices: 0, next_slice: now, next_route: now, capacity: false, hops: false }
    }

    /// What is due, most urgent first.
    pub fn due(&self, now: BootTime) -> Vec<JobKind> {
        let mut due = Vec::new();
        if self.next_route <= now && now.since(self.began) < ROUTES_FOR {
            due.push(JobKind::Route);
        }
        if self.slices < SLICES && self.next_slice <= now {
            due.push(JobKind::Slice);
        }
        let follow = self.slices >= SLICES || now.since(self.began) > SLICES_FOR;
        if follow && !self.capacity {
            due.push(JobKind::Capacity);
        }
        if follow && !self.hops {
            due.push(JobKind::Hops);
        }
        due
    }

    /// A job of it was handed out.
    pub fn started(&mut self, kind: JobKind, now: BootTime) {
        match kind {
            JobKind::Route => self.next_route = now.after(ROUTE_EVERY),
            JobKind::Slice => {
                self.slices += 1;
                self.next_slice = now.after(SLICE_EVERY);
            }
            JobKind::Capacity => self.capacity = true,
            JobKind::Hops => self.hops = true,
            JobKind::Test => {}
        }
    }

    /// Nothing is left to do, or it is too late to tell anything.
    pub fn is_over(&self, now: BootTime) -> bool {
        (self.capacity && self.hops) || now.since(self.began) > GIVEN_FOR
    }
}

const SLICES: u32 = 12;
const SLICE_EVERY: Duration = Duration::from_secs(10);
const SLICES_FOR: Duration = Duration::from_secs(300);
const ROUTE_EVERY: Duration = Duration::from_secs(1);
const ROUTES_FOR: Duration = Duration::from_secs(30);
const GIVEN_FOR: Duration = Duration::from_secs(900);
