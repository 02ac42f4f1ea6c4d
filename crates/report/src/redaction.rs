//! Names and addresses hidden: of hosts, routers and interfaces.
//!
//! A [`Redaction`] knows what to hide and what stands for it; the same name is always replaced by
//! the same label. Documents are redacted as data, and every form is made of that: JSON, text, CSV,
//! pages. Sentences that quote a name are searched for it. Addresses of which nobody told become
//! `address`.

use std::net::{IpAddr, SocketAddr};

use narrows_diagnose::advice::HostEnvironment;
use serde_json::Value;

use crate::document::{Document, Note, Problem, Target};
use crate::hops::HopsDocument;
use crate::rows::Remark;

/// What to hide, and what stands for it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redaction {
    /// Longest names first, so that no part of one is replaced before the whole.
    names: Vec<(String, String)>,
    interfaces: usize,
}

/// What stands for this host, the other host, and an address that nobody told of.
const HERE: &str = "this-host";
const THERE: &str = "host-1";
const ADDRESS: &str = "address";

impl Redaction {
    /// Hides the target, whatever it is called.
    pub fn of_target(target: &Target) -> Self {
        let mut redaction = Self::default();
        redaction.hide(&target.name, THERE);
        if let Some(address) = target.address {
            redaction.hide(&address.to_string(), THERE);
        }
        redaction
    }

    /// Hides a name; what is hidden already keeps its label.
    pub fn hide(&mut self, name: &str, label: &str) {
        let known = |name: &str| self.names.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
        if !name.is_empty() && !known(name) {
            self.names.push((name.to_owned(), label.to_owned()));
            self.names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        }
    }

    /// Hides the name of this host.
    pub fn hide_this_host(&mut self, name: &str) {
        self.hide(name, HERE);
    }

    fn hide_host(&mut self, host: &HostEnvironment, label: &str) {
        if let Some(name) = &host.hostname {
            self.hide(name, label);
        }
        if let Some(name) = &host.interface {
            self.interfaces += 1;
            let label = format!("interface-{}", self.interfaces);
            self.hide(name, &label);
        }
    }

    /// The text with every name and address replaced.
    pub fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut before = None;
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let (taken, label) = match self.at(before, rest) {
                Some((taken, label)) => (taken, Some(label)),
                None => (first.len_utf8(), None),
            };
            let (piece, after) = rest.split_at(taken);
            out.push_str(label.unwrap_or(piece));
            before = piece.chars().next_back();
            rest = after;
        }
        out
    }

    /// What is to be replaced at the beginning of `rest`: how much of it, and by what.
    fn at(&self, before: Option<char>, rest: &str) -> Option<(usize, &str)> {
        let starts = !before.is_some_and(char::is_alphanumeric);
        let named = self.names.iter().find(|(name, _)| {
            let begins = rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name));
            let joined = |outer: Option<char>, inner: Option<char>| {
                outer.is_some_and(char::is_alphanumeric) && inner.is_some_and(char::is_alphanumeric)
            };
            let next = || rest.get(name.len()..).and_then(|tail| tail.chars().next());
            begins && !joined(before, name.chars().next()) && !joined(next(), name.chars().next_back())
        });
        if let Some((name, label)) = named {
            return Some((name.len(), label));
        }
        address(rest).filter(|_| starts).map(|taken| (taken, ADDRESS))
    }

    fn own(&self, text: &mut String) {
        *text = self.text(text);
    }

    fn remarks(&self, remarks: &mut [Remark]) {
        for remark in remarks {
            self.own(&mut remark.text);
        }
    }

    fn notes(&self, notes: &mut [Note], error: Option<&mut Problem>) {
        for note in notes {
            self.own(&mut note.text);
        }
        if let Some(problem) = error {
            self.own(&mut problem.text);
        }
    }

    fn target(&self, target: &mut Target) {
        self.own(&mut target.name);
        // A label is no address.
        target.address = None;
    }

    fn environment(&self, host: &mut HostEnvironment) {
        for text in [&mut host.hostname, &mut host.interface].into_iter().flatten() {
            self.own(text);
        }
    }

    /// Every text of a JSON value.
    pub fn value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.own(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.value(value)),
            Value::Object(fields) => fields.values_mut().for_each(|value| self.value(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl Document {
    /// What hides its names.
    pub fn redaction(&self) -> Redaction {
        let mut redaction = Redaction::of_target(&self.target);
        let reverse = self.findings.first().is_some_and(|it| it.direction == narrows_units::Direction::Reverse);
        let mut labels = [HERE, THERE];
        if reverse {
            labels.reverse();
        }
        for (host, label) in [&self.host.sender_environment, &self.host.receiver_environment].into_iter().zip(labels) {
            redaction.hide_host(host, label);
        }
        for found in &self.findings {
            for host in [&found.sender, &found.receiver] {
                redaction.hide_host(host, THERE);
            }
        }
        redaction
    }

    /// The same without names and addresses; the answer is made anew.
    #[must_use]
    pub fn redacted(mut self) -> Self {
        let redaction = self.redaction();
        redaction.target(&mut self.target);
        redaction.notes(&mut self.notes, self.error.as_mut());
        self.params.values_mut().for_each(|value| redaction.own(value));
        for row in &mut self.metrics {
            redaction.remarks(&mut row.caveats);
            redaction.remarks(row.reason.as_mut_slice());
            row.evidence.each_text(|text| redaction.own(text));
        }
        for host in [&mut self.host.sender_environment, &mut self.host.receiver_environment] {
            redaction.environment(host);
        }
        for row in &mut self.host.verdicts {
            redaction.own(&mut row.reason);
        }
        for found in &mut self.findings {
            redaction.environment(&mut found.sender);
            redaction.environment(&mut found.receiver);
        }
        self.conclude();
        self
    }
}

impl HopsDocument {
    /// What hides its names: a hop's routers are named by its number.
    pub fn redaction(&self) -> Redaction {
        let mut redaction = Redaction::of_target(&self.target);
        for hop in &self.hops {
            for (index, router) in hop.routers.iter().enumerate() {
                let more = if index > 0 { format!("-{}", index + 1) } else { String::new() };
                let label = format!("hop-{}{more}", hop.ttl);
                redaction.hide(&router.address, &label);
                if let Some(name) = &router.name {
                    redaction.hide(name, &label);
                }
            }
        }
        redaction
    }

    /// The same without names and addresses; the answer is made anew.
    #[must_use]
    pub fn redacted(mut self) -> Self {
        let redaction = self.redaction();
        redaction.target(&mut self.target);
        redaction.notes(&mut self.notes, self.error.as_mut());
        redaction.remarks(&mut self.caveats);
        redaction.remarks(self.reason.as_mut_slice());
        self.params.values_mut().for_each(|value| redaction.own(value));
        redaction.own(&mut self.via);
        for hop in &mut self.hops {
            redaction.remarks(&mut hop.caveats);
            for router in &mut hop.routers {
                redaction.own(&mut router.address);
                router.name = None;
            }
        }
        for way in self.server.iter_mut().flat_map(|server| [&mut server.forward, &mut server.reverse]).flatten() {
            redaction.remarks(&mut way.caveats);
            redaction.remarks(way.reason.as_mut_slice());
        }
        self.conclude();
        self
    }
}

/// How much of the beginning is an IP or MAC address, alone or with a port behind it.
fn address(text: &str) -> Option<usize> {
    let of_address = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '.');
    let end = text.find(|c: char| !of_address(c)).unwrap_or(text.len());
    let whole = text[..end].trim_end_matches([':', '.']);
    // "fe80::" ends in colons of its own.
    let candidates = [&text[..end], whole, whole.rsplit_once(':').map_or("", |(host, _)| host)];
    let next = text[end..].chars().next();
    if next.is_some_and(char::is_alphanumeric) {
        return None;
    }
    candidates.into_iter().find(|it| is_address(it)).map(str::len)
}

fn is_address(text: &str) -> bool {
    let octets: Vec<&str> = text.split(':').collect();
    let is_mac = octets.len() == 6 && octets.iter().all(|octet| octet.len() == 2);
    // What a time of day looks like is none: "::" or seven colons, or three dots.
    let is_ip = text.parse::<IpAddr>().is_ok() || text.parse::<SocketAddr>().is_ok();
    is_mac || is_ip
}

#[cfg(test)]
mod tests;
