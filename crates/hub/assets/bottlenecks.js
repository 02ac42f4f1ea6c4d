// The links that hold paths back, with the evidence.

import { ask, folded, h, post, table } from "./kit.js";
import { ago, asked, capital, chooser, list, named, number, order, pairLink, plural, range, runLink, share } from "./words.js";

const METRICS = { capacity: "Capacity", available: "Available rate" };
const PROOFS = {
  running: ["mark", "▶ being proved"], shared: ["good", "● proved: shared"], not_shared: ["bad", "✕ disproved: not shared"], inconclusive: ["mark", "◐ not decided by the proof"],
};

const DELAYS = {
  running: ["mark", "▶ delays are being compared"], together: ["good", "● delays move together"], apart: ["bad", "✕ delays do not move together"],
  no_queue: ["mark", "○ no queue seen"], inconclusive: ["mark", "◐ delays could not be compared"],
};

export async function show(main) {
  document.title = "Bottlenecks - narrows fleet";
  let metric = asked("metric", METRICS, "capacity");
  const render = async () => {
    const of = await ask("bottlenecks", { metric });
    // What people unfolded stays unfolded.
    const open = [...main.querySelectorAll("details")].map((details) => details.open);
    main.replaceChildren(...page(of, chooser("Show", "metric", METRICS, metric, (value) => { metric = value; return render(); })));
    [...main.querySelectorAll("details")].forEach((details, n) => { details.open = open[n] ?? false; });
  };
  await render();
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  // A redraw while somebody stands on a button would take it away.
  const busy = () => document.activeElement !== main && main.contains(document.activeElement);
  return (kind) => (kind === "agent" || busy() ? null : render());
}

function page(of, choose) {
  const count = of.bottlenecks.length;
  return [
    h("h1", {}, count ? `${plural(count, "link")} hold${count === 1 ? "s" : ""} paths back` : "No bottleneck is located yet"),
    h("p", {}, of.measured_pairs ? `Of ${plural(of.measured_pairs, "measured pair")}, ${of.located_pairs} have a located bottleneck; ${of.undecided.length} have several candidates.`
      : "A link is located from values and routes of many pairs. Nothing was measured yet: the first values come within two minutes after the second agent joined."),
    count === 0 && of.measured_pairs > 0 && h("p", { class: "note" }, "Each pair is traced once a day. A link is named once two paths differ in it; more hosts, or a day of measuring, tell more."),
    count === 0 && !of.measured_pairs && h("p", {}, h("a", { href: "/fleet" }, "Let hosts join")),
    h("form", { class: "inline", onsubmit: (event) => event.preventDefault() }, choose),
    h("div", { class: "cards" }, of.bottlenecks.map((one) => card(one, of))),
    ...undecided(of),
    ...next(of),
  ].filter(Boolean);
}

/** One sentence, as somebody would say it. */
function sentence(one, of) {
  const where = one.sites.length ? ` of ${list(one.sites)}` : "";
  const width = range(one, of.unit).replace(/ [^ ]+$/, "").replace(" to ", "–");
  return [h("strong", {}, one.name), `, ${number(one.value, of.unit)}${width ? ` (${width})` : ""}, holds back `, h("strong", {}, `${one.paths.length} of ${plural(one.of, "path")}`), `${where}; ${share(one.confidence)} sure.`];
}

function card(one, of) {
  const [kind, word] = PROOFS[one.proof?.state] ?? ["mark", "not proved"];
  return h("section", { class: "held", id: one.id, "aria-label": one.name },
    h("p", { class: "lead" }, sentence(one, of)),
    gauge(one),
    proof(one, kind, word, of),
    h("p", { class: "soft small" }, `${capital(plural(one.links.length, "link"))}${one.links.length > 1 ? ", which no pair tells apart" : ""}: ${one.links.map((link) => `${link.from} → ${link.to}`).join("; ")}.`),
    folded(`Evidence: ${plural(one.paths.length, "path")}`, () => table(`Paths that ${one.name} holds back; 90 % intervals`, [
      ["path", (path) => pairLink(path.source, path.target)],
      [named(of.metric), (path) => (path.value === null ? "" : number(path.value, of.unit)), true],
      ["interval", (path) => (path.value === null ? "" : range(path, of.unit)), true],
      ["result", (path) => path.run && runLink(path.run)],
    ], one.paths)));
}

/** How many of the paths through it are held back, as a bar. */
function gauge(one) {
  const part = one.of > 0 ? Math.min(1, one.paths.length / one.of) : 0;
  return h("progress", { class: "gauge", max: "1", value: String(part), "aria-label": `${one.paths.length} of ${one.of} paths through it` });
}

function proof(one, kind, word, of) {
  const state = one.proof;
  const badge = h("span", { class: `badge ${kind}` }, word);
  const odds = state?.ratio ? `likelihood ratio ${state.ratio >= 1 ? Math.round(state.ratio) : `1 to ${Math.round(1 / state.ratio)}`}, ` : "";
  const why = state?.why ? `${state.why}, ` : "";
  const text = state && h("span", { class: "soft small" }, ` ${odds}${why}${state.state === "running" ? "begun" : ""} ${ago(state.at_ms, of.now_ms)}`);
  if (state?.state === "running") return h("p", { class: "order" }, badge, text);
  const send = () => post(`bottlenecks/${encodeURIComponent(one.id)}/prove`, { metric: of.metric });
  const press = order(state ? "Prove again" : "Prove", send, () => "Ordered: two loading runs over one path, while another one is watched. It takes some minutes.");
  press.prepend(badge, text ?? "", " ");
  // What a button costs others stands beside it.
  press.append(h("span", { class: "soft small" }, "loads the link for twice 30 s, with seven tenths of what it has free"));
  return press;
}

function undecided(of) {
  if (of.undecided.length === 0) return [];
  return [h("h2", {}, "Not decided yet"), h("p", { class: "soft" }, "These paths are slow, and more than one link may be why."), ...suspects(of), table("Candidates of each path", [
    ["path", (path) => pairLink(path.source, path.target)],
    ["one of", (path) => h("ul", { class: "plain" }, path.candidates.map((name) => h("li", {}, name)))],
  ], of.undecided)];
}

/** The fewest links that would explain all of these paths: few causes are likelier than many. */
function suspects(of) {
  const all = of.suspects ?? [];
  if (all.length === 0) return [];
  const one = (suspect) => h("li", {}, h("strong", {}, suspect.name), ` explains ${plural(suspect.paths.length, "path")}`, suspect.located && ", and holds others back",
    ...delays(suspect.delays, of));
  return [h("p", {}, `Fewest links that would explain all of them: ${all.length}.`), h("ul", { class: "plain" }, all.slice(0, 10).map(one))];
}

/** Whether these paths wait in one queue, by streams over all of them at one time. */
function delays(row, of) {
  if (!row) return [];
  const [kind, word] = DELAYS[row.state] ?? ["mark", row.state];
  const paths = (all) => list(all.map((path) => `${path.source} → ${path.target}`));
  const said = [
    ...row.groups.map((group) => (group.length > 1 ? `${paths(group)} share a queue` : `${paths(group)} waits in a queue of its own`)),
    ...(row.no_queue.length && row.groups.length ? [`${paths(row.no_queue)}: no queue seen`] : []), ...(row.why ? [row.why] : []), ago(row.at_ms, of.now_ms),
  ];
  return [" ", h("span", { class: `badge ${kind}` }, word), h("span", { class: "soft small" }, ` ${said.join("; ")}`)];
}

function next(of) {
  if (of.next.length === 0) return [];
  return [h("h2", {}, "Measured next"), h("p", {}, "These pairs would tell most: ", of.next.flatMap((pair, n) => [n > 0 && ", ", pairLink(pair.source, pair.target)]), ".")];
}
