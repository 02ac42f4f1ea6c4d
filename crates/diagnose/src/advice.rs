//! What to do about it: rules over a job's results and the hosts' settings, each with its evidence
//! and a command. Pure.
//!
//! A rule is data ([`Rule`]): what it is called, what triggers it, where the idea is from, which
//! verdicts it stands for, and a function from what was found ([`Findings`]) to advice. A rule that
//! lacks a figure says nothing; no figure is ever assumed. Thresholds stand in the rule's own text.
//! Most rules are netest's (`[Netest03]` §IV) brought to the kernels of today.
//!
//! # Order
//! Whatever limits the result now comes first: the rule that stands for the first verdict on the
//! transfer ([`crate::limits`]), then others by the rate at which they would bind, lowest first.
//! Only one limit binds at a time: all others are told as the *next limit*, because mending them
//! first changes nothing. What makes results unsure, and hints, follow.

mod environment;
mod findings;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use narrows_units::Direction;
use serde::Serialize;

use crate::limits::LimitingFactor;
use narrows_probe::outcome::{Confidence, Diagnostic};

pub use environment::{HostCounts, HostEnvironment};
pub use findings::Findings;
pub use rules::RULES;

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It is what limits the result now.
    Limiting,
    /// It would be the next limit, or makes the result less sure.
    Warning,
    /// Good to know.
    Hint,
}

/// A rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Its number in the table of the documentation.
    pub number: u8,
    /// Machine name.
    pub id: &'static str,
    /// What to do, in a few words.
    pub brief: &'static str,
    /// What triggers it, with thresholds, for people.
    pub trigger: &'static str,
    /// Verdicts on a transfer for which it stands.
    pub limiting_factors: &'static [LimitingFactor],
    /// What it makes of what was found.
    pub judge: Judge,
}

/// What a rule is a rule about.
#[derive(Debug, Clone, Copy)]
pub enum Judge {
    /// The path, or both hosts together.
    Path(fn(&Findings) -> Option<Judged>),
    /// Each host for itself: `true`, the one that sends.
    Host(fn(&Findings, bool) -> Option<Judged>),
}

impl Judge {
    /// All that there is to say.
    fn say(self, findings: &Findings) -> impl Iterator<Item = Judged> {
        let said = match self {
            Self::Path(judge) => [judge(findings), None],
            Self::Host(judge) => [judge(findings, true), judge(findings, false)],
        };
        said.into_iter().flatten()
    }
}

/// What a rule says, before it is put in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    severity: Severity,
    confidence: Confidence,
    text: String,
    evidence: BTreeMap<&'static str, Diagnostic>,
    command: Option<String>,
    /// The rate at which it binds, where that can be said.
    binds_at_bps: Option<u64>,
}

impl Judged {
    fn new(severity: Severity, text: impl Into<String>) -> Self {
        Self {
            severity,
            confidence: Confidence::Medium,
            text: text.into(),
            evidence: BTreeMap::new(),
            command: None,
            binds_at_bps: None,
        }
    }

    fn with(mut self, name: &'static str, value: impl Into<Diagnostic>) -> Self {
        self.evidence.insert(name, value.into());
        self
    }

    /// The same where it is known.
    fn and(self, name: &'static str, value: Option<impl Into<Diagnostic>>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }

    fn at(mut self, bps: impl Into<Option<u64>>) -> Self {
        self.binds_at_bps = bps.into();
        self
    }

    /// Two independent signals or more are sure, one is not.
    fn signals(mut self, count: usize) -> Self {
        self.confidence = match count {
            0 => Confidence::Low,
            1 => Confidence::Medium,
            _ => Confidence::High,
        };
        self
    }
}

/// One piece of advice.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// Machine name of the rule.
    pub id: &'static str,
    /// Its number.
    pub rule: u8,
    /// Which way it was seen.
    pub direction: Direction,
    /// How much it matters.
    pub severity: Severity,
    /// How sure it is: high with two independent signals or more.
    pub confidence: Confidence,
    /// What is the case, and what to do.
    pub text: String,
    /// What to do, in a few words.
    #[serde(skip)]
    pub brief: &'static str,
    /// What triggers the rule.
    pub trigger: &'static str,
    /// The figures that triggered it, with their units in the names.
    pub evidence: BTreeMap<&'static str, Diagnostic>,
    /// The rate at which it binds, where that can be said, bit/s.
    pub binds_at_bps: Option<u64>,
    /// A command that does it, where there is one; to be run by the user.
    pub command: Option<String>,
}

/// All advice that what was found gives rise to, the limit that binds first at the head.
pub fn advise(findings: &[Findings]) -> Vec<Advice> {
    let mut advice: Vec<Advice> = findings.iter().flat_map(one_way).collect();
    advice.sort_by_key(|advice| advice.severity);
    // What concerns a host as such is seen in both directions.
    let mut seen: Vec<(&'static str, String)> = Vec::new();
    advice.retain(|advice| {
        let key = (advice.id, advice.text.clone());
        let is_new = !seen.contains(&key);
        seen.push(key);
        is_new
    });
    advice
}

fn one_way(findings: &Findings) -> Vec<Advice> {
    let first = findings.tcp.limits.first().copied();
    let judged = RULES.iter().flat_map(|rule| rule.judge.say(findings).map(move |judged| (rule, judged)));
    let mut judged: Vec<(&Rule, Judged)> = judged.collect();
    judged.sort_by_key(|(rule, judged)| {
        let named = first.is_some_and(|first| rule.limiting_factors.contains(&first));
        let binds_at = judged.binds_at_bps.unwrap_or(u64::MAX);
        (judged.severity, !named, binds_at, rule.number)
    });
    let mut binding = false;
    judged
        .into_iter()
        .map(|(rule, mut judged)| {
            if judged.severity == Severity::Limiting {
                if binding {
                    judged.severity = Severity::Warning;
                    judged.text = format!("next limit: {}", judged.text);
                }
                binding = true;
            }
            Advice {
                id: rule.id,
                brief: rule.brief,
                rule: rule.number,
                direction: findings.direction,
                severity: judged.severity,
                confidence: judged.confidence,
                text: judged.text,
                trigger: rule.trigger,
                evidence: judged.evidence,
                binds_at_bps: judged.binds_at_bps,
                command: judged.command,
            }
        })
        .collect()
}
