//! Writing HTML, text always escaped.

pub(super) use crate::picture::escape;

/// A page under construction.
#[derive(Debug, Default)]
pub(super) struct Html {
    out: String,
}

impl Html {
    /// Markup of ours, as it is.
    pub(super) fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    /// Text of others.
    pub(super) fn text(&mut self, text: &str) {
        self.out.push_str(&escape(text));
    }

    /// An element that holds text; no class if that is empty.
    pub(super) fn element(&mut self, tag: &str, class: &str, text: &str) {
        self.out.push('<');
        self.out.push_str(tag);
        if !class.is_empty() {
            self.out.push_str(" class=\"");
            self.out.push_str(&escape(class));
            self.out.push('"');
        }
        self.out.push('>');
        self.text(text);
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push('>');
    }

    /// A table cell with a value to sort by; an empty one sorts last.
    pub(super) fn number(&mut self, sort: Option<f64>, text: &str) {
        match sort.filter(|sort| sort.is_finite()) {
            Some(sort) => self.raw(&format!("<td class=\"n\" data-v=\"{sort}\">")),
            None => self.raw("<td class=\"n\">"),
        }
        self.text(text);
        self.raw("</td>");
    }

    /// How long it is by now.
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    pub(super) fn into_string(self) -> String {
        self.out
    }
}
