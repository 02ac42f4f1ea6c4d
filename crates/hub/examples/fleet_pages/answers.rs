//! The JSON of the hub's API over a made-up fleet.
#![expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "made-up numbers are small")]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::made_up::{Fleet, HOUR, Known, MINUTE, NOW, State, chance};
use crate::reports::one_run;

/// What is asked beside the path.
pub(crate) type Query = BTreeMap<String, String>;

impl Fleet {
    /// The answer to a GET; `None` is 404.
    pub(crate) fn answer(&self, path: &str, query: &Query) -> Option<Value> {
        let metric = query.get("metric").map_or("available", String::as_str);
        let mut answer = match path {
            "agents" => json!({ "agents": self.agents() }),
            "sites" => json!({ "sites": self.site_rows() }),
            "matrix" => self.matrix(metric, query.get("by").map(String::as_str)),
            "pairs" => self.pair(query)?,
            "series" => self.series(query)?,
            "runs" => json!({ "runs": self.runs(0, 1) }),
            "links" => json!({ "links": self.links() }),
            "bottlenecks" => self.bottlenecks(metric),
            "plan" => self.plan(),
            "audit" => audit(query, self.sites.is_empty()),
            "alerts" => self.alerts(),
            "silences" => self.silences(),
            "orders" => self.orders(),
            "config" => self.config(),
            _ => one_run(path.strip_prefix("runs/")?),
        };
        answer["now_ms"] = json!(NOW);
        Some(answer)
    }

    /// Host number by name.
    fn host(&self, query: &Query, key: &str) -> Option<usize> {
        let wanted = query.get(key)?;
        self.hosts().iter().position(|host| host == wanted)
    }

    fn agents(&self) -> Vec<Value> {
        let agent = |(n, name): (usize, String)| {
            let (state, heard) = match n {
                5 => ("late", 140_000),
                7 => ("gone", 41 * MINUTE),
                _ => ("online", 1000 * (n as i64 % 29)),
            };
            let faults = match n {
                5 => vec![
                    "clock: 1 h 2 s ahead of the hub's; runs go by the hub's time. Set it right: `timedatectl`, or \
                     `chronyc tracking`, tells where it comes from. If many agents say this, it is the hub's clock",
                ],
                _ => vec![],
            };
            json!({
                "name": name, "site": self.sites[self.site_of(n)], "address": format!("198.51.100.{}:8620", n + 1),
                "labels": { "role": if n % 4 == 0 { "core" } else { "edge" } }, "state": state,
                "joined_ms": NOW - 30 * 24 * HOUR + n as i64 * MINUTE, "heard_ms": (!self.idle()).then_some(NOW - heard), "version": "0.1.0",
                "plan_serial": 41, "plan_current": true, "clock_synchronised": n != 5,
                "clock_error_ms": if n == 5 { 2300 } else { 1 }, "clock_ahead_ms": if n == 5 { 3_602_140 } else { 1 }, "spool_runs": if n == 7 { 318 } else { n % 2 },
                "spool_octets": if n == 7 { 912_000 } else { 2800 * (n % 2) }, "spool_lost": 0, "leases_lost": n % 3,
                "running": (n % 5 == 1).then(|| run_id(n, 0, 0)),
                "kinds": ["rtt", "available", "capacity", "throughput", "hops"], "faults": faults,
                "declined": if n == 9 { vec!["the owner of this host allows no runs towards ams-4"] } else { vec![] },
            })
        };
        self.hosts().into_iter().enumerate().map(agent).collect()
    }

    fn site_rows(&self) -> Vec<Value> {
        let hosts = self.hosts();
        let of = |n: usize| {
            hosts
                .iter()
                .enumerate()
                .filter(|(host, _)| self.site_of(*host) == n)
                .map(|(_, host)| host)
                .collect::<Vec<_>>()
        };
        let access = json!({ "down_bps": 1_000_000_000, "up_bps": 940_000_000, "octets_per_day": 50_000_000_000_u64 });
        let row = |(n, name): (usize, &&str)| json!({ "name": name, "hosts": of(n), "access": if n == 0 { access.clone() } else { Value::Null } });
        self.sites.iter().enumerate().map(row).collect()
    }

    fn matrix(&self, metric: &str, by: Option<&str>) -> Value {
        let hosts = self.hosts();
        let by = by.unwrap_or(if hosts.len() > 50 { "site" } else { "host" });
        let of_sites = by == "site";
        let names: Vec<String> =
            if of_sites { self.sites.iter().map(|&site| site.to_owned()).collect() } else { hosts };
        let step = if of_sites { self.hosts_per_site } else { 1 };
        let mut cells = Vec::new();
        for (row, source) in names.iter().enumerate() {
            for (column, target) in names.iter().enumerate().filter(|(column, _)| *column != row) {
                let known = self.known(row * step, column * step, metric);
                if known.state != State::Unknown {
                    cells.push(cell(source, target, &known, of_sites.then_some(step * step), run_id(row, column, 0)));
                }
            }
        }
        json!({ "metric": metric, "unit": unit(metric), "by": by, "sources": names, "targets": names, "cells": cells })
    }

    fn pair(&self, query: &Query) -> Option<Value> {
        let (source, target) = (self.host(query, "source")?, self.host(query, "target")?);
        let hosts = self.hosts();
        if self.idle() {
            return Some(
                json!({ "source": hosts[source], "target": hosts[target], "values": [], "reverse": [], "route": null,
                "route_since_ms": null, "runs": [], "inferred": [] }),
            );
        }
        let latest = |from: usize, to: usize| {
            let row = |(n, (short, long)): (usize, &(&str, &str))| {
                let known = self.known(from, to, short);
                let [low, high] = [1.0 - known.width, 1.0 + known.width].map(|part| part * known.value);
                let claim = if known.state == State::AtLeast { "at_least" } else { "estimate" };
                json!({ "source": hosts[from], "target": hosts[to], "metric": long, "claim": claim, "value": known.value, "low": low,
                    "high": high, "at_ms": NOW - known.age_ms, "run": run_id(from, to, n), "flags": if n == 3 { json!(["own_load"]) } else { json!([]) } })
            };
            METRICS.iter().enumerate().map(row).collect::<Vec<_>>()
        };
        let route = self.route(source, target).map(|address| json!({ "address": address }));
        let [low, value, high] = [918e6, 940e6, 962e6];
        let inferred = json!([{ "metric": "ip_capacity", "value": value, "low": low, "high": high, "segment": "192.0.2.9 (ams uplink)" }]);
        Some(json!({
            "source": hosts[source], "target": hosts[target], "values": latest(source, target), "reverse": latest(target, source),
            "route": route, "route_since_ms": NOW - 6 * 24 * HOUR, "runs": self.runs(source, target),
            "inferred": if self.site_of(source) == 0 && target == 10 { inferred } else { json!([]) },
        }))
    }

    /// The routers between two hosts, one of them silent, and the target, which answers last.
    fn route(&self, source: usize, target: usize) -> [Option<String>; 5] {
        let [from, to] = [self.site_of(source), self.site_of(target)];
        [
            Some(format!("192.0.2.{}", 16 * from + 1)),
            Some(format!("192.0.2.{}", 16 * from + 9)),
            None,
            Some(format!("192.0.2.{}", 16 * to + 1)),
            Some(format!("198.51.100.{}", target + 1)),
        ]
    }

    fn runs(&self, source: usize, target: usize) -> Vec<Value> {
        let hosts = self.hosts();
        let run = |n: usize| {
            let (exit, reason) = match n % 9 {
                4 => ("inconclusive", Some("long trains and pairs disagree: 96 and 71 Mbit/s")),
                7 => ("skipped", Some("host.fra-1 is held by ams-2")),
                8 => ("peer_failed", Some("the server does not answer")),
                _ => ("done", None),
            };
            let kind = ["available", "rtt", "capacity", "available", "throughput"][n % 5];
            let origin = [json!("mesh"), json!("directed"), json!("planned"), json!({ "order": run_id(1, 2, 3) })]
                [n % 4]
                .clone();
            json!({ "id": run_id(source, target, n), "agent": hosts[source], "seq": 900 - n, "target": hosts[target], "kind": kind, "origin": origin,
                "began_ms": NOW - 3 * MINUTE - n as i64 * 26 * MINUTE, "length_ms": 800 + 400 * (n as u64 % 11), "exit": exit, "reason": reason,
                "octets": 310_000 + 71_000 * (n as u64 % 13), "flags": if n % 6 == 5 { json!(["host_busy"]) } else { json!([]) } })
        };
        if self.idle() { Vec::new() } else { (0..50).map(run).collect() }
    }

    fn series(&self, query: &Query) -> Option<Value> {
        let (source, target) = (self.host(query, "source")?, self.host(query, "target")?);
        let metric = query.get("metric").map_or("available", String::as_str);
        let since: i64 = query.get("since")?.parse().ok()?;
        if self.idle() {
            return Some(json!({ "points": [] }));
        }
        let base = self.known(source, target, metric).value;
        let point = |n: usize| {
            let at = since + (NOW - since) * n as i64 / 240;
            let chance = chance(n, source, target);
            // A hole in the middle, and an evening on which others send more.
            let slow = if (140..180).contains(&n) && metric != "capacity" { 0.6 } else { 1.0 };
            let value = if metric == "path_mtu" { base } else { base * slow * (0.95 + 0.1 * chance) };
            let claim = match n % 40 {
                11 => "inconclusive",
                17 => "at_least",
                _ => "estimate",
            };
            let value = if claim == "inconclusive" { 0.0 } else { value };
            (!(90..104).contains(&n)).then(|| json!({ "at_ms": at, "count": 1, "value": value, "low": value * 0.94, "high": value * 1.05, "claim": claim }))
        };
        Some(json!({ "points": (0..=240).filter_map(point).collect::<Vec<_>>() }))
    }

    fn links(&self) -> Vec<Value> {
        let mut links = Vec::new();
        if self.idle() {
            return links;
        }
        for site in 0..self.sites.len() {
            let uplink = [940e6, 4.7e9, 9.4e9, 2.4e9][site % 4];
            let [inner, outer] = [16 * site + 1, 16 * site + 9].map(|last| format!("192.0.2.{last}"));
            let paths = self.hosts_per_site * self.hosts_per_site * (self.sites.len() - 1);
            links.push(json!({ "id": link_id(site, 0), "from": inner, "to": outer, "segment": link_id(site, 0), "lower_bound": uplink * 0.97,
                "value": uplink, "low": uplink * 0.98, "high": uplink * 1.02, "pairs": paths }));
            for host in 0..self.hosts_per_site {
                let from = format!("198.51.100.{}", site * self.hosts_per_site + host + 1);
                let bound = (host != 3).then_some(uplink * (0.4 + 0.12 * host as f64));
                links.push(json!({ "id": link_id(site, host + 1), "from": from, "to": inner, "segment": link_id(site, host.min(2) + 1),
                    "lower_bound": bound, "value": null, "low": null, "high": null, "pairs": paths / self.hosts_per_site }));
            }
        }
        links
    }

    fn bottlenecks(&self, metric: &str) -> Value {
        if self.idle() {
            return json!({ "metric": metric, "unit": "bit/s", "measured_pairs": 0, "located_pairs": 0, "bottlenecks": [], "undecided": [], "suspects": [], "next": [] });
        }
        let hosts = self.hosts();
        let last = hosts.len() - 1;
        let one = |id: &str, name: &str, value: f64, sure: f64, pairs: &[(usize, usize)], proof: Value| {
            let path = |(n, (from, to)): (usize, &(usize, usize))| {
                let value = value * (0.99 + 0.02 * chance(n, 1, 1));
                json!({ "source": hosts[*from], "target": hosts[*to], "value": value, "low": value * 0.98, "high": value * 1.02, "run": run_id(*from, *to, n) })
            };
            json!({ "id": id, "name": name, "links": [{ "from": "192.0.2.1", "to": name.split(' ').next() }], "value": value, "low": value * 0.979,
                "high": value * 1.021, "confidence": sure, "paths": pairs.iter().enumerate().map(path).collect::<Vec<_>>(), "of": 40,
                "sites": ["ams", "fra"], "proof": proof })
        };
        let uplink: Vec<_> = (0..14).map(|n| (n % 4, 4 + n % 7)).collect();
        let downlink: Vec<_> = (0..9).map(|n| (4 + n % 4, last - n % 3)).collect();
        let shared = json!({ "state": "shared", "ratio": 412.0, "why": null, "at_ms": NOW - 3 * HOUR });
        let running = json!({ "state": "running", "ratio": null, "why": null, "at_ms": NOW - MINUTE });
        let together = json!({ "state": "together", "groups": [[{ "source": "lon-1", "target": "fra-3" }, { "source": "lon-2", "target": "fra-3" }]],
            "no_queue": [], "why": null, "at_ms": NOW - 2 * HOUR });
        json!({
            "metric": metric, "unit": "bit/s", "measured_pairs": 118, "located_pairs": 96,
            "bottlenecks": [one("b1", "192.0.2.9 (ams uplink)", 940e6, 0.97, &uplink, Value::Null),
                one("b2", "192.0.2.33 (lon downlink)", 2.4e9, 0.94, &downlink, shared), one("b3", "198.51.100.6 (fra-2)", 942e6, 0.91, &[(0, 5), (9, 5), (4, 5)], running)],
            "undecided": [{ "source": "lon-1", "target": "fra-3", "candidates": ["192.0.2.33 (lon uplink)", "192.0.2.25 (fra core)"] },
                { "source": "lon-2", "target": "fra-3", "candidates": ["192.0.2.33 (lon uplink)", "192.0.2.25 (fra core)", "198.51.100.7 (fra-3)"] }],
            "suspects": [{ "id": "b2", "name": "192.0.2.33 (lon uplink)", "located": true, "delays": together,
                "paths": [{ "source": "lon-1", "target": "fra-3" }, { "source": "lon-2", "target": "fra-3" }] }],
            "next": [{ "source": "lon-1", "target": "ams-3" }, { "source": "fra-3", "target": "lon-4" }],
        })
    }

    fn plan(&self) -> Value {
        let hosts = self.hosts();
        let begin = NOW - 9 * HOUR;
        let mesh = json!({ "hosts": hosts.len(), "per_epoch": 8.min(hosts.len().saturating_sub(1)), "cycle_epochs": 2, "commands": [["rtt"], ["available"]] });
        let planned = if self.idle() { 0 } else { 96 };
        let key = |host: usize| format!("host.{}", hosts[host]);
        let runs: Vec<Value> = (0..planned).map(|n| {
            let (from, to) = (n * 5 % hosts.len(), (n * 5 + 1 + n % (hosts.len() - 1)) % hosts.len());
            let [up, down] = [(from, "up"), (to, "down")].map(|(host, way)| format!("access.{}.{way}", self.sites[self.site_of(host)]));
            json!({ "id": run_id(from, to, n), "agent": hosts[from], "target": hosts[to], "command": ["throughput", "-t", "10"],
                "at_ms": begin + n as i64 * 15 * MINUTE - (chance(n, 1, 2) * 9e5) as i64 * i64::from(n > 0), "length_ms": 15_000 + 45_000 * (n as i64 % 3),
                "keys": [up, down, key(from), key(to)], "octets": 1_250_000_000_u64 })
        }).collect();
        let mut busy: BTreeMap<String, (i64, u64)> = BTreeMap::new();
        for run in &runs {
            for key in run["keys"].as_array().into_iter().flatten() {
                let entry = busy.entry(key.as_str().unwrap_or_default().to_owned()).or_default();
                entry.0 += run["length_ms"].as_i64().unwrap_or(0);
                entry.1 += run["octets"].as_u64().unwrap_or(0);
            }
        }
        let keys = busy.iter().map(|(key, (ms, octets))| {
            json!({ "key": key, "busy_ms": ms, "budget_ms": 8_640_000, "octets": octets,
            "budget_octets": key.starts_with("access.ams").then_some(50_000_000_000_u64) })
        });
        let not_placed = if self.idle() {
            json!([])
        } else {
            json!([{ "agent": "ams-1", "target": "fra-2", "command": ["throughput", "-P", "4", "-t", "10"], "reason": "access.ams.up has 50 GB a day, all of it planned" },
                { "agent": "lon-3", "target": "ams-4", "command": ["throughput", "-t", "10"], "reason": "host.ams-4 is gone for 41 min" }])
        };
        json!({ "serial": 41, "begin_ms": begin, "length_ms": 24 * HOUR, "mesh": mesh, "runs": runs, "keys": keys.collect::<Vec<_>>(), "not_placed": not_placed })
    }

    fn alerts(&self) -> Value {
        let text = "192.0.2.9 (ams uplink) fell from 4.7 Gbit/s to 940 Mbit/s: 14 paths of ams and fra";
        let pairs = json!([{ "source": "ams-1", "target": "fra-1" }]);
        let one = json!({ "state": "firing", "since_ms": NOW - 47 * MINUTE, "text": text, "bottleneck": "b1", "pairs": pairs,
            "rule": null, "silenced": false, "notify": [] });
        let all: Vec<Value> = (1..7).map(|n| json!({ "source": "ams-1", "target": format!("fra-{n}") })).collect();
        let text = "192.0.2.9 to 192.0.2.10: available 12 Mbit/s (11..13), since 19:42 (+-40 s). Holds back ams-1 to fra-1 and 5 more.";
        let link = json!({ "state": "firing", "since_ms": NOW - 12 * MINUTE, "text": text, "bottleneck": "b1", "pairs": all,
            "rule": "core-low", "silenced": false, "notify": ["chat", "ops"] });
        let path = json!({ "state": "firing", "since_ms": NOW - 3 * MINUTE, "text": "lon-1 to lon-3: no answer since 20:02.", "bottleneck": null,
            "pairs": [{ "source": "lon-1", "target": "lon-3" }], "rule": "no-answer", "silenced": true, "notify": ["ops"] });
        let channel = |name: &str, failed: u64, fault: Option<&str>| json!({ "name": name, "delivered": 31, "failed": failed, "undelivered": 0, "last_ms": NOW - 12 * MINUTE, "fault": fault });
        let channels = json!([channel("chat", 0, None), channel("ops", 2, Some("mail.example:587: nobody answers"))]);
        if self.idle() {
            return json!({ "alerts": [], "channels": [] });
        }
        json!({ "alerts": [one, link, path], "channels": channels })
    }

    fn silences(&self) -> Value {
        let one = json!({ "id": 3, "rule": "no-answer", "source": "lon-1", "target": "lon-3", "link": null, "begins_ms": NOW - 2 * MINUTE,
            "ends_ms": NOW + 5 * HOUR, "who": "web 198.51.100.7", "reason": "lon-3 gets another line today" });
        json!({ "silences": if self.idle() { json!([]) } else { json!([one]) } })
    }
}

fn cell(source: &str, target: &str, known: &Known, pairs: Option<usize>, run: String) -> Value {
    let (state, reason) = match known.state {
        State::Value | State::Unknown => ("value", None),
        State::AtLeast => ("at_least", Some("the host limited the run")),
        State::Inconclusive => ("inconclusive", Some("long trains and pairs disagree: 96 and 71 Mbit/s")),
        State::Inferred => ("inferred", Some("by 192.0.2.9 (ams uplink)")),
        State::Failed => ("failed", Some("the server does not answer")),
    };
    let numbers = !matches!(known.state, State::Inconclusive | State::Failed);
    let of = |part: f64| numbers.then_some((known.value * part).round());
    let fails = source.ends_with("-2") && target.ends_with("-4");
    let failing = (fails || known.state == State::Failed).then(|| {
        json!({ "state": "failed", "since_ms": NOW - 3 * HOUR, "at_ms": NOW - 9 * MINUTE, "run": run, "reason": "the server does not answer" })
    });
    json!({ "source": source, "target": target, "state": state, "value": of(1.0), "low": of(1.0 - known.width), "high": of(1.0 + known.width),
        "at_ms": NOW - known.age_ms, "run": (known.state != State::Inferred).then_some(run), "reason": reason, "pairs": pairs,
        "failing_pairs": pairs.and(failing.as_ref()).map(|_| 1), "failing": failing })
}

fn audit(query: &Query, empty: bool) -> Value {
    let before = query.get("before").and_then(|before| before.parse().ok()).unwrap_or(61_u64);
    let entry = |number: u64| {
        let (who, what, text) = [
            ("hub", "token.made", "for 1 agent, 24 h"),
            ("fra-2", "agent.joined", "from 198.51.100.6"),
            ("anna", "plan.applied", "3 tests, 96 runs a day"),
            ("anna", "order.given", "ams-1 to fra-1: throughput -t 10"),
            ("hub", "agent.revoked", "lon-9"),
        ][number as usize % 5];
        json!({ "number": number, "at_ms": NOW - (61 - number as i64) * 3 * HOUR, "who": who, "what": what, "text": text, "hash": format!("{:016x}", number * 0x9e37_79b9) })
    };
    let limit = query.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(50_usize);
    json!({ "entries": if empty { Vec::new() } else { (1..before).rev().take(limit).map(entry).collect::<Vec<_>>() } })
}

fn run_id(source: usize, target: usize, n: usize) -> String {
    format!("019ab{source:03x}-{target:04x}-7{n:03x}-8000-00000000abcd")
}

fn link_id(site: usize, n: usize) -> String {
    format!("{:016x}", (site as u64 * 64 + n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

fn unit(metric: &str) -> &'static str {
    match metric {
        "rtt" => "ns",
        "path_mtu" => "octet",
        _ => "bit/s",
    }
}

/// Name in queries, name in results.
const METRICS: [(&str, &str); 4] = [
    ("available", "available_ip_capacity"),
    ("capacity", "ip_capacity"),
    ("rtt", "round_trip_time"),
    ("throughput", "tcp_achievable_single"),
];
