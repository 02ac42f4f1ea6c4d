// A result document as people read it: its answer, its values with intervals, its evidence.

import { amount, between, folded, h, s, table } from "./kit.js";

const WORDS = { estimated: "", lower_bound: "at least ", upper_bound: "at most ", inconclusive: "inconclusive" };
const NAMES = {
  round_trip_time: "round trip", path_mtu: "path MTU", ip_capacity: "capacity",
  available_ip_capacity: "available rate", cross_traffic: "cross traffic",
};

/** The parts of a document of any command; one that is a single metric is a list of one. */
export function report(of) {
  const metrics = of.metrics ?? (of.metric ? [of] : []);
  const problems = (of.advice ?? []).map((advice) => advice.text ?? advice.id).filter(Boolean);
  return [
    of.answer?.length > 0 && h("div", { class: "answer" }, of.answer.map((line) => h("p", {}, `${{ carries: "Carries ", free_now: "Free now: ", limit: "Limited by: ", do: "To do: " }[line.line] ?? ""}${line.text}`))),
    of.error && h("p", { class: "note bad" }, typeof of.error === "string" ? of.error : of.error.text ?? JSON.stringify(of.error)),
    problems.length > 0 && h("ul", {}, problems.map((text) => h("li", {}, text))),
    metrics.length > 0 && [h("h2", {}, "What was measured"), h("p", { class: "soft small" }, "A bar is the 90 % interval around the value, between 80 % and 120 % of it. An arrow says that the interval goes further."), measured(metrics)],
    metrics.some((row) => row.caveats?.length) && [h("h2", {}, "Doubts"), h("ul", {}, metrics.flatMap((row) => (row.caveats ?? []).map((caveat) => h("li", {}, `${name(row)}: ${caveat.text}`))))],
    of.hops?.length > 0 && hopRows(of.hops),
    evidence(metrics),
    folded("The whole document (JSON)", () => h("pre", { tabindex: "0" }, JSON.stringify(of, null, 2))),
  ].flat(2).filter(Boolean);
}

const name = (row) => `${NAMES[row.metric] ?? row.metric.replaceAll("_", " ")}${row.direction === "reverse" ? ", from the target" : ""}`;
const unit = (row) => (row.unit === "octet" ? "octets" : row.unit);
const number = (value, row) => (unit(row) === "octets" ? `${value} octets` : amount(value, unit(row), row.value ?? value));

function measured(metrics) {
  return table("Values of this run with 90 % intervals", [
    ["what", name],
    ["value and interval", (row) => [row.value === null ? "inconclusive" : `${WORDS[row.verdict] ?? ""}${number(row.value, row)}`, h("br"), h("span", { class: "soft small" }, interval(row))], true],
    ["80 % to 120 %", bar],
    ["confidence", (row) => row.confidence ?? ""],
    ["method", (row) => row.method],
    ["sent", (row) => amount(row.octets ?? 0, "octets"), true],
  ], metrics);
}

function interval(row) {
  if (row.low === null || row.high === null || row.low === row.high) return "";
  return between(row.low, row.high, unit(row), row.value ?? row.high) || "a narrow interval";
}

/** The interval relative to the value. */
function bar(row) {
  if (!(row.value > 0) || row.low === null || row.high === null || row.low === row.high) return "";
  const place = (value) => Math.min(196, Math.max(4, 4 + ((value / row.value - 0.8) / 0.4) * 192));
  return s("svg", { class: "span-bar", viewBox: "0 0 200 26", role: "img", "aria-label": `${number(row.low, row)} to ${number(row.high, row)}` },
    s("path", { class: "track", d: "M4 13H196" }),
    s("path", { class: "range", d: `M${place(row.low)} 13H${Math.max(place(row.high), place(row.low) + 1)}` }),
    row.low < 0.8 * row.value && s("path", { class: "dot", d: "M0 13l8-6v12z" }),
    row.high > 1.2 * row.value && s("path", { class: "dot", d: "M200 13l-8-6v12z" }),
    s("circle", { class: "dot", cx: place(row.value), cy: 13, r: 5 }));
}

function hopRows(hops) {
  return [h("h2", {}, "Hops"), table("Hops as measured by this run", [
    ["hop", (row) => row.ttl],
    ["who answered", (row) => row.routers?.map((router) => router.address).join(", ") || "nobody"],
    ["capacity", (row) => (row.capacity === null ? "inconclusive" : `${WORDS[row.verdict] ?? ""}${amount(row.capacity, "bit/s")}`), true],
    ["round trip", (row) => (row.round_trip_ns === null ? "not known" : amount(row.round_trip_ns, "ns")), true],
    ["queueing", (row) => (row.queueing_ns === null ? "not known" : amount(row.queueing_ns, "ns")), true],
  ], hops)];
}

/** Lists of numbers in the evidence, one small plot each. */
function evidence(metrics) {
  const plots = metrics.flatMap((row) => Object.entries(row.evidence ?? {})
    .filter(([, value]) => Array.isArray(value) && value.length > 3 && value.every((number) => typeof number === "number"))
    .map(([key, values]) => [row, key, values]));
  if (plots.length === 0) return null;
  return folded(`Evidence: ${plots.length} ${plots.length === 1 ? "list" : "lists"} of numbers`, () => h("div", { class: "two" }, plots.map(([row, key, values]) => {
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const y = (value) => 58 - ((value - low) / (high - low || 1)) * 52;
    const points = values.map((value, n) => `${((n / (values.length - 1)) * 296 + 2).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
    const text = `${name(row)}: ${key.replaceAll("_", " ")}, ${values.length} values from ${Number(low.toPrecision(4))} to ${Number(high.toPrecision(4))}`;
    return h("figure", {}, s("svg", { class: "spark", viewBox: "0 0 300 62", preserveAspectRatio: "none", role: "img", "aria-label": text }, s("polyline", { class: "line", points })), h("figcaption", { class: "small soft" }, text),
      folded(`Table of ${values.length} numbers`, () => table(text, [["number", (at) => at + 1], ["value", (at) => Number(values[at].toPrecision(6)), true]], [...values.keys()])));
  })));
}
