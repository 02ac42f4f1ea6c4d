// One run: what it found, over which routers, and the document of its command.

import { amount, ask, h, lasting, table, time } from "./kit.js";
import { report } from "./report.js";
import { EXITS, FLAGS, named, pairLink, plural, range, said, unitOf } from "./words.js";

export async function show(main, id) {
  const run = await ask(`runs/${encodeURIComponent(id)}`);
  document.title = `${run.kind}, ${run.agent} → ${run.target} - narrows fleet`;
  const [kind, word] = EXITS[run.exit] ?? ["mark", run.exit];
  const flags = run.flags ?? [];
  main.replaceChildren(...[
    h("h1", {}, `${run.kind}, ${run.agent} → ${run.target} `, h("span", { class: `badge ${kind}` }, word)),
    h("p", { class: "soft" }, `${time(run.began_ms)}; it took ${lasting(run.length_ms)}; because of: `, cause(run.origin), `; ${amount(run.octets, "octets")} sent`),
    h("p", {}, "All about ", pairLink(run.agent, run.target)),
    run.reason && h("p", { class: "note" }, run.reason),
    ...flags.map((flag) => h("p", { class: "note" }, h("strong", {}, "To know: "), FLAGS[flag] ?? flag)),
    values(run),
    routes(run),
    ...evidence(run),
  ].flat(2).filter(Boolean));
  return null;
}

/** An order has a page; other reasons are words. */
const cause = (origin) => (typeof origin === "string" ? origin : h("a", { href: `/orders#${origin.order}` }, "order"));

function values(run) {
  const rows = run.values ?? [];
  if (rows.length === 0) return h("p", {}, "It found no value.");
  return table("What the fleet keeps of it; 90 % intervals", [
    ["metric", (row) => named(row.metric)],
    ["way", (row) => h("span", { class: "pair" }, row.direction === "reverse" ? `${run.target} → ${run.agent}` : `${run.agent} → ${run.target}`)],
    ["value", (row) => h("b", {}, said(row, unitOf(row.metric))), true],
    ["interval", (row) => (row.claim === "inconclusive" ? "" : range(row, unitOf(row.metric))), true],
  ], rows);
}

function routes(run) {
  const [before, after] = [run.route_before ?? [], run.route_after ?? []];
  const text = (hops) => hops.map((hop) => hop.address ?? "").join(" ");
  if (before.length + after.length === 0) return [h("h2", {}, "Route"), h("p", { class: "soft" }, "It was not traced.")];
  if (before.length === 0 || after.length === 0 || text(before) === text(after)) {
    const when = before.length === 0 ? "after" : after.length === 0 ? "before" : "before and after";
    return [h("h2", {}, "Route"), way(run, before.length ? before : after, `as traced just ${when}`)];
  }
  return [h("h2", {}, "Routes"), way(run, before, "just before"), way(run, after, "just after: another one")];
}

function way(run, hops, words) {
  const item = (text, kind) => h("li", { class: kind }, text);
  return [h("p", {}, `${plural(hops.length, "router")}, ${words}.`),
    h("ol", { class: "route" }, item(run.agent, "end"), hops.map((hop) => item(hop.address ?? "no answer", hop.address ? null : "mute")), item(run.target, "end"))];
}

function evidence(run) {
  const link = h("p", {}, h("a", { href: `/api/v1/runs/${encodeURIComponent(run.id)}` }, "The same for programs (JSON)"));
  if (!run.evidence) return [h("h2", {}, "Evidence"), h("p", { class: "soft" }, "There is no document: the run did not end, or began more than 30 days ago."), link];
  return [...report(run.evidence), link];
}
