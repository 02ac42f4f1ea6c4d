//! Hosts by name or by pattern.

use super::error::ConfigError;
use crate::keys::Name;

/// A name, or text with `*` for any letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pattern {
    Host(Name),
    Glob(String),
}

impl Pattern {
    /// With what all names begin that it matches.
    pub(super) fn first(&self) -> &str {
        match self {
            Self::Host(name) => name.as_str(),
            Self::Glob(glob) => glob.split('*').next().unwrap_or_default(),
        }
    }

    pub(super) fn matches(&self, host: &Name) -> bool {
        match self {
            Self::Host(name) => name == host,
            Self::Glob(glob) => covers(glob, host.as_str()),
        }
    }
}

pub(super) fn patterns(place: &str, texts: &[String]) -> Result<Vec<Pattern>, ConfigError> {
    let pattern = |text: &String| {
        // All but the stars has to fit a name.
        let letters = text.replace('*', "");
        let checked: Result<Name, _> = if letters.is_empty() && text.contains('*') { "x" } else { &letters }.parse();
        let name = checked.map_err(|error| ConfigError::value(place, &error))?;
        Ok(if text.contains('*') { Pattern::Glob(text.clone()) } else { Pattern::Host(name) })
    };
    texts.iter().map(pattern).collect()
}

/// The part before the first `*` begins the text, the part after the last ends it, and the others
/// follow each other in between; the first place for each is as good as any later one.
fn covers(glob: &str, text: &str) -> bool {
    let Some((first, rest)) = glob.split_once('*') else { return glob == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn stars_stand_for_any_letters() {
        for (glob, good, bad) in [
            ("ams-*", "ams-1", "fra-ams-1"),
            ("*-1", "ams-1", "ams-11"),
            ("a*b*c", "aXbbc", "acb"),
            ("*", "x", "never"),
            ("ab*ba", "abba", "aba"),
        ] {
            assert!(covers(glob, good), "{glob} {good}");
            assert_eq!(covers(glob, bad), glob == "*", "{glob} {bad}");
        }
    }
}
