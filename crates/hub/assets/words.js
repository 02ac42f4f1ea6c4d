// What the pages of the fleet share: names of metrics and states, values, ages, pairs.

import { amount, h, lasting } from "./kit.js";

/** Names of the API's short metrics, in the order of the choosers; `worse` is the end that hurts, `worst` the heading of its list. */
export const METRICS = {
  available: { name: "available rate", worse: "low", worst: "Slowest pairs" },
  capacity: { name: "capacity", worse: "low", worst: "Slowest pairs" },
  rtt: { name: "round trip", worse: "high", worst: "Longest round trips" },
  throughput: { name: "TCP throughput", worse: "low", worst: "Slowest pairs" },
  udp_achievable: { name: "UDP throughput", worse: "low", worst: "Slowest pairs" },
  path_mtu: { name: "path MTU", worse: "low", worst: "Smallest MTUs" },
};

const NAMES = {
  available_ip_capacity: "available rate", ip_capacity: "capacity", reverse_ip_capacity: "capacity, reverse", round_trip_time: "round trip",
  tcp_achievable_single: "TCP throughput", tcp_achievable_parallel: "TCP throughput, parallel", udp_achievable: "UDP throughput", path_mtu: "path MTU",
};

/** The words of a metric's machine name. */
export const named = (metric) => METRICS[metric]?.name ?? NAMES[metric] ?? metric.replaceAll("_", " ");

const SHORT = { available_ip_capacity: "available", ip_capacity: "capacity", round_trip_time: "rtt", tcp_achievable_single: "throughput" };

/** The unit of a result's metric. */
export const unitOf = (metric) => {
  const name = SHORT[metric] ?? metric;
  if (name === "rtt") return "ns";
  return /octets|mtu/.test(name) ? "octet" : name === "tcp_streams_to_fill" ? "count" : "bit/s";
};

/** A number with its unit; octets of packets are never rounded. */
export function number(value, unit, scale = value) {
  if (unit === "octet") return `${Math.round(value)} octets`;
  return unit === "count" ? String(value) : amount(value, unit, scale);
}

/** As short as a cell needs it: "940 M" is 940 Mbit/s. */
export const brief = (value, unit) => number(value, unit).replace(/bit\/s$/, "").replace(/ octets$/, "");

/** How runs end: the kind of badge, and its words. */
export const EXITS = {
  done: ["good", "● done"], inconclusive: ["mark", "◐ inconclusive"], skipped: ["mark", "◌ skipped"], stopped: ["mark", "■ stopped"],
  peer_failed: ["bad", "✕ peer failed"], host_failed: ["bad", "✕ host failed"], void: ["mark", "◐ void"],
};

/** What readers have to know of a run. */
export const FLAGS = { own_load: "a loading run of ours crossed it", host_busy: "a host was busy", clock_unsynchronised: "clock not synchronised" };

const CLAIMS = { at_least: "at least ", at_most: "at most " };

/** "920 to 960 Mbit/s", or nothing where the digits do not show a range; a bound has none. */
export function range({ low, high, value, state, claim }, unit) {
  if ((state ?? claim) in CLAIMS || low === null || high === null || low === undefined) return "";
  const [from, to] = [number(low, unit, value ?? high), number(high, unit, value ?? high)];
  return from === to ? "" : `${from.replace(/ [^ ]+$/, "")} to ${to}`;
}

/** What a cell or a value claims, in words. */
export function said(of, unit) {
  const claim = of.state ?? of.claim;
  if (claim === "failed") return "failed";
  if (claim === "inconclusive" || of.value === null) return "inconclusive";
  return `${CLAIMS[claim] ?? ""}${number(of.value, unit)}`;
}

/** That newer runs gave no value, and for how long; nothing of other cells. */
export function failing({ value, failing, failing_pairs }, now) {
  if (!failing) return "";
  const since = long(now - failing.since_ms);
  if (value === null) return `for ${since}`;
  const last = { failed: "failed", inconclusive: "was inconclusive" }[failing.state];
  return failing_pairs > 1 ? `${failing_pairs} pairs give no new value, the first for ${since}` : `no new value for ${since}: the last run ${last}`;
}

/** How long, in whole seconds at least. */
export const long = (ms) => (ms < 60e3 ? `${Math.max(0, Math.round(ms / 1000))} s` : lasting(ms));
export const ago = (ms, now) => `${long(now - ms)} ago`;
export const share = (part) => `${(100 * part).toFixed(part > 0.995 && part < 1 ? 1 : 0)} %`;
export const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;
export const pairPath = (source, target) => `/pair/${encodeURIComponent(source)}/${encodeURIComponent(target)}`;
export const pairLink = (source, target) => h("a", { class: "pair", href: pairPath(source, target) }, `${source} → ${target}`);
export const runLink = (run, text = "result") => h("a", { href: `/run/${encodeURIComponent(run)}` }, text);
export const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** "a, b and c". */
export const list = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`);

/** A chooser that keeps what was chosen in the address. */
export function chooser(label, name, options, chosen, changed) {
  const select = h("select", { name }, Object.entries(options).map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
  select.addEventListener("change", () => {
    const query = new URLSearchParams(location.search);
    query.set(name, select.value);
    history.replaceState(null, "", `?${query}`);
    changed(select.value);
  });
  return h("label", {}, label, select);
}

/** What the address has under a name, if that is one of `options`. */
export function asked(name, options, usual) {
  const value = new URLSearchParams(location.search).get(name);
  return value !== null && value in options ? value : usual;
}

/** A button that sends an order once it was pressed, and says what became of it. */
export function order(text, send, words) {
  const answer = h("span", { role: "status", class: "soft" });
  const button = h("button", { onclick: async () => {
    button.disabled = true;
    try {
      answer.textContent = words(await send());
    } catch (error) {
      answer.textContent = `Not done: ${error.message}`;
      button.disabled = false;
    }
  } }, text);
  return h("p", { class: "order" }, button, " ", answer);
}
