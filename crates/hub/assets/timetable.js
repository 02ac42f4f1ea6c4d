// The timetable: a day's loading runs on each key, what they use of its budget, what found no place.

import { amount, ask, h, lasting, redraw, s, table, ticks, time, when } from "./kit.js";
import { list, pairLink, plural, share } from "./words.js";

/** More rows than this are not drawn: the filter finds the rest. */
const MOST = 60;

/** A file for a beginning. */
const EXAMPLE = `[groups]
everybody = ["*"]

[[test]]
pairs = "all of everybody"
run = "throughput -t 10"
every = "6 h"
`;

export async function show(main) {
  document.title = "Timetable - narrows fleet";
  const filter = h("input", { type: "search", name: "find", size: "24", placeholder: "host, site or link" });
  let plan = null;
  let chosen = null;
  const body = h("div", {});
  const draw = () => body.replaceChildren(...day(plan, filter.value.trim().toLowerCase(), chosen, (key) => {
    chosen = key;
    draw();
    body.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
  }));
  const render = async () => {
    plan = await ask("plan");
    const { mesh } = plan;
    const commands = mesh.commands.map((words) => [words].flat().join(" "));
    main.replaceChildren(...[
      h("h1", {}, plan.runs.length ? `${plural(plan.runs.length, "loading run")} in ${lasting(plan.length_ms)}` : "No loading run is planned"),
      h("p", {}, `Plan ${plan.serial}, from ${time(plan.begin_ms)}.${mesh.hosts < 2 ? "" : ` Beside it, the light mesh: each of ${plural(mesh.hosts, "host")} measures ${mesh.per_epoch} others in an hour (${list(commands) || "nothing yet"}), so each pair comes once in ${plural(mesh.cycle_epochs, "hour")}.`}`),
      plan.fault && h("p", { class: "note bad" }, h("strong", {}, "The fleet's file means nothing now: "), `${plan.fault}. The mesh goes on without it.`),
      h("p", {}, h("a", { href: "/orders" }, "Orders by hand"), " take what this leaves free. ", h("a", { href: "/configuration" }, "The configuration"), " has the tests."),
      plan.runs.length === 0 && h("div", { class: "note" }, mesh.hosts < 2
        ? [h("p", {}, "Two hosts are needed for a run."), h("p", {}, h("a", { href: "/fleet" }, "Let hosts join"))]
        : [h("p", {}, "Loading runs are named in the fleet's file, such as this one:"), h("pre", { tabindex: "0" }, EXAMPLE),
          h("p", {}, h("code", {}, "narrows fleet plan fleet.toml"), " shows what it would cost, ", h("code", {}, "narrows fleet apply fleet.toml"), " begins.")]),
      ...soon(plan),
      plan.keys.length > 0 && h("h2", {}, "The day, key by key"),
      plan.keys.length > 0 && h("form", { class: "inline", onsubmit: (event) => event.preventDefault() }, h("label", {}, "Find a key", filter)),
      plan.keys.length > 0 && body,
      ...left(plan),
    ].filter(Boolean));
    if (plan.keys.length) draw();
  };
  filter.addEventListener("input", () => draw());
  await render();
  return (kind) => (kind === "plan" || kind === "resync" ? render() : null);
}

/** What runs now or next. */
function soon(plan) {
  const next = plan.runs.filter((run) => run.at_ms + run.length_ms > plan.now_ms).sort((a, b) => a.at_ms - b.at_ms).slice(0, 5);
  if (next.length === 0) return [];
  return [listed("Now and next", next)];
}

const listed = (caption, runs) => table(caption, [
  ["at", (run) => when(run.at_ms)],
  ["pair", (run) => pairLink(run.agent, run.target)],
  ["what", (run) => [run.command].flat().join(" ")],
  ["span", (run) => lasting(run.length_ms), true],
  ["may send", (run) => amount(run.octets, "octets"), true],
], runs);

function day(plan, wanted, chosen, choose) {
  const used = (key) => Math.max(key.busy_ms / key.budget_ms, key.budget_octets ? key.octets / key.budget_octets : 0);
  const found = plan.keys.filter((key) => key.key.toLowerCase().includes(wanted)).sort((a, b) => used(b) - used(a) || (a.key < b.key ? -1 : 1));
  const shown = found.slice(0, MOST);
  const runs = new Map(shown.map((key) => [key.key, []]));
  for (const run of plan.runs) for (const key of run.keys) runs.get(key)?.push(run);
  const rows = h("div", { class: "day", role: "list", "aria-label": "Keys and their runs" }, axis(plan), shown.map((key) => row(plan, key, runs.get(key.key), used(key), key.key === chosen, choose)));
  return [
    h("p", { class: "soft small" }, `${found.length > MOST ? `The ${MOST} busiest of ${found.length} keys. ` : ""}A key is what two runs must not load at once. Each bar is a run; the number says how much of its budget the key has used. Press a key for its runs.`),
    rows,
    chosen && runs.has(chosen) && h("p", { class: "chosen" }, h("strong", {}, chosen), `: ${uses(shown.find((key) => key.key === chosen), runs.get(chosen))}.`),
    chosen && runs.has(chosen) && listed(`Runs of ${chosen}`, runs.get(chosen)),
  ].filter(Boolean);
}

/** What a key has of its budget, in words. */
function uses(key, runs) {
  const octets = key.budget_octets ? `; they may send ${amount(key.octets, "octets")} of ${amount(key.budget_octets, "octets")} a day` : "";
  return `${plural(runs.length, "run")}, busy for ${lasting(key.busy_ms)} of ${lasting(key.budget_ms)}${octets}`;
}

/** Hours above the bars. */
function axis(plan) {
  const holder = h("div", { class: "hours", "aria-hidden": "true" });
  const place = (ms) => ((ms - plan.begin_ms) / plan.length_ms) * 1000;
  const draw = () => {
    const width = holder.clientWidth || 600;
    const marks = ticks(plan.begin_ms, plan.begin_ms + plan.length_ms, Math.max(2, Math.floor(width / 70))).filter(([ms]) => place(ms) > 20 && place(ms) < 975);
    holder.replaceChildren(s("svg", { viewBox: `0 0 ${width} 18`, width, height: 18 }, marks.map(([ms, label]) => s("text", { x: (place(ms) / 1000) * width, y: 13, "text-anchor": "middle" }, label))));
  };
  redraw(holder, draw);
  return h("div", { class: "key-row", role: "presentation" }, h("span", {}), holder, h("span", {}));
}

function row(plan, key, runs, used, chosen, choose) {
  const place = (ms) => Math.min(1000, Math.max(0, (ms / plan.length_ms) * 1000));
  // A run of 15 s is a sixth of a pixel of a day: no bar is narrower than one can see.
  const bars = runs.map((run) => `M${place(run.at_ms - plan.begin_ms).toFixed(1)} 3h${Math.max(2.5, place(run.length_ms)).toFixed(1)}v14h-${Math.max(2.5, place(run.length_ms)).toFixed(1)}z`).join("");
  const now = place(plan.now_ms - plan.begin_ms);
  const words = uses(key, runs);
  return h("div", { class: `key-row${used >= 0.999 ? " full" : ""}`, role: "listitem" },
    h("button", { "data-key": key.key, "aria-pressed": String(chosen), onclick: () => choose(key.key) }, key.key),
    s("svg", { class: "bars", viewBox: "0 0 1000 20", preserveAspectRatio: "none", role: "img", "aria-label": words },
      s("title", {}, words), s("rect", { class: "track", x: 0, y: 0, width: 1000, height: 20 }), s("path", { class: "run", d: bars }), s("path", { class: "now", d: `M${now.toFixed(1)} 0v20` })),
    h("span", { class: "n small", title: words }, share(used)));
}

function left(plan) {
  if (plan.not_placed.length === 0) return plan.runs.length ? [h("p", { class: "soft" }, "Every run found a place.")] : [];
  return [h("h2", {}, `${plural(plan.not_placed.length, "run")} found no place`), table("What was not placed, and why", [
    ["pair", (run) => pairLink(run.agent, run.target)],
    ["what", (run) => [run.command].flat().join(" ")],
    ["why", (run) => run.reason],
  ], plan.not_placed)];
}
