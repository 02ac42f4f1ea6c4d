//! Text from files into XML and HTML.

/// The text with everything replaced that XML or HTML could take for markup. Control characters,
/// which XML forbids, and the marks that reverse the direction of the text around them become
/// U+FFFD: a name from a file must neither inject nor disguise.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            c if is_unprintable(c) => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}

/// Control characters, which XML forbids, and the marks that reverse the direction of the text
/// around them.
pub(crate) fn is_unprintable(c: char) -> bool {
    matches!(c, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        | '\u{fffe}' | '\u{ffff}')
}

/// At most `most` characters, the last an ellipsis if some were cut.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(most.saturating_sub(1)).collect();
    out.push('…');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_control_characters_do_not_pass() {
        assert_eq!(
            escape("<script>alert('x' & \"y\")</script>"),
            "&lt;script&gt;alert(&#39;x&#39; &amp; &quot;y&quot;)&lt;/script&gt;"
        );
        assert_eq!(escape("a\u{0}b\u{1b}c\nd\u{202e}e"), "a\u{fffd}b\u{fffd}c d\u{fffd}e");
        assert_eq!(escape("µs ≤ 5 漢"), "µs ≤ 5 漢");
    }

    #[test]
    fn shortening_counts_characters() {
        assert_eq!(shorten("µµµµ", 4), "µµµµ");
        assert_eq!(shorten("µµµµµ", 4), "µµµ…");
        assert_eq!(shorten("ab", 0), "…");
    }
}
