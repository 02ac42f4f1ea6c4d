//! Words with placeholders.

use std::collections::{BTreeMap, BTreeSet};

use super::error::AdapterError;

/// A word of a command line. `{name}` stands for a value, `{{` and `}}` for braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Name(String),
}

impl Template {
    /// Reads a word that may name what is in `known`; `key` is for the complaint.
    pub(super) fn parse(key: &'static str, text: &str, known: &BTreeSet<String>) -> Result<Self, AdapterError> {
        let unpaired = || AdapterError::Brace { key, text: text.to_owned() };
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text.chars().peekable();
        while let Some(letter) = rest.next() {
            match letter {
                '{' | '}' if rest.peek() == Some(&letter) => {
                    rest.next();
                    plain.push(letter);
                }
                '}' => return Err(unpaired()),
                '{' => {
                    let mut name = String::new();
                    loop {
                        match rest.next() {
                            Some('}') => break,
                            Some('{') | None => return Err(unpaired()),
                            Some(letter) => name.push(letter),
                        }
                    }
                    if !known.contains(&name) {
                        let known: Vec<&str> = known.iter().map(String::as_str).collect();
                        let known = known.join(", ");
                        return Err(AdapterError::Placeholder { key, name, known });
                    }
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    pieces.push(Piece::Name(name));
                }
                letter => plain.push(letter),
            }
        }
        pieces.push(Piece::Text(plain));
        Ok(Self(pieces))
    }

    /// The word with its values. Names were checked when it was read; one without a value leaves
    /// nothing.
    pub(super) fn fill(&self, values: &BTreeMap<String, String>) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Name(name) => values.get(name).cloned().unwrap_or_default(),
        };
        self.0.iter().map(piece).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Template, AdapterError> {
        Template::parse("client.command", text, &BTreeSet::from(["port".to_owned(), "a".to_owned()]))
    }

    #[test]
    fn values_take_their_places() {
        let values = BTreeMap::from([("port".to_owned(), "5201".to_owned()), ("a".to_owned(), "{port}".to_owned())]);
        for (text, filled) in [
            ("-p{port}", "-p5201"),
            ("{{port}}", "{port}"),
            ("{port}:{port}", "5201:5201"),
            // A value is not read again.
            ("{a}", "{port}"),
            ("", ""),
        ] {
            assert_eq!(parse(text).unwrap().fill(&values), filled, "{text}");
        }
    }

    #[test]
    fn wrong_words_are_named() {
        assert!(matches!(parse("{prot}"), Err(AdapterError::Placeholder { name, .. }) if name == "prot"));
        for text in ["{port", "port}", "{po{rt}", "{"] {
            assert!(matches!(parse(text), Err(AdapterError::Brace { .. })), "{text}");
        }
        assert_eq!(
            parse("{prot}").unwrap_err().to_string(),
            "client.command: {prot} stands for nothing; there are: a, port"
        );
    }
}
