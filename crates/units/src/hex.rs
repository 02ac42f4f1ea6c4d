//! Octets as hexadecimal text.

use std::fmt::Write as _;

/// Two lower-case digits an octet.
pub fn to_text(octets: &[u8]) -> String {
    octets.iter().fold(String::with_capacity(2 * octets.len()), |mut text, octet| {
        // Writing to a string never fails.
        let _ = write!(text, "{octet:02x}");
        text
    })
}

/// The octets of a text in digits of either case; `None` if it has other letters, or an odd
/// number of them.
pub fn to_octets(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.bytes().map(|digit| char::from(digit).to_digit(16)?.try_into().ok()).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// As [`to_octets`], where their number is known: `None` if it is another.
pub fn to_array<const N: usize>(text: &str) -> Option<[u8; N]> {
    to_octets(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_octets_are_the_same() {
        assert_eq!(to_array::<3>("00aFf9"), Some([0, 0xaf, 0xf9]));
        assert_eq!(to_text(&[0, 0xaf, 0xf9]), "00aff9");
        for wrong in ["00aff", "00affg", "00aff900", "00a\u{e4}9"] {
            assert_eq!(to_array::<3>(wrong), None, "{wrong}");
        }
    }
}
