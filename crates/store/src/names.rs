//! Words and numbers that stand for our enums in rows, and documents as blobs.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use narrows_watch::{Claim, Signal};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The signal name of pulses: each of the three signals of round trips is derived from them.
pub(crate) const PULSE: &str = "pulse";

/// Our own job loaded the path.
pub(crate) const LOADED: i64 = 1;
/// The host was too busy.
pub(crate) const BUSY: i64 = 2;

/// The name by which JSON knows a variant.
pub(crate) fn word<T: Serialize>(variant: &T) -> String {
    match serde_json::to_value(variant) {
        Ok(Value::String(name)) => name,
        other => unreachable!("a variant without data is a string: {other:?}"),
    }
}

/// The variant of a name; `None` for one that a damaged or newer file holds.
pub(crate) fn variant<T: DeserializeOwned>(name: &str) -> Option<T> {
    serde_json::from_value(Value::String(name.to_owned())).ok()
}

/// The signal of a name.
pub(crate) fn signal(name: &str) -> Option<Signal> {
    Signal::ALL.into_iter().find(|signal| signal.name() == name)
}

pub(crate) fn claim_number(claim: Claim) -> i64 {
    match claim {
        Claim::Estimate => 0,
        Claim::AtLeast => 1,
        Claim::AtMost => 2,
        Claim::Inconclusive => 3,
    }
}

pub(crate) fn claim(number: i64) -> Claim {
    match number {
        0 => Claim::Estimate,
        1 => Claim::AtLeast,
        2 => Claim::AtMost,
        _ => Claim::Inconclusive,
    }
}

/// A claim that no row can have is none.
pub(crate) fn is_usable(value: Option<f64>, claim: Claim, flags: i64) -> bool {
    value.is_some() && claim != Claim::Inconclusive && flags == 0
}

/// A document, deflated.
pub(crate) fn document_blob(document: &Value) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(document.to_string().as_bytes())
        .and_then(|()| encoder.finish())
        .expect("memory takes what is written")
}

/// The document of [`document_blob`]; `None` where the blob is damaged.
pub(crate) fn document(blob: &[u8]) -> Option<Value> {
    /// Far above any document; a damaged blob must not fill the memory.
    const MOST: u64 = 64 << 20;
    let mut text = Vec::new();
    ZlibDecoder::new(blob).take(MOST).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests {
    use narrows_watch::schedule::{JobKind, Why};

    use super::*;
    use crate::records::{Basis, RunOutcome};

    #[test]
    fn names_and_numbers_come_back() {
        assert_eq!(word(&JobKind::Slice), "slice");
        assert_eq!(variant(&word(&JobKind::Hops)), Some(JobKind::Hops));
        assert_eq!(variant(&word(&Why::Night)), Some(Why::Night));
        assert_eq!(variant(&word(&RunOutcome::Lost)), Some(RunOutcome::Lost));
        assert_eq!(variant::<Basis>("nonsense"), None);
        for one in [Claim::Estimate, Claim::AtLeast, Claim::AtMost, Claim::Inconclusive] {
            assert_eq!(claim(claim_number(one)), one);
        }
        for one in Signal::ALL {
            assert_eq!(signal(one.name()), Some(one));
        }
    }

    #[test]
    fn documents_come_back_unless_they_are_damaged() {
        let one = serde_json::json!({"a": [1, 2.5, null], "b": "ü"});
        let mut blob = document_blob(&one);
        assert_eq!(document(&blob), Some(one));
        let middle = blob.len() / 2;
        blob[middle] ^= 0xff;
        assert_eq!(document(&blob), None);
    }
}
