// The matrix: who reaches whom with how much.

import { ask, h, table, time } from "./kit.js";
import { ago, asked, capital, chooser, failing, list, long, METRICS, named, number, pairLink, plural, range, runLink, said } from "./words.js";
import { grid, words } from "./grid.js";
import { joinBox } from "./join.js";

const METRIC_NAMES = Object.fromEntries(Object.entries(METRICS).map(([key, of]) => [key, capital(of.name)]));
const BY = { auto: "Hosts, sites if many", host: "Hosts", site: "Sites" };
const SHADE = { value: "Value", age: "Age" };
/** News of so many cells and more are fetched this seldom. */
const [MANY, SELDOM_MS] = [900, 30e3];

export async function show(main) {
  document.title = "narrows fleet";
  const chosen = { metric: asked("metric", METRICS, "available"), by: asked("by", BY, "auto"), shade: asked("shade", SHADE, "value") };
  let drawn = null;
  let agents = 0;
  let fetched = 0;
  const fetch = async () => {
    const by = chosen.by === "auto" ? null : chosen.by;
    const [matrix, { alerts }] = await Promise.all([ask("matrix", { metric: chosen.metric, by }), ask("alerts")]);
    fetched = Date.now();
    return [matrix, alerts];
  };
  const rebuild = async () => {
    const [matrix, alerts] = await fetch();
    const change = (key) => (value) => { chosen[key] = value; return rebuild(); };
    const choosers = h("form", { class: "inline", onsubmit: (event) => event.preventDefault() },
      chooser("Show", "metric", METRIC_NAMES, chosen.metric, change("metric")),
      chooser("Of", "by", BY, chosen.by, change("by")),
      chooser("Colour by", "shade", SHADE, chosen.shade, change("shade")));
    const focus = document.activeElement?.name;
    if (matrix.sources.length < 2) {
      drawn = null;
      if (matrix.by === "site" && chosen.by === "site") {
        main.replaceChildren(h("h1", {}, "No two sites are named"), h("p", {}, "Sites are named in the fleet's file, each with its hosts. Until then, look at hosts."), choosers);
        return;
      }
      const all = (await ask("agents")).agents.filter((agent) => agent.state !== "left" && agent.state !== "revoked");
      // A join line that was just made stays.
      if (all.length !== agents || main.dataset.ready !== "yes") main.replaceChildren(...nobody(all));
      agents = all.length;
      return;
    }
    drawn = picture(matrix, alerts, chosen, choosers);
    main.replaceChildren(...drawn.parts);
    // Whoever measures the page sees when it was painted.
    requestAnimationFrame(() => setTimeout(() => performance.mark("matrix")));
    if (focus) main.querySelector(`[name="${focus}"]`)?.focus();
  };
  await rebuild();
  return async (kind, data) => {
    if (!drawn) return rebuild();
    if (kind === "agent" && drawn.has(data.name)) return null;
    if (kind !== "resync" && drawn.cells > MANY && Date.now() - fetched < SELDOM_MS) return null;
    const [matrix, alerts] = await fetch();
    return drawn.update(matrix, alerts) || rebuild();
  };
}

/** What to do before there is a pair. */
function nobody(agents) {
  const one = agents.length === 1;
  return [
    h("h1", {}, one ? "One agent, no pair yet" : "No agent has joined yet"),
    h("p", {}, one ? `${agents[0].name} is there. Paths are measured between two hosts: let one more join.` : "Paths are measured between hosts. Let three of them join: the matrix fills within two minutes of the third."),
    joinBox(agents.length),
  ];
}

function picture(matrix, alerts, chosen, choosers) {
  const title = `${capital(named(chosen.metric))} between ${plural(matrix.sources.length, matrix.by)}`;
  const heading = h("h1", {}, title);
  const sentence = h("p", {});
  const notes = h("div", {});
  const card = h("div", { class: "cell-card", role: "group", "aria-label": "The chosen cell" },
    h("p", { class: "soft" }, `Rows send, columns receive. Point at a cell, or walk with arrow keys${matrix.by === "site" ? "" : "; Enter opens its pair"}.`));
  const close = h("button", { class: "close", "aria-label": "Close", onclick: () => card.classList.remove("on") }, "✕");
  const look = (source, target, cell, of) => {
    card.classList.add("on");
    card.replaceChildren(...about(source, target, cell, of), close);
  };
  const made = grid(matrix, { title, worse: METRICS[chosen.metric].worse, shadeBy: chosen.shade, look, opens: matrix.by !== "site" });
  const key = h("div", { class: "grid-key" });
  const worst = h("div", {});
  const fill = (of, alerts) => {
    sentence.textContent = sum(of, chosen.metric);
    const open = alerts.filter((alert) => alert.state !== "ok");
    document.title = `${open.length ? `▲ ${open.length} - ` : ""}narrows fleet`;
    notes.replaceChildren(...[...open.map((alert) => h("p", { class: "note bad" }, h("strong", {}, "▲ Alert: "), alert.text,
      h("span", { class: "soft" }, ` For ${long(of.now_ms - alert.since_ms)}. `), alert.bottleneck && h("a", { href: `/bottlenecks#${encodeURIComponent(alert.bottleneck)}` }, "See the link"))),
      open.length > 0 && h("p", {}, h("a", { href: "/alerts" }, "Alerts and silences"))].filter(Boolean));
    key.replaceChildren(...legend(made.legend(), of, chosen));
    worst.replaceChildren(...slowest(of, chosen.metric));
  };
  fill(matrix, alerts);
  return {
    parts: [heading, notes, sentence, choosers, card, made.element, key, worst],
    cells: matrix.sources.length * matrix.targets.length,
    has: (name) => matrix.by === "site" || matrix.sources.includes(name),
    update(of, alerts) {
      if (!made.update(of)) return false;
      fill(of, alerts);
      return true;
    },
  };
}

/** The card of a cell. */
function about(source, target, cell, of) {
  if (source === target && of.by !== "site") return [h("p", {}, h("strong", {}, source), " is this host itself.")];
  const sites = of.by === "site";
  const head = h("p", {}, sites ? h("strong", {}, `${source} → ${target}`) : h("strong", {}, pairLink(source, target)), ": ", h("span", { class: "said" }, cell ? said(cell, of.unit) : "not known yet"),
    cell && range(cell, of.unit) && h("span", { class: "soft" }, ` (${range(cell, of.unit)})`));
  const why = { inferred: "Inferred", at_least: "Only a lower bound", at_most: "Only an upper bound", inconclusive: "Inconclusive", failed: "Failed" }[cell?.state];
  return [head, h("p", { class: "soft small" }, [
    cell ? `${cell.state === "inferred" ? "As of" : "Measured"} ${time(cell.at_ms)}, ${ago(cell.at_ms, of.now_ms)}` : "The mesh measures it in one of the next epochs",
    why && [why, cell.reason].filter(Boolean).join(cell.state === "inferred" ? " " : ": "),
    cell?.pairs && plural(cell.pairs, "pair"),
    cell?.failing && capital(failing(cell, of.now_ms)) + (cell.value !== null && cell.failing.reason ? ` (${cell.failing.reason})` : ""),
  ].filter(Boolean).join(". "), ". ", cell?.run && runLink(cell.run, "Its result"),
    cell?.failing && cell.failing.run !== cell.run && [cell.run && " ", runLink(cell.failing.run, "The last run")])];
}

function sum(of, metric) {
  const all = of.sources.length * (of.sources.length - (of.by === "site" ? 0 : 1));
  const count = (...states) => of.cells.filter((cell) => states.includes(cell.state)).length;
  const parts = [[count("value", "at_least", "at_most"), "measured"], [count("inferred"), "inferred"], [count("inconclusive"), "inconclusive"], [count("failed"), "failed"], [of.cells.filter((cell) => cell.failing && cell.value !== null).length, "without a new value lately"], [all - of.cells.length, "not known yet"]];
  const counts = parts.filter(([n]) => n > 0).map(([n, word]) => `${n} ${word}`);
  const known = of.cells.filter((cell) => cell.state === "value").map((cell) => cell.value).sort((a, b) => a - b);
  if (known.length === 0) return `${plural(all, "pair")}: ${list(counts)}.${count("at_least", "at_most") ? "" : " The first values come within two minutes."}`;
  const half = number(known[Math.floor(known.length / 2)], of.unit);
  const more = METRICS[metric].worse === "low" ? "or more" : "or less";
  return `${plural(all, "pair")}: ${list(counts)}. Half of what was measured is ${half} ${more}.`;
}

function legend(steps, of, chosen) {
  const age = chosen.shade === "age";
  const text = (words) => (age ? words.replace(" ms", "") : words);
  const swatch = (kind, words) => h("li", {}, h("span", { class: `swatch ${kind}`, "aria-hidden": "true" }), words);
  const seen = new Set(of.cells.map((cell) => cell.state));
  const units = of.unit === "bit/s" && !age ? " (k, M, G: kbit/s, Mbit/s, Gbit/s)" : "";
  return [
    steps.length > 0 && h("ol", { class: "scale", "aria-label": `Colours: ${age ? "age" : named(chosen.metric)} from` }, steps.map(([shade, from]) =>
      h("li", {}, h("span", { class: `swatch c${shade}`, "aria-hidden": "true" }), age ? ageWords(from) : text(from)))),
    steps.length > 0 && h("p", { class: "soft small" }, `Each colour begins at the ${age ? "age" : "value"} below it; the strongest is the ${age ? "oldest" : METRICS[chosen.metric].worse === "low" ? "slowest" : "longest"}${units}.`),
    h("ul", { class: "key" }, seen.has("inferred") && swatch("inferred c3", "~ inferred from other pairs"), seen.has("at_least") && swatch("bound-low c3", "≥ at least"), seen.has("at_most") && swatch("bound-high c3", "≤ at most"),
      seen.has("inconclusive") && swatch("hatched", "? inconclusive"), seen.has("failed") && swatch("crossed", "✕ failed"), of.cells.some((cell) => cell.failing && cell.value !== null) && swatch("failing c3", "no new value: runs fail now"), swatch("unknown", "not known yet")),
  ].filter(Boolean);
}

const ageWords = (from) => long(Number.parseFloat(from));

/** The pairs to look at first. */
function slowest(of, metric) {
  const known = of.cells.filter((cell) => cell.value !== null && cell.state !== "at_least" && cell.source !== cell.target);
  const sign = METRICS[metric].worse === "low" ? 1 : -1;
  known.sort((a, b) => sign * (a.value - b.value));
  if (known.length === 0) return [];
  return [h("h2", {}, METRICS[metric].worst), table("The first ten; 90 % intervals", [
    ["pair", (cell) => (of.by === "site" ? h("span", { class: "pair" }, `${cell.source} → ${cell.target}`) : pairLink(cell.source, cell.target))],
    // In one column, so that a telephone shows it too.
    [named(metric), (cell) => [h("b", {}, said(cell, of.unit)), h("div", { class: "soft small" }, range(cell, of.unit))], true],
    ["age", (cell) => ago(cell.at_ms, of.now_ms), true],
    ["how", (cell) => h("span", { class: "remark" }, cell.state === "inferred" ? `inferred ${cell.reason ?? ""}` : "measured")],
  ], known.slice(0, 10))];
}
