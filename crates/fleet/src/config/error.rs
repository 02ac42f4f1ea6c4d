//! What can be wrong with a file: whoever wrote it can mend all of it.

use narrows_watch::alert::RuleError;

/// Why a file, or a file for these agents, means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No TOML, or keys that do not exist.
    #[error("{0}")]
    Toml(String),
    /// A value that cannot be read.
    #[error("{place}: {why}")]
    Value {
        /// Where it stands: `groups.core`.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// A name that nothing has.
    #[error("{place}: there is no {kind} \"{name}\"{}", hint(.nearest.as_deref(), *.known))]
    Unknown {
        /// Where it stands.
        place: String,
        /// `host`, `group` or `kind of run`.
        kind: &'static str,
        /// The name.
        name: String,
        /// The known name that is most like it.
        nearest: Option<String>,
        /// How many known ones there are.
        known: usize,
    },
    /// An alert that is no rule.
    #[error(transparent)]
    Alert(#[from] RuleError),
    /// One host in two sites.
    #[error("host \"{host}\" belongs to the sites \"{first}\" and \"{second}\"; it can belong to one")]
    TwoSites {
        /// The host.
        host: String,
        /// A site.
        first: String,
        /// Another.
        second: String,
    },
    /// A test that measures nothing.
    #[error("{place}: \"{pairs}\" is no pair of different hosts")]
    NoPairs {
        /// Which test.
        place: String,
        /// What it says.
        pairs: String,
    },
    /// A test that no fleet gets through.
    #[error("{place}: \"{pairs}\" are more than nine million pairs; use \"sample of\"")]
    TooManyPairs {
        /// Which test.
        place: String,
        /// What it says.
        pairs: String,
    },
}

impl ConfigError {
    pub(super) fn value(place: &str, why: &(impl ToString + ?Sized)) -> Self {
        Self::Value { place: place.to_owned(), why: why.to_string() }
    }

    pub(super) fn unknown<'a>(
        place: &str,
        kind: &'static str,
        name: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> Self {
        let mut ranked: Vec<(usize, &str)> = known.map(|other| (distance(name, other), other)).collect();
        ranked.sort_unstable();
        // More than a third of the letters wrong is another word.
        let nearest = ranked.first().filter(|(wrong, _)| *wrong * 3 <= name.chars().count());
        let nearest = nearest.map(|(_, other)| (*other).to_owned());
        Self::Unknown { place: place.to_owned(), kind, name: name.to_owned(), nearest, known: ranked.len() }
    }
}

fn hint(nearest: Option<&str>, known: usize) -> String {
    match (nearest, known) {
        (Some(nearest), _) => format!("; did you mean \"{nearest}\"?"),
        (None, 0) => "; none is known".to_owned(),
        (None, _) => String::new(),
    }
}

/// Letters to insert, delete or replace (Levenshtein, 1966).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], at + 1);
        for (column, second) in other.iter().enumerate() {
            let replaced = corner + usize::from(letter != *second);
            corner = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(corner + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances_worked_by_hand() {
        assert_eq!([distance("kitten", "sitting"), distance("", "abc"), distance("core", "core")], [3, 3, 0]);
        assert_eq!([distance("croe", "core"), distance("edge", "edges")], [2, 1]);
    }
}
