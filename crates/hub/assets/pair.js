// One pair: values both ways, what it was over time, its route, its runs.

import { amount, ask, h, lasting, post, table, time, when } from "./kit.js";
import { chart, sum } from "./chart.js";
import { ago, asked, capital, EXITS, FLAGS, METRICS, named, number, order, pairLink, pairPath, plural, range, runLink, said, unitOf } from "./words.js";

const HOUR = 3600e3;
const RANGES = { "1h": HOUR, "6h": 6 * HOUR, "24h": 24 * HOUR, "7d": 168 * HOUR, "30d": 720 * HOUR, "1y": 8760 * HOUR };
const ORDERS = ["available", "rtt", "capacity", "throughput -t 10", "hops"];

export async function show(main, source, target) {
  document.title = `${source} → ${target} - narrows fleet`;
  const [span, metric] = [asked("range", RANGES, "24h"), asked("metric", METRICS, "available")];
  const { agents } = await ask("agents");
  const stranger = [source, target].find((name) => !agents.some((agent) => agent.name === name));
  if (stranger) throw new Error(`No agent is called "${stranger}".`);
  const to = agents.find((agent) => agent.name === target).address;
  const render = async () => {
    const pair = await ask("pairs", { source, target });
    const since = pair.now_ms - RANGES[span];
    const [series, held] = await Promise.all([
      ask("series", { source, target, metric, since, until: pair.now_ms, points: 900 }),
      Promise.all(["capacity", "available"].map((metric) => ask("bottlenecks", { metric }))),
    ]);
    main.replaceChildren(...page({ pair: { ...pair, route: between(pair.route, to) }, series, held, span, metric, since }));
  };
  await render();
  const ours = (run) => [run.agent, run.target].every((name) => name === source || name === target);
  // A redraw would take the focus and the zoom from whoever stands in the chart.
  const busy = () => document.activeElement !== main && main.contains(document.activeElement);
  return (kind, data) => (!busy() && (kind === "resync" || (kind === "run" && ours(data))) ? render() : null);
}

function page({ pair, series, held, span, metric, since }) {
  const { source, target } = pair;
  return [
    h("h1", {}, `${source} → ${target}`),
    h("p", {}, h("a", { href: pairPath(target, source) }, `The other way: ${target} → ${source}`)),
    ...blame(pair, held),
    values(pair),
    h("nav", { "aria-label": "Metric" }, h("ul", { class: "ranges" }, Object.keys(METRICS).map((name) =>
      h("li", {}, h("a", { href: `?${new URLSearchParams({ metric: name, range: span })}`, "aria-current": name === metric && "true" }, named(name)))))),
    h("nav", { "aria-label": "Time range" }, h("ul", { class: "ranges" }, Object.keys(RANGES).map((name) =>
      h("li", {}, h("a", { href: `?${new URLSearchParams({ metric, range: name })}`, "aria-current": name === span && "true" }, name))))),
    over(pair, series, metric, since),
    route(pair),
    runs(pair),
    measure(pair),
  ].filter(Boolean);
}

/** The links that are known to hold this pair back. */
function blame(pair, held) {
  return held.flatMap((of) => of.bottlenecks.filter((one) => one.paths.some((path) => path.source === pair.source && path.target === pair.target)).map((one) =>
    h("p", { class: "note" }, h("strong", {}, `${capital(named(of.metric))}: `), `${one.name}, ${number(one.value, of.unit)}, holds this path back. `,
      h("a", { href: `/bottlenecks?metric=${of.metric}#${encodeURIComponent(one.id)}` }, "Evidence"))));
}

/** The newest values, there and back beside each other. */
function values(pair) {
  const metrics = [...new Set([...pair.values, ...pair.reverse, ...pair.inferred].map((value) => value.metric))];
  if (metrics.length === 0) return h("p", { class: "note" }, "Nothing was measured over this pair yet. The mesh comes to it in one of the next epochs; “Measure now” below does not wait.");
  const cell = (values, metric, inferred) => {
    const value = values.find((value) => value.metric === metric);
    const unit = unitOf(metric);
    if (value) {
      const flags = value.flags.map((flag) => FLAGS[flag] ?? flag).join(", ");
      return [h("b", {}, said(value, unit)), range(value, unit) && h("div", { class: "soft small" }, range(value, unit)),
        h("div", { class: "soft small" }, `${ago(value.at_ms, pair.now_ms)}, `, runLink(value.run)), flags && h("div", { class: "soft small" }, flags)];
    }
    const guess = inferred.find((value) => value.metric === metric);
    return guess ? [h("b", {}, `~ ${number(guess.value, unit)}`), h("div", { class: "soft small" }, `inferred from ${guess.segment}`)] : h("span", { class: "soft" }, "not known yet");
  };
  return table("Newest values with 90 % intervals", [
    ["metric", named],
    [h("span", { class: "pair" }, `${pair.source} → ${pair.target}`), (metric) => cell(pair.values, metric, pair.inferred)],
    [h("span", { class: "pair" }, `${pair.target} → ${pair.source}`), (metric) => cell(pair.reverse, metric, [])],
  ], metrics);
}

function over(pair, series, metric, since) {
  const points = series.points.map((point) => (point.claim === "inconclusive" ? { ...point, value: null, low: null, high: null } : point));
  // The chart knows octets as amounts of data, which it rounds.
  const unit = unitOf(metric) === "octet" ? "IP octets" : unitOf(metric);
  const of = { points, unit, since_ms: since, until_ms: pair.now_ms };
  const name = named(metric);
  return chart({ title: `${capital(name)}, ${pair.source} → ${pair.target}`, series: of, sentence: points.length ? sum(of, name) : "" });
}

/** The routers alone: the last to answer a trace is the target itself. */
function between(route, address) {
  const host = address.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
  return route?.at(-1)?.address === host ? route.slice(0, -1) : route;
}

function route(pair) {
  if (!pair.route) return h("section", {}, h("h2", {}, "Route"), h("p", { class: "soft" }, "It was not traced yet: each pair is traced once a day, and around each run."));
  const silent = pair.route.filter((hop) => hop.address === null).length;
  const hop = (words, kind) => h("li", { class: kind }, words);
  const routers = pair.route.length ? plural(pair.route.length, "router") : "No router";
  return h("section", {}, h("h2", {}, "Route"),
    h("p", {}, `${routers}${silent ? `, of which ${silent} did not answer` : ""}; the same since ${time(pair.route_since_ms)}.`),
    h("ol", { class: "route" }, hop(pair.source, "end"), pair.route.map((one) => hop(one.address ?? "no answer", one.address ? null : "mute")), hop(pair.target, "end")));
}

const why = (origin) => (typeof origin === "string" ? origin : "order");

function runs(pair) {
  if (pair.runs.length === 0) return h("section", {}, h("h2", {}, "Runs"), h("p", { class: "soft" }, "No run is kept."));
  return h("section", {}, h("h2", {}, "Runs"), table(`The newest ${pair.runs.length}`, [
    ["began", (run) => when(run.began_ms)],
    ["what", (run) => run.kind],
    ["outcome", (run) => h("span", { class: `badge ${EXITS[run.exit]?.[0] ?? "mark"}` }, EXITS[run.exit]?.[1] ?? run.exit)],
    ["because of", (run) => why(run.origin)],
    ["took", (run) => lasting(run.length_ms), true],
    ["sent", (run) => amount(run.octets, "octets"), true],
    ["remarks", (run) => h("span", { class: "remark wide" }, [run.reason, ...run.flags.map((flag) => FLAGS[flag] ?? flag)].filter(Boolean).join("; "))],
    ["report", (run) => runLink(run.id, "all of it")],
  ], pair.runs));
}

function measure(pair) {
  const kind = h("select", {}, ORDERS.map((command) => h("option", {}, command)));
  const send = () => post("orders", { source: pair.source, target: pair.target, command: kind.value });
  const words = ({ at_ms, keys }) => `Ordered for ${time(at_ms)}${keys.length ? `; it keeps others off ${keys.join(", ")}` : ""}. Its result will be listed here.`;
  return h("section", {}, h("h2", {}, "Measure now"), h("p", {}, `A run that loads the path waits for the first gap in the timetable of all that it crosses. See also `, pairLink(pair.target, pair.source), " and ", h("a", { href: "/orders" }, "all orders"), "."),
    h("form", { class: "inline", onsubmit: (event) => event.preventDefault() }, h("label", {}, "What", kind), order("Measure", send, words)));
}
