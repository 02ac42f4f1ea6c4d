//! `--fail-if`: results as a gate for scripts and monitoring.

use narrows_report::condition::{Conditions, Judgement};
use narrows_report::readings::{Quantity, readings};
use narrows_units::Metric;
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::output;

/// The flag of every command that measures.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FailIfArgs {
    /// End with code 10 if a result crosses a limit, such as "available<50M,loss>1%"; with 11 if a
    /// bound, or no conclusion, leaves that open. available.high<50M: surely below
    #[arg(long, value_name = "CONDITIONS")]
    fail_if: Option<Conditions>,
}

/// Of a row of round trips: the echoes that were lost.
const LOSS: &str = "loss_ratio";

impl FailIfArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.fail_if.is_some()
    }

    /// Refuses, before anything is measured, what the command will not know.
    pub(crate) fn check(&self, metrics: &[Metric], others: &[&str]) -> Result<(), Failure> {
        let Some(conditions) = &self.fail_if else { return Ok(()) };
        let echoes = metrics.contains(&Metric::RoundTripTime).then_some(LOSS);
        let others = others.iter().copied().chain(echoes);
        let offered: Vec<&Quantity> =
            metrics.iter().map(|&metric| Quantity::of(metric)).chain(others.filter_map(Quantity::named)).collect();
        conditions.check(&offered).map_err(|error| Failure::usage(format!("--fail-if: {error}")))
    }

    /// How the command ends: by the conditions where there are any, else as it would.
    pub(crate) fn exit(&self, document: &impl Serialize, otherwise: Exit) -> Exit {
        let Some(conditions) = &self.fail_if else { return otherwise };
        let document = serde_json::to_value(document).unwrap_or_default();
        let judged = conditions.judge(&readings(&document));
        for (_, line) in judged.iter().filter(|(judgement, _)| *judgement != Judgement::Clear) {
            output::complain(line);
        }
        match judged.iter().map(|(judgement, _)| *judgement).max() {
            Some(Judgement::Crossed) => Exit::Threshold,
            Some(Judgement::Open) => Exit::Inconclusive,
            _ => Exit::Valid,
        }
    }
}
