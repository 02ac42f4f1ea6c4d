//! Addresses of pages, for those who are told of them elsewhere.

/// Where the pages are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    base: String,
}

impl Links {
    pub(crate) fn new(base: String) -> Self {
        Self { base }
    }

    /// The overview.
    pub fn overview(&self) -> String {
        format!("{}/", self.base)
    }

    /// The page of a target.
    pub fn target(&self, name: &str) -> String {
        format!("{}/target/{}", self.base, encoded(name))
    }
}

/// One segment of a path (RFC 3986 §2.3).
fn encoded(name: &str) -> String {
    let octet = |octet: u8| match octet {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(octet).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(octet).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_targets_are_encoded() {
        let links = Links::new("https://watch.example:443".to_owned());
        assert_eq!(links.target("a/b ü"), "https://watch.example:443/target/a%2Fb%20%C3%BC");
    }
}
