//! Octets as hexadecimal text.

use std::fmt::Write as _;

pub(crate) fn text(octets: &[u8]) -> String {
    octets.iter().fold(String::with_capacity(2 * octets.len()), |mut text, octet| {
        // Writing to a string never fails.
        let _ = write!(text, "{octet:02x}");
        text
    })
}

/// `None`: other letters, or another number of them.
pub(crate) fn octets<const N: usize>(text: &str) -> Option<[u8; N]> {
    vec(text)?.try_into().ok()
}

pub(crate) fn vec(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.bytes().map(|digit| char::from(digit).to_digit(16)?.try_into().ok()).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn text_and_octets_are_the_same() {
        assert_eq!(super::octets::<3>("00aFf9"), Some([0, 0xaf, 0xf9]));
        assert_eq!(super::text(&[0, 0xaf, 0xf9]), "00aff9");
        for wrong in ["00aff", "00affg", "00aff900", "00a\u{e4}9"] {
            assert_eq!(super::octets::<3>(wrong), None, "{wrong}");
        }
    }
}
