//! What is said of a level: on the way and at the end.

use std::collections::VecDeque;

use narrows_units::{BitRate, Metric, to_usize};

use super::Params;
use super::account::Account;
use super::level::{LEAST_ERROR, Now, Point};
use narrows_probe::outcome::SampleCounts;
use narrows_probe::{
    AvailableFinding, Caveat, Confidence, Details, Diagnostics, Estimate, Finding, Limit, Outcome, PathFacts, Reason,
};
use narrows_train::windows::Windows;

/// Fewest trains behind an estimate of medium confidence.
const MIN_TRAINS: usize = 5;
/// Half-width below which no interval shrinks, as a share of the tight link's capacity, as in
/// `fac2`.
const FLOOR: f64 = 0.02;

/// What an answer is made of.
pub(super) struct State<'a> {
    pub(super) facts: &'a PathFacts,
    pub(super) params: &'a Params,
    pub(super) account: &'a Account,
    pub(super) windows: &'a Windows,
    pub(super) per_train: Option<f64>,
    pub(super) max_rate: Option<f64>,
}

impl State<'_> {
    /// The level is known; or it was until now, and something has changed.
    pub(super) fn estimated(&self, now: &Now, changing: bool) -> Option<Estimate> {
        // Of what was lost nothing tells on which side of the tight link: half of it was counted.
        let by_loss = now.loss / 2.0 * (now.available + 0.1 * now.capacity);
        let half = quantile(now.trains) * now.error.max(LEAST_ERROR * now.capacity);
        let half = half.max(FLOOR * now.capacity) + by_loss;
        let mut estimate = Estimate::ip_rate(
            Metric::AvailableIpCapacity,
            BitRate::from_bps_f64(now.available)?,
            BitRate::from_bps_f64((now.available - half).max(0.0))?,
            BitRate::from_bps_f64(now.available + half)?,
        );
        estimate.interval = Some(now.span);
        if now.trains < MIN_TRAINS {
            let samples = u32::try_from(now.trains).unwrap_or(u32::MAX);
            estimate = estimate.caveat(Caveat::FewSamples { samples });
            estimate.confidence = Confidence::Low;
        }
        if changing {
            estimate = estimate.caveat(Caveat::NotConverged);
            estimate.confidence = Confidence::Low;
        }
        if let Some(capacity) = self.params.capacity {
            estimate = estimate.caveat(Caveat::CapacityAssumed { capacity });
        }
        let estimate = estimate
            .with("tight_capacity_bps", now.capacity)
            .with("tight_capacity_relative_error", now.capacity_error)
            .with("spread_per_train_bps", now.spread)
            .with("trains_behind_it", now.trains);
        Some(self.account(estimate))
    }

    /// What came through is available; how much more is being looked for.
    pub(super) fn at_least(&self, last: &Point) -> Option<Estimate> {
        if last.overloaded() {
            return None;
        }
        let value = BitRate::from_bps_f64(last.out())?;
        let bound = Estimate::ip_rate(Metric::AvailableIpCapacity, value, value, value);
        let bound = bound.at_least(Limit::Budget).caveat(Caveat::NotConverged);
        Some(self.account(bound))
    }

    /// The sender's highest rate came through unharmed.
    pub(super) fn ceiling(&self, through: &VecDeque<f64>) -> Option<Estimate> {
        let through: Vec<f64> = through.iter().copied().collect();
        let value = BitRate::from_bps_f64(narrows_stat::median(&through)?)?;
        let max = self.max_rate?;
        let interface = self.facts.sender.interface_rate;
        if let Some(interface) = interface.filter(|interface| max >= 0.9 * interface.as_f64()) {
            // No more can be available than the path's first link carries.
            let low = value.scaled(0.98)?;
            let estimate = Estimate::ip_rate(Metric::AvailableIpCapacity, value, low, interface);
            return Some(self.account(estimate));
        }
        let capped = self.facts.rate_cap.is_some_and(|cap| max >= 0.97 * cap.as_f64());
        let bound = Estimate::ip_rate(Metric::AvailableIpCapacity, value, value, value);
        Some(self.account(if capped {
            bound.at_least(Limit::Budget)
        } else {
            bound.at_least(Limit::Sender).caveat(Caveat::SenderLimited)
        }))
    }

    /// What looks like the turning point is the rate at which the receiving host takes packets.
    pub(super) fn receiver_bound(&self, now: &Now) -> Option<Estimate> {
        let value = BitRate::from_bps_f64((now.available - FLOOR * now.capacity).max(0.0))?;
        let bound = Estimate::ip_rate(Metric::AvailableIpCapacity, value, value, value);
        Some(self.account(bound.at_least(Limit::Receiver).caveat(Caveat::ReceiverLimited)))
    }

    fn account(&self, mut estimate: Estimate) -> Estimate {
        for caveat in self.account.caveats() {
            if matches!(caveat, Caveat::Shaped) {
                estimate.confidence = Confidence::Low;
            }
            estimate = estimate.caveat(caveat);
        }
        if let Some(last) = self.per_train {
            estimate.diagnostics.insert("last_train_bps", last);
            estimate = estimate.found(Finding::Available(Box::new(AvailableFinding {
                last_train_bps: Some(last),
                ..AvailableFinding::default()
            })));
        }
        sampled(&mut estimate.diagnostics, self.account, self.windows);
        estimate.counted(samples(self.account))
    }
}

/// The answer at the end of a run, or when it is stopped.
pub(super) fn finish(
    estimate: Option<Estimate>,
    account: &Account,
    windows: &Windows,
    stopped: Option<Reason>,
) -> Outcome {
    let silent = stopped == Some(Reason::NoAnswer);
    let outcome = match estimate {
        Some(mut estimate) if !silent => {
            sampled(&mut estimate.diagnostics, account, windows);
            distributed(&mut estimate.diagnostics, windows);
            if stopped.is_some() {
                estimate = estimate.caveat(Caveat::StoppedEarly);
            }
            Outcome::from(estimate)
        }
        _ => {
            let mut diagnostics = Diagnostics::default();
            sampled(&mut diagnostics, account, windows);
            distributed(&mut diagnostics, windows);
            Outcome::Inconclusive {
                reason: stopped.unwrap_or(Reason::NotConverged),
                caveats: account.caveats(),
                details: Details::default(),
                diagnostics,
            }
        }
    };
    outcome.counted(samples(account))
}

fn samples(account: &Account) -> SampleCounts {
    SampleCounts::default().kept("trains", account.used).rejected("trains", account.trains - account.used)
}

fn sampled(diagnostics: &mut Diagnostics, account: &Account, windows: &Windows) {
    diagnostics.insert("trains", to_usize(account.trains));
    diagnostics.insert("useless_of_last_32_trains", account.useless());
    diagnostics.insert("changes", to_usize(account.changes));
    diagnostics.insert("windows", to_usize(windows.count()));
}

/// How what was available was distributed over the whole run.
fn distributed(diagnostics: &mut Diagnostics, windows: &Windows) {
    let length = windows.length();
    diagnostics.insert("window_ns", length.as_secs_f64() * 1e9);
    let shares = [
        ("window_p05_bps", 0.05),
        ("window_p25_bps", 0.25),
        ("window_p50_bps", 0.5),
        ("window_p75_bps", 0.75),
        ("window_p95_bps", 0.95),
    ];
    for (name, share) in shares {
        if let Some(value) = windows.percentile(share) {
            diagnostics.insert(name, value);
        }
    }
    if let Some(mean) = windows.mean() {
        diagnostics.insert("window_mean_bps", mean);
    }
}

/// How many standard errors make 90 % of so many trains.
fn quantile(trains: usize) -> f64 {
    let dof = trains.saturating_sub(1).max(1) as f64;
    narrows_stat::student_t_quantile(0.95, dof).unwrap_or(1.65).min(6.5)
}
