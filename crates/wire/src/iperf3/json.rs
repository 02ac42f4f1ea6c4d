//! Fields of JSON objects, with their types checked.

use serde_json::{Map, Value};

/// What is wrong with a JSON text from the peer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// No JSON object.
    #[error("not a JSON object")]
    NotAnObject,
    /// A field that must be there is not.
    #[error("field {0:?} is missing")]
    Missing(&'static str),
    /// A field of another type, or outside its range.
    #[error("field {0:?} has an impossible value")]
    Impossible(&'static str),
    /// More streams than a test may have.
    #[error("more streams than a test may have")]
    TooManyStreams,
}

/// An object, and questions to it.
pub(super) struct Fields(pub(super) Map<String, Value>);

impl Fields {
    pub(super) fn parse(octets: &[u8]) -> Result<Self, JsonError> {
        match serde_json::from_slice(octets) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            _ => Err(JsonError::NotAnObject),
        }
    }

    fn value(&self, name: &'static str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// A whole number; stock programs write those above 10^15 with an exponent.
    pub(super) fn whole(&self, name: &'static str) -> Result<Option<i64>, JsonError> {
        /// Two to the 63rd. Above 2^53 the peer's doubles are rounded; that is theirs to know.
        const BEYOND: f64 = 9_223_372_036_854_775_808.0;
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = value.as_i64().or_else(|| {
            let number = value.as_f64()?;
            #[expect(clippy::cast_possible_truncation, reason = "whole and within 64 bit, as just checked")]
            (number.fract() == 0.0 && number.abs() < BEYOND).then_some(number as i64)
        });
        number.map(Some).ok_or(JsonError::Impossible(name))
    }

    /// A whole number of which stock programs write -1, which means "unknown", as the largest of 64
    /// bit without a sign.
    pub(super) fn signed(&self, name: &'static str) -> Result<Option<i64>, JsonError> {
        /// Between the largest number with a sign and that one.
        const ABOVE: f64 = 1.8e19;
        let unknown = |number: f64| number > ABOVE && number < 2.0 * ABOVE;
        if self.value(name).and_then(Value::as_f64).is_some_and(unknown) {
            return Ok(Some(-1));
        }
        self.whole(name)
    }

    /// A number from zero to `most`; `None` if there is none.
    pub(super) fn count<T: TryFrom<i64> + PartialOrd + Copy>(
        &self,
        name: &'static str,
        most: T,
    ) -> Result<Option<T>, JsonError> {
        let Some(number) = self.whole(name)? else {
            return Ok(None);
        };
        let wrong = JsonError::Impossible(name);
        if number < 0 {
            return Err(wrong);
        }
        let number = T::try_from(number).map_err(|_| JsonError::Impossible(name))?;
        if number <= most { Ok(Some(number)) } else { Err(wrong) }
    }

    /// A switch: stock programs write some as `true` and some as 1.
    pub(super) fn switch(&self, name: &'static str) -> Result<bool, JsonError> {
        match self.value(name) {
            None => Ok(false),
            Some(Value::Bool(on)) => Ok(*on),
            Some(_) => Ok(self.whole(name)? != Some(0)),
        }
    }

    /// A finite number.
    pub(super) fn real(&self, name: &'static str) -> Result<Option<f64>, JsonError> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let number = value.as_f64().filter(|number| number.is_finite());
        number.map(Some).ok_or(JsonError::Impossible(name))
    }

    /// A text of at most so many octets.
    pub(super) fn text(&self, name: &'static str, most: usize) -> Result<Option<String>, JsonError> {
        match self.value(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() <= most => Ok(Some(text.clone())),
            Some(_) => Err(JsonError::Impossible(name)),
        }
    }

    /// Takes a field out, whatever it is.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name).filter(|value| !value.is_null())
    }
}
