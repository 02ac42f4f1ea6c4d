//! What methods are expected to say.
//!
//! ```toml
//! [[expect]]
//! method = "pathload"
//! ratio = [0.9, 1.1]              # of the median value to the truth
//! wrong_confident = 0.05          # of runs, at most; 0 by default, as inconclusive and bounds
//! bounds = 0.1                    # of runs with a bound instead of a value, at most
//!
//! [[expect]]
//! method = "slope"
//! error = [-0.01, 0.02]           # of the median value against the truth, in shares of the
//!                                 # narrow link's capacity; else as ratio
//!
//! [[expect]]
//! method = "fac2"
//! at_least = [0.5, 0.53]          # every lower bound, in shares of the truth; or at_most
//! loose = "the sender needs 20 us for a packet"   # why it is below 0.85; refused where it is not
//! share = 0.95                    # of runs, at least; 1 by default
//! inconclusive = 0.1              # of runs, at most; 0 by default
//!
//! [[expect]]
//! method = "pathrate"
//! refused = 0.9                   # share of runs without a number, at least
//!
//! [[expect]]
//! method = "capprobe"
//! ratio = [0.999, 1.001]
//! exact = true                    # every seed gives the same, so one is run
//!
//! [[expect]]
//! method = "slope"
//! ratio = [0.9, 1.1]
//! truth = "counted"               # free while the method ran; by default: if nobody measures
//! ```
//!
//! `value = [low, high]` in the metric's own unit stands for `at_least` where the path has no truth
//! of that metric.

use serde::Deserialize;

use crate::crossed::TruthFrom;
use crate::error::ScenarioError;
use crate::expect::{BoundScale, BoundSide, Expectation, Expected, ExpectedBound, MedianOf};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectFile {
    method: String,
    #[serde(default)]
    params: toml::Table,
    metric: Option<narrows_units::Metric>,
    #[serde(default)]
    exact: bool,
    ratio: Option<[f64; 2]>,
    error: Option<[f64; 2]>,
    at_least: Option<[f64; 2]>,
    at_most: Option<[f64; 2]>,
    value: Option<[f64; 2]>,
    refused: Option<f64>,
    wrong_confident: Option<f64>,
    inconclusive: Option<f64>,
    bounds: Option<f64>,
    share: Option<f64>,
    loose: Option<String>,
    /// What the value is compared with.
    #[serde(default)]
    truth: TruthFrom,
}

impl ExpectFile {
    pub(super) fn read(self, place: &str) -> Result<Expectation, ScenarioError> {
        let expected = match (self.median(), self.bound(), self.refused) {
            (Some((of, ends)), None, None) => self.within(place, of, ends)?,
            (None, Some((side, scale, ends)), None) => self.bounded(place, side, scale, ends)?,
            (None, None, Some(share)) => {
                self.unused(place, "refused", &[])?;
                Expected::Inconclusive { share: share_of(place, "refused", Some(share), 1.0)? }
            }
            _ => {
                let why = "needs exactly one of ratio, error, at_least, at_most, value = [low, high], refused = share";
                return Err(ScenarioError::invalid(place, why));
            }
        };
        let params = self.params.into_iter().map(|(name, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            (name, text)
        });
        Ok(Expectation {
            method: self.method,
            params: params.collect(),
            metric: self.metric,
            exact: self.exact,
            expected,
            truth: self.truth,
        })
    }

    /// The one range of a median that it names; of two, none.
    fn median(&self) -> Option<(MedianOf, [f64; 2])> {
        match (self.ratio, self.error) {
            (Some(ends), None) => Some((MedianOf::Ratio, ends)),
            (None, Some(ends)) => Some((MedianOf::Error, ends)),
            _ => None,
        }
    }

    /// The one bound that it names; of two, none.
    fn bound(&self) -> Option<(BoundSide, BoundScale, [f64; 2])> {
        match (self.at_least, self.at_most, self.value) {
            (Some(ends), None, None) => Some((BoundSide::AtLeast, BoundScale::Truth, ends)),
            (None, Some(ends), None) => Some((BoundSide::AtMost, BoundScale::Truth, ends)),
            (None, None, Some(ends)) => Some((BoundSide::AtLeast, BoundScale::Unit, ends)),
            _ => None,
        }
    }

    fn within(&self, place: &str, of: MedianOf, [low, high]: [f64; 2]) -> Result<Expected, ScenarioError> {
        self.unused(place, "a median", &["wrong_confident", "inconclusive", "bounds"])?;
        let inconclusive = share_of(place, "inconclusive", self.inconclusive, 0.0)?;
        let bounds = share_of(place, "bounds", self.bounds, 0.0)?;
        if !of.is_range(low, high) || inconclusive + bounds >= 1.0 {
            let why =
                "is vacuous: needs 0 < low <= high, an error within 0.15, and inconclusive and bounds together below 1";
            return Err(ScenarioError::invalid(format!("{place}: median"), why));
        }
        let wrong_confident = share_of(place, "wrong_confident", self.wrong_confident, 0.0)?;
        Ok(Expected::Within { of, low, high, wrong_confident, inconclusive, bounds })
    }

    fn bounded(
        &self,
        place: &str,
        side: BoundSide,
        scale: BoundScale,
        [low, high]: [f64; 2],
    ) -> Result<Expected, ScenarioError> {
        self.unused(place, "a bound", &["inconclusive", "share", "loose"])?;
        let share = share_of(place, "share", self.share, 1.0)?;
        let inconclusive = share_of(place, "inconclusive", self.inconclusive, 0.0)?;
        let bound = ExpectedBound { side, low, high, scale, share, inconclusive, loose: self.loose.clone() };
        let why = if share <= inconclusive { Some("is vacuous: share must be above inconclusive") } else { None };
        match why.or_else(|| bound.trouble()) {
            Some(why) => Err(ScenarioError::invalid(format!("{place}: bound"), why)),
            None => Ok(Expected::Bounded(bound)),
        }
    }

    /// A tolerance that nothing reads would look as if something were checked.
    fn unused(&self, place: &str, kind: &str, used: &[&str]) -> Result<(), ScenarioError> {
        let present = [
            ("wrong_confident", self.wrong_confident.is_some()),
            ("inconclusive", self.inconclusive.is_some()),
            ("bounds", self.bounds.is_some()),
            ("share", self.share.is_some()),
            ("loose", self.loose.is_some()),
        ];
        match present.into_iter().find(|(name, is_there)| *is_there && !used.contains(name)) {
            Some((name, _)) => {
                Err(ScenarioError::invalid(format!("{place}: {name}"), format!("is not read beside {kind}; delete it")))
            }
            None => Ok(()),
        }
    }
}

fn share_of(place: &str, field: &str, value: Option<f64>, default: f64) -> Result<f64, ScenarioError> {
    let value = value.unwrap_or(default);
    let fine = (0.0..=1.0).contains(&value);
    fine.then_some(value).ok_or_else(|| ScenarioError::invalid(format!("{place}: {field}"), "must be between 0 and 1"))
}

#[cfg(test)]
mod tests {
    use crate::model::Scenario;

    fn expecting(lines: &str) -> Result<(), String> {
        let text = format!("name = \"x\"\n[[hop]]\nrate = \"1 Mbit/s\"\n[[expect]]\nmethod = \"m\"\n{lines}\n");
        Scenario::from_toml(&text).map(|_| ()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_bound_that_anything_satisfies_is_refused() {
        for (lines, why) in [
            ("bounded = 1.0", "unknown field"),
            ("at_least = [0.0, 1.0]", "vacuous"),
            ("at_least = [0.0, 1.0]\nloose = \"why\"", "vacuous"),
            ("at_least = [0.4, 0.5]", "loose"),
            ("at_least = [0.9, 1.1]", "wrong side"),
            ("at_most = [0.9, 1.1]", "wrong side"),
            ("at_most = [1.0, 1.3]", "loose"),
            ("at_least = [0.9, 1.0]\nshare = 0.5\ninconclusive = 0.5", "vacuous"),
            ("value = [10, 20]", "loose"),
            ("ratio = [0.0, 1.1]", "vacuous"),
            ("ratio = [0.9, 1.1]\ninconclusive = 1.0", "vacuous"),
            ("ratio = [0.9, 1.1]\ninconclusive = 0.5\nbounds = 0.5", "vacuous"),
        ] {
            let error = expecting(lines).unwrap_err();
            assert!(error.contains(why), "{lines}: {error}");
        }
        for lines in [
            "at_least = [0.85, 1.0]",
            "at_least = [0.4, 0.5]\nloose = \"the sender is slow\"\nshare = 0.9",
            "at_most = [1.0, 1.1]\ninconclusive = 0.2",
            "value = [9, 10]",
            "refused = 1.0\nexact = true",
        ] {
            assert_eq!(expecting(lines), Ok(()), "{lines}");
        }
    }

    #[test]
    fn tight_bounds_have_no_excuse() {
        assert!(expecting("at_least = [0.9, 1.0]\nloose = \"why\"").unwrap_err().contains("is tight"));
    }

    #[test]
    fn a_tolerance_that_nothing_reads_is_refused() {
        for lines in [
            "at_least = [0.9, 1.0]\nwrong_confident = 0.05",
            "refused = 0.6\nwrong_confident = 0.1",
            "refused = 0.6\ninconclusive = 0.1",
            "ratio = [0.9, 1.1]\nshare = 0.9",
            "ratio = [0.9, 1.1]\nloose = \"why\"",
        ] {
            let error = expecting(lines).unwrap_err();
            assert!(error.contains("is not read beside"), "{lines}: {error}");
        }
    }

    #[test]
    fn one_expectation_is_of_one_kind() {
        for lines in ["", "ratio = [0.9, 1.1]\nrefused = 1.0", "at_least = [0.9, 1.0]\nat_most = [1.0, 1.1]"] {
            assert!(expecting(lines).unwrap_err().contains("exactly one of"), "{lines}");
        }
    }
}
