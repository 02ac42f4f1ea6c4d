//! Names of results in manuals. Beside the code a manual names a value of a type, which tools can
//! follow; whoever reads a result meets the name that documents have.

/// Types whose values have a name in documents.
const TYPES: [&str; 4] = ["Caveat::", "Reason::", "Limit::", "BoundKind::"];

/// The text with `sender_limited` for `Caveat::SenderLimited`, and so on.
pub(super) fn as_in_documents(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let next = |rest: &str| TYPES.iter().filter_map(|name| Some((rest.find(name)?, name.len()))).min();
    while let Some((at, length)) = next(rest) {
        let (before, name) = (&rest[..at], &rest[at + length..]);
        let end = name.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(name.len());
        out.push_str(before);
        push_snake_case(&mut out, &name[..end]);
        rest = &name[end..];
    }
    out.push_str(rest);
    out
}

fn push_snake_case(out: &mut String, name: &str) {
    for (index, letter) in name.chars().enumerate() {
        if index > 0 && letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
}

#[cfg(test)]
mod tests {
    use super::as_in_documents;
    use crate::Caveat;

    #[test]
    fn values_have_the_names_of_documents() {
        let text = "with `Caveat::SenderLimited`, or `Reason::NoAnswer`; `BoundKind::LowerBound`: at least.";
        assert_eq!(as_in_documents(text), "with `sender_limited`, or `no_answer`; `lower_bound`: at least.");
        assert_eq!(as_in_documents("Caveat::Loss"), Caveat::Loss { ratio: 0.0 }.id());
        assert_eq!(as_in_documents("`Filter::take`"), "`Filter::take`");
    }
}
