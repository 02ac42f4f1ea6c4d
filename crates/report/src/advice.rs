//! From what jobs found to advice: the rules are [`narrows_diagnose::advice`]'s, and so are their
//! words.

use narrows_diagnose::advice::Advice;

use crate::document::Document;

/// All advice that a document gives rise to, the limit that binds first at the head.
pub fn advise(document: &Document) -> Vec<Advice> {
    narrows_diagnose::advice::advise(&document.findings)
}
