//! The page.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, html};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Align, MetricSection, ReportFile, Table, cost};
use crate::answer_line::AnswerLine;
use crate::picture::{self, SeriesStyles, is_unprintable};

const STYLE: &str = include_str!("style.css");

/// Holds neither "less than" nor an ampersand, so that the page stays well-formed XML; a test sees
/// to it.
const SCRIPT: &str = include_str!("script.js");

impl ReportFile {
    /// The page: one file without any other.
    pub fn html(&self) -> String {
        let style = format!("{STYLE}{}", picture::css());
        let body = html! {
            main {
                (head(self))
                @if !self.answer.is_empty() {
                    section #answer { h2 { "Answer" } (answer(&self.answer)) }
                }
                @if let Some(path) = &self.path {
                    section #path { h2 { "Path" } figure.one { (PreEscaped(path.svg())) } }
                }
                section #results { h2 { "Results" } (table(&self.results, true)) }
                section #found { h2 { "How each was found" } @for one in &self.found { (found(one)) } }
                section #cost {
                    h2 { "Cost" }
                    p { (shown(&self.cost)) }
                    @if !self.spent.is_empty() { figure.one { (PreEscaped(cost::timeline(&self.spent))) } }
                }
                (hosts(self))
                section #doubts {
                    h2 { "Doubts" }
                    @if self.doubts.is_empty() { p { "None." } }
                    ul { @for (on, text) in &self.doubts { li { b { (shown(on)) } ": " (shown(text)) } } }
                }
                @if !self.command.is_empty() {
                    section #again { h2 { "Run again" } pre { (shown(&self.command)) } }
                }
            }
        };
        // The tags of the head have no end in HTML, and need one in XML: they are written by hand.
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
             <meta name=\"color-scheme\" content=\"light dark\"/>\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; \
             form-action 'none'; style-src {}; script-src {}\"/>{}<style>{style}</style></head><body>{}\
             <script type=\"application/json\" id=\"narrows-document\">{}</script><script>{SCRIPT}</script></body></html>\n",
            hash(&style),
            hash(SCRIPT),
            html! { title { (shown(&self.title)) } }.into_string(),
            body.into_string(),
            embedded(&bounded(&self.json)),
        )
    }
}

/// What a policy lets run or apply: exactly this text.
fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// Text of others, without what could disguise other text; the template escapes it.
fn shown(text: &str) -> String {
    text.chars().map(|c| if is_unprintable(c) { '\u{fffd}' } else { c }).collect()
}

/// The document; one too long for a page with its longest series thinned.
fn bounded(json: &str) -> String {
    let mut text = json.to_owned();
    for most in SERIES {
        if text.len() <= DOCUMENT {
            break;
        }
        let Ok(mut value) = serde_json::from_str::<Value>(json) else { break };
        thin(&mut value, most);
        text = value.to_string();
    }
    text
}

/// Octets of a document that a page holds as it is.
const DOCUMENT: usize = 150_000;
/// Numbers of a series that stay in a longer one, the first number that is enough.
const SERIES: [usize; 3] = [2_000, 500, 50];

fn thin(value: &mut Value, most: usize) {
    match value {
        Value::Array(values) if values.len() > most && values.iter().all(|it| it.is_number() || it.is_null()) => {
            let step = values.len().div_ceil(most);
            *values = std::mem::take(values).into_iter().step_by(step).collect();
        }
        Value::Array(values) => values.iter_mut().for_each(|value| thin(value, most)),
        Value::Object(fields) => fields.values_mut().for_each(|value| thin(value, most)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// JSON that cannot end the element that holds it, whatever a name in it says: these characters
/// only occur within its strings.
fn embedded(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if matches!(c, '<' | '>' | '&' | '\u{2028}' | '\u{2029}') || is_unprintable(c) {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

fn head(file: &ReportFile) -> Markup {
    html! {
        header {
            h1 { (shown(&file.title)) }
            dl.facts { @for (name, value) in &file.facts { div { dt { (name) } dd { (shown(value)) } } } }
            @for note in &file.notes { p.note { (shown(note)) } }
        }
    }
}

fn answer(lines: &[AnswerLine]) -> Markup {
    let two = lines.iter().any(|line| line.direction != lines[0].direction);
    let begins = |index: usize| two && (index == 0 || lines[index].direction != lines[index - 1].direction);
    html! {
        dl.answer {
            @for (index, line) in lines.iter().enumerate() {
                @if begins(index) {
                    div.way { dt { "" } dd {
                        @if line.direction == narrows_units::Direction::Reverse { "To this host" } @else { "From this host" }
                    } }
                }
                div { dt { (line.line.label()) } dd { (shown(&line.text)) } }
            }
        }
    }
}

fn table(table: &Table, sortable: bool) -> Markup {
    let class = |align: Align| if align == Align::Right { "n" } else { "t" };
    html! {
        div.wide { table class=(if sortable { "sortable" } else { "plain" }) {
            thead { tr { @for (name, align) in &table.head { th class=(class(*align)) { (name) } } } }
            tbody { @for row in &table.rows {
                tr { @for (cell, (_, align)) in row.iter().zip(&table.head) {
                    td class=(class(*align)) data-v=[cell.sort.filter(|sort| sort.is_finite())] { (shown(&cell.text)) }
                } }
            } }
        } }
    }
}

fn found(found: &MetricSection) -> Markup {
    let styles = SeriesStyles::default();
    html! {
        article {
            h3 { (shown(&found.what)) span { (shown(&found.claim)) } }
            @for text in &found.words { p { (shown(text)) } }
            @if !found.pictures.is_empty() {
                div.figures { @for (caption, picture) in &found.pictures {
                    figure { (PreEscaped(picture.inline(&styles))) figcaption { (caption) } }
                } }
            }
            @if !found.evidence.is_empty() {
                details {
                    summary { "Intermediate results" }
                    div.wide { table.plain { tbody { @for (name, value) in &found.evidence {
                        tr { td.t { (shown(name)) } td.t { (shown(value)) } }
                    } } } }
                }
            }
        }
    }
}

fn hosts(file: &ReportFile) -> Markup {
    html! {
        @if !file.hosts.rows.is_empty() {
            section #hosts {
                h2 { "Hosts" }
                @for note in &file.host_notes { p { (shown(note)) } }
                (table(&file.hosts, false))
                @if !file.advice.is_empty() {
                    h3 { "What to do" }
                    ul { @for (text, command) in &file.advice {
                        li { (shown(text)) @if let Some(command) = command { pre { (shown(command)) } } }
                    } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_cannot_end_its_element() {
        let json = serde_json::json!({ "name": "</script><script>alert(1)</script>&amp;\u{2028}\u{202e}" }).to_string();
        let held = embedded(&json);
        assert!(!held.contains(['<', '>', '&', '\u{2028}', '\u{202e}']), "{held}");
        let read: Value = serde_json::from_str(&held).unwrap();
        assert_eq!(read, serde_json::from_str::<Value>(&json).unwrap());
    }

    #[test]
    fn the_pages_own_parts_stay_xml() {
        assert!(!SCRIPT.contains(['<', '&']) && !STYLE.contains(['<', '&']));
    }
}
